"""An uploaded checkpoint is stored under its fingerprint, or refused with a sentence and not stored."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from tests.shipped import SHIPPED
from transformer import CheckpointError
from transformer.files import layout
from transformer.files.received_files import MAX_BYTES, is_received, receive

FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")


@pytest.fixture
def files(checkpoints_folder: Path) -> dict[str, bytes]:
    return {name: (checkpoints_folder / "tiny-gpt" / name).read_bytes() for name in FILES}


def refused(files: dict[str, bytes], folder: Path, message: str) -> None:
    with pytest.raises(CheckpointError, match=message) as caught:
        receive(files, folder)
    assert str(folder) not in str(caught.value)  # the server's folders must not be revealed
    assert not folder.exists() or not list(folder.iterdir())


def test_a_checkpoint_is_kept_under_its_fingerprint(
    files: dict[str, bytes], tmp_path: Path, checkpoints_folder: Path
) -> None:
    original = transformer.load(checkpoints_folder / "tiny-gpt")
    place = receive(files, tmp_path)
    assert place.name == f"received-{original.fingerprint}" and is_received(place.name)
    assert transformer.load(place).fingerprint == original.fingerprint
    assert receive(files, tmp_path) == place  # the same upload again
    assert [path.name for path in tmp_path.iterdir()] == [place.name]


def test_another_checkpoint_with_the_same_short_fingerprint_is_another(
    files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files that agree in 12 digits take a minute to make; the rest of the hash distinguishes them."""
    monkeypatch.setattr(
        layout.hashlib,
        "sha256",
        lambda: SimpleNamespace(
            update=seen.append, hexdigest=lambda: "0" * 12 + sha256(b"".join(seen)).hexdigest()[12:]
        ),
    )
    places = []
    for n_bytes in (0, 1):
        seen = []
        content = {**files, "config.json": files["config.json"] + b" " * n_bytes}
        places.append(receive(content, tmp_path))
        assert (places[-1] / "config.json").read_bytes() == content["config.json"]
    assert places[0] != places[1] and layout.shown_name(places[0].name) == layout.shown_name(places[1].name)


def test_a_file_of_an_earlier_version_says_twelve_digits() -> None:
    whole = "0123456789ab" + "c" * 52
    assert layout.is_same_fingerprint(whole, whole) and layout.is_same_fingerprint(whole[:12], whole)
    for other in (whole[:11], whole[:13], whole[:12] + "d" * 52, "", None, 12, ["0123456789ab"]):
        assert not layout.is_same_fingerprint(other, whole)
    assert layout.shown_fingerprints(whole, "f" * 64) == (whole[:12], "f" * 12)
    assert layout.shown_fingerprints(whole, whole[:12] + "d" * 52) == (whole, whole[:12] + "d" * 52)


def test_a_folder_of_ours_is_taken_as_it_is(files: dict[str, bytes], tmp_path: Path) -> None:
    """Its curves, the roles of its heads and its snapshots are left out."""
    beside = {"history.csv": b"step,loss\n", "head_roles.json": b"{}", "step-000300.safetensors": b"anything"}
    place = receive({**files, **beside}, tmp_path)
    assert sorted(path.name for path in place.iterdir()) == sorted(files)


@pytest.mark.slow
@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_every_folder_that_ships_is_taken_with_all_that_lies_in_it(folder: Path, tmp_path: Path) -> None:
    """As a file dialog or a dropped folder sends it: with file names only."""
    sent = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert transformer.load(receive(sent, tmp_path)).fingerprint == transformer.load(folder).fingerprint


@pytest.mark.parametrize("name", ["hf-gpt2", "hf-marian"])
def test_a_folder_of_hugging_face_is_taken_as_it_is(name: str, tmp_path: Path) -> None:
    folder = foreign_checkpoint(name, tmp_path)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    opened = transformer.load(receive(files, tmp_path / "kept"))
    assert opened.fingerprint == transformer.load(folder).fingerprint
    refused({**files, "config.json": b'{"model_type": "theirs"}'}, tmp_path / "other", "'theirs'")


def test_the_card_may_be_missing(files: dict[str, bytes], tmp_path: Path) -> None:
    del files["README.md"]
    assert transformer.load(receive(files, tmp_path)).card == ""


@pytest.mark.parametrize(
    "name",
    ["../model.safetensors", "/etc/passwd", "..", "", "a/config.json", "config.json\0", "CON", ".bashrc", "model.zip"],
)
def test_any_other_name_is_refused(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    refused({**files, name: b"x"}, tmp_path / "kept", "is not a file of a checkpoint")


@pytest.mark.parametrize("name", ["model.pt", "pytorch_model.bin", "MODEL.PKL", "../../last.ckpt"])
def test_a_pickle_is_refused_with_how_to_convert_it(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    refused({**files, name: b"\x80\x04."}, tmp_path / "kept", "is a pickle, which may run any code")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    del files[name]
    refused(files, tmp_path / "kept", f"^{name} is missing")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_too_large_is_refused(name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return MAX_BYTES[name] + 1

    refused({**files, name: Huge()}, tmp_path / "kept", rf"{name} has [\d,]+ bytes; at most [\d,]+ are accepted")


def test_a_config_without_bounds_is_refused(files: dict[str, bytes], tmp_path: Path) -> None:
    for change, message in (
        ({"max_length": 65_536}, "max_length is 65536; at most 4096 is accepted"),
        ({"d_model": 10**12}, "does not fit its config.json"),
        ({"n_decoder_layers": 256}, "does not fit its config.json"),
        ({"vocabulary_size": 10**9}, "the tokenizer has 400 entries"),
    ):
        config = json.dumps({**json.loads(files["config.json"]), **change}).encode()
        refused({**files, "config.json": config}, tmp_path / "kept", message)
    for config in (b"[" * 60_000, b"9" * 60_000, b"\xff", b"null", b""):
        refused({**files, "config.json": config}, tmp_path / "kept", "^config.json")


def test_weights_that_cannot_be_used_are_refused(files: dict[str, bytes], tmp_path: Path) -> None:
    raw = files["model.safetensors"]
    tensors = load(raw)
    tensors["decoder.final_norm.bias"] = torch.full((24,), torch.nan)
    huge_header = (2**62).to_bytes(8, "little") + raw[8:]
    for content, message in (
        (save(tensors), r"not finite \(NaN or infinite\) in decoder.final_norm.bias"),
        (raw[: len(raw) // 2], "model.safetensors is not a complete safetensors file"),
        (huge_header, "model.safetensors is not a complete safetensors file"),
        (b"", "model.safetensors is not a complete safetensors file"),
        (save({"a": torch.zeros(2)}), "does not fit its config.json"),
    ):
        refused({**files, "model.safetensors": content}, tmp_path / "kept", message)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_bytes_changed_anywhere_are_a_checkpoint_or_a_sentence(
    data: st.DataObject, files: dict[str, bytes], tmp_path: Path
) -> None:
    name = data.draw(st.sampled_from(FILES[:3]))
    content = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 4))):
        # Headers and JSON are at the beginning; changes in the weights themselves matter only as NaN.
        place = data.draw(st.integers(0, min(len(content), 3000) - 1))
        content[place] = data.draw(st.integers(0, 255))
    try:
        place = receive({**files, name: bytes(content)}, tmp_path)
    except CheckpointError as error:
        assert str(tmp_path) not in str(error)
    else:
        transformer.trace(transformer.load(place), "Hello.", target="you")
