"""A model with non-finite numbers: every page states where they begin, and compares none of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from tests.nights import in_turn
from tests.pages.conftest import choose_text
from transformer.files.checkpoints import Checkpoint
from transformer.interventions.experiment import same_tokens
from transformer.probes import Edit
from transformer.runs.edit_specs import edits_from
from transformer.runs.traces import Trace
from ui.shell.navigation import GROUPS
from ui.words.texts import page_text

Open = Callable[..., AppTest]
PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.exists]
KINDS = ("translator", "gpt", "bert", "sentiment")
# Pages about the checkpoint, or about a model of their own, show no number of a forward pass.
OF_NO_SENTENCE = {"checkpoint", "training", "lessons", "by_hand"}


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
    open_app("surgery", checkpoint="tiny-gpt", sentence="The cat sat on the mat.")  # measures the heads of the map
    app = open_app("surgery", checkpoint="tiny-gpt", sentence="The cat sat on the mat.", edit=edits)
    assert not app.exception and not app.error
    assert "With these edits" in app.warning[0].value and "undo or weaken an edit" in app.warning[0].value
    assert [button.key for button in app.button if (button.key or "").startswith("take back")] == [
        "take back 0", "take back 1",
    ]  # fmt: skip
    # the control that weakens an edit
    assert any(slider.label == page_text("surgery")["scale"] for slider in app.slider)
    # A click on this map edits the model.
    assert any(component.key == "importance" for component in app.get("bidi_component"))
    for _ in edits:
        app.button(key="take back 0").click().run()
    assert not app.warning and not app.exception and not app.error
    assert not [button for button in app.button if (button.key or "").startswith("take back")]


def test_all_edits_that_overflow_can_be_undone_at_once(open_app: Open) -> None:
    edits = [f"scale:decoder.{layer}.self.0=1e30" for layer in (0, 1)]
    app = open_app("surgery", checkpoint="tiny-gpt", sentence="The cat sat on the mat.", edit=edits)
    assert app.warning
    app.button(key="clear edits").click().run()
    assert not app.warning and not app.exception and not app.error


@pytest.mark.parametrize("button", ["mask undo", "mask reset"])
def test_a_painted_mask_that_overflows_can_be_undone(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, button: str
) -> None:
    def overflowing(trace: Trace, edits: Iterable[Edit] = (), *, checkpoint: Checkpoint | None = None) -> Trace:
        scales = edits_from(trace.checkpoint, [f"scale:decoder.{layer}.self.0=1e30" for layer in (0, 1)])
        return same_tokens(trace, (*edits, *scales), checkpoint=checkpoint)

    app = open_app("masks", checkpoint="tiny-gpt", sentence="The cat sat on the mat.")
    assert not app.warning
    monkeypatch.setattr("transformer.interventions.experiment.same_tokens", overflowing)
    choose_text(app, "mask", "allow 0-3")
    app.run()
    assert not app.exception and not app.error
    assert "With these edits" in app.warning[0].value
    assert any(component.key == "mask editor" for component in app.get("bidi_component"))  # cells are painted
    assert page_text("masks")["without_run"] in [caption.value for caption in app.caption]
    app.button(key=button).click().run()
    assert not app.warning and not app.exception and not app.error
