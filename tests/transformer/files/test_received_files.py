"""An uploaded checkpoint is stored under its fingerprint, or refused, as are false file names."""

from __future__ import annotations

import os
import re
import subprocess
from hashlib import sha256
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import transformer
from tests.conftest import ROOT
from tests.foreign_checkpoints import foreign_checkpoint
from tests.golden.hostile import FALSE_NAMES
from tests.shipped import SHIPPED
from tests.transformer.tiny import config
from transformer import CheckpointError
from transformer.files import layout
from transformer.files.fetch import is_plain_name
from transformer.files.received_files import FOREIGN_BYTES, MAX_BYTES, is_received, receive
from transformer.files.snapshots import is_snapshot
from transformer.training.recipe import Recipe
from ui.compute import loading

FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")


@pytest.fixture
def files(checkpoints_folder: Path) -> dict[str, bytes]:
    return {name: (checkpoints_folder / "tiny-gpt" / name).read_bytes() for name in FILES}


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
@pytest.mark.sample("folder", of=2)
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


def test_the_card_may_be_missing(files: dict[str, bytes], tmp_path: Path) -> None:
    del files["README.md"]
    assert transformer.load(receive(files, tmp_path)).card == ""


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


# ---- names ----------------------------------------------------------------------------------------------------------


def is_plain(name: str) -> bool:
    """Return whether Windows takes it for one file in the folder itself."""
    path = PureWindowsPath(name)
    odd = re.search(r'[<>:"|?*\\/\x00-\x1f]', name) or name in ("", "..") or name.endswith((".", " "))
    return path.name == name and not path.is_reserved() and not odd


def test_what_is_accepted_is_a_plain_name_everywhere() -> None:
    assert all(is_plain(name) for name in (*MAX_BYTES, *FOREIGN_BYTES))
    assert not any(map(is_plain, FALSE_NAMES))


@pytest.mark.parametrize("name", FALSE_NAMES)
def test_such_a_name_is_neither_fetched_nor_a_snapshot_nor_a_run(name: str) -> None:
    assert not is_plain_name(name) and not is_snapshot(name)
    with pytest.raises(ValueError, match="name is"):
        Recipe(name=name, task="next-token", corpus="c", model=config("decoder-only"))


@pytest.mark.parametrize("name", [r"..\en-fr", r"C:\checkpoints\en-fr", r"\\host\share", "en-fr:x", r"a\..\en-fr"])
def test_an_address_that_names_a_path_names_no_checkpoint(checkpoints_folder: Path, name: str) -> None:
    assert name not in loading.choosable_checkpoints(name)


def test_folders_of_a_setting_are_divided_as_the_system_divides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pathsep", ";")
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", r"C:\mine;D:\other")
    assert [str(path) for path in loading.checkpoints_folders()] == [r"C:\mine", r"D:\other"]


def test_the_repository_can_be_checked_out_on_windows() -> None:
    """No name is invalid on Windows, and no two differ only in case."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    files = listed.stdout.decode("utf-8").rstrip("\0").split("\0")
    assert [file for file in files if not all(is_plain(part) for part in file.split("/"))] == []
    assert len({file.casefold() for file in files}) == len(files)
    assert max(map(len, files)) < 150, "with a folder of one's own in front, 260 characters are the end"
