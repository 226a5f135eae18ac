"""The Paths page: what is put back into the corrupted sentence, and what it says when there is nothing to put back."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import signed
from tests.pages.conftest import codes, is_fine, said
from tests.triggers import trigger
from transformer.analysis.answers.answer_rows import asked
from transformer.explanation.activation_patching import contrast, head_places, recovered, token_places
from transformer.explanation.attribution_patching import estimated_shares
from transformer.explanation.information_flow import information_flow, start_of
from transformer.explanation.path_patching import path_patching, senders_of
from transformer.runs.head_places import Head
from ui.words.texts import page_text

TEXT = page_text("paths")
SENTENCE = "The cat sat on the mat."
Open = Callable[..., AppTest]


def corrupted(app: AppTest) -> str:
    return app.text_input(key="paths corrupted").value


@pytest.mark.parametrize("kind", ["translator", "gpt"])
@pytest.mark.parametrize("section", ["tokens", "heads"])
def test_the_map_is_what_the_library_measures(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, run_snippet: Callable,
    kind: str, section: str,
) -> None:  # fmt: skip
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    app = open_app("paths", checkpoint=f"tiny-{kind}", sentence=SENTENCE, paths_section=section)
    is_fine(app)
    both = contrast(transformer.trace(tiny_checkpoint(kind), SENTENCE), corrupted(app))
    turn = both.first_turn
    for figure, stack in zip(drawn[-len(both.clean) :], both.clean, strict=True):
        places = head_places(both, stack) if section == "heads" else token_places(both, turn, stack)
        assert figure.arrays["values"] == pytest.approx(recovered(both, turn, places), abs=1e-5)
        assert len(figure.metadata["rows"]) == len(places) and len(figure.metadata["columns"]) == len(places[0])
    printed = run_snippet(next(code for code in codes(app) if "recovered" in code))
    assert len(printed.strip().splitlines()) >= len(places) * len(both.clean) // 2
    asked = app.selectbox(key="paths_turn")
    is_fine(asked.set_value(asked.options[-1]).run())
    assert drawn[-1].metadata["title"] != figure.metadata["title"] or len(set(asked.options)) == 1


def test_a_click_leads_to_the_head_or_chooses_the_place(open_app: Open) -> None:
    app = open_app("paths", checkpoint="tiny-gpt", sentence=SENTENCE, paths_section="tokens")
    is_fine(trigger(app, "patching decoder", "click", {"query": 1, "key": 1}))
    assert (app.session_state["focus"].layer, app.session_state["focus"].token) == (1, 1)
    app = open_app("paths", checkpoint="tiny-gpt", sentence=SENTENCE, paths_section="heads")
    is_fine(trigger(app, "patching decoder", "click", {"query": 0, "key": 1}))
    assert (app.session_state["focus"].layer, app.session_state["focus"].head) == (0, 1)
    assert app.title[0].value == page_text("attention").title


def test_a_ready_pair_brings_its_sentence_along(open_app: Open) -> None:
    app = open_app("paths", checkpoint="tiny-translator", sentence=SENTENCE)
    pairs = [button for button in app.button if button.key.startswith("paths corrupted pair")]
    is_fine(next(button for button in pairs if button.label.startswith("…")).click().run())
    assert app.session_state["focus"].sentence != SENTENCE != corrupted(app)
    assert corrupted(app) != app.session_state["focus"].sentence


def test_a_text_that_does_not_fit_is_a_sentence_and_an_empty_one_a_hint(open_app: Open) -> None:
    app = open_app("paths", checkpoint="tiny-translator", sentence=SENTENCE)
    app.text_input(key="paths corrupted").set_value("The cat.").run()
    assert not app.exception and not app.error and "as many tokens" in app.warning[0].value
    app.text_input(key="paths corrupted").set_value(" ").run()
    assert not app.exception and app.info[0].value == TEXT["corrupted_empty"]


def test_a_sentence_without_words_offers_nothing(open_app: Open) -> None:
    app = open_app("paths", checkpoint="tiny-sentiment", sentence="… 12 ?")
    assert not app.exception and not app.error and not app.warning
    assert TEXT["corrupted_empty"] in [info.value for info in app.info] or said(app)


def test_a_long_sweep_is_estimated_until_it_is_asked_for(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    monkeypatch.setattr("ui.lab.sweeps.LARGE", 0)
    app = open_app("paths", checkpoint="tiny-translator", sentence="A dog sat on the mat.", paths_section="heads")
    is_fine(app)
    guess = drawn[-1]
    assert "Estimated" in guess.metadata["title"]
    button = app.button(key="sweep start")
    places = 3 * 2 * 2  # three kinds of attention, two layers of two heads
    assert re.sub(r"\(\d+", "(n", TEXT["start"].format(passes=2, places=places)) == re.sub(r"\(\d+", "(n", button.label)
    both = contrast(transformer.trace(tiny_checkpoint("translator"), "A dog sat on the mat."), corrupted(app))
    own = head_places(both, "decoder")
    assert guess.arrays["values"] == pytest.approx(estimated_shares(both, both.first_turn, own), abs=1e-5)
    every = [place for stack in both.clean for row in head_places(both, stack) for place in row]
    estimates = estimated_shares(both, both.first_turn, [every])[0]
    strongest = recovered(both, both.first_turn, [every])[0][np.argmax(np.abs(estimates))]
    assert f"truly {signed(float(strongest))}" in said(app), "its error stands beside it"
    is_fine(button.click().run())
    assert "in the same order" in said(app) and "Share" in drawn[-1].metadata["title"]
    assert not any(button.key == "sweep start" for button in app.button)
    is_fine(app.run())
    assert not any(button.key == "sweep start" for button in app.button)


def test_what_a_head_hears_is_what_the_library_measures(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, run_snippet: Callable
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.head_to_head.show_map", lambda figure, **_: drawn.append(figure))
    place = {"stack": "decoder", "kind": "cross", "layer": "1", "head": "1"}
    app = open_app("paths", checkpoint="tiny-translator", sentence=SENTENCE, paths_section="edges", **place)
    is_fine(app)
    both = contrast(transformer.trace(tiny_checkpoint("translator"), SENTENCE), corrupted(app))
    receiver = Head("decoder", "cross", 1, 1)
    shares = path_patching(both, both.first_turn, receiver)
    values = drawn[-1].arrays["values"]
    for sender, share in zip(senders_of(both, receiver), shares, strict=True):
        row = drawn[-1].metadata["rows"].index(f"{TEXT[f'from_{sender.stack}_{sender.kind}']} {sender.layer}")
        assert values[row, sender.head] == pytest.approx(share, abs=1e-6)
    assert run_snippet(next(code for code in codes(app) if "path_patching" in code)).count("Head(") > 4
    app = open_app("paths", checkpoint="tiny-gpt", sentence=SENTENCE, paths_section="edges", layer="0")
    assert "No head comes before" in app.info[0].value and not app.exception
    next(button for button in app.button if button.label.startswith("Choose")).click()
    is_fine(app.run())
    assert not app.info and app.session_state["focus"].layer > 0


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_the_routes_are_those_of_the_library(
    open_app: Open, tiny_checkpoint: Callable, run_snippet: Callable, kind: str
) -> None:
    app = open_app("paths", checkpoint=f"tiny-{kind}", sentence=SENTENCE, paths_section="flow")
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE)
    found = information_flow(trace, start_of(trace, asked(trace).rows[0]), threshold=0.05)
    assert TEXT["flow_shapes"].format(edges=len(found.edges)) in said(app)
    assert "Edge(" in run_snippet(next(code for code in codes(app) if "flow_graph" in code))
    assert not any(control.key == "choose stack" for control in app.segmented_control), "routes go through all stacks"
    app.slider(key="paths_threshold").set_value(0.3)
    is_fine(app.run())
    fewer = information_flow(trace, start_of(trace, asked(trace).rows[0]), threshold=0.3)
    assert TEXT["flow_shapes"].format(edges=len(fewer.edges)) in said(app)
