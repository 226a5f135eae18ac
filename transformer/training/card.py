"""Model card: what was trained, on what, how, how long, and how well (after Mitchell et al. 2019)."""

from __future__ import annotations

import platform
import shlex
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from transformer.config import ModelConfig
from transformer.disk.whole_files import write_text
from transformer.files.checkpoints import CARD, Checkpoint
from transformer.scores.bleu_and_chrf import reference_note
from transformer.training.corpora import SOURCES, corpus_folders
from transformer.training.recipe import Recipe

if TYPE_CHECKING:
    from transformer.training.trainer import Trainer

_SCORES = "## Scores"
# Entries of a recipe that other rows of the card state, or that do not change the weights.
_NOT_LISTED = {"name", "task", "corpus", "model", "seed", "steps", "start_from", "fresh_self_attention", "snapshots"}
_NOT_LISTED |= {"log_every", "evaluate_every", "evaluate_sentences", "save_every"}
_SCORE_NAMES = {
    "translation": "greedy BLEU on the first sentences of the dev split",
    "next-token": "minus the loss in nats per token on the dev split",
    "packed-next-token": "minus the loss in nats per token on the dev split, each text alone",
    "masked-token": "minus the loss in nats per masked token on the dev split",
    "masked-token-next-sentence": "minus the loss in nats on the dev split, of masked tokens and of the next sentence",
    "classification": "accuracy on the dev split",
    "picture-classification": "accuracy on the dev split",
    "text-to-text": "mean of all tasks (greedy BLEU, or percentage of right answers) on their first examples of dev",
}


def model_card(trainer: Trainer) -> str:
    """Return everything known when a run ends; ``evaluate --update-card`` adds scores on test files."""
    recipe, config, last = trainer.recipe, trainer.recipe.model, trainer.history[-1]
    best = next(row for row in trainer.history if row.get("dev_score") == trainer.best_score)
    prefixes = ", ".join(f"`{prefix.strip()}`" for prefix in config.task_prefixes)
    folders = corpus_folders(recipe.corpus)
    sources = "; ".join(f"{folder}: {SOURCES[folder]}" for folder in folders)
    places = f"{' and '.join(f'`DIR/{folder}`' for folder in folders)} {'hold' if len(folders) > 1 else 'holds'}"
    counted = "labelled examples" if config.n_classes else "predicted tokens"
    duration = f"{last['seconds'] / 60:.0f} minutes on {_hardware()}"
    return f"""# {recipe.name}

A small {config.kind} Transformer, trained to be studied, not for real use. It makes mistakes and repeats the biases
of its data.

| | |
|---|---|
| task | {recipe.task}{prefixes and f": {prefixes}"} |
| shape | {_shape(config)} |
| parameters | {trainer.model.n_parameters:,} (stored in half precision) |
| tokenizer | {_tokenizer(config)} |
| data and its licence | {sources}; {len(trainer.corpus.train):,} training examples |
| data digest | SHA-256 `{trainer.corpus.digest}` of the files read, in order |
| training | {last["step"]:,} steps, {last["target_tokens"]:,} {counted}, {duration} |
| seed | {recipe.seed} |{_start(recipe)}
| recipe | {_recipe(recipe)} |
| versions | {_versions()} |
| chosen by | {_SCORE_NAMES[recipe.task]}: {best["dev_score"]:.4g} at step {best["step"]:,} |

This command trains it again:

```
python -m transformer train configs/{recipe.name}.toml --data DIR
```

where {places} the corpus in the layout that docs/checkpoints.md describes.

{_SCORES}
"""


def update_scores(
    checkpoint: Checkpoint, data: Path, scores: dict, *, train: Path | None = None, lowercase: bool = False
) -> None:
    """Add or replace the block of scores on ``data`` in the checkpoint's card, with the command for them.

    Cased and lower-cased scores of the same file have separate blocks. Everything else in the card stays as it is.
    """
    path = checkpoint.path / CARD
    card = path.read_text(encoding="utf-8") if path.is_file() else ""  # read only now, because scoring takes a while
    if f"\n{_SCORES}\n" not in card:
        card = f"{card.rstrip()}\n\n{_SCORES}\n"
    before, _, rest = card.partition(f"\n{_SCORES}\n")
    section, *after = rest.split("\n## ", maxsplit=1)
    opening, *blocks = section.split("\n### ")
    by_title = {block.split("\n", maxsplit=1)[0]: block.strip("\n") for block in blocks}
    title = ", ".join(
        [_place(data), *(["lower-cased"] if lowercase else []), *([scores["task"]] if "task" in scores else [])]
    )
    command = _command(checkpoint, data, scores, train, lowercase)
    by_title[title] = f"{title}\n\n{_score_table(scores)}\n```\n{command}\n```"
    section = "\n\n### ".join([opening.rstrip("\n"), *by_title.values()])
    ending = f"\n\n## {after[0]}" if after else "\n"
    write_text(path, f"{before}\n{_SCORES}\n{section}{ending}")


def _score_table(scores: dict) -> str:
    rows = [f"| {name} | {_number(value)} |" for name, value in scores.items() if not name.endswith("_signature")]
    signatures = [
        f"sacreBLEU signature of {name.removesuffix('_signature')}: `{value}`"
        for name, value in scores.items()
        if name.endswith("_signature")
    ]
    notes = [*signatures, *([note] if (note := reference_note(scores)) else [])]
    return "\n".join(["| score | value |", "|---|---|", *rows, ""]) + "".join(f"\n{line}\n" for line in notes)


def _number(value: float | int | None) -> str:
    """Format shares with four decimals and larger numbers with two."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4f}" if abs(value) < 1 else f"{value:.2f}"


def _command(checkpoint: Checkpoint, data: Path, scores: dict, train: Path | None, lowercase: bool) -> str:
    parts = [f"python -m transformer evaluate --checkpoint checkpoints/{checkpoint.name} --data DIR/{_place(data)}"]
    if "task" in scores:
        parts.append(f"--task {shlex.quote(scores['task'])}")
    if train is not None:
        parts.append(f"--train DIR/{_place(train)}")
    if "beam" in scores:
        parts.append(f"--beam {scores['beam']}")
    if lowercase:
        parts.append("--lowercase")
    return " ".join([*parts, "--json"])


def _place(path: Path) -> str:
    """Return the folder of the corpus and the file in it, which are the same on every machine."""
    path = path.absolute()
    return f"{path.parent.name}/{path.name}"


def _start(recipe: Recipe) -> str:
    """Return the card's row about the checkpoint from which a run started."""
    if not recipe.start_from:
        return ""
    anew = ", except W_Q and W_K of self-attention, which started from random values"
    return (
        f"\n| began as | the checkpoint `{Path(recipe.start_from).name}`{anew if recipe.fresh_self_attention else ''} |"
    )


def _recipe(recipe: Recipe) -> str:
    """Return all other entries of a recipe that determine its weights and differ from their default."""
    entries = {one.name: getattr(recipe, one.name) for one in fields(recipe) if one.name not in _NOT_LISTED}
    entries |= {"entropy": recipe.entropy and asdict(recipe.entropy), "teacher": Path(recipe.teacher).name}
    return ", ".join(f"`{name} = {value}`" for name, value in entries.items() if value != getattr(Recipe, name, None))


def _shape(config: ModelConfig) -> str:
    norm = f"{config.norm}-norm{' with RMSNorm' if config.rms_norm else ''}"
    layers = " + ".join(str(n) for n in (config.n_encoder_layers, config.n_decoder_layers) if n)
    return (
        f"{layers} layers, d_model {config.d_model}, {config.n_heads} heads, d_ff {config.d_ff}, "
        f"{config.positions} positions, {norm}, {config.activation}"
    )


def _tokenizer(config: ModelConfig) -> str:
    if config.reads_images:
        side = f"{config.patch_size} × {config.patch_size} of {config.picture_size} × {config.picture_size}"
        return f"patches of {side} pixels, {config.n_levels} shades of grey; nothing is learned"
    return f"byte-level BPE, {config.vocabulary_size:,} entries, trained on the training split"


def _versions() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "tokenizers", "accelerate"))
    return f"Python {platform.python_version()}, {packages}"


def _hardware() -> str:
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} × {torch.cuda.get_device_name()}"
    threads = torch.get_num_threads()
    return f"{threads} thread{'s' if threads > 1 else ''} of {_processor()}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "an unnamed CPU"
