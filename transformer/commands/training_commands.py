"""Commands around training: ``train`` and ``evaluate``."""

import json
import sys
from pathlib import Path

from transformer.commands.command_line import (
    CHECKPOINT,
    JSON,
    Command,
    argument,
    beam_width,
    from_zero,
)


def _train(recipe: str, data: str, run_directory: str | None, output: str | None, stop_after: int | None) -> None:
    from transformer.training.progress import TrainingProgress
    from transformer.training.publication import publish
    from transformer.training.recipe import load_recipe
    from transformer.training.trainer import Trainer

    loaded = load_recipe(recipe)
    trainer = Trainer(loaded, data=data, run_directory=Path(run_directory or Path("runs") / loaded.name))
    with TrainingProgress(trainer) as progress:
        if trainer.accelerator.is_main_process:
            trainer.report = progress
        trainer.run(stop_after=stop_after)
    if trainer.step == loaded.steps and trainer.accelerator.is_main_process:
        print(publish(trainer, Path(output or Path("checkpoints") / loaded.name)))


TRAIN = Command(
    "train",
    "train a recipe; started again, it goes on where it was stopped",
    _train,
    (
        argument("recipe", help="a TOML file, e.g. configs/en-fr.toml"),
        argument("--data", default="data", help="folder that holds the corpora (default: data)"),
        argument("--run-directory", help="folder for the run's state (default: runs/NAME)"),
        argument(
            "--output",
            help="where the finished checkpoint goes, if its dev score is better (default: checkpoints/NAME)",
        ),
        argument(
            "--stop-after",
            type=from_zero,
            help="save and stop after this step; the same command goes on later",
        ),
    ),
)


def _evaluate(
    checkpoint: str,
    data: str,
    train: str | None,
    task: str | None,
    beam: int,
    lowercase: bool,
    as_json: bool,
    update_card: bool,
) -> None:
    from transformer.files.checkpoints import load
    from transformer.scores.bleu_and_chrf import reference_note
    from transformer.training.evaluation import evaluate
    from transformer.training.progress import progress_bar

    model = load(checkpoint)
    scores = evaluate(model, data, train=train, task=task, beam=beam, lowercase=lowercase, progress=progress_bar)
    if update_card:
        from transformer.training.card import update_scores

        update_scores(model, Path(data), scores, train=Path(train) if train else None, lowercase=lowercase)
    note = reference_note(scores)
    if as_json:
        print(json.dumps(scores))
        if note:
            print(note, file=sys.stderr)
        return
    for name, value in scores.items():
        print(f"{name:<30}{value:.4g}" if isinstance(value, float) else f"{name:<30}{value}")
    if note:
        print(note)


EVALUATE = Command(
    "evaluate",
    "score a checkpoint on a file",
    _evaluate,
    (
        CHECKPOINT,
        argument("--data", required=True, metavar="FILE"),
        argument(
            "--train",
            metavar="FILE",
            help="print baselines beside the scores, fitted to this file (not for translation)",
        ),
        argument("--task", help="which task of a text-to-text model the file is for, e.g. fill"),
        argument(
            "--beam",
            type=beam_width,
            default=4,
            metavar="N",
            help="beam width for translation (default 4; 1 = greedy)",
        ),
        argument("--lowercase", action="store_true", help="score translations without regard to upper and lower case"),
        JSON,
        argument("--update-card", action="store_true", help="write the scores into the checkpoint's README.md"),
    ),
)
