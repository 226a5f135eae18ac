"""Commands around training: ``train``, ``snapshots``, ``evaluate``, ``digits`` and ``pairs``."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from transformer.commands.command_line import (
    CHECKPOINT,
    JSON,
    Command,
    argument,
    beam_width,
    from_zero,
    whole_numbers,
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


def _snapshots(run_directory: str, output: str, steps: Sequence[int] | None) -> None:
    from transformer.training.publication import earlier_steps, publish_snapshots

    run, checkpoint = Path(run_directory), Path(output)
    wanted = earlier_steps(run, checkpoint) if steps is None else steps
    for step in publish_snapshots(run, checkpoint, wanted):
        print(f"step {step}")


SNAPSHOTS = Command(
    "snapshots",
    "put the snapshots of a run, in 8 bits, into the checkpoint that came out of it",
    _snapshots,
    (
        argument("--run-directory", required=True, metavar="DIR", help="folder of the run's state"),
        argument("--output", required=True, metavar="DIR", help="the checkpoint; other snapshots in it go"),
        argument("--steps", type=whole_numbers, help="e.g. 0,300,3000 (default: all before the checkpoint)"),
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


def _write_corpus(folder: Path, rows_by_split: Mapping[str, Sequence[str]], *, of: str) -> None:
    """Write one file per split, each whole or not at all, and print how many rows it has."""
    from transformer.disk.whole_files import write_text

    for split, rows in rows_by_split.items():
        path = folder / f"{split}.tsv"
        write_text(path, "\n".join(rows) + "\n")
        print(f"{path}  {len(rows):,} {of}")


def _digits(data: str) -> None:
    from transformer.pictures.digits import digit_rows

    _write_corpus(Path(data) / "digits", digit_rows(), of="pictures")


DIGITS = Command(
    "digits",
    "write scikit-learn's handwritten digits as a corpus",
    _digits,
    (argument("--data", default="data", metavar="DIR", help="the files go to DIR/digits (default: data)"),),
)


def _pairs(data: str) -> None:
    from transformer.training.corpora import read_texts
    from transformer.training.pair_corpora import consecutive_lines, cut_texts

    root = Path(data)
    english = {split: read_texts(root / "tatoeba-en-fr" / f"{split}.tsv") for split in ("train", "dev", "test")}
    corpora = {
        "tatoeba-pairs": {split: cut_texts(texts) for split, texts in english.items()},
        "tinyshakespeare-pairs": consecutive_lines(root / "tinyshakespeare" / "input.txt"),
    }
    for name, rows in corpora.items():
        _write_corpus(root / name, rows, of="pairs")


PAIRS = Command(
    "pairs",
    "write pairs of sentences, from tatoeba-en-fr and tinyshakespeare, as two corpora",
    _pairs,
    (argument("--data", default="data", metavar="DIR", help="folder that holds both corpora (default: data)"),),
)
