"""The effect of removing a part equals one run for each, and is the sum of changes in all other parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from tests.conftest import ROOT
from transformer.attribution.direct_logit_attribution import attribute
from transformer.interventions.direct_effects import TOKENS_PER_PASS, is_removable, remove_parts
from transformer.interventions.experiment import experiment
from transformer.layers.residual_stream import Part
from transformer.probes import Edit

SENTENCE = "The old man told us a long story."
OTHER = "The long man told us a old story."  # the same number of tokens
KINDS = ("translator", "gpt", "bert", "sentiment")


def traced(checkpoint, place: int = 2):
    trace = transformer.trace(checkpoint, SENTENCE)
    return trace, attribute(trace, None if checkpoint.config.n_classes else place, token=1)


def logit_without(trace, found, part: Part, *, mean: bool = False, second=None) -> float:
    """Run the model without one part, by an explicit edit; ``second`` is the recording to patch from."""
    model, question = trace.checkpoint.model, found.question
    layer, rows = f"{question.stack}.layers.{part.layer}", list(question.rows)
    name = {"token": f"{question.stack}.embedding.token", "feed_forward": f"{layer}.feed_forward.output"}.get(
        part.kind, f"{layer}.{part.kind}.context"
    )

    def remove(tensor: torch.Tensor) -> torch.Tensor:
        new = tensor.clone()
        values = new[0] if part.head < 0 else new[0, part.head]
        if second is not None:
            written = second.tensors[name][0]
            values[rows] = (written if part.head < 0 else written[part.head])[rows]
            return new
        until = len(values) if question.stack == "encoder" else rows[0] + 1
        values[rows] = sum(values[k] for k in range(until)) / until if mean else torch.zeros_like(values[rows])
        return new

    ids = [torch.tensor([tokens.ids]) for tokens in (trace.source, trace.target) if tokens is not None]
    with torch.inference_mode(), transformer.record([Edit(name, remove)]):
        logits = model(*ids)[0].double()
    return float(logits[question.token] if question.position is None else logits[question.position, question.token])


@pytest.mark.parametrize("kind", KINDS)
def test_many_removals_in_a_pass_are_one_run_each(tiny_checkpoint, kind):
    trace, found = traced(tiny_checkpoint(kind))
    measured = remove_parts(trace, found)
    assert measured.parts == tuple(part for part in found.parts if is_removable(part))
    for place, part in enumerate(measured.parts):
        for mean, values in ((False, measured.zero), (True, measured.mean)):
            expected = found.logit - logit_without(trace, found, part, mean=mean)
            assert values[place] == pytest.approx(expected, abs=2e-5), part


@pytest.mark.parametrize("name", ["hf-bert-classes", "hf-neox"])
def test_parts_of_other_families_are_removed_too(family, name):
    trace, found = traced(family(name))
    measured = remove_parts(trace, found, [Part("self_attention", 1, 1), Part("feed_forward", 0)])
    expected = [found.logit - logit_without(trace, found, part) for part in measured.parts]
    np.testing.assert_allclose(measured.zero, expected, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_patched_from_the_run_of_a_second_sentence(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    trace, found = traced(checkpoint, 5)
    pair = experiment(trace, sentence=OTHER, keep_answer=True)
    with torch.inference_mode(), transformer.record() as second:
        checkpoint.model(*(torch.tensor([pair.changed.tokens(stack).ids]) for stack in trace.stacks))
    measured = remove_parts(trace, found, second=pair)
    plain = remove_parts(trace, found)
    assert plain.patched is None
    np.testing.assert_array_equal(measured.zero, plain.zero)
    for place, part in enumerate(measured.parts):
        expected = found.logit - logit_without(trace, found, part, second=second)
        assert measured.patched[place] == pytest.approx(expected, abs=2e-5), part
    assert np.abs(measured.patched).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_the_difference_is_what_the_other_parts_add_now(tiny_checkpoint, kind):
    trace, found = traced(tiny_checkpoint(kind))
    measured = remove_parts(trace, found)
    np.testing.assert_allclose(measured.zero, -measured.changes.sum(axis=1), atol=2e-5)
    for place, part in enumerate(measured.parts):
        own = found.parts.index(part)
        assert measured.changes[place, own] == pytest.approx(-found.of(part), abs=1e-6), "nothing is left of it"
        answers = measured.answers(place)
        later = [found.parts.index(other) for other, _ in answers]
        assert all(at > own for at in later) and list(np.abs([change for _, change in answers])) == sorted(
            np.abs([change for _, change in answers]), reverse=True
        )
    last = measured.parts.index(Part("feed_forward", 1))
    assert measured.answers(last) == (), "nobody comes after the last layer"


def test_the_last_layer_of_a_model_without_a_last_norm_is_what_it_added(tiny_checkpoint):
    """In a pre-norm model, removing the last part differs from its contribution only by the final σ."""
    trace, found = traced(tiny_checkpoint("translator"))
    measured = remove_parts(trace, found, [Part("feed_forward", 1)])
    before = trace.values("decoder.final_norm.std")[2]
    stream = trace.values("decoder.layers.1.residual.out")[2] - trace.values("decoder.layers.1.feed_forward.output")[2]
    after = np.sqrt(stream.var() + trace.checkpoint.config.layer_norm_epsilon)
    constant = found.of(Part("final_norm"))
    expected = found.logit - constant - (found.logit - constant - measured.added[0]) * before / after
    assert measured.zero[0] == pytest.approx(expected, rel=1e-4)


def test_progress_a_first_position_and_parts_that_cannot_go(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    found, said = attribute(trace, 0), []
    measured = remove_parts(trace, found, progress=lambda done, total: said.append((done, total)))
    n_rows = TOKENS_PER_PASS // len(trace.target)
    assert said[-1] == (2 * len(measured.parts),) * 2 and len(said) == -(-2 * len(measured.parts) // n_rows)
    assert np.isnan(measured.mean).all() and np.isfinite(measured.zero).all()
    assert -1 <= measured.agreement <= 1
    with pytest.raises(ValueError, match="cannot be removed; choose a head"):
        remove_parts(trace, found, [Part("final_norm")])


def test_what_a_shipped_translator_repairs():
    """Without its strongest head, the later layers restore part of the word."""
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), "The cat sat on the mat.")
    place = trace.target.displays.index("·Le")  # the row of ·Le, which predicts ·chat
    found = attribute(trace, place)
    assert trace.checkpoint.tokenizer.display(found.question.token) == "·chat"
    measured = remove_parts(trace, found, found.strongest(8))
    assert (measured.zero * measured.added > 0).sum() >= 5, "most parts do what they say"
