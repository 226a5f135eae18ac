"""A word appears in the lens from the layer that writes it; its last row: test_every_kind_of_model.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.predictions.answer_probabilities import softmax
from transformer.predictions.lens import (
    WHOLE,
    candidate_words,
    decided_step,
    logit_lens,
    n_columns,
    next_in_text,
    word_probabilities,
)

SENTENCE = "The old man told us a long story."
KINDS = ("translator", "gpt", "bert", "sentiment")


@pytest.fixture(scope="module", params=KINDS)
def trace(request, tiny_checkpoint):
    return transformer.trace(tiny_checkpoint(request.param), SENTENCE)


def test_divergence_is_the_kl_of_the_whole_distributions(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    trace = transformer.trace(checkpoint, SENTENCE)
    lens = logit_lens(trace)
    stream = torch.tensor(trace.values("decoder.layers.0.residual.out"))
    with torch.inference_mode():
        early = softmax(checkpoint.model.project(checkpoint.model.decoder.final_norm(stream)).numpy())
    late = softmax(trace.values("decoder.logits"))
    np.testing.assert_allclose(lens.divergence[1], (late * np.log(late / early)).sum(axis=-1), atol=1e-5)
    np.testing.assert_allclose(lens.entropy[1], -(early * np.log2(early)).sum(axis=-1), atol=1e-5)


def test_a_classifiers_verdict_is_the_mean_of_its_tokens(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    trace = transformer.trace(checkpoint, SENTENCE, source_pads=3)
    lens = logit_lens(trace)
    assert lens.of_classes and lens.read[0] == WHOLE and lens.read[-1] == "<pad>"
    assert set(lens.pieces.values()) <= set(checkpoint.config.class_names)
    assert (lens.followed == lens.followed[0]).all()
    n_real = len(trace.source) - 3
    # A difference of two log probabilities is a difference of logits, whose mean over the tokens is the sentence's.
    by_class = np.take_along_axis(np.log(lens.probabilities), lens.ids.argsort(axis=-1), axis=-1)
    margin = by_class[..., 1] - by_class[..., 0]
    np.testing.assert_allclose(margin[:, 0], margin[:, 1 : 1 + n_real].mean(axis=1), atol=1e-5)


def test_another_word_can_be_followed(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, target="Le vieil homme.")
    lens = logit_lens(trace, follow=trace.prediction.ids)
    expected = softmax(trace.values("decoder.logits"))[np.arange(len(trace.target)), trace.prediction.ids]
    np.testing.assert_allclose(lens.probability[-1], expected, atol=1e-5)
    never = lens.ids[-1, :, 0] != lens.followed
    assert never.any() and (lens.decided[never] == -1).all()
    assert lens.followed_words == trace.prediction.displays
    with pytest.raises(ValueError, match="follow has shape \\(1,\\); give one id below"):
        logit_lens(trace, follow=[3])


def test_decided_is_the_start_of_the_last_run():
    agrees = np.array([[1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 1]], dtype=bool)
    assert decided_step(agrees).tolist() == [2, 2, -1, 0]


def test_a_course_has_the_final_word_then_the_runner_up(trace):
    lens = logit_lens(trace, sublayers=True)
    course = word_probabilities(trace, lens, 2)
    other = next(int(id) for id in lens.ids[-1, 2] if id != lens.followed[2])
    assert course.words[:2] == (lens.followed_words[2], lens.pieces[other])
    assert course.probabilities.shape == (len(course.words), len(lens.steps))
    # One row times a matrix rounds differently from all rows at once, in the last digit of a float32.
    np.testing.assert_allclose(course.probabilities[0], lens.probability[:, 2], atol=5e-7)
    assert len(course.words) <= 6
    with pytest.raises(ValueError, match=f"position is 99, but the lens has the positions 0 to {len(lens.read) - 1}"):
        word_probabilities(trace, lens, 99)


def test_columns_are_read_alone_and_each_says_what_leads_there(trace):
    whole = logit_lens(trace)
    assert n_columns(trace) == len(whole.read)
    part = logit_lens(trace, columns=(1, 4), spread=False)
    assert (part.first, part.read, part.divergence) == (1, whole.read[1:4], None)
    for name in ("ids", "probability", "probabilities", "rank"):
        np.testing.assert_allclose(getattr(part, name), getattr(whole, name)[:, 1:4], atol=1e-6)
    column, alone = part.column(2), whole.of_classes
    assert column.read == whole.read[2] and column.word == (whole.words[-1] if alone else whole.followed_words)[2]
    assert column.probability == pytest.approx(whole.probabilities[-1, 2, 0], abs=1e-6)
    assert column.top_from == whole.decided[2] and (alone or column.runner_up == whole.pieces[int(whole.ids[-1, 2, 1])])
    assert column.earlier == tuple(dict.fromkeys(row[2] for row in whole.words[: max(0, column.top_from)]))
    for position in (0, 4):
        with pytest.raises(ValueError, match="position"):
            part.column(position)


def test_the_next_words_of_a_text_are_known_where_they_are_not_the_models_own(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    forced = transformer.trace(checkpoint, SENTENCE, "Le chat.")
    assert not next_in_text(transformer.trace(checkpoint, SENTENCE)) and next_in_text(forced) == forced.prediction.ids
    words = candidate_words(forced, 1)
    assert list(words.values())[:3] == np.argsort(-forced.values("decoder.logits")[1], kind="stable")[:3].tolist()
    second = list(words.values())[1]
    assert next(iter(candidate_words(forced, 1, second).values())) == second
