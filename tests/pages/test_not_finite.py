"""A model whose numbers are not finite: every page says in one sentence where they begin, and compares none of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from tests.nights import in_turn
from ui.shell.navigation import GROUPS

Open = Callable[..., AppTest]
PAGES = [entry.name for group in GROUPS.values() for entry in group]
KINDS = ("translator", "gpt", "bert", "sentiment")
# About the checkpoint rather than a sentence: no number of a forward pass is on them.
OF_NO_SENTENCE = {"checkpoint", "training", "lessons"}


@pytest.fixture
def too_large(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny checkpoints with weights × 10³⁰: each is finite, their products are not."""
    for kind in KINDS:
        folder = shutil.copytree(checkpoints_folder / f"tiny-{kind}", tmp_path / kind)
        path = folder / "model.safetensors"
        save_file({name: tensor.float() * 1e30 for name, tensor in load_file(path).items()}, path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "page"), in_turn(KINDS, PAGES))
def test_every_page_says_where_the_numbers_stop_being_finite(
    too_large: None, open_app: Open, page: str, kind: str
) -> None:
    app = open_app(page, checkpoint=kind, sentence="The cat sat on the mat.")
    assert not app.exception
    assert not app.error, [error.value for error in app.error]
    found = [warning.value.replace("\\", "") for warning in app.warning]
    if page not in OF_NO_SENTENCE:
        assert len(found) == 1 and "the first activation of the forward pass that is not finite" in found[0], found
        assert "coder." in found[0] and ("∞" in found[0] or "NaN" in found[0])


def test_an_edit_that_overflows_can_be_undone(open_app: Open) -> None:
    edits = [f"scale:decoder.{layer}.self.0=1e30" for layer in (0, 1)]
    app = open_app("surgery", checkpoint="tiny-gpt", sentence="The cat sat on the mat.", edit=edits)
    assert not app.exception and not app.error
    assert "With these edits" in app.warning[0].value and "undo or weaken an edit" in app.warning[0].value
    undo = [button for button in app.button if (button.key or "").startswith(("drop", "undo", "clear", "remove"))]
    assert undo, [button.key for button in app.button]
    for _ in edits:
        next(button for button in app.button if button.key == undo[0].key).click().run()
        if not app.warning:
            break
    assert not app.warning
