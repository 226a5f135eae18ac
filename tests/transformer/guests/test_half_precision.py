"""Weights that stay in half precision compute what they compute in float32."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from transformer.guests import half_precision
from transformer.guests.half_precision import HALF_TYPES, keep_half, widen
from transformer.layers.costs import parameter_statistics
from transformer.layers.gradient_step import training_step
from views.checkpoint.checkpoint_view_model import CheckpointViewModel

FAMILIES = ["hf-gpt2", "hf-llama", "hf-t5", "hf-bert", "hf-marian"]


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of which all weights are in bfloat16."""
    path = foreign_checkpoint(request.param, tmp_path_factory.mktemp("half"))
    file = path / "model.safetensors"
    save_file({name: tensor.bfloat16() for name, tensor in load_file(file).items()}, file)
    return path


@pytest.fixture
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[transformer.Checkpoint, transformer.Checkpoint]:
    """Return the model in float32, and with its matrices in half precision."""
    wide = transformer.load(folder)
    monkeypatch.setattr(half_precision, "KEPT_HALF_FROM", 1)
    return wide, transformer.load(folder)


def test_every_recorded_number_is_the_same(models) -> None:
    wide, half = (transformer.trace(checkpoint, "The cat sat.") for checkpoint in models)
    assert list(wide) == list(half)
    for name in wide:
        np.testing.assert_allclose(half[name].values, wide[name].values, rtol=1e-5, atol=1e-5, err_msg=name)


def test_matrices_take_two_bytes_per_number_and_norms_four(models) -> None:
    parameters = dict(models[1].model.named_parameters())
    matrices = [module for module in models[1].model.modules() if half_precision.can_be_half(module)]
    assert matrices and all(module.weight.dtype == torch.float32 for module in matrices)
    assert all(module.stored.dtype == torch.bfloat16 for module in matrices)
    kept = {name for name, parameter in parameters.items() if parameter.dtype in HALF_TYPES}
    assert kept == {name for name in kept if name.endswith("weight")}
    assert not any("norm" in name for name in kept)
    assert CheckpointViewModel(models[0]).in_memory is None
    type, held, wide = CheckpointViewModel(models[1]).in_memory
    assert type == "bfloat16" and wide / 2 <= held < 0.6 * wide


def test_a_matrix_is_widened_in_blocks_of_rows(models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.guests.half_precision._BLOCK", 100)
    wide, half = (transformer.trace(checkpoint, "The cat sat.") for checkpoint in models)
    for name in wide:
        np.testing.assert_allclose(half[name].values, wide[name].values, rtol=1e-4, atol=1e-4, err_msg=name)


def test_a_widened_model_is_the_one_in_float32(models) -> None:
    wide, half = (checkpoint.model for checkpoint in models)
    widen(half)
    expected = dict(wide.named_parameters())
    found = dict(half.named_parameters())
    assert list(found) == list(expected)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert [type(module) for module in half.modules()] == [type(module) for module in wide.modules()]


def test_statistics_of_parameters_are_those_of_float32(models) -> None:
    wide, half = (parameter_statistics(checkpoint.model) for checkpoint in models)
    assert [row.name for row in half] == [row.name for row in wide]
    found, expected = ([(row.mean, row.std, row.largest) for row in rows] for rows in (half, wide))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_a_gradient_step_is_that_of_float32(models) -> None:
    traces = (transformer.trace(checkpoint, "The cat sat.") for checkpoint in models)
    wide, half = (training_step(trace, stack=trace.stacks[-1], rate=1e-3) for trace in traces)
    assert half.loss_after == pytest.approx(wide.loss_after, rel=1e-4) and half.loss_after != half.loss_before


def test_a_small_model_is_opened_in_float32(folder: Path) -> None:
    assert {parameter.dtype for parameter in transformer.load(folder).model.parameters()} == {torch.float32}


def test_rows_are_widened_on_the_device_of_their_layer() -> None:
    for device in ("cpu", "meta", "cpu"):
        layer = nn.Linear(4, 3, device=device, dtype=torch.bfloat16)
        keep_half(layer)
        layer.bias = None
        with torch.inference_mode():
            product = layer(torch.ones(1, 4, device=device))
        assert (product.device.type, product.dtype) == (device, torch.float32)
