"""Guests whose matrices stay in half precision compute what they compute in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer
from tests.transformer.guests.tiny_guests import guest_checkpoint
from tests.transformer.guests.tiny_image_guests import image_checkpoint
from transformer.guests import half_precision, opening
from transformer.guests.half_precision import (
    HALF_TYPES,
    HalfPrecisionEmbedding,
    HalfPrecisionLinear,
    fill_placeholders,
    placeholder,
)
from transformer.layers.gradient_step import training_step
from views.checkpoint.checkpoint_view_model import CheckpointViewModel

Models = tuple[transformer.Checkpoint, transformer.Checkpoint]
# kind → bound of the bytes that are held, as a share of those in float32
KINDS = {"phi": 0.55, "granite": 0.55, "mixtral": 0.8, "bloom": 0.55, "xlm-roberta": 0.55, "mbart": 0.7, "clip": 0.7}


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of which all weights are in bfloat16."""
    write = {"clip": image_checkpoint}
    path = write.get(request.param, guest_checkpoint)(request.param, tmp_path_factory.mktemp("half"))
    file = path / "model.safetensors"
    save_file({name: tensor.bfloat16() for name, tensor in load_file(file).items()}, file)
    return path


@pytest.fixture
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Models:
    """Return the model in float32, and with its matrices in half precision."""
    wide = transformer.load(folder)
    monkeypatch.setattr(half_precision, "KEPT_HALF_FROM", 1)
    return wide, transformer.load(folder)


def test_every_recorded_number_is_the_same(models: Models, folder: Path) -> None:
    text = {"clip": "image:house"}.get(folder.name, "The cat sat.")
    wide, half = (transformer.trace(checkpoint, text) for checkpoint in models)
    assert list(wide) == list(half)
    for name in wide:
        np.testing.assert_allclose(half[name].values, wide[name].values, rtol=1e-5, atol=1e-5, err_msg=name)


def test_matrices_take_two_bytes_per_number_and_norms_four(models: Models, folder: Path) -> None:
    kept = {name for name, each in models[1].model.named_parameters() if each.dtype in HALF_TYPES}
    layers = (HalfPrecisionLinear, HalfPrecisionEmbedding)
    modules = models[1].model.network.named_modules()
    assert kept and kept <= {f"{name}.weight" for name, module in modules if isinstance(module, layers)}
    assert CheckpointViewModel(models[0]).in_memory is None
    type, held, wide = CheckpointViewModel(models[1]).in_memory
    assert type == "bfloat16" and wide / 2 <= held < KINDS[folder.name] * wide


@pytest.mark.parametrize("folder", ["phi", "granite"], indirect=True)
def test_a_gradient_step_is_that_of_float32(models: Models) -> None:
    traces = (transformer.trace(checkpoint, "The cat sat.") for checkpoint in models)
    wide, half = (training_step(trace, stack="decoder", rate=1e-3) for trace in traces)
    assert half.loss_after == pytest.approx(wide.loss_after, rel=1e-4) and half.loss_after != half.loss_before


@pytest.mark.parametrize("folder", ["mixtral"], indirect=True)
def test_a_matrix_that_transformers_joins_with_others_is_opened_in_float32(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the matrices of experts, which become one tensor, had the names of linear layers."""
    names = frozenset(name for name in load_file(folder / "model.safetensors") if name.endswith("w1.weight"))
    monkeypatch.setattr(opening, "kept_half", lambda *_: names)
    parameters = dict(transformer.load(folder).model.named_parameters())
    assert {parameter.dtype for parameter in parameters.values()} == {torch.float32}
    assert all(parameter.abs().sum() > 0 for parameter in parameters.values())


def test_a_transposed_placeholder_is_not_filled() -> None:
    network = torch.nn.Linear(3, 3, bias=False)
    given = {"weight": placeholder((3, 3))}
    stored = {"weight": torch.arange(9).reshape(3, 3).bfloat16()}
    network.weight = torch.nn.Parameter(given["weight"].T, requires_grad=False)
    assert not fill_placeholders(network, given, stored)
    network.weight = torch.nn.Parameter(given["weight"], requires_grad=False)
    assert fill_placeholders(network, given, stored) and torch.equal(network.weight, stored["weight"].float())
