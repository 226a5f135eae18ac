"""Tiny random models for the tests. Their source and target never have the same length."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

from transformer import ModelConfig, build_model
from transformer.models import Model

LAYERS = {
    "encoder-decoder": {"n_encoder_layers": 2, "n_decoder_layers": 2},
    "decoder-only": {"n_encoder_layers": 0, "n_decoder_layers": 2},
    "encoder-only": {"n_encoder_layers": 2, "n_decoder_layers": 0},
}
SIZES = {"vocabulary_size": 23, "d_model": 16, "n_heads": 2, "d_ff": 20, "max_length": 24, "dropout": 0.1}

SOURCE = torch.tensor([[4, 9, 17, 5, 8, 2]])
TARGET = torch.tensor([[1, 7, 19, 11]])


def config(kind: str = "encoder-decoder", **values: Any) -> ModelConfig:
    return ModelConfig(kind=kind, **{**SIZES, **LAYERS[kind], **values})


@lru_cache
def random_model(kind: str = "encoder-decoder", *, seed: int = 0, **values: Any) -> Model:
    """Return a model in ``eval()`` mode that is shared: do not change it.

    Biases, γ, β and the relative bias are random as well: values of 0 or 1 would hide errors.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = build_model(config(kind, **values)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.2 * torch.randn_like(parameter)
    return model


def run(model: Model, source: torch.Tensor = SOURCE, target: torch.Tensor = TARGET) -> torch.Tensor:
    """Return the logits of any kind of model."""
    inputs = {"encoder-decoder": (source, target), "decoder-only": (target,), "encoder-only": (source,)}
    with torch.inference_mode():
        return model(*inputs[model.config.kind])
