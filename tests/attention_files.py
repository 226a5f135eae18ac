"""Files of attention maps for tests, written with NumPy alone, as another program would write them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

FORMAT = "glassformer-attention-1"
SOURCE = ["[CLS]", "the", "walk", "##ing", "<b>", "[SEP]"]
TARGET = ["<s>", "Ġmy", "Ġcat", "Ġsat", "Ġ<i>"]


def random_weights(*shape: int, causal: bool = False) -> np.ndarray:
    scores = np.random.default_rng(sum(shape)).normal(size=shape) * 2
    if causal:
        scores = np.where(np.tri(shape[-2], shape[-1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def notes(**more: object) -> str:
    return json.dumps({"format": FORMAT, **more})


def encoder_arrays() -> tuple[dict[str, np.ndarray], str]:
    return {"encoder": random_weights(2, 4, 6, 6)}, notes(source=SOURCE, model="an <encoder>")


def decoder_arrays() -> tuple[dict[str, np.ndarray], str]:
    return {"decoder": random_weights(3, 2, 5, 5, causal=True)}, notes(target=TARGET)


def translator_arrays() -> tuple[dict[str, np.ndarray], str]:
    arrays = {
        "encoder": random_weights(2, 4, 6, 6),
        "decoder": random_weights(3, 2, 5, 5, causal=True),
        "cross": random_weights(3, 2, 5, 6),
    }
    return arrays, notes(source=SOURCE, target=TARGET)


KINDS = {"encoder": encoder_arrays, "decoder": decoder_arrays, "translator": translator_arrays}


def write(file: Path, arrays: dict[str, np.ndarray], text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".npz":
        np.savez_compressed(file, **arrays, glassformer=text)
    else:
        from safetensors.numpy import save_file

        save_file(arrays, str(file), metadata={"glassformer": text})
    return file
