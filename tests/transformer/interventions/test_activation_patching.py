"""Activation patching equals one run per location; patching everything gives the clean run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import transformer
from tests.conftest import ROOT
from tests.foreign_checkpoints import FOREIGN
from tests.nights import FAMILIES_BY_DAY, by_day
from transformer.interventions.activation_patching import (
    HEADS,
    PARTS,
    Contrast,
    Place,
    Turn,
    contrast,
    head_places,
    patched_changes,
    recovered_shares,
    token_places,
)
from transformer.interventions.experiment import typed_ids
from transformer.probes import Edit, record

KINDS = ("translator", "gpt", "bert", "sentiment")
CLEAN = "The cat sat on the mat."


def corrupted(checkpoint: transformer.Checkpoint) -> str:
    """Return the sentence with one word replaced so that one token differs, for any tokenizer."""
    own = typed_ids(checkpoint, CLEAN)
    for word in ("dog", "mat", "bat", "can", "car"):
        other = typed_ids(checkpoint, CLEAN.replace("cat", word))
        if len(own) == len(other) and sum(a != b for a, b in zip(own, other, strict=True)) == 1:
            return CLEAN.replace("cat", word)
    raise AssertionError("no word fits")


def contrast_of(checkpoint: transformer.Checkpoint) -> Contrast:
    return contrast(transformer.trace(checkpoint, CLEAN), corrupted(checkpoint))


@pytest.fixture(scope="module", params=KINDS)
def both(request: pytest.FixtureRequest, tiny_checkpoint: Callable) -> Contrast:
    return contrast_of(tiny_checkpoint(request.param))


def all_places(both: Contrast, turn: Turn) -> list[list[Place]]:
    return [row for stack in both.clean for row in (*token_places(both, turn, stack), *head_places(both, stack))]


def difference(both: Contrast, turn: Turn, read: dict, edits: tuple[Edit, ...] = ()) -> tuple[float, dict]:
    """Run one sentence through the whole model and return all rows of the logits."""
    ids = [torch.tensor([tokens.ids]) for tokens in read.values()]
    with torch.inference_mode(), record(edits) as recording:
        logits = both.checkpoint.model(*ids)[0]
    row = logits if logits.ndim == 1 else logits[turn.row]
    return float(row[turn.answer] - row[turn.other]), recording.tensors


def edit_of(place: Place, clean: dict) -> Edit:
    what = "residual.in" if place.part == "residual" else f"{HEADS.get(place.part, place.part)}"
    what += {True: ".context", False: ""}[place.part in HEADS]
    what += ".output" if place.part in PARTS[1:] else ""
    name = f"{place.stack}.layers.{place.layer}.{what}"

    def put(own: torch.Tensor) -> torch.Tensor:
        changed = own.clone()
        changed[:, place.index] = clean[name][:, place.index]
        return changed

    return Edit(name, put)


def test_every_place_is_what_one_run_with_one_patch_gives(both: Contrast) -> None:
    turn = both.most_changed_turn
    clean, activations = difference(both, turn, both.clean)
    corrupt, _ = difference(both, turn, both.corrupt)
    assert (turn.clean, turn.corrupt) == pytest.approx((clean, corrupt), abs=1e-5)
    for places in (token_places(both, turn, next(iter(both.clean))), all_places(both, turn)):
        flat = [place for row in places for place in row]
        found = corrupt + patched_changes(both, turn, [(place,) for place in flat], rows=7)
        alone = [difference(both, turn, both.corrupt, (edit_of(place, activations),))[0] for place in flat]
        np.testing.assert_allclose(found, alone, atol=2e-5)


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
    with pytest.raises(transformer.InputError, match="The corrupted sentence has .* tokens, the clean one"):
        contrast(trace, "The cat sat.")
    with pytest.raises(transformer.InputError, match="is the same as the clean one"):
        contrast(trace, CLEAN)


def test_a_word_that_does_not_move_has_no_share() -> None:
    assert np.isnan(Turn(0, 1, 2, clean=0.5, corrupt=0.5).share(np.array([0.5]))).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", by_day(FOREIGN, FAMILIES_BY_DAY))
def test_other_families(family: Callable, name: str) -> None:
    both = contrast_of(family(name))
    turn = both.turns[-1]
    for stack in both.clean:
        places = token_places(both, turn, stack)
        shares = recovered_shares(both, turn, places)
        if both.differing[stack] and turn.clean != turn.corrupt:
            assert shares[0, both.differing[stack]].sum() == pytest.approx(1, abs=1e-3)
        assert recovered_shares(both, turn, head_places(both, stack)).shape[1] == both.checkpoint.config.heads_in(stack)


def test_a_typed_text_is_judged_by_predictions_that_attention_has_to_change() -> None:
    """The text is complete to gpt-en, which would have written other words."""
    trace = transformer.trace(
        transformer.load(ROOT / "checkpoints" / "gpt-en"), "My grandmother bakes apple pie every Sunday."
    )
    both = contrast(trace, "My grandfather bakes apple pie every Sunday.")
    (swapped,) = both.differing["decoder"]
    logits = trace.values("decoder.logits")
    assert [turn.answer for turn in both.turns] == [int(logits[turn.row].argmax()) for turn in both.turns]
    assert both.most_changed_turn.row > swapped and both.most_changed_turn.corrupt < 0 < both.most_changed_turn.clean
    here = contrast(trace, "My grandmother bakes apple pie this Sunday.")  # “day” becomes “morning” at “this” itself
    assert (
        any(turn.corrupt < 0 < turn.clean for turn in here.turns)
        and here.most_changed_turn.row > here.differing["decoder"][0]
    )
