"""Commands around training: ``train`` and ``evaluate``."""

import json
import sys
from functools import partial
from pathlib import Path

from transformer.commands.command_line import CHECKPOINT, JSON, argument, beam_width, command, from_zero


@command(
    argument("recipe", help="a TOML file, e.g. configs/en-fr.toml"),
    argument("--data", default="data", help="folder that holds the corpora (default: data)"),
    argument("--run-directory", help="folder for the run's state (default: runs/NAME)"),
    argument(
        "--output",
        help="where the finished checkpoint goes, if its dev score is better (default: checkpoints/NAME)",
    ),
    argument("--stop-after", type=from_zero, help="save and stop after this step; the same command goes on later"),
)
def train(recipe: str, data: str, run_directory: str | None, output: str | None, stop_after: int | None) -> None:
    """Train a model by a recipe; if started again, training resumes where it was stopped.

    A progress bar shows the loss and the time left; every evaluation prints a line.
    """
    from tqdm import tqdm

    from transformer.training.publication import publish
    from transformer.training.recipe import load_recipe
    from transformer.training.trainer import Trainer

    def report(row: dict[str, float]) -> None:
        if bar.disable:
            return
        bar.update(row["step"] - bar.n)
        bar.set_postfix_str(f"loss {row['train_loss']:.3f}")
        if "dev_score" in row:
            pairs = f", next sentence {row['next_sentence_accuracy']:.1%}" if "next_sentence_accuracy" in row else ""
            bar.write(f"step {row['step']}: dev loss {row['dev_loss']:.3f}, dev score {row['dev_score']:.2f}{pairs}")

    loaded = load_recipe(recipe)
    trainer = Trainer(loaded, data=data, run_directory=Path(run_directory or Path("runs") / loaded.name), report=report)
    silent = not trainer.accelerator.is_main_process
    with tqdm(total=loaded.steps, initial=trainer.step, unit="step", desc=loaded.name, disable=silent) as bar:
        trainer.run(stop_after=stop_after)
    if trainer.step == loaded.steps and trainer.accelerator.is_main_process:
        print(publish(trainer, Path(output or Path("checkpoints") / loaded.name)))


@command(
    CHECKPOINT,
    argument("--data", required=True, metavar="FILE"),
    argument(
        "--train",
        metavar="FILE",
        help="print baselines beside the scores, fitted to this file (not for translation)",
    ),
    argument("--task", help="which task of a text-to-text model the file is for, e.g. fill"),
    argument(
        "--beam", type=beam_width, default=4, metavar="N", help="beam width for translation (default 4; 1 = greedy)"
    ),
    argument("--lowercase", action="store_true", help="score translations without regard to upper and lower case"),
    JSON,
    argument("--update-card", action="store_true", help="write the scores into the checkpoint's README.md"),
)
def evaluate(
    checkpoint: str,
    data: str,
    train: str | None,
    task: str | None,
    beam: int,
    lowercase: bool,
    as_json: bool,
    update_card: bool,
) -> None:
    """Score a checkpoint on a file."""
    from tqdm import tqdm

    from transformer.files.checkpoints import load
    from transformer.scores.bleu_and_chrf import reference_note
    from transformer.training.evaluation import evaluate

    model = load(checkpoint)
    progress = partial(tqdm, unit="sentence", disable=None)  # None: silent without a terminal
    scores = evaluate(model, data, train=train, task=task, beam=beam, lowercase=lowercase, progress=progress)
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
