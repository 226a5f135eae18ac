"""Patching and removing parts equals one run each, and attribution patching the slope of a small step."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from tests.shipped import shipped
from tests.transformer.single_runs import change_at, logits_alone, tokens_of, values_alone
from transformer.attribution.direct_logit_attribution import Attribution, attribute
from transformer.interventions.activation_patching import (
    Contrast,
    Place,
    Turn,
    contrast,
    head_places,
    patched_changes,
    recovered_shares,
    token_places,
)
from transformer.interventions.attribution_patching import estimated_importance, estimated_shares, strongest
from transformer.interventions.direct_effects import TOKENS_PER_PASS, is_removable, remove_parts
from transformer.interventions.experiment import experiment, typed_ids
from transformer.layers.residual_stream import Part
from transformer.predictions.answer_probabilities import prediction_rows

KINDS = ("translator", "gpt", "bert", "sentiment")
CLEAN = "The cat sat on the mat."
STEP = 1e-5


def corrupted(checkpoint: transformer.Checkpoint) -> str:
    """Return the sentence with one word replaced so that one token differs, for any tokenizer."""
    own = typed_ids(checkpoint, CLEAN)
    for word in ("dog", "mat", "bat", "can", "car"):
        other = typed_ids(checkpoint, CLEAN.replace("cat", word))
        if len(own) == len(other) and sum(a != b for a, b in zip(own, other, strict=True)) == 1:
            return CLEAN.replace("cat", word)
    raise AssertionError("no word fits")


@pytest.fixture(scope="module", params=KINDS)
def both(request: pytest.FixtureRequest, tiny_checkpoint: Callable) -> Contrast:
    checkpoint = tiny_checkpoint(request.param)
    return contrast(transformer.trace(checkpoint, CLEAN), corrupted(checkpoint))


def all_places(both: Contrast, turn: Turn) -> list[list[Place]]:
    return [row for stack in both.clean for row in (*token_places(both, turn, stack), *head_places(both, stack))]


def difference(both: Contrast, turn: Turn, read: dict, *edits: transformer.Edit) -> float:
    logits = logits_alone(both.checkpoint, read.values(), edits)
    row = logits if logits.ndim == 1 else logits[turn.row]
    return float(row[turn.answer] - row[turn.other])


def name_of(place: Place) -> str:
    of_heads = {"self_heads": "self_attention.context", "cross_heads": "cross_attention.context"}
    probes = {"residual": "residual.in", **of_heads}
    return f"{place.stack}.layers.{place.layer}.{probes.get(place.part, f'{place.part}.output')}"


def test_every_place_is_what_one_run_with_one_patch_gives(both: Contrast) -> None:
    turn, values = both.most_changed_turn, values_alone(both.checkpoint, both.clean.values())
    clean, corrupt = (difference(both, turn, read) for read in (both.clean, both.corrupt))
    assert (turn.clean, turn.corrupt) == pytest.approx((clean, corrupt), abs=1e-5)
    places = [place for row in all_places(both, turn) for place in row]
    found = corrupt + patched_changes(both, turn, [(place,) for place in places], rows=7)
    for place, change in zip(places, found, strict=True):
        written = values[name_of(place)][0][place.index]
        patch = change_at(name_of(place), place.index, lambda own, written=written: written)
        assert change == pytest.approx(difference(both, turn, both.corrupt, patch), abs=2e-5), place


def test_everything_patched_is_the_clean_run_and_nothing_patched_the_corrupt_one_bitwise(both: Contrast) -> None:
    turn = both.turns[-1]
    everything = [place for row in all_places(both, turn) for place in row]
    streams = [place for place in everything if place.part == "residual" and place.layer == 0]
    changes = patched_changes(both, turn, [everything, streams, ()], rows=3)
    swapped = Contrast(both.checkpoint, both.corrupt, both.clean, both.turns)
    back = patched_changes(swapped, turn, [everything, streams, ()], rows=3)
    assert changes[0] == changes[1] == -back[0] == -back[1] != 0
    assert changes[2] == back[2] == 0


def test_shares_are_1_where_the_word_was_replaced_and_0_where_nothing_reads_it(both: Contrast) -> None:
    turn, stack = both.most_changed_turn, next(iter(both.clean))
    (changed,) = both.differing[stack]
    places = token_places(both, turn, stack)
    heard: list[tuple[int, int]] = []
    shares = recovered_shares(both, turn, places, progress=lambda done, total: heard.append((done, total)))
    assert shares.shape == (len(places), len(both.tokens(stack, turn)))
    assert shares[0, changed] == pytest.approx(1, abs=1e-4)
    assert not np.delete(shares[0], changed).any(), "before layer 0 no other token differs"
    assert heard[-1][0] == heard[-1][1]
    if stack == "decoder":
        assert not shares[:, :changed].any(), "no token looks at a later one"


def test_sentences_that_cannot_be_put_side_by_side_are_refused(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), CLEAN)
    for other, message in (("The cat sat.", "corrupted sentence has .* tokens, the clean one"), (CLEAN, "is the same")):
        with pytest.raises(transformer.InputError, match=message):
            contrast(trace, other)


def test_a_word_that_does_not_move_has_no_share() -> None:
    assert np.isnan(Turn(0, 1, 2, clean=0.5, corrupt=0.5).share(np.array([0.5]))).all()


def test_a_typed_text_is_judged_by_predictions_that_attention_has_to_change() -> None:
    """The text is complete to gpt-en, which would have written other words."""
    trace = transformer.trace(shipped("gpt-en"), "My grandmother bakes apple pie every Sunday.")
    both = contrast(trace, "My grandfather bakes apple pie every Sunday.")
    (swapped,) = both.differing["decoder"]
    logits = trace.values("decoder.logits")
    assert [turn.answer for turn in both.turns] == [int(logits[turn.row].argmax()) for turn in both.turns]
    assert both.most_changed_turn.row > swapped and both.most_changed_turn.corrupt < 0 < both.most_changed_turn.clean
    here = contrast(trace, "My grandmother bakes apple pie this Sunday.")  # “day” becomes “morning” at “this” itself
    assert any(turn.corrupt < 0 < turn.clean for turn in here.turns)
    assert here.most_changed_turn.row > here.differing["decoder"][0]


# ---- slopes ---------------------------------------------------------------------------------------------------------


def doubled(checkpoint: transformer.Checkpoint) -> transformer.Checkpoint:
    """In float64, so that a small step exceeds rounding."""
    return replace(checkpoint, model=copy.deepcopy(checkpoint.model).double())


def test_a_share_is_the_slope_towards_the_clean_run(both: Contrast) -> None:
    both = replace(both, checkpoint=doubled(both.checkpoint))
    turn, stack = both.most_changed_turn, next(iter(both.clean))
    clean, before = values_alone(both.checkpoint, both.clean.values()), difference(both, turn, both.corrupt)
    for places in (token_places(both, turn, stack), head_places(both, stack)):
        for row, values in zip(places, estimated_shares(both, turn, places), strict=True):
            for place, share in zip(row, values, strict=True):
                wanted = clean[name_of(place)][0][place.index]
                step = change_at(name_of(place), place.index, lambda own, wanted=wanted: own + STEP * (wanted - own))
                slope = (difference(both, turn, both.corrupt, step) - before) / STEP
                assert share == pytest.approx(slope / (turn.clean - turn.corrupt), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_the_slope_towards_a_silent_head(kind: str, tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(doubled(tiny_checkpoint(kind)), CLEAN)
    question = prediction_rows(trace)

    def number(*edits: transformer.Edit) -> float:
        logits = logits_alone(trace.checkpoint, tokens_of(trace), edits).numpy()
        return float(question.chosen(question.log_softmax(trace.checkpoint, logits)).sum())

    found, before = estimated_importance(trace), number()
    assert len(found.measured) == len(found.heads) and all(np.isnan(one.kl) for one in found.measured)
    for (stack, kind_of, layer, head), change, *_ in found.measured:
        name = f"{stack}.layers.{layer}.{kind_of}_attention.context"
        after = number(change_at(name, head, lambda own: (1 - STEP) * own))
        assert change == pytest.approx((after - before) / STEP, rel=1e-3, abs=1e-5)
    best = strongest(found, 2)
    changes = {one.place: abs(one.change) for one in found.measured}
    assert min(changes[head] for head in best) >= max(changes[head] for head in found.heads if head not in best)


# ---- removing parts -------------------------------------------------------------------------------------------------

SENTENCE, OTHER = "The old man told us a long story.", "The long man told us a old story."  # as many tokens


def attributed(checkpoint: transformer.Checkpoint) -> Attribution:
    return attribute(transformer.trace(checkpoint, SENTENCE), None if checkpoint.config.n_classes else 5, token=1)


def effect_alone(trace: transformer.Trace, found: Attribution, part: Part, how: str, second: dict) -> float:
    """Return what a logit loses in a run without one part: 0 instead, its mean so far, or a second run's."""
    target, layer = found.target, f"{found.target.stack}.layers.{part.layer}"
    names = {"token": f"{target.stack}.embedding.token", "feed_forward": f"{layer}.feed_forward.output"}
    name, rows = names.get(part.kind, f"{layer}.{part.kind}.context"), list(target.rows)
    written = second[name][0] if part.head < 0 else second[name][0, part.head]

    def remove(values: torch.Tensor) -> torch.Tensor:
        until = len(values) if target.stack == "encoder" else rows[0] + 1
        kept = {"zero": 0 * values[rows], "mean": values[:until].mean(dim=0), "patched": written[rows]}[how]
        return values.index_put((torch.tensor(rows),), kept)

    edit = change_at(name, ... if part.head < 0 else part.head, remove)
    logits = logits_alone(trace.checkpoint, tokens_of(trace), [edit])
    return found.logit - float(
        logits[target.token] if target.position is None else logits[target.position, target.token]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_many_removals_in_a_pass_are_one_run_each_and_what_the_other_parts_add_now(
    tiny_checkpoint: Callable, kind: str
) -> None:
    checkpoint = tiny_checkpoint(kind)
    trace, found = transformer.trace(checkpoint, SENTENCE), attributed(checkpoint)
    pair = experiment(trace, sentence=OTHER, keep_answer=True)
    second = values_alone(checkpoint, tokens_of(pair.changed))
    measured, plain = remove_parts(trace, found, second=pair), remove_parts(trace, found)
    assert plain.patched is None and np.abs(measured.patched).max() > 1e-3
    np.testing.assert_array_equal(measured.zero, plain.zero)
    np.testing.assert_allclose(measured.zero, -measured.changes.sum(axis=1), atol=2e-5)
    assert measured.parts == tuple(part for part in found.parts if is_removable(part))
    for place, part in enumerate(measured.parts):
        for how in ("zero", "mean", "patched"):
            expected = effect_alone(trace, found, part, how, second)
            assert getattr(measured, how)[place] == pytest.approx(expected, abs=2e-5), (part, how)
        own = found.parts.index(part)
        assert measured.changes[place, own] == pytest.approx(-found.of(part), abs=1e-6), "nothing is left of it"
        answers = measured.answers(place)
        assert all(found.parts.index(other) > own for other, _ in answers), "only later parts can answer"
        sizes = [abs(change) for _, change in answers]
        assert sizes == sorted(sizes, reverse=True)
    assert measured.answers(measured.parts.index(Part("feed_forward", 1))) == (), "no part comes after the last layer"


def test_progress_a_first_position_and_parts_that_cannot_go(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    found, said = attribute(trace, 0), []
    measured = remove_parts(trace, found, progress=lambda done, total: said.append((done, total)))
    n_rows = TOKENS_PER_PASS // len(trace.target)
    assert said[-1] == (2 * len(measured.parts),) * 2 and len(said) == -(-2 * len(measured.parts) // n_rows)
    assert np.isnan(measured.mean).all() and np.isfinite(measured.zero).all()
    assert -1 <= measured.agreement <= 1
    with pytest.raises(ValueError, match="cannot be removed; choose a head"):
        remove_parts(trace, found, [Part("final_norm")])
