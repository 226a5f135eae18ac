"""The last row of the lens is the model's output, and a word appears from the layer that writes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.answer_probabilities import softmax
from transformer.predictions.lens import WHOLE, decided_step, logit_lens, word_probabilities

SENTENCE = "The old man told us a long story."
KINDS = ("translator", "gpt", "bert", "sentiment")
LOGITS = {"translator": "decoder.logits", "gpt": "decoder.logits", "bert": "encoder.logits"}


@pytest.fixture(params=KINDS)
def traced(request, tiny_checkpoint):
    checkpoint = tiny_checkpoint(request.param)
    return request.param, checkpoint, transformer.trace(checkpoint, SENTENCE)


@pytest.mark.parametrize("sublayers", [False, True])
def test_the_last_row_is_the_models_own_output(traced, sublayers):
    kind, _, trace = traced
    lens = logit_lens(trace, sublayers=sublayers, candidates=400)
    if kind == "sentiment":
        expected, found = softmax(trace.values("classifier.logits"))[None], lens.probabilities[-1, :1]
        ids = lens.ids[-1, :1]
    else:
        expected, found, ids = softmax(trace.values(LOGITS[kind])), lens.probabilities[-1], lens.ids[-1]
    assert ids.shape == expected.shape, "every word is among so many candidates"
    np.testing.assert_allclose(found, np.take_along_axis(expected, ids, axis=-1), atol=1e-5, rtol=0)
    np.testing.assert_array_equal(ids[:, 0], expected.argmax(axis=-1))


def test_shapes_and_ranges(traced):
    kind, checkpoint, trace = traced
    stack = "decoder" if kind in ("translator", "gpt") else "encoder"
    lens = logit_lens(trace, candidates=3)
    n_tokens, n_steps = len(trace.tokens(stack)), trace.n_layers(stack) + 1
    n_places = n_tokens + (kind == "sentiment")
    assert lens.stack == stack and len(lens.steps) == n_steps and lens.steps[0] == "embedding"
    assert lens.ids.shape == lens.probabilities.shape == (n_steps, n_places, 2 if kind == "sentiment" else 3)
    for array in (lens.probability, lens.rank, lens.divergence, lens.entropy):
        assert array.shape == (n_steps, n_places)
    assert lens.followed.shape == lens.decided.shape == (n_places,)
    assert (np.diff(lens.probabilities, axis=-1) <= 0).all(), "most probable first"
    assert ((lens.probability > 0) & (lens.probability <= 1)).all()
    np.testing.assert_allclose(lens.divergence[-1], 0, atol=1e-12)
    assert (lens.divergence[:-1] > 1e-4).any()
    size = len(checkpoint.config.class_names) or checkpoint.config.vocabulary_size
    assert lens.rank.min() >= 1 and lens.rank.max() <= size
    assert (lens.entropy <= np.log2(size) + 1e-9).all()
    assert (lens.rank == 1).sum() == (lens.ids[:, :, 0] == lens.followed).sum()
    assert lens.final_norm == (checkpoint.config.norm == "pre")
    assert len(lens.words) == n_steps and len(lens.words[0]) == len(lens.read) == n_places
    n_sublayers = {"translator": 3, "gpt": 2, "bert": 2, "sentiment": 2}[kind] * trace.n_layers(stack)
    assert len(logit_lens(trace, sublayers=True).steps) == n_sublayers + 1


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


def silent_checkpoint(checkpoint: Checkpoint) -> Checkpoint:
    """A GPT whose layers add nothing, with an identity as its head: it predicts the token that it reads."""
    tokenizer = checkpoint.tokenizer
    config = transformer.ModelConfig(
        kind="decoder-only", vocabulary_size=tokenizer.vocabulary_size, d_model=tokenizer.vocabulary_size, n_heads=1,
        d_ff=4, n_encoder_layers=0, n_decoder_layers=3, max_length=32, positions="none", tie_embeddings=False,
    )  # fmt: skip
    model = transformer.build_model(config).eval()
    with torch.no_grad():
        model.decoder.embedding.table.weight.copy_(torch.eye(config.d_model) / config.d_model**0.5)
        model.decoder.vocabulary_projection.weight.copy_(torch.eye(config.d_model))
        for layer in model.decoder.layers:
            layer.self_attention.output_projection.weight.zero_()
            layer.feed_forward.output_projection.weight.zero_()
    return replace(checkpoint, model=model)


def test_a_layer_that_writes_the_answer_shows_it_from_there_on(tiny_checkpoint):
    checkpoint = silent_checkpoint(tiny_checkpoint("gpt"))
    answer = checkpoint.tokenizer.encode("story")[0]
    with torch.no_grad():  # layer 1, and no other, adds ten times as much as the embedding, in the output's direction
        checkpoint.model.decoder.layers[1].feed_forward.output_projection.bias[answer] = 10.0
    trace = transformer.trace(checkpoint, "The old", target="man")
    assert answer not in trace.target.ids
    for sublayers, decided in ((False, 2), (True, 4)):  # the step after layer 1, without and with sub-layers
        lens = logit_lens(trace, sublayers=sublayers)
        assert (lens.followed == answer).all()
        assert (lens.decided == decided).all()
        assert (lens.ids[:decided, :, 0] == trace.target.ids).all(), "before, it says what it reads"
        assert (lens.ids[decided:, :, 0] == answer).all()
        assert (lens.probability[decided:] > 100 * lens.probability[decided - 1]).all()
        assert (lens.rank[:decided] > 1).all() and (lens.rank[decided:] == 1).all()
    course = word_probabilities(trace, logit_lens(trace), 1)
    assert course.ids[0] == answer and trace.target[1].id in course.ids


def test_another_word_can_be_followed(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, SENTENCE, target="Le vieil homme.")
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


def test_a_course_has_the_final_word_then_the_runner_up(traced):
    _, _, trace = traced
    lens = logit_lens(trace, sublayers=True)
    course = word_probabilities(trace, lens, 2)
    assert course.steps == lens.steps
    assert course.ids[0] == lens.followed[2]
    assert course.ids[1] == next(id for id in lens.ids[-1, 2] if id != lens.followed[2])
    assert course.probabilities.shape == (len(course.words), len(lens.steps))
    # One row times a matrix rounds differently from all rows at once, in the last digit of a float32.
    np.testing.assert_allclose(course.probabilities[0], lens.probability[:, 2], atol=5e-7)
    assert len(set(course.ids)) == len(course.ids) <= 6
    with pytest.raises(ValueError, match=f"position is 99, but the lens has the positions 0 to {len(lens.read) - 1}"):
        word_probabilities(trace, lens, 99)


def test_a_part_has_the_same_numbers(traced):
    _, _, trace = traced
    lens = logit_lens(trace)
    part = lens.part(1, 3)
    assert part.read == lens.read[1:3] and part.followed_words == lens.followed_words[1:3]
    assert part.words == tuple(row[1:3] for row in lens.words)
    for name in ("ids", "probabilities", "probability", "rank", "divergence", "entropy"):
        np.testing.assert_array_equal(getattr(part, name), getattr(lens, name)[:, 1:3])
    np.testing.assert_array_equal(part.decided, lens.decided[1:3])
    assert lens.part(0, 10_000).read == lens.read
