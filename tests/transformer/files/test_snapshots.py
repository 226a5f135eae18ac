"""Snapshots in 8 bits: as precise as documented, refused if broken, usable like any checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import transformer
from tests.transformer.tiny import random_model
from transformer import CheckpointError
from transformer.files.checkpoints import own_parameters
from transformer.files.snapshots import load_snapshot, quantise, snapshot, snapshot_file, snapshot_steps, write_snapshot

KINDS = ("encoder-decoder", "decoder-only", "encoder-only")


@pytest.fixture
def folder(checkpoints_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny translator with snapshots of steps 0 and 300, which a test may break."""
    folder = Path(shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / "copy"))
    config = transformer.load(folder).config
    for step in (300, 0):
        with torch.random.fork_rng():
            torch.manual_seed(step)
            write_snapshot(folder / snapshot_file(step), transformer.build_model(config), step)
    return folder


def change(folder: Path, edit: Callable[[dict[str, torch.Tensor]], object], *, step: str | None = "300") -> None:
    file = folder / snapshot_file(300)
    tensors = load_file(file)
    edit(tensors)
    save_file(tensors, file, metadata=None if step is None else {"step": step})


def refused(folder: Path, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        snapshot(transformer.load(folder), 300)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "relative"])
def test_every_weight_is_off_by_at_most_half_a_scale(kind: str, tied: bool, positions: str, tmp_path: Path) -> None:
    model = random_model(kind, tie_embeddings=tied, positions=positions)
    write_snapshot(tmp_path / "a.safetensors", model, 12)
    loaded = load_snapshot(tmp_path / "a.safetensors", model.config, step=12)
    assert not loaded.training
    kept = own_parameters(loaded)
    for name, parameter in own_parameters(model).items():
        assert kept[name].dtype == torch.float32
        if parameter.ndim == 1:
            assert torch.equal(kept[name], parameter.half().float()), name
            continue
        largest = parameter.abs().amax(dim=1, keepdim=True)
        bound = largest / 127 * (1 + 2**-10) / 2  # the scale is a half-precision number, rounded up
        assert ((kept[name] - parameter).abs() <= bound * (1 + 1e-5)).all(), name
        assert (kept[name] != parameter).any(), name


@given(some.lists(some.floats(-6e4, 6e4, width=32), min_size=1, max_size=6), some.integers(-40, 0))
def test_no_row_is_clipped_however_small(row: list[float], power: int) -> None:
    matrix = torch.tensor([row, [0.0] * len(row)]) * 2.0**power
    numbers, scale = quantise(matrix)
    assert numbers.dtype == torch.int8 and scale.dtype == torch.float16
    assert numbers.min() >= -127
    error = (numbers.double() * scale.double()[:, None] - matrix.double()).abs()
    assert (error <= scale.double()[:, None] * (0.5 + 1e-5)).all()
    assert not numbers[1].any() and scale[1] == 0


def test_a_tied_matrix_is_stored_once_in_eight_bits_and_vectors_in_half_precision(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.safetensors", random_model(), 0)
    tensors = load_file(tmp_path / "a.safetensors")
    assert sum(name.endswith("table.weight") for name in tensors) == 1
    assert not any("vocabulary_projection" in name for name in tensors)
    assert {tensor.dtype for tensor in tensors.values() if tensor.ndim == 2} == {torch.int8}
    assert {tensor.dtype for tensor in tensors.values() if tensor.ndim == 1} == {torch.float16}
    with safe_open(tmp_path / "a.safetensors", framework="pt") as file:
        assert file.metadata() == {"step": "0"}


def test_a_snapshot_is_half_the_size_of_a_checkpoint(tiny_checkpoint: Callable, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("translator")
    write_snapshot(tmp_path / "a.safetensors", checkpoint.model, 0)
    stored = sum(tensor.nbytes for tensor in load_file(tmp_path / "a.safetensors").values())
    whole = sum(tensor.nbytes for tensor in load_file(checkpoint.path / "model.safetensors").values())
    assert stored < 0.62 * whole  # rows of 32 numbers: their scales take a sixteenth


def test_the_steps_are_those_of_the_files_in_order(folder: Path) -> None:
    for other in ("step-1.safetensors", "step-000700.safetensors.part", "notes.txt"):
        (folder / "snapshots" / other).write_text("")
    (folder / snapshot_file(1_234_567)).write_text("")
    assert snapshot_steps(folder) == (0, 300, 1_234_567)
    assert snapshot_steps(folder / "nothing") == ()


def test_a_snapshot_is_traced_and_decodes_like_a_checkpoint(folder: Path) -> None:
    checkpoint = transformer.load(folder)
    first, later = (snapshot(checkpoint, step) for step in (0, 300))
    assert first.config == later.config == checkpoint.config
    assert later.tokenizer is checkpoint.tokenizer
    texts = "The cat sat.", "Le chat."
    one, two = (transformer.trace(moment, *texts).values("decoder.logits") for moment in (first, later))
    assert one.shape == two.shape and (one != two).any()
    assert transformer.decode(later, texts[0]).steps


def test_every_step_has_a_fingerprint_of_its_own(folder: Path) -> None:
    checkpoint = transformer.load(folder)
    prints = {checkpoint.fingerprint, *(snapshot(checkpoint, step).fingerprint for step in (0, 300))}
    assert len(prints) == 3
    assert snapshot(checkpoint, 300).fingerprint in prints


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_a_step_that_is_not_there(folder: Path, tiny_checkpoint: Callable) -> None:
    with pytest.raises(CheckpointError, match="has no snapshot of step 100; it has snapshots of steps 0, 300"):
        snapshot(transformer.load(folder), 100)
    with pytest.raises(CheckpointError, match="it has no snapshots"):
        snapshot(tiny_checkpoint("bert"), 0)
    with pytest.raises(CheckpointError, match="there is no snapshot"):
        load_snapshot(folder / "nothing", random_model().config)


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_file(kept: float, folder: Path) -> None:
    file = folder / snapshot_file(300)
    raw = file.read_bytes()
    file.write_bytes(raw[: int(len(raw) * kept)])
    refused(folder, "step-000300.safetensors is not a complete safetensors file")


MATRIX, VECTOR = "encoder.layers.0.feed_forward.input_projection.weight", "decoder.final_norm.bias"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t[VECTOR].__setitem__(3, float("nan")), rf"not finite \(NaN or infinite\) in {VECTOR}"),
        (lambda t: t[f"{MATRIX}.scale"].__setitem__(3, float("inf")), rf"not finite .* in {MATRIX}"),
        (lambda t: t.pop(VECTOR), rf"it lacks {VECTOR} \(32,\)"),
        (lambda t: t.pop(f"{MATRIX}.scale"), r"\(48, 32\) needs 48 scales, one per row; it has None"),
        (lambda t: t.update({f"{MATRIX}.scale": torch.ones(32).half()}), r"48 scales, one per row; it has \(32,\)"),
        (lambda t: (t.pop(MATRIX), t.pop(f"{MATRIX}.scale")), rf"it lacks {MATRIX} \(48, 32\)"),
        (lambda t: t.pop(MATRIX), f"has {MATRIX}.scale but no matrix that it belongs to"),
        (lambda t: t.update(other=torch.ones(4).half()), r"unknown other \(4,\)"),
        (lambda t: t.update({VECTOR: torch.ones(31).half()}), r"is \(31,\) in the file but \(32,\) by the config"),
        (lambda t: t.update({MATRIX: t[MATRIX].half()}), rf"{MATRIX} \(48, 32\) is stored as F16, but .* as I8"),
        (lambda t: t.update({VECTOR: t[VECTOR].float()}), rf"{VECTOR} \(32,\) is stored as F32, but .* as F16"),
    ],
)  # fmt: skip
def test_contents_that_do_not_fit(edit: Callable, message: str, folder: Path) -> None:
    change(folder, edit)
    refused(folder, message)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (None, "does not say of which step it is"),
        ("late", "does not say of which step it is .*'late'"),
        ("0", "is a snapshot of step 0, not of step 300; was it renamed?"),
    ],
)
def test_a_step_that_the_file_does_not_confirm(step: str | None, message: str, folder: Path) -> None:
    change(folder, lambda tensors: None, step=step)
    refused(folder, message)


def test_a_snapshot_of_another_model_is_refused_before_anything_is_allocated(folder: Path) -> None:
    config = transformer.ModelConfig(**{**transformer.load(folder).config.__dict__, "d_ff": 10**12})
    with pytest.raises(CheckpointError, match=r"it holds \d+ numbers but the config asks for 256\d{12}$"):
        load_snapshot(folder / snapshot_file(300), config)


@pytest.mark.parametrize(
    ("value", "message"), [(float("nan"), "not finite in"), (1e5, "decoder.final_norm.bias is too large for half")]
)
def test_weights_that_cannot_be_stored_are_not_written(value: float, message: str, tmp_path: Path) -> None:
    model = random_model.__wrapped__()
    with torch.no_grad():
        model.decoder.final_norm.bias[0] = value
    with pytest.raises(ValueError, match=message):
        write_snapshot(tmp_path / "a.safetensors", model, 0)
    assert not list(tmp_path.iterdir())
