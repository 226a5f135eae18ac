"""The cell with which a page opens a typed sentence: a word that attends to another word."""

from __future__ import annotations

import pytest

import transformer
from tests.shipped import SHIPPED
from transformer.heads.telling_cell import telling_cell
from transformer.runs.traces import Trace

pytestmark = pytest.mark.slow
TYPED = "My grandmother bakes apple pie every Sunday."


def traced(name: str, sentence: str) -> Trace:
    (path,) = [path for path in SHIPPED if path.name == name]
    return transformer.trace(transformer.load(path), sentence)


@pytest.mark.parametrize(
    ("name", "sentence", "stack", "read"),
    [
        ("gpt-en", TYPED, "decoder", None),
        ("gpt-en", "She is drinking a cup of", "decoder", "·of"),
        ("bert-en", TYPED.replace("apple", "___"), "encoder", "<mask>"),
        ("sentiment", TYPED, "encoder", None),
    ],
)
def test_a_typed_sentence_opens_at_a_word_that_attends_to_another_word(
    name: str, sentence: str, stack: str, read: str | None
) -> None:
    """The head of the checkpoint's opening rests on ``<s>`` in most other sentences."""
    trace = traced(name, sentence)
    found, tokens = telling_cell(trace, stack, "self"), trace.tokens(stack)
    assert found.weight > 0.7 and found.key != found.query
    assert read in (None, tokens[found.query].display)
    assert not tokens[found.key].special and len(tokens[found.key].text.strip()) > 2
    view = trace.attention(stack, found.place.layer, "self")
    assert found.weight == pytest.approx(view.weights[found.place.head, found.query, found.key])


def test_a_row_of_cross_attention_predicts_a_word_and_attends_to_one() -> None:
    trace = traced("en-fr", TYPED)
    found = telling_cell(trace, "decoder", "cross")
    only = telling_cell(trace, "decoder", "cross", only=found.place._replace(head=0))
    assert len(trace.prediction[found.query].display) > 2 and found.weight >= only.weight
    assert only.place.head == 0


def test_a_sentence_without_words_has_no_such_cell() -> None:
    assert telling_cell(traced("en-fr", "1 + 2"), "encoder", "self") is None
