"""Predictions for a blank, or for a word that is present."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from tests.shipped import shipped
from transformer.interventions.experiment import experiment
from transformer.predictions.answer_probabilities import (
    answered_position,
    blanks,
    class_probabilities,
    divergence,
    entropy,
    fill_blanks,
    fillings,
    least_probable_word,
    read_answer,
    softmax,
)
from transformer.runs.decoding_state import writable
from transformer.runs.masked_word import hidden_id, masked_word


@pytest.mark.parametrize("target", [None, "Le chien dort."])
def test_probability_of_a_translation_is_the_product_over_its_tokens(tiny_checkpoint, target):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, "The dog sleeps.", target=target, source_pads=2)
    answer = read_answer(trace)
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([trace.source.ids]), torch.tensor([trace.target.ids]))[0]
    ids = list(trace.prediction.ids)[: -1 if target else None]  # the end after the target was not given
    log_p = torch.log_softmax(writable(logits).double(), dim=-1)[range(len(ids)), ids]
    assert answer.text == trace.text
    assert len(answer.parts) == len(ids)
    assert answer.probability == pytest.approx(float(log_p.sum().exp()), rel=1e-4)
    assert answer.mean_probability == pytest.approx(float(log_p.mean().exp()), rel=1e-4)


@pytest.mark.parametrize("name", ["translator", "gpt"])
def test_every_page_gives_a_written_token_the_same_probability(tiny_checkpoint, name):
    """``<pad>`` and ``<s>`` are never generated; a page that counted them would show another probability."""
    checkpoint = tiny_checkpoint(name)
    trace = transformer.trace(checkpoint, "The dog sleeps.")
    steps = transformer.decode(checkpoint, "The dog sleeps.").steps
    written = [step.chosen.probability for step in steps]
    assert [part.probability for part in read_answer(trace).parts] == pytest.approx(written, rel=1e-5)
    assert np.exp(experiment(trace, ()).before) == pytest.approx(written, rel=1e-5)
    assert steps[0].candidates[0].probability != pytest.approx(softmax(trace.values("decoder.logits")[0]).max())


def test_what_is_ruled_out_adds_nothing_to_a_divergence():
    with np.errstate(divide="ignore"):
        p, q = np.log([[0.5, 0.5, 0.0]]), np.log([[0.25, 0.75, 0.0]])
    assert divergence(p, q) == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3)) and divergence(p, p) == 0
    assert entropy(p) == pytest.approx(1)


def test_a_masked_token_model_is_asked_only_at_its_blanks(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The ___ sleeps under the ___.")
    answer = read_answer(trace)
    assert len(answer.parts) == 2 and 0 < answer.probability < 1
    nothing = read_answer(transformer.trace(checkpoint, "The dog."))
    assert nothing.parts == () and np.isnan(nothing.probability)


def test_a_classifier_answers_with_its_best_class(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    trace = transformer.trace(checkpoint, "The dog.")
    answer = read_answer(trace)
    assert answer.parts[0].display == trace.text and answer.probability >= 0.5
    classes = class_probabilities(trace)
    assert tuple(part.display for part in classes) == checkpoint.config.class_names
    assert sum(part.probability for part in classes) == pytest.approx(1) and answer.parts[0] in classes


def test_fillings_are_the_softmax_of_the_logits(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The ___ sat on the mat.")
    (position,) = blanks(trace)
    found = fillings(trace, position, shown=6)
    logits = trace.values("encoder.logits")[position]
    expected = torch.tensor(logits).double().softmax(dim=-1).numpy()
    assert len(found.rows) == 6
    assert [row.probability for row in found.rows] == sorted((row.probability for row in found.rows), reverse=True)
    for row in found.rows:
        assert row.probability == pytest.approx(expected[row.id], rel=1e-6)
        assert row.piece == checkpoint.tokenizer.display(row.id) and not row.stands_there
    assert sum(row.probability for row in found.rows) + found.rest == pytest.approx(1.0)
    everything = fillings(trace, position, shown=10_000).rows
    assert {"<mask>", "<pad>", "<s>"}.isdisjoint(row.piece for row in everything) and len(everything) == len(logits) - 3


def test_blanks_are_filled_with_the_most_likely_word(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The ___ sat on the ___")
    ids = list(trace.source.ids)
    for position in blanks(trace):
        ids[position] = fillings(trace, position).rows[0].id
    assert fill_blanks(trace) == checkpoint.tokenizer.decode(ids) != "The sat on the"
    assert fill_blanks(transformer.trace(checkpoint, "The ___ sat. || It ___.")).count(" || ") == 1


def test_the_word_that_stands_there_is_listed(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("bert"), "The cat sat on the mat.")
    for position in range(1, len(trace.source) - 1):
        rows = fillings(trace, position, shown=3).rows
        assert [row.id for row in rows if row.stands_there] == [trace.source[position].id]
    everything = fillings(trace, 0, shown=10_000).rows  # <s> has its rank among the others, not after them
    assert next(row.piece for row in everything if row.stands_there) == "<s>"
    assert [row.probability for row in everything] == sorted((row.probability for row in everything), reverse=True)


def test_the_model_is_least_sure_of_the_word_with_the_lowest_probability():
    """Of several tokens, it is the product: "s'assit" has three."""
    checkpoint = shipped("en-fr")
    trace = transformer.trace(checkpoint, "The cat sat on the mat.")
    word, parts = least_probable_word(trace), read_answer(trace).parts
    assert word.display == "s'assit"
    assert word.probability == pytest.approx(float(np.prod([part.probability for part in parts[2:5]])))
    assert least_probable_word(transformer.trace(checkpoint, "Hello.")) is None, "a single word"


def test_the_blank_at_the_followed_token_is_answered_until_one_is_chosen(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("bert"), "The ___ sat on the [MASK].")
    first, second = blanks(trace)
    assert answered_position(trace, None, second) == second
    assert answered_position(trace, None, 0) == first
    assert answered_position(trace, first, second) == first
    assert answered_position(trace, 999, second) == second, "no blank is there"
    whole = transformer.trace(tiny_checkpoint("bert"), "The cat sat.")
    assert answered_position(whole, None, 2) == 2
    last = max(token.index for token in whole.source if token.text.strip().isalnum())
    assert answered_position(whole, None, 0) == last, "a special token predicts itself"


def test_the_masked_word_of_the_typed_text_is_among_the_candidates(tiny_checkpoint):
    bert, typed = tiny_checkpoint("bert"), "The old man told us a story."
    trace = transformer.trace(bert, masked_word(bert, typed).sentence)
    (position,) = blanks(trace)
    rows = fillings(trace, position, typed=hidden_id(trace, typed)).rows
    assert [row.piece for row in rows if row.stands_there] == ["·man"]
    assert not any(row.stands_there for row in fillings(trace, position).rows), "a typed blank hides no word"
