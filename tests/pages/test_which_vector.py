"""The third part of Compare: which vector carries the difference between two sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import signed
from tests.conftest import ROOT
from tests.pages.conftest import codes, is_fine, said
from tests.triggers import trigger
from transformer.interventions.activation_patching import contrast, patch_grid, recovered_shares
from transformer.interventions.attribution_patching import estimated_shares
from ui.words.texts import page_text
from views.compare.which_vector import LEAST_SHOWN, NARROW

SENTENCE, OTHER = "The cat sat on the mat.", "The dog sat on the mat."
Open = Callable[..., AppTest]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list:
    found: list = []
    monkeypatch.setattr("views.compare.which_vector.show_map", lambda figure, **_: found.append(figure))
    return found


@pytest.fixture
def open_part(open_app: Open) -> Open:
    def opened(checkpoint: str, sentence: str = SENTENCE, second: str = OTHER, **choices: str) -> AppTest:
        address = {"checkpoint": checkpoint, "sentence": sentence, "second": second, **choices}
        app = open_app("compare", compare_more="vectors", **address)
        is_fine(app)
        return app

    return opened


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translator", "gpt"])
@pytest.mark.parametrize("section", ["tokens", "heads"])
def test_the_map_is_what_the_library_measures(
    open_part: Open, tiny_checkpoint: Callable, drawn: list, run_snippet: Callable, kind: str, section: str
) -> None:
    app = open_part(f"tiny-{kind}", paths_section=section, paths_tokens="true")
    both = contrast(transformer.trace(tiny_checkpoint(kind), SENTENCE), OTHER)
    turn = both.most_changed_turn
    grid = patch_grid(both, turn, heads=section == "heads")
    places = [place for row in grid for place in row if place is not None]
    expected = recovered_shares(both, turn, [places])[0]
    figure = drawn[-1]
    known = np.array([[place is not None for place in row] for row in grid])
    assert figure.arrays["values"][known] == pytest.approx(expected, abs=1e-5)
    assert (len(figure.metadata["rows"]), len(figure.metadata["columns"])) == known.shape
    printed = run_snippet(next(code for code in codes(app) if "recovered" in code))
    assert len(printed.strip().splitlines()) == expected.size
    if section == "tokens":
        app.toggle(key="paths_parts").set_value(True)
        is_fine(app.run())
        assert len(drawn[-1].arrays["values"]) > len(grid)
    asked = app.selectbox(key="paths_turn")
    is_fine(asked.set_value(asked.options[-1]).run())
    assert not np.array_equal(drawn[-1].arrays["values"], figure.arrays["values"]) or len(set(asked.options)) == 1


@pytest.mark.parametrize("checkpoint", ["en-fr", "gpt-en", "bert-en", "sentiment"])
def test_it_opens_on_a_swap_whose_effect_is_seen(
    open_app: Open, drawn: list, monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    is_fine(open_app("compare", checkpoint=checkpoint, compare_more="vectors"))
    (figure,) = drawn
    values = figure.arrays["values"]
    assert len(figure.metadata["columns"]) <= NARROW or (np.abs(values).max(axis=0) >= LEAST_SHOWN).all()
    row, column = figure.metadata["selected"]
    assert row > 0 and values[row, column] > 0.4, "what is named is no input, and it undoes much"


def test_it_follows_the_swapped_word_to_the_output_that_changes_most(
    open_part: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    first, second = "The young man is reading a white book.", "The young woman is reading a white book."
    app = open_part("en-fr", first, second)
    chosen = app.selectbox(key="paths_turn")
    named = next(option for option in chosen.options if option.startswith(f"{chosen.value}:"))
    assert "homme" in named, "and not its article, which changes as well"


def test_a_click_leads_to_the_head_or_chooses_the_place(open_part: Open) -> None:
    app = open_part("tiny-gpt", paths_tokens="true")
    is_fine(trigger(app, "patching", "click", {"query": 1, "key": 1}))
    assert (app.session_state["focus"].layer, app.session_state["focus"].token) == (1, 1)
    app = open_part("tiny-gpt", paths_section="heads")
    is_fine(trigger(app, "patching", "click", {"query": 0, "key": 1}))
    assert (app.session_state["focus"].layer, app.session_state["focus"].head) == (0, 1)
    assert app.title[0].value == page_text("attention").title


def test_sentences_of_different_lengths_are_explained(open_part: Open, drawn: list) -> None:
    app = open_part("tiny-translator", second="The cat.")
    assert "as many tokens" in app.info[0].value and not drawn


def test_a_long_sweep_is_estimated_until_it_is_asked_for(
    open_part: Open, tiny_checkpoint: Callable, drawn: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.lab.sweeps.LARGE", 0)
    first, second = "A dog sat on the mat.", "A cat sat on the mat."  # in no other test, whose result would be known
    app = open_part("tiny-translator", first, second, paths_section="heads")
    guess = drawn[-1]
    both = contrast(transformer.trace(tiny_checkpoint("translator"), first), second)
    turn = both.most_changed_turn
    places = [place for row in patch_grid(both, turn, heads=True) for place in row if place is not None]
    estimates = estimated_shares(both, turn, [places])[0]
    assert guess.arrays["values"].ravel() == pytest.approx(estimates, abs=1e-5)
    strongest = recovered_shares(both, turn, [places])[0][np.argmax(np.abs(estimates))]
    assert f"measured {signed(float(strongest))}" in said(app), "its error stands beside it"
    is_fine(app.button(key="sweep start").click().run())
    assert drawn[-1].metadata["value_name"] != guess.metadata["value_name"]
    assert not any(button.key == "sweep start" for button in app.button)
