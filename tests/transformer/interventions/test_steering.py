"""Steering equals a hook of torch on the layer; its directions are what they are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.single_runs import logits_alone, tokens_of
from transformer.interventions.experiment import experiment
from transformer.interventions.steering import steering_effect
from transformer.runs.directions import Steering, direction_of, ordinary_positions
from transformer.runs.edit_specs import EditSpec, edits_from
from transformer.runs.tracing import add_predicted_output

SENTENCE, OTHER = "The cat sat on the mat.", "The dogs sleep in the garden."
STACKS = [("translator", "encoder"), ("translator", "decoder"), ("gpt", "decoder"), ("bert", "encoder")]
STACKS.append(("sentiment", "encoder"))


def logits(trace: transformer.Trace) -> np.ndarray:
    name = next(name for name in trace.names() if name.endswith(".logits") and not name.startswith("next_sentence"))
    return trace.values(name)


@pytest.mark.parametrize(("kind", "stack"), STACKS)
def test_it_is_what_a_hook_on_the_layer_does(tiny_checkpoint: Callable, kind: str, stack: str) -> None:
    checkpoint = tiny_checkpoint(kind)
    target = "Le chat dort." if checkpoint.config.has_decoder else None
    plain = transformer.trace(checkpoint, SENTENCE, target)
    edit = f"steer:{stack}.1.residual=-1.5 prompts {SENTENCE} ||| {OTHER}"
    assert str(EditSpec.parse(edit)) == edit
    direction = direction_of(checkpoint, stack, 1, Steering.parse(EditSpec.parse(edit).value))
    steered = transformer.trace(checkpoint, SENTENCE, target, edits=edits_from(checkpoint, [edit]))
    layer = checkpoint.model.get_submodule(f"{stack}.layers.1")
    added = torch.from_numpy(direction * -1.5).float()
    hook = layer.register_forward_pre_hook(lambda _, read: (read[0] + added, *read[1:]))  # torch's own
    try:
        np.testing.assert_array_equal(logits(steered), logits_alone(checkpoint, tokens_of(plain)))
    finally:
        hook.remove()
    assert np.abs(logits(steered) - logits(plain)).max() > 1e-4
    again = transformer.trace(checkpoint, SENTENCE, target)
    assert logits(again).tobytes() == logits(plain).tobytes(), "nothing is left behind"
    nothing = transformer.trace(checkpoint, SENTENCE, target, edits=edits_from(checkpoint, [edit.replace("-1.5", "0")]))
    for name in plain.names():
        assert nothing.values(name).tobytes() == plain.values(name).tobytes(), name


def test_every_generated_token_is_steered(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    edits = edits_from(checkpoint, [f"steer:decoder.1.residual=8 random 3 like prompts {SENTENCE} ||| {OTHER}"])
    steered = transformer.trace(checkpoint, SENTENCE, edits=edits)  # generated with the cache, read at once
    rows = len(steered.target) - len(transformer.decode(checkpoint, SENTENCE, edits=edits).tokens)
    best = logits(steered).argmax(axis=-1)[rows:]
    assert best.tolist() == [token.id for token in steered.prediction][rows:]


@pytest.mark.parametrize(("kind", "stack"), STACKS)
def test_directions(tiny_checkpoint: Callable, kind: str, stack: str) -> None:
    checkpoint = tiny_checkpoint(kind)
    model = checkpoint.model
    reads = [
        transformer.trace(checkpoint, text, strategy=transformer.Greedy(1) if kind == "gpt" else None)
        for text in (SENTENCE, OTHER)
    ]
    means = []
    for read in reads:
        tokens = read.tokens(stack)
        kept = [token.index for token in tokens if not token.special] or range(len(tokens))
        assert ordinary_positions(read, stack) == list(kept)
        means.append(read.values(f"{stack}.layers.1.residual.in")[list(kept)].mean(axis=0))
    prompts = Steering(1.0, "prompts", (SENTENCE, OTHER))
    found = direction_of(checkpoint, stack, 1, prompts)
    np.testing.assert_allclose(found, means[0] - means[1], atol=1e-6)

    head = Steering(1.0, "head", (SENTENCE,), head=(0, "self", 1))
    attention = model.get_submodule(f"{stack}.layers.0.self_attention")
    context = torch.from_numpy(np.array(reads[0].values(f"{stack}.layers.0.self_attention.context")))
    alone = torch.zeros_like(context)
    alone[1] = context[1]
    with torch.inference_mode():
        output = attention.output_projection(attention.merge_heads(alone[None]))[0] - attention.output_projection.bias
    mean = output[ordinary_positions(reads[0], stack)].mean(dim=0)
    np.testing.assert_allclose(direction_of(checkpoint, stack, 1, head), mean, atol=1e-6)

    control = direction_of(checkpoint, stack, 1, replace(prompts, seed=7))
    assert np.linalg.norm(control) == pytest.approx(np.linalg.norm(found))
    np.testing.assert_array_equal(control, direction_of(checkpoint, stack, 1, replace(prompts, seed=7)))
    assert abs(control @ direction_of(checkpoint, stack, 1, replace(prompts, seed=8))) < 0.9 * (control @ control)


def test_a_word_is_its_row_of_the_output_matrix(tiny_checkpoint: Callable) -> None:
    gpt, sentiment = tiny_checkpoint("gpt"), tiny_checkpoint("sentiment")
    word = next(word for word in ("the", "is", "a") if len(gpt.tokenizer.encode(word)) == 1)
    row = gpt.model.decoder.vocabulary_projection.weight[gpt.tokenizer.encode(word)[0]]
    np.testing.assert_array_equal(direction_of(gpt, "decoder", 1, Steering(1.0, "word", (word,))), row.detach())
    names = sentiment.config.class_names
    found = direction_of(sentiment, "encoder", 0, Steering(1.0, "word", (names[1],)))
    np.testing.assert_array_equal(found, sentiment.model.classifier.projection.weight[1].detach())
    with pytest.raises(transformer.InputError, match="There is no class"):
        direction_of(sentiment, "encoder", 0, Steering(1.0, "word", ("no such class",)))


@pytest.mark.slow
def test_a_row_behind_another_layer_is_no_direction(guest: Callable) -> None:
    bert, gpt2 = guest("hf-bert"), guest("hf-gpt2")
    with pytest.raises(transformer.InputError, match="one more layer before its output matrix"):
        direction_of(bert, "encoder", 1, Steering(1.0, "word", ("the",)))  # logits = norm(f(x W + b)) Eᵀ + c
    assert direction_of(gpt2, "decoder", 1, Steering(1.0, "word", ("the",))).shape == (gpt2.config.d_model,)


def test_add_predicted_output_keeps_the_steered_class(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("sentiment")
    names = checkpoint.config.class_names
    for strength in (200, -200):
        edits = edits_from(checkpoint, [f"steer:encoder.1.residual={strength} word {names[0]}"])
        steered = transformer.trace(checkpoint, SENTENCE, edits=edits)
        assert add_predicted_output(steered).text == steered.text == names[int(logits(steered).argmax())]


# ---- beside its controls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "stack"), STACKS)
def test_every_number_is_that_of_one_experiment(tiny_checkpoint: Callable, kind: str, stack: str) -> None:
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, SENTENCE)
    source = f"prompts {SENTENCE} ||| The dogs sleep."
    done: list[tuple[int, int]] = []
    found = steering_effect(
        trace, f"steer:{stack}.1.residual=6 {source}", seeds=(4, 5), progress=lambda *at: done.append(at)
    )
    assert done == [(1, 3), (2, 3), (3, 3)]
    specs = [f"steer:{stack}.1.residual=6 {like}{source}" for like in ("", "random 4 like ", "random 5 like ")]
    for one, spec in zip((found.steered, *found.controls), specs, strict=True):
        alone = experiment(trace, edits_from(checkpoint, [spec]))
        assert (one.change, one.kl, one.text) == (alone.change, alone.mean_kl, alone.answer_after.text)
        assert one.kl > 0 and one.gain > 0
    name = f"{stack}.layers.1.residual.in"
    moved = experiment(trace, edits_from(checkpoint, specs[:1])).changed.values(name) - trace.values(name)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=-1), found.length, rtol=1e-4)
    assert [row["seed"] for row in found.records()] == [None, 4, 5]


def test_nothing_added_changes_nothing(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    found = steering_effect(trace, f"steer:decoder.0.residual=0 head 1.self.0 of {SENTENCE}", seeds=(1,))
    for one in (found.steered, *found.controls):
        assert (one.change, one.kl, one.gain, one.text) == (0, 0, 0, found.before)
    assert (found.length, found.changed, found.weaker) == (0, 0, 0)


def test_another_edit_is_refused(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    with pytest.raises(ValueError, match="zero:decoder.0.self.1 does not steer"):
        steering_effect(trace, "zero:decoder.0.self.1")
