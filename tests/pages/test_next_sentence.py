"""Two sentences in one text: every page that shows them, with their class beside the blanks."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

import transformer
from charts.toolkit.style import three_digits
from tests.pages.conftest import codes, is_fine, said
from transformer.runs.next_sentence import next_sentence
from ui.lab.next_sentence_class import next_sentence_line
from ui.words.texts import common, page_text

PAIR = "The cat sat. || The dog sleeps under the table."
WITH_BLANK = "The ___ sat. || The dog sleeps."


def line_of(tiny_checkpoint: Callable, text: str) -> str:
    found = next_sentence(transformer.trace(tiny_checkpoint("bert"), text))
    assert found is not None and found.name in next_sentence_line(found)
    assert three_digits(found.probability) in next_sentence_line(found)
    return next_sentence_line(found)


@pytest.mark.parametrize("page", ["overview", "decoding", "compare"])
@pytest.mark.parametrize("text", [PAIR, WITH_BLANK])
def test_the_class_is_shown(open_app: Callable, tiny_checkpoint: Callable, page: str, text: str) -> None:
    app = open_app(page, checkpoint="tiny-bert", sentence=text)
    is_fine(app)
    assert line_of(tiny_checkpoint, text) in said(app)


@pytest.mark.parametrize("page", ["overview", "decoding", "compare"])
def test_one_sentence_has_no_class(open_app: Callable, page: str) -> None:
    app = open_app(page, checkpoint="tiny-bert", sentence="The cat sat.")
    is_fine(app)
    assert "**IsNext**" not in said(app) and "**NotNext**" not in said(app)


def test_without_a_blank_the_class_is_the_output(open_app: Callable, tiny_checkpoint: Callable) -> None:
    name = next_sentence(transformer.trace(tiny_checkpoint("bert"), PAIR)).name
    assert f":primary[{name}]" in said(open_app("overview", checkpoint="tiny-bert", sentence=PAIR))
    with_blank = said(open_app("overview", checkpoint="tiny-bert", sentence=WITH_BLANK))
    assert f":primary[{name}]" not in with_blank and "|| The dog sleeps." in with_blank


def test_two_second_sentences_are_compared(open_app: Callable, tiny_checkpoint: Callable) -> None:
    other = "The cat sat. || It is raining."
    app = open_app("compare", checkpoint="tiny-bert", sentence=PAIR, second=other)
    is_fine(app)
    for text in (PAIR, other):
        assert line_of(tiny_checkpoint, text) in said(app)


def test_both_classes_are_drawn_and_computed_by_the_snippet(
    open_app: Callable, tiny_checkpoint: Callable, run_snippet: Callable
) -> None:
    app = open_app("decoding", checkpoint="tiny-bert", sentence=PAIR)
    assert page_text("decoding")["next_sentence_caption"] in said(app)
    printed = run_snippet(next(code for code in codes(app) if "next_sentence(trace)" in code))
    found = next_sentence(transformer.trace(tiny_checkpoint("bert"), PAIR))
    assert found.name in printed and repr(found.probability) in printed


def test_every_token_has_the_letter_of_its_sentence(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("tokens", checkpoint="tiny-bert", sentence=PAIR)
    is_fine(app)
    (cards,) = (one for one in app.get("bidi_component") if one.key == "token cards")
    trace = transformer.trace(tiny_checkpoint("bert"), PAIR)
    first = [token.role for token in trace.source].index("end") + 1
    for token in trace.source:
        assert f"{token.id} · {'A' if token.index < first else 'B'}" in json.dumps(
            json.loads(cards.proto.json), ensure_ascii=False
        )
    assert "`</s>` (id 2) between the sentences" in said(app)
    assert page_text("tokens")["segments"].split("{")[0] in said(app)
    alone = said(open_app("tokens", checkpoint="tiny-bert", sentence="The cat sat."))
    assert page_text("tokens")["segments"].split("{")[0] not in alone and "between the sentences" not in alone


def test_the_vector_of_the_segment_is_part_of_the_sum(open_app: Callable, tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), PAIR)
    last = len(trace.source) - 1
    for token, letter in ((1, "A"), (last, "B")):
        length = three_digits(float(np.linalg.norm(trace.values("encoder.embedding.segment")[token])))
        app = open_app("embeddings", checkpoint="tiny-bert", sentence=PAIR, token=str(token))
        is_fine(app)
        assert f"belongs to sentence {letter}, whose vector has length **{length}**" in said(app)
    app = open_app("embeddings", checkpoint="tiny-bert", sentence="The cat sat.", token="1")
    assert "the same for every token of one sentence" in said(app)


def test_the_box_says_how_two_sentences_are_typed(open_app: Callable) -> None:
    pairs = open_app("tokens", checkpoint="tiny-bert").text_input(key="sentence")
    assert pairs.placeholder == common("sentence.pair_placeholder") and "||" in pairs.placeholder
    assert pairs.label == common("sentence.pair") and "||" in pairs.label
    other = open_app("tokens", checkpoint="tiny-sentiment").text_input(key="sentence")
    assert other.label == common("sentence.name")


def test_half_a_pair_is_refused_with_a_remedy(open_app: Callable) -> None:
    app = open_app("overview", checkpoint="tiny-bert", sentence="The cat sat. ||")
    assert not app.exception
    messages = [element.value for element in (*app.error, *app.warning, *app.info)]
    assert any("separates two sentences" in message.replace("\\", "") for message in messages)
