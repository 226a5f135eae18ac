"""A trace is one forward pass over the typed sentence, and notes changes to the input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from transformer import (
    Beam,
    Checkpoint,
    Greedy,
    InputError,
    Sample,
    ablate_head,
    decode,
    trace,
)
from transformer.probes import Edit
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID

SENTENCE = "The cat sat on the mat."
KINDS = ("translator", "gpt", "bert", "sentiment")
Tiny = Callable[[str], Checkpoint]


def logits_name(checkpoint: Checkpoint) -> str:
    if checkpoint.config.n_classes:
        return "classifier.logits"
    return "decoder.logits" if checkpoint.config.has_decoder else "encoder.logits"


@pytest.mark.parametrize("kind", KINDS)
def test_the_recorded_logits_are_those_of_a_plain_pass(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    result = trace(checkpoint, SENTENCE)
    inputs = [torch.tensor([sequence.ids]) for sequence in (result.source, result.target) if sequence is not None]
    with torch.inference_mode():
        logits = checkpoint.model(*inputs)[0]
    np.testing.assert_array_equal(result.values(logits_name(checkpoint)), logits.numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_every_probe_is_in_the_trace_with_its_axes_and_the_batch_dropped(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    result = trace(checkpoint, SENTENCE)
    assert set(result.names()) == set(checkpoint.model.probes)
    sizes = {"head": {2}, "query": set(), "key": set(), "position": set()}
    for sequence in (result.source, result.target):
        if sequence is not None:
            for axis in ("query", "key", "position"):
                sizes[axis].add(len(sequence))
    assert tuple(result) == result.names()
    for name in result:
        activation = result[name]
        assert activation.axes == checkpoint.model.probes[name].axes
        for axis, size in zip(activation.axes, activation.shape, strict=True):
            assert axis not in sizes or size in sizes[axis], name
        with pytest.raises(ValueError, match="read-only"):
            activation.values[...] = 0


def test_names_are_in_the_order_of_the_forward_pass(tiny_checkpoint: Tiny) -> None:
    names = trace(tiny_checkpoint("translator"), SENTENCE).names()
    in_order = [
        "encoder.embedding.token",
        "encoder.embedding.sum",
        "encoder.layers.0.self_attention.query",
        "encoder.layers.0.self_attention.weights",
        "encoder.layers.1.self_attention.weights",
        "encoder.final_norm.output",
        "decoder.embedding.sum",
        "decoder.layers.0.self_attention.weights",
        "decoder.layers.0.cross_attention.weights",
        "decoder.layers.0.feed_forward.hidden",
        "decoder.logits",
    ]
    places = [names.index(name) for name in in_order]
    assert places == sorted(places)


def test_a_translation_is_read_with_the_start_and_predicted_up_to_the_end(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    result = trace(checkpoint, SENTENCE, "Le chat dort.")
    target = checkpoint.tokenizer.encode("Le chat dort.")
    assert result.source.ids == (*checkpoint.tokenizer.encode(SENTENCE), END_ID)
    assert result.target.ids == (START_ID, *target)
    assert result.prediction.ids == (*target, END_ID)
    assert (result.source.name, result.target.name, result.prediction.name) == ("source", "target", "prediction")
    assert result.forced
    assert result.text == "Le chat dort."
    assert result.notes == ()
    assert len(result.source) != len(result.target)


def test_without_a_target_the_model_writes_one(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    for strategy in (None, Greedy(6), Sample(seed=2, max_new_tokens=6), Beam(2, max_new_tokens=6)):
        result = trace(checkpoint, SENTENCE, strategy=strategy)
        written = decode(checkpoint, SENTENCE, strategy)
        assert result.prediction.ids == written.tokens.ids
        assert result.target.ids == (START_ID, *written.tokens.ids[:-1])
        assert result.text == written.text
        assert not result.forced


def test_a_continuation_holds_the_sentence_and_what_was_written(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("gpt")
    prompt = checkpoint.tokenizer.encode(SENTENCE)
    result = trace(checkpoint, SENTENCE, strategy=Greedy(5))
    written = decode(checkpoint, SENTENCE, Greedy(5))
    assert result.source is None
    assert result.target.ids == (START_ID, *prompt, *written.tokens.ids[:-1])
    assert result.prediction.ids == (*prompt, *written.tokens.ids)
    assert result.text == written.text
    forced = trace(checkpoint, SENTENCE, "It slept.")
    assert forced.prediction.ids == (*prompt, *checkpoint.tokenizer.encode("It slept."), END_ID)
    assert forced.text == f"{SENTENCE} It slept."


@pytest.mark.parametrize(("kind", "pads"), [("translator", 0), ("translator", 4), ("gpt", 0), ("gpt", 4)])
def test_the_note_on_a_text_that_did_not_end_counts_what_was_written(
    kind: str, pads: int, tiny_checkpoint: Tiny
) -> None:
    checkpoint = tiny_checkpoint(kind)
    assert not decode(checkpoint, SENTENCE, Greedy(5)).finished
    result = trace(checkpoint, SENTENCE, strategy=Greedy(5), target_pads=pads)
    assert result.notes[0] == "The output did not end within 5 tokens; it was stopped there."


@pytest.mark.parametrize("kind", ["translator", "gpt"])
def test_target_pads_change_neither_the_text_nor_the_numbers(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    plain = trace(checkpoint, SENTENCE, strategy=Greedy(5))
    padded = trace(checkpoint, SENTENCE, strategy=Greedy(5), target_pads=3)
    n = len(plain.target)
    assert padded.text == plain.text
    assert padded.target.ids == plain.target.ids + (PAD_ID,) * 3
    assert padded.prediction.ids == plain.prediction.ids + (PAD_ID,) * 3
    np.testing.assert_allclose(padded.values("decoder.logits")[:n], plain.values("decoder.logits"), atol=1e-5)
    assert "3 <pad> tokens were added to the target." in padded.notes
    view = padded.attention("decoder", 1)
    assert not view.allowed[:, n:].any()
    assert (view.weights[:, :, n:] == 0).all()


@pytest.mark.parametrize("kind", ["translator", "bert", "sentiment"])
def test_source_pads_are_noted_and_masked(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    target = "Le chat." if kind == "translator" else None
    plain = trace(checkpoint, SENTENCE, target)
    padded = trace(checkpoint, SENTENCE, target, source_pads=1)
    n = len(plain.source)
    assert padded.notes == ("1 <pad> token was added to the source.",)
    assert padded.source.displays == (*plain.source.displays, "<pad>")
    view = padded.attention("encoder", 0)
    assert not view.allowed[:, n:].any()
    name = logits_name(checkpoint)
    expected = plain.values(name)
    rows = padded.values(name)[: len(expected)]
    np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_a_masked_token_model_fills_its_blanks_and_leaves_the_rest(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("bert")
    result = trace(checkpoint, "The ___ sat on the mat.")
    (blank,) = [token.index for token in result.source if token.id == MASK_ID]
    best = result.values("encoder.logits").argmax(axis=-1)
    assert result.prediction.ids == tuple(best)
    filled = list(result.source.ids)
    filled[blank] = best[blank]
    assert result.text == checkpoint.tokenizer.decode(filled)
    assert (result.target, result.forced) == (None, False)


def test_a_classifier_answers_with_the_name_of_its_best_class(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("sentiment")
    answers = set()
    for sentence in (
        "The cat sat.",
        "I love you.",
        "It is raining.",
        "Was it cold?",
        "x",
        "My brother!",
        "No",
        "1 2 3",
    ):
        result = trace(checkpoint, sentence)
        assert result.text == ("negative", "positive")[result.values("classifier.logits").argmax()]
        assert (result.target, result.prediction) == (None, None)
        answers.add(result.text)
    assert answers <= {"negative", "positive"}


def test_edits_act_while_the_text_is_written_and_while_it_is_recorded(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    edit = ablate_head("decoder", layer=1, kind="cross", head=0)
    plain, edited = trace(checkpoint, SENTENCE), trace(checkpoint, SENTENCE, edits=[edit])
    assert edited.prediction.ids == decode(checkpoint, SENTENCE, edits=[edit]).tokens.ids
    assert edited.prediction.ids != plain.prediction.ids
    context = edited.values("decoder.layers.1.cross_attention.context")
    assert (context[0] == 0).all()
    assert (context[1] != 0).any()
    assert trace(checkpoint, SENTENCE).prediction.ids == plain.prediction.ids


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_inside_an_edit_leaves_nothing_behind(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    stack = "decoder" if checkpoint.config.has_decoder else "encoder"
    name = f"{stack}.layers.0.self_attention.weights"
    before = trace(checkpoint, SENTENCE).values(logits_name(checkpoint))
    calls = 0

    def fail_later(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == (3 if checkpoint.config.has_decoder else 1):
            raise RuntimeError("inside the edit")
        return torch.zeros_like(tensor)

    with pytest.raises(RuntimeError, match="inside the edit"):
        trace(checkpoint, SENTENCE, edits=[Edit(name, fail_later)])
    np.testing.assert_array_equal(trace(checkpoint, SENTENCE).values(logits_name(checkpoint)), before)


def test_an_edit_of_something_that_is_not_there_is_refused_before_anything_runs(tiny_checkpoint: Tiny) -> None:
    with pytest.raises(ValueError, match="no activation 'decoder.layers.7"):
        trace(tiny_checkpoint("translator"), SENTENCE, edits=[ablate_head("decoder", layer=7, head=0)])
    with pytest.raises(ValueError, match="no activation 'decoder.layers.0"):
        trace(tiny_checkpoint("bert"), SENTENCE, edits=[ablate_head("decoder", layer=0, head=0)])


# ---- too long -------------------------------------------------------------------------------------------------------


def test_a_target_that_the_padding_makes_too_long_is_refused(tiny_checkpoint: Tiny) -> None:
    with pytest.raises(InputError, match=r"target has \d+ tokens \(of which 95 are padding\).* at most 96"):
        trace(tiny_checkpoint("translator"), SENTENCE, "Le chat.", target_pads=95)
    with pytest.raises(InputError, match="of which 95 are padding"):
        trace(tiny_checkpoint("gpt"), SENTENCE, strategy=Greedy(4), target_pads=95)


def test_a_sentence_and_a_continuation_that_are_too_long_together_are_refused(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("gpt")
    text = "x" * 60
    with pytest.raises(InputError, match=r"sentence with its target has 122 tokens.* at most 96"):
        trace(checkpoint, text, text[:-1])


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_sentence_is_refused(kind: str, tiny_checkpoint: Tiny) -> None:
    with pytest.raises(InputError, match="empty"):
        trace(tiny_checkpoint(kind), "  ")


# ---- looking at a trace ---------------------------------------------------------------------------------------------


def test_a_cross_attention_view_has_target_rows_and_source_columns(tiny_checkpoint: Tiny) -> None:
    result = trace(tiny_checkpoint("translator"), SENTENCE, "Le chat dort.")
    view = result.attention("decoder", layer=1, kind="cross")
    assert view.query is result.target
    assert view.key is result.source
    assert view.weights.shape == (2, len(result.target), len(result.source))
    assert view.allowed.all()
    np.testing.assert_allclose(view.weights.sum(axis=-1), 1, atol=1e-6)
    own = result.attention("decoder", layer=1)
    assert (own.query, own.key) == (result.target, result.target)
    np.testing.assert_array_equal(own.allowed, np.tril(np.ones((len(result.target),) * 2, dtype=bool)))


def test_what_a_trace_says_about_its_model(tiny_checkpoint: Tiny) -> None:
    translator, gpt, bert = (trace(tiny_checkpoint(kind), SENTENCE) for kind in ("translator", "gpt", "bert"))
    assert translator.stacks == ("encoder", "decoder")
    assert translator.attention_kinds() == (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
    assert (gpt.stacks, gpt.attention_kinds()) == (("decoder",), (("decoder", "self"),))
    assert (bert.stacks, bert.attention_kinds()) == (("encoder",), (("encoder", "self"),))
    assert translator.n_layers("encoder") == translator.n_layers("decoder") == 2
    assert gpt.n_layers("encoder") == 0
    assert "decoder.logits" in gpt
    assert "encoder.logits" not in gpt


def test_asking_a_trace_for_what_it_has_not(tiny_checkpoint: Tiny) -> None:
    result = trace(tiny_checkpoint("gpt"), SENTENCE)
    with pytest.raises(KeyError, match="did you mean .*decoder.layers.0.self_attention.weights"):
        result["decoder.layers.0.self_attention.weight"]
    with pytest.raises(KeyError, match=r"names\(\) lists all"):
        result["🦊"]
    with pytest.raises(ValueError, match="no decoder self-attention in layer 2; this model has decoder self.* 0–1"):
        result.attention("decoder", layer=2)
    with pytest.raises(ValueError, match="no decoder cross-attention in layer 0"):
        result.attention("decoder", layer=0, kind="cross")
    with pytest.raises(ValueError, match="no stack 'encoder'; it has decoder"):
        result.tokens("encoder")
