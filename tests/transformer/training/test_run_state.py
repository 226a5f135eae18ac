"""Files of a run are complete or absent."""

from __future__ import annotations

import csv
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from transformer.disk.whole_files import atomic_path, write_text
from transformer.files.model_card import HISTORY
from transformer.training.run_state import COLUMNS, STATE, load_state, save_state, write_history


def state(step: int) -> dict:
    return {"step": step, "history": [{"step": step, "train_loss": 1 / 3}], "weights": torch.full((3,), float(step))}


def test_a_state_comes_back(tmp_path: Path) -> None:
    assert load_state(tmp_path) is None
    save_state(tmp_path, state(4))
    loaded = load_state(tmp_path)
    assert loaded["step"] == 4
    assert torch.equal(loaded["weights"], torch.full((3,), 4.0))


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_write_that_fails_half_way_leaves_the_old_state(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_state(tmp_path, state(1))

    def half(content: object, path: Path) -> None:
        path.write_bytes(b"half of a file")
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", half)
        with pytest.raises(OSError if error is RuntimeError else error):
            save_state(tmp_path, state(2))
    assert load_state(tmp_path)["step"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [HISTORY, STATE]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.txt"
    write_text(path, "old")
    with atomic_path(path) as temporary:
        temporary.write_text("ne")
        assert path.read_text() == "old"
        temporary.write_text("new é")
    assert path.read_text(encoding="utf-8") == "new é"
    with path.open(encoding="utf-8") as reader:  # a reader continues in the old file
        write_text(path, "newer")
        assert reader.read() == "new é"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("written", ["now", "as it once was", "as a plain pickle", "in a list of tensors"])
@pytest.mark.parametrize("call", [Path.touch, eval, os.system, torch.load], ids=lambda call: call.__name__)
def test_a_state_that_would_run_code_is_not_read(written: str, call: Callable, tmp_path: Path) -> None:
    exploded = tmp_path / "exploded"
    given = {eval: f"open({str(exploded)!r}, 'w')", os.system: f"touch {exploded}"}.get(call, exploded)

    class Bomb:
        def __reduce__(self) -> tuple:
            return (call, (given,))

    bomb = [torch.ones(1), Bomb()] if written == "in a list of tensors" else {"step": Bomb()}
    if written == "as a plain pickle":
        (tmp_path / STATE).write_bytes(pickle.dumps(bomb))
    else:
        torch.save(bomb, tmp_path / STATE, _use_new_zipfile_serialization=written != "as it once was")
    with pytest.raises(ValueError, match="is not the whole state of a run"):
        load_state(tmp_path)
    assert not exploded.exists()


def test_history_is_a_table_with_fixed_columns(tmp_path: Path) -> None:
    rows = [{"step": 2, "train_loss": 1 / 3}, {"step": 4, "train_loss": 2.0, "dev_score": 12.3456789}]
    write_history(tmp_path / HISTORY, rows)
    with (tmp_path / HISTORY).open(newline="") as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == list(COLUMNS)
    assert (read[0]["step"], read[0]["train_loss"], read[0]["dev_score"]) == ("2", "0.333333", "")
    assert read[1]["dev_score"] == "12.3457"


def test_a_history_has_columns_that_only_some_rows_have(tmp_path: Path) -> None:
    write_history(tmp_path / HISTORY, [{"step": 2}, {"step": 4, "dev_score": 1.0, "next_sentence_accuracy": 7}])
    with (tmp_path / HISTORY).open(newline="") as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == [*COLUMNS, "next_sentence_accuracy"]
    assert [row["next_sentence_accuracy"] for row in read] == ["", "7"]
