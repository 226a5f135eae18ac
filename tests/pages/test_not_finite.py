"""Edits after which numbers overflow can be undone; models of such numbers are in ``test_walk.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import choose_text
from transformer.files.checkpoints import Checkpoint
from transformer.interventions.experiment import same_tokens
from transformer.probes import Edit
from transformer.runs.edit_specs import edits_from
from transformer.runs.traces import Trace

Open = Callable[..., AppTest]


@pytest.mark.parametrize("button", ["take back 0", "clear edits"])
def test_edits_that_overflow_can_be_undone(open_app: Open, button: str) -> None:
    edits = [f"scale:decoder.{layer}.self.0=1e30" for layer in (0, 1)]
    open_app("surgery", checkpoint="tiny-gpt", sentence="The cat sat on the mat.")  # measures the heads of the map
    app = open_app("surgery", checkpoint="tiny-gpt", sentence="The cat sat on the mat.", edit=edits)
    assert not app.exception and not app.error and app.warning
    assert any(component.key == "importance" for component in app.get("bidi_component")), "a click edits the model"
    while any(one.key == button for one in app.button):
        app.button(key=button).click().run()
    assert not app.warning and not app.exception and not app.error


@pytest.mark.parametrize("button", ["mask undo", "mask reset"])
def test_a_painted_mask_that_overflows_can_be_undone(open_app, monkeypatch, button) -> None:
    def overflowing(trace: Trace, edits: Iterable[Edit] = (), *, checkpoint: Checkpoint | None = None) -> Trace:
        scales = edits_from(trace.checkpoint, [f"scale:decoder.{layer}.self.0=1e30" for layer in (0, 1)])
        return same_tokens(trace, (*edits, *scales), checkpoint=checkpoint)

    app = open_app("masks", checkpoint="tiny-gpt", sentence="The cat sat on the mat.")
    assert not app.warning
    monkeypatch.setattr("transformer.interventions.experiment.same_tokens", overflowing)
    choose_text(app, "mask", "allow 0-3").run()
    assert not app.exception and not app.error
    assert app.warning and any(
        component.key == "mask editor" for component in app.get("bidi_component")
    )  # cells are painted
    app.button(key=button).click().run()
    assert not app.warning and not app.exception and not app.error
