"""The model card: what was trained, on what, how, how long, and how well (after Mitchell et al. 2019)."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from transformer.checkpoint import CARD, Checkpoint
from transformer.config import ModelConfig
from transformer.files import write_text
from transformer.training.corpora import SOURCES, corpus_folders

if TYPE_CHECKING:
    from transformer.training.trainer import Trainer

_SCORES = "## Scores"
_SCORE_NAMES = {
    "translation": "greedy BLEU on the first sentences of the dev split",
    "next-token": "minus the loss in nats per token on the dev split",
    "masked-token": "minus the loss in nats per masked token on the dev split",
    "classification": "accuracy on the dev split",
}


def model_card(trainer: Trainer) -> str:
    """Everything that is known when a run ends; scores on held-out files are added by ``evaluate --update-card``."""
    recipe, config, last = trainer.recipe, trainer.recipe.model, trainer.history[-1]
    best = max((row for row in trainer.history if "dev_score" in row), key=lambda row: row["dev_score"])
    folders = corpus_folders(recipe.corpus)
    sources = "; ".join(f"{folder}: {SOURCES[folder]}" for folder in folders)
    places = f"{' and '.join(f'`DIR/{folder}`' for folder in folders)} {'hold' if len(folders) > 1 else 'holds'}"
    duration = f"{last['seconds'] / 60:.0f} minutes on {_hardware()}"
    return f"""# {recipe.name}

A small {config.kind} Transformer that was trained for looking into, not for use in earnest: it makes mistakes,
and it repeats the biases of its data.

| | |
|---|---|
| task | {recipe.task} |
| shape | {_shape(config)} |
| parameters | {trainer.model.n_parameters:,} (stored in half precision) |
| tokenizer | byte-level BPE, {config.vocabulary_size:,} entries, trained on the training split |
| data and its licence | {sources}; {len(trainer.corpus.train):,} training examples |
| data digest | SHA-256 `{trainer.corpus.digest}` of the files read, in order |
| training | {last["step"]:,} steps, {last["target_tokens"]:,} predicted tokens, {duration} |
| seed | {recipe.seed} |
| versions | {_versions()} |
| chosen by | {_SCORE_NAMES[recipe.task]}: {best["dev_score"]:.4g} at step {best["step"]:,} |

Trained again by

```
python -m transformer train configs/{recipe.name}.toml --data DIR
```

where {places} the corpus in the layout that the project's README describes.

{_SCORES}
"""


def update_scores(checkpoint: Checkpoint, data: Path, scores: dict) -> None:
    """Add or replace the block of scores on ``data`` in the checkpoint's card, with the command that gives them."""
    card = checkpoint.card if _SCORES in checkpoint.card else f"{checkpoint.card.rstrip()}\n\n{_SCORES}\n"
    place = f"{data.parent.name}/{data.name}"
    head, *blocks = card.split("\n### ")
    blocks = [block for block in blocks if not block.startswith(f"{place}\n")]
    beam = f" --beam {scores['beam']}" if "beam" in scores else ""
    rows = "\n".join(
        f"| {name} | {f'{value:.2f}' if isinstance(value, float) else value} |"
        for name, value in scores.items()
        if name != "bleu_signature"
    )
    signature = f"\nsacreBLEU signature: `{scores['bleu_signature']}`\n" if "bleu_signature" in scores else ""
    command = f"evaluate --checkpoint checkpoints/{checkpoint.name} --data DIR/{place}{beam} --json"
    table = f"| score | value |\n|---|---|\n{rows}\n{signature}"
    blocks.append(f"{place}\n\n{table}\n```\npython -m transformer {command}\n```")
    blocks = [block.strip("\n") for block in blocks]
    write_text(checkpoint.path / CARD, "\n\n### ".join([head.rstrip("\n"), *blocks]) + "\n")


def _shape(config: ModelConfig) -> str:
    layers = " + ".join(str(n) for n in (config.n_encoder_layers, config.n_decoder_layers) if n)
    return (
        f"{layers} layers, d_model {config.d_model}, {config.n_heads} heads, d_ff {config.d_ff}, "
        f"{config.positions} positions, {config.norm}-norm, {config.activation}"
    )


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
