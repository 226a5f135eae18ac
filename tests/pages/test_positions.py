"""The Positions page: every view of every kind of model, and reordered positions."""

from __future__ import annotations

import re

import pytest

import transformer
from tests.pages.conftest import choose_text, is_fine, said
from transformer.layers.positional_encodings import without_positions
from ui.words.texts import page_text
from views.positions import positions_sections as sections

TEXT = page_text("positions")
OWN = {"tiny-translator": "sinusoidal", "tiny-gpt": "learned", "tiny-bert": "rotary", "tiny-sentiment": "relative"}
SENTENCE = "The old man told us a story."


def with_pairs(run, monkeypatch):
    """Return the result of ``run``, and the pairs of tokens that swapped positions meanwhile."""
    pairs, pair_of = [], sections._pair
    monkeypatch.setattr(sections, "_pair", lambda *about: pairs.append(pair_of(*about)) or pairs[-1])
    return run(), pairs


def uncoloured(text):
    """Return text without the marks of colours, and without any brackets."""
    return re.sub(r":orange\[|[\[\]]", "", text)


@pytest.mark.parametrize("checkpoint", OWN)
def test_the_page_opens_on_another_order_and_every_view_runs_as_python(
    open_app, tiny_checkpoint, run_snippet, checkpoint
):
    scheme, config = OWN[checkpoint], tiny_checkpoint(checkpoint).config
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE, token="2")
    assert app.session_state["positions view"] == "order" and TEXT["both_added"] not in said(app)
    titles = [element.value for element in app.markdown if element.value.startswith("#### ")]
    assert titles[0] == f"#### {TEXT['scheme'][scheme]}"
    assert (TEXT["causal_note"] in said(app)) == (not config.has_encoder), "its mask is not reordered"
    for view in ("order", *sections.VIEWS.get(scheme, sections.ADDED)):
        is_fine(choose_text(app, "positions view", view).run())
        assert run_snippet(app).strip(), view
        named = TEXT["both_turned"] if (view, scheme) == ("heatmap", "rotary") else TEXT["scheme"][scheme]
        assert named in said(app)


@pytest.mark.parametrize("checkpoint", OWN)
def test_the_model_is_asked_again_with_other_positions(open_app, tiny_checkpoint, checkpoint):
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE)
    changes = ["swap", "shuffle", "reverse", "remove"] + ["remove_all"] * (checkpoint == "tiny-translator")
    for change in changes:
        is_fine(choose_text(app, "order change", change).run())
    loaded = tiny_checkpoint(checkpoint)
    stacks = ("encoder", "decoder") if checkpoint == "tiny-translator" else transformer.trace(loaded, SENTENCE).stacks
    edits = [edit for stack in stacks for edit in without_positions(loaded.model, stack)]
    answer = transformer.trace(loaded, SENTENCE, edits=edits).text
    written = answer.removeprefix(SENTENCE) if checkpoint == "tiny-gpt" else answer
    assert uncoloured(" ".join(written.split())) in uncoloured(said(app))


def test_an_address_says_which_two_change_places(open_app, monkeypatch):
    swap = {"swap first": "0", "swap second": "2"}
    opened = with_pairs(
        lambda: open_app("positions", checkpoint="tiny-translator", sentence=SENTENCE, **swap), monkeypatch
    )
    assert set(opened[1]) == {(0, 2)}


def test_a_click_on_a_card_makes_it_one_of_the_two(monkeypatch):
    pair = {"swap first": 1, "swap second": 4}
    rows = [[None, 1, 2, 3, 4, 5], [None, 1, 2, 3, 5, 4]]  # a special token stays where it is
    monkeypatch.setattr(sections.choice, "put", pair.__setitem__)
    for row, card, wanted in ((0, 3, (4, 3)), (0, 3, (4, 3)), (0, 0, (4, 3)), (1, 4, (3, 5))):
        sections._take(rows[row], tuple(pair.values()), 0, card)
        assert tuple(pair.values()) == wanted


def test_one_token_has_nothing_to_change_places_with(open_app, tiny_tokenizer):
    assert len(tiny_tokenizer.encode("a")) == 1
    assert TEXT["too_short"] in said(open_app("positions", checkpoint="tiny-translator", sentence="a"))
