"""The sentence shaded by one row of attention: its words, their weights, and the text about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import transformer
from charts.toolkit.shades import colour_at, ink
from charts.toolkit.style import SEQUENTIAL, three_digits
from tests.pages.conftest import is_fine
from transformer.runs.head_places import Head
from ui.words.texts import page_text
from views.attention.attention_view_model import AttentionChoices, attention_view_model
from views.attention.shaded import height_above, shaded

SENTENCE = "The old man told us a story."
PLACES = [
    ("translator", "encoder", "self"),
    ("translator", "decoder", "self"),
    ("translator", "decoder", "cross"),
    ("gpt", "decoder", "self"),
    ("bert", "encoder", "self"),
    ("sentiment", "encoder", "self"),
]
TEXT = page_text("attention")


def one_head(view: transformer.AttentionView, head: int = 1) -> transformer.AttentionView:
    return replace(view, weights=view.weights[head][None], scores=view.scores[head][None])


def draw(view: transformer.AttentionView, *, row: int, **more: object) -> dict:
    told = {"name": view.query.labels[row], "limit": 1.0, "drawing": "map", "wide": False, **more}
    return shaded(TEXT, view, row=row, **told)


@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_every_word_has_the_colour_and_the_number_of_its_weight(
    tiny_checkpoint: Callable, checkpoint: str, stack: str, kind: str
) -> None:
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    view = one_head(trace.attention(stack, 1, kind))
    for row in range(len(view.query)):
        drawn = draw(view, row=row)
        assert len(drawn["words"]) == len(view.key)
        for word, token, weight, seen in zip(
            drawn["words"], view.key, view.weights[0, row], view.allowed[row], strict=True
        ):
            assert token.display.endswith(word["text"])
            assert (word["ground"] == "") == (not seen), "what is masked has no colour of a low value"
            if seen:
                assert word["ground"] == colour_at(float(weight), colours=SEQUENTIAL)
                assert word["ink"] == ink(float(weight), colours=SEQUENTIAL)
                assert word["says"].endswith(three_digits(float(weight)))
            else:
                assert word["says"].endswith("masked")
        # In self-attention a word is both query and key; in cross-attention the words are those of the other sentence.
        assert (drawn["clickable"], drawn["followed"]) == ((True, row) if kind == "self" else (False, None))


@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_a_word_says_who_looks_at_it_most(tiny_checkpoint: Callable, checkpoint: str, stack: str, kind: str) -> None:
    view = one_head(transformer.trace(tiny_checkpoint(checkpoint), SENTENCE).attention(stack, 1, kind))
    words = draw(view, row=1)["words"]
    for key, word in enumerate(words):
        rows = [row for row in range(len(view.query)) if view.allowed[row].sum() > 1 and view.allowed[row, key]]
        best = max(rows, key=lambda row: view.weights[0, row, key], default=None)
        if best is None or view.weights[0, best, key] < 0.005:
            assert word["by"] == ""
        else:
            told = f"{view.query.labels[best]} {three_digits(float(view.weights[0, best, key]))}"
            assert word["by"].startswith(f". It receives most attention from: {told}")
    assert all(word["by"] == "" for word in draw(view, row=1, drawing="rollout")["words"])
    assert all(word["by"] == "" for word in draw(view, row=1, name="·next")["words"]), "rows have other names there"


def test_stretched_colours_end_at_the_largest_weight_of_the_map(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    shown = attention_view_model(trace, Head("encoder", "self", 0, 1), 0, AttentionChoices(stretch=True))
    row, column = np.unravel_index(int(shown.drawn.weights[0].argmax()), shown.drawn.weights[0].shape)
    words = draw(shown.drawn, row=int(row), limit=shown.limit)["words"]
    assert words[column]["ground"] == colour_at(1.0, colours=SEQUENTIAL) == SEQUENTIAL[-1]


def test_the_title_says_which_token_the_row_is_named_after_and_what_is_drawn(tiny_checkpoint: Callable) -> None:
    view = one_head(transformer.trace(tiny_checkpoint("gpt"), SENTENCE).attention("decoder", 0))
    label = view.query.labels[2]
    word = label.removeprefix("·")
    assert draw(view, row=2)["title"] == f"‘{word}’ looks at:"
    assert draw(view, row=2, name="·next")["title"] == "To predict ‘next’, this head looks at:"
    assert draw(view, row=2, name="·next", drawing="values")["title"] == "To predict ‘next’, this head takes from:"
    assert draw(view, row=2, name="·next", drawing="rollout")["title"] == "What predicts ‘next’ consists of:"
    assert draw(view, row=2, drawing="values")["title"] == f"‘{word}’ receives from:"
    assert draw(view, row=2, drawing="rollout")["title"] == f"‘{word}’ consists of:"


def test_words_stand_apart_and_pieces_of_a_word_together(tiny_checkpoint: Callable) -> None:
    view = one_head(transformer.trace(tiny_checkpoint("bert"), "unbelievably cold.").attention("encoder", 0))
    words = draw(view, row=0)["words"]
    for before, token, word in zip([None, *view.key], view.key, words, strict=False):
        begins = token.display.startswith("·") or token.special or bool(before and before.special)
        assert word["apart"] == begins
    assert any(not word["apart"] for word in words)


def test_a_longer_sentence_takes_more_room_above_a_map_but_two_lines_at_most(tiny_checkpoint: Callable) -> None:
    heights = [
        height_above(transformer.trace(tiny_checkpoint("bert"), "word " * count).attention("encoder", 0))
        for count in (1, 8, 20, 28)
    ]
    assert heights == sorted(heights) and heights[0] < heights[-1] == heights[-2]


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
@pytest.mark.parametrize("sentence", ["x", "<b>&amp;</b> $x$ **b**", "word " * 25])
def test_it_stands_beside_every_map_of_every_kind_of_model(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch, checkpoint: str, sentence: str
) -> None:
    drawn = []
    monkeypatch.setattr("views.attention.shaded.token_rows", lambda *, data, **_: drawn.append(data))
    for drawing in ("map", "lines", "values", "rollout"):
        app = open_app("attention", checkpoint=checkpoint, sentence=sentence, attention_show=TEXT[f"show_{drawing}"])
        is_fine(app)
        assert drawn and drawn.pop()["rows"][0]["tokens"]
