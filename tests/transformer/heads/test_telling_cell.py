"""The cell with which pages open a typed sentence: the row that Overview follows, the word it names."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.shipped import SHIPPED
from transformer.attribution.leave_one_out import leave_one_out
from transformer.heads.telling_cell import CLEAR, clearest_cell, followed_rows, most_useful, telling_cell, telling_kind
from transformer.interventions.head_importance import head_effect
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace

pytestmark = pytest.mark.slow
TYPED = "My grandmother bakes apple pie every Sunday."
ALIGNS = 1  # the layer of en-fr's opening


def traced(name: str, sentence: str) -> Trace:
    (path,) = [path for path in SHIPPED if path.name == name]
    return transformer.trace(transformer.load(path), sentence)


@pytest.mark.parametrize(
    ("name", "sentence", "row", "named"),
    [
        ("en-fr", TYPED, "·chaque", "·every"),
        ("en-fr", "He lost his keys, so he could not open the door.", "·perdu", "·lost"),
        ("gpt-en", TYPED, "·every", "·pie"),
        ("gpt-en", "She is drinking a cup of", "·of", "·cup"),
        ("bert-en", TYPED.replace("apple", "___"), "<mask>", "·pie"),
        ("bert-en", TYPED, "·every", "·Sunday"),
        ("sentiment", "I love this terrible movie.", "·terrible", "·movie"),
    ],
)
def test_the_row_is_the_one_that_is_followed_and_the_head_looks_at_the_word_that_all_agree_on(
    name: str, sentence: str, row: str, named: str
) -> None:
    trace = traced(name, sentence)
    stack, kind = telling_kind(trace)
    decisive = None
    if trace.checkpoint.config.n_classes:
        left_out = leave_one_out(trace.checkpoint, sentence)
        decisive = left_out.words[left_out.decisive].start
    rows = followed_rows(trace, layer=ALIGNS, decisive=decisive)
    cell = telling_cell(trace, rows, (ALIGNS,) if kind == "cross" else range(trace.n_layers(stack)))
    view = trace.attention(stack, cell.place.layer, kind)
    named_after = trace.prediction if kind == "cross" else view.query
    assert (named_after[cell.query].display, view.key[cell.key].display) == (row, named)
    mean = view.weights[:, cell.query].mean(axis=0)
    if kind == "self":
        mean[cell.query] = 0
    assert int(mean.argmax()) == cell.key, "the heads of the layer agree on it"
    assert view.weights[:, cell.query, cell.key].max() == pytest.approx(cell.weight)
    assert int(view.weights[cell.place.head, cell.query].argmax()) == cell.key


@pytest.mark.parametrize("name", ["en-fr", "gpt-en"])
def test_of_the_heads_with_a_clear_row_the_output_needs_the_chosen_one_most(name: str) -> None:
    trace = traced(name, TYPED)
    stack, kind = telling_kind(trace)
    layers = (ALIGNS,) if kind == "cross" else range(trace.n_layers(stack))
    cell = telling_cell(trace, followed_rows(trace, layer=ALIGNS), layers)
    useful = most_useful(trace, cell)
    view = trace.attention(stack, cell.place.layer, kind)
    clear = np.flatnonzero(view.weights[:, cell.query, cell.key] >= CLEAR).tolist()
    changes = {head: head_effect(trace, stack, cell.place.layer, kind, head=head).change for head in clear}
    assert useful.place.head == min(changes, key=changes.__getitem__) != cell.place.head
    assert changes[useful.place.head] < 0
    assert useful == cell._replace(
        place=cell.place._replace(head=useful.place.head),
        weight=pytest.approx(view.weights[useful.place.head, cell.query, cell.key]),
    )


def test_a_head_that_looks_mostly_at_the_word_is_preferred() -> None:
    """Another head may give the word more and still look mostly at a third one."""
    for name, sentence in (("en-fr", TYPED), ("gpt-en", TYPED), ("sentiment", TYPED)):
        trace = traced(name, sentence)
        stack, kind = telling_kind(trace)
        for row in range(1, len(trace.tokens(stack))):
            for layer in range(trace.n_layers(stack)):
                cell = telling_cell(trace, (row,), (layer,))
                weights = trace.attention(stack, layer, kind).weights[:, row]
                agreeing = np.flatnonzero(weights.argmax(axis=-1) == cell.key)
                assert cell.place.head in agreeing or not len(agreeing), (name, row, layer)


def test_the_class_token_of_an_image_looks_at_a_patch() -> None:
    image = "018aea000ca66g2003007e1000009b0000002g10000008c000402b9000cgec40"
    trace = traced("vit-digits", image)
    cell = telling_cell(trace, followed_rows(trace, layer=0), range(trace.n_layers("encoder")))
    assert cell.query == 0 and trace.source[cell.key].pixels


def test_in_another_stack_a_head_opens_at_its_clearest_row() -> None:
    trace = traced("en-fr", TYPED)
    place = Head("encoder", "self", 0, 2)
    cell = clearest_cell(trace, place)
    assert abs(cell.query - cell.key) > 1 and cell.place == place
    weights = trace.attention("encoder", 0, "self").weights[2]
    assert cell.weight == weights[cell.query, cell.key]
    assert clearest_cell(traced("en-fr", "1 + 2"), place) is None
