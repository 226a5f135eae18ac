"""A checkpoint and its snapshots are read completely, or a sentence says what does not fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import transformer
from tests.shipped import shipped
from tests.transformer.tiny import random_model
from transformer import CheckpointError, Tokenizer
from transformer.files import build
from transformer.files.checkpoints import _n_numbers, fingerprint, own_parameters, save_weights
from transformer.files.once import once
from transformer.files.snapshots import load_snapshot, quantise, snapshot, snapshot_file, snapshot_steps, write_snapshot

SENTENCE = "The cat sat on the mat."
KINDS = ("encoder-decoder", "decoder-only", "encoder-only")
EVERY_MODEL = pytest.mark.parametrize(
    ("kind", "tied", "positions"), [*product(KINDS, (True, False), ("sinusoidal", "learned", "relative"))]
)


@pytest.fixture
def folder(checkpoints_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny translator that a test may break."""
    return Path(shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / "copy"))


def change_config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


@EVERY_MODEL
def test_a_saved_checkpoint_is_the_same_model(
    kind: str, tied: bool, positions: str, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = random_model(kind, vocabulary_size=400, tie_embeddings=tied, positions=positions)
    transformer.save(tmp_path / "a", model, tiny_tokenizer, card="# A card\n", half=False)
    loaded = transformer.load(tmp_path / "a")
    assert loaded.config == model.config
    assert (loaded.name, loaded.card) == ("a", "# A card\n")
    assert not loaded.model.training
    assert loaded.tokenizer.pieces == tiny_tokenizer.pieces
    own, other = dict(model.named_parameters()), dict(loaded.model.named_parameters())
    assert own.keys() == other.keys()
    for name, parameter in own.items():
        assert torch.equal(parameter, other[name]), name
    if tied and kind != "encoder-only":
        assert loaded.model.decoder.vocabulary_projection.weight is loaded.model.decoder.embedding.table.weight


def test_a_checkpoint_loaded_in_inference_mode_can_be_differentiated(folder: Path) -> None:
    """Whoever loads a shared checkpoint first, others take gradients of it."""
    with torch.inference_mode():
        checkpoint = transformer.load(folder)
    assert not any(parameter.is_inference() for parameter in checkpoint.model.parameters())


def test_half_precision_on_disk_is_single_precision_in_memory(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = random_model(vocabulary_size=400)
    transformer.save(tmp_path, model, tiny_tokenizer)
    assert {tensor.dtype for tensor in load_file(tmp_path / "model.safetensors").values()} == {torch.float16}
    loaded = transformer.load(tmp_path).model
    for name, parameter in loaded.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, model.get_parameter(name).half().float())


def test_the_fingerprint_names_the_content(folder: Path, checkpoints_folder: Path) -> None:
    checkpoint = transformer.load(folder)
    assert checkpoint.fingerprint == fingerprint(checkpoints_folder / "tiny-translator")
    assert len(checkpoint.fingerprint) == 64 and checkpoint.fingerprint.startswith(checkpoint.short_fingerprint)
    for change in (
        lambda: change_weights(folder, lambda t: t["decoder.final_norm.bias"].add_(1)),
        lambda: change_config(folder, dropout=0.2),
    ):
        before = fingerprint(folder)
        change()
        assert fingerprint(folder) != before


def test_saving_over_a_checkpoint_replaces_it(folder: Path, tiny_tokenizer: Tokenizer) -> None:
    transformer.save(folder, random_model("decoder-only", vocabulary_size=400), tiny_tokenizer)
    assert transformer.load(folder).config.kind == "decoder-only"
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip


def test_a_checkpoint_without_a_card_loads(folder: Path) -> None:
    (folder / "README.md").unlink()
    assert transformer.load(folder).card == ""
    (folder / "README.md").write_bytes(b"caf\xe9")
    assert transformer.load(folder).card.startswith("caf")


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_the_current_folder_has_its_own_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert transformer.load(".").name == "copy"
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert transformer.load("..").name == "copy"


@EVERY_MODEL
def test_what_a_config_asks_for_is_about_what_its_model_holds(kind: str, tied: bool, positions: str) -> None:
    """The other differences: tied or sinusoidal tables on one side only, and an untied projection."""
    model = random_model(kind, vocabulary_size=400, tie_embeddings=tied, positions=positions)
    held = sum(parameter.numel() for parameter in model.parameters() if parameter.dim() > 1)
    table, encodings = 400 * model.config.d_model, 2 * model.config.max_length * model.config.d_model
    assert held - table <= _n_numbers(model.config) <= held + table + encodings


def test_a_tied_matrix_is_written_once_and_a_snapshot_has_eight_bits_for_matrices(tmp_path: Path) -> None:
    save_weights(tmp_path / "weights", random_model())
    write_snapshot(tmp_path / "snapshot", random_model(), 7)
    for file in ("weights", "snapshot"):
        tensors = load_file(tmp_path / file)
        assert not any("vocabulary_projection" in name for name in tensors)
        assert sum(name.endswith("table.weight") for name in tensors) == 1
    types = {(tensor.ndim, tensor.dtype) for tensor in tensors.values()}
    assert types == {(1, torch.float16), (2, torch.int8)}
    with safe_open(tmp_path / "snapshot", framework="pt") as file:
        assert file.metadata() == {"step": "7"}


@pytest.mark.parametrize("value", [float("nan"), 1e5])
def test_weights_that_cannot_be_stored_are_not_written(value: float, tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = random_model.__wrapped__(vocabulary_size=400)
    with torch.no_grad():
        model.decoder.final_norm.bias[0] = value
    problem = "not finite in|decoder.final_norm.bias is too large for half"
    with pytest.raises(ValueError, match=problem):
        write_snapshot(tmp_path / "a.safetensors", model, 0)
    with pytest.raises(ValueError, match=r"decoder.final_norm.bias.*half=False"):
        transformer.save(tmp_path, model, tiny_tokenizer)
    assert not list(tmp_path.glob("*.safetensors"))
    if value == 1e5:
        transformer.save(tmp_path, model, tiny_tokenizer, half=False)
        assert transformer.load(tmp_path).model.decoder.final_norm.bias[0] == 1e5


# ---- snapshots, the model at earlier steps ---------------------------------------------------------------------------


@pytest.fixture
def snapshots(folder: Path) -> Path:
    """A copy of the tiny translator with snapshots of steps 0 and 300."""
    config = transformer.load(folder).config
    for step in (300, 0):
        write_snapshot(folder / snapshot_file(step), build.random_model(config, seed=step), step)
    return folder


def change_snapshot(
    folder: Path, edit: Callable[[dict[str, torch.Tensor]], object], *, step: str | None = "300"
) -> None:
    file = folder / snapshot_file(300)
    tensors = load_file(file)
    edit(tensors)
    save_file(tensors, file, metadata=None if step is None else {"step": step})


@EVERY_MODEL
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


def test_the_steps_are_those_of_the_files_in_order(snapshots: Path) -> None:
    for other in ("step-1.safetensors", "step-000700.safetensors.part", "notes.txt"):
        (snapshots / "snapshots" / other).write_text("")
    (snapshots / snapshot_file(1_234_567)).write_text("")
    assert snapshot_steps(snapshots) == (0, 300, 1_234_567)
    assert snapshot_steps(snapshots / "nothing") == ()


def test_a_snapshot_is_traced_and_decodes_like_a_checkpoint(snapshots: Path) -> None:
    checkpoint = transformer.load(snapshots)
    first, later = (snapshot(checkpoint, step) for step in (0, 300))
    assert first.config == later.config == checkpoint.config
    assert later.tokenizer is checkpoint.tokenizer
    texts = "The cat sat.", "Le chat."
    one, two = (transformer.trace(moment, *texts).values("decoder.logits") for moment in (first, later))
    assert one.shape == two.shape and (one != two).any()
    assert transformer.decode(later, texts[0]).steps


def test_every_step_has_a_fingerprint_of_its_own(snapshots: Path) -> None:
    checkpoint = transformer.load(snapshots)
    prints = {checkpoint.fingerprint, *(snapshot(checkpoint, step).fingerprint for step in (0, 300))}
    assert len(prints) == 3
    assert snapshot(checkpoint, 300).fingerprint in prints


def test_a_step_that_is_not_there(snapshots: Path, tiny_checkpoint: Callable) -> None:
    with pytest.raises(CheckpointError, match="has no snapshot of step 100; it has snapshots of steps 0, 300"):
        snapshot(transformer.load(snapshots), 100)
    with pytest.raises(CheckpointError, match="it has no snapshots"):
        snapshot(tiny_checkpoint("bert"), 0)
    with pytest.raises(CheckpointError, match="there is no snapshot"):
        load_snapshot(snapshots / "nothing", random_model().config)


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
def test_contents_that_do_not_fit(edit: Callable, message: str, snapshots: Path) -> None:
    change_snapshot(snapshots, edit)
    with pytest.raises(CheckpointError, match=message):
        snapshot(transformer.load(snapshots), 300)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (None, "does not say of which step it is"),
        ("late", "does not say of which step it is .*'late'"),
        ("0", "is a snapshot of step 0, not of step 300; was it renamed?"),
    ],
)
def test_a_step_that_the_file_does_not_confirm(step: str | None, message: str, snapshots: Path) -> None:
    change_snapshot(snapshots, lambda tensors: None, step=step)
    with pytest.raises(CheckpointError, match=message):
        snapshot(transformer.load(snapshots), 300)


def test_a_snapshot_of_another_model_is_refused_before_anything_is_allocated(snapshots: Path) -> None:
    config = transformer.ModelConfig(**{**transformer.load(snapshots).config.__dict__, "d_ff": 10**12})
    with pytest.raises(CheckpointError, match=r"it holds \d+ numbers but the config asks for 256\d{12}$"):
        load_snapshot(snapshots / snapshot_file(300), config)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_model_on_a_gpu_traces_and_decodes_like_one_on_the_cpu(checkpoints_folder: Path) -> None:
    for name in ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"):
        path = checkpoints_folder / name
        here, there = transformer.load(path), transformer.load(path, device="cuda")
        target = None if "translator" not in name and "gpt" not in name else "Le chat."
        one, other = (transformer.trace(checkpoint, SENTENCE, target) for checkpoint in (here, there))
        for activation in one.names():
            torch.testing.assert_close(
                torch.tensor(other.values(activation)), torch.tensor(one.values(activation)), rtol=0, atol=1e-3
            )
        if here.config.has_decoder:
            edit = transformer.ablate_head("decoder", layer=0, head=0)
            for strategy in (transformer.Greedy(5), transformer.Sample(seed=1), transformer.Beam(3)):
                for edits in ((), (edit,)):
                    assert transformer.decode(there, SENTENCE, strategy, edits=edits).tokens


# ---- before training ------------------------------------------------------------------------------------------------


NAMES = ("en-fr", "gpt-en", "bert-en-pairs", "sentiment", "t5-small-tasks", "vit-digits")


@pytest.mark.sample("name", of=2)
@pytest.mark.parametrize("name", NAMES)
def test_random_weights_are_those_that_a_training_with_the_seed_begins_with(name: str) -> None:
    config = shipped(name).config
    state = torch.random.get_rng_state()
    drawn = build.random_model(config, seed=7)
    assert torch.equal(torch.random.get_rng_state(), state), "other threads use torch's generator"
    with torch.random.fork_rng():
        torch.manual_seed(7)
        expected = transformer.build_model(config).state_dict()
    for weight, (key, value) in zip(drawn.state_dict().values(), expected.items(), strict=True):
        assert torch.equal(weight, value), key
    assert not drawn.training


def test_an_untrained_model_depends_on_its_seed_and_is_never_taken_for_the_trained_one(tiny_checkpoint, guest) -> None:
    checkpoint = tiny_checkpoint("tiny-translator")
    drawn = [transformer.untrained(checkpoint, seed=seed) for seed in (0, 1)]
    runs = {transformer.Run(one, "The cat.") for one in (checkpoint, *drawn)}
    assert len({one.fingerprint for one in (checkpoint, *drawn)}) == len(runs) == 3
    again = transformer.untrained(checkpoint)
    assert again.fingerprint == drawn[0].fingerprint and again.model is not checkpoint.model
    first, same, other = (one.model.state_dict() for one in (drawn[0], again, drawn[1]))
    assert all(torch.equal(first[key], same[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)
    with pytest.raises(ValueError, match="third-party"):
        transformer.untrained(guest("hf-gpt2"))


# ---- computed once --------------------------------------------------------------------------------------------------


class Counted:
    n_computed = 0

    @once
    def value(self) -> int:
        """How often it was computed."""
        self.n_computed += 1
        return self.n_computed


def test_it_is_computed_once_for_each_object() -> None:
    first, second = Counted(), Counted()
    assert (first.value, first.value, first.n_computed, second.n_computed) == (1, 1, 1, 0)
    del first.__dict__["value"]
    assert first.value == 2
    assert Counted.value.__doc__ == "How often it was computed."
