"""Models whose matrices stay in half precision compute what they compute in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import transformer
from tests.foreign_checkpoints import any_checkpoint
from transformer.guests import half_precision, opening
from transformer.guests.half_precision import (
    HALF_TYPES,
    fill_placeholders,
    held_in_half_precision,
    keep_half,
    placeholder,
    widen,
)
from transformer.layers.costs import parameter_statistics
from transformer.layers.gradient_step import training_step

Models = tuple[transformer.Checkpoint, transformer.Checkpoint]
# kind → bound of the bytes that are held, as a share of those in float32
KINDS = {"hf-gpt2": 0.6, "hf-llama": 0.6, "hf-t5": 0.6, "hf-bert": 0.6, "hf-marian": 0.6, "phi": 0.55, "granite": 0.55}
KINDS |= {"mixtral": 0.8, "bloom": 0.55, "xlm-roberta": 0.55, "mbart": 0.7, "clip": 0.7}


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of which all weights are in bfloat16."""
    path = any_checkpoint(request.param, tmp_path_factory.mktemp("half"))
    file = path / "model.safetensors"
    save_file({name: tensor.bfloat16() for name, tensor in load_file(file).items()}, file)
    return path


def in_half_precision(folder: Path) -> transformer.Checkpoint:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(half_precision, "KEPT_HALF_FROM", 1)
        return transformer.load(folder)


@pytest.fixture(scope="module")
def models(folder: Path) -> Models:
    """Return the model in float32, and with its matrices in half precision; no test changes them."""
    wide = transformer.load(folder)
    assert {parameter.dtype for parameter in wide.model.parameters()} == {torch.float32}, "a small model"
    return wide, in_half_precision(folder)


@pytest.mark.sample("folder", of=2, together=True)
@pytest.mark.parametrize(("block", "tolerance"), [(None, 1e-5), (100, 1e-4)], ids=["whole", "in blocks of rows"])
def test_every_recorded_number_is_the_same(
    models: Models, folder: Path, block: int | None, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    if block is not None:
        monkeypatch.setattr(half_precision, "_BLOCK", block)
    text = {"clip": "image:house"}.get(folder.name, "The cat sat.")
    wide, half = (transformer.trace(checkpoint, text) for checkpoint in models)
    assert list(wide) == list(half)
    for name in wide:
        np.testing.assert_allclose(half[name].values, wide[name].values, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.sample("folder", of=2, together=True)
def test_matrices_take_two_bytes_per_number_and_norms_four(models: Models, folder: Path) -> None:
    kept = {name for name, each in models[1].model.named_parameters() if each.dtype in HALF_TYPES}
    assert kept and all(name.endswith("weight") for name in kept) and not any("norm" in name for name in kept)
    assert held_in_half_precision(models[0].model) is None
    type, held, wide = held_in_half_precision(models[1].model)
    assert type == "bfloat16" and wide / 2 <= held < KINDS[folder.name] * wide


@pytest.mark.parametrize("folder", ["hf-gpt2", "hf-t5", "phi"], indirect=True)
def test_a_widened_model_is_the_one_in_float32(models: Models, folder: Path) -> None:
    wide, half = models[0].model, in_half_precision(folder).model
    rows = [[(row.name, row.mean, row.std, row.largest) for row in parameter_statistics(each)] for each in (wide, half)]
    for one, other in zip(*rows, strict=True):
        assert one[0] == other[0] and one[1:] == pytest.approx(other[1:], rel=1e-5, abs=1e-8)
    widen(half)
    expected, found = dict(wide.named_parameters()), dict(half.named_parameters())
    assert list(found) == list(expected)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert [type(module) for module in half.modules()] == [type(module) for module in wide.modules()]


@pytest.mark.parametrize("folder", ["hf-llama", "hf-bert", "phi", "granite"], indirect=True)
def test_a_gradient_step_is_that_of_float32(models: Models) -> None:
    traces = (transformer.trace(checkpoint, "The cat sat.") for checkpoint in models)
    wide, half = (training_step(trace, stack=trace.stacks[-1], rate=1e-3) for trace in traces)
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


def test_rows_are_widened_on_the_device_of_their_layer() -> None:
    for device in ("cpu", "meta", "cpu"):
        layer = nn.Linear(4, 3, device=device, dtype=torch.bfloat16)
        keep_half(layer)
        layer.bias = None
        with torch.inference_mode():
            product = layer(torch.ones(1, 4, device=device))
        assert (product.device.type, product.dtype) == (device, torch.float32)
