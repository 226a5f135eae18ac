"""Named masks compared with explicit matrices, and during generation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from transformer import Greedy, decode, trace
from transformer.masks import combined_mask
from transformer.runs.mask_edits import (
    attend_only_to_itself,
    block_keys,
    no_causal_mask,
    no_padding_mask,
    set_cells,
    sliding_window,
)

PLACE = {"layer": 0}


def result(edit, *, causal=True, n_queries=4, pads=0):
    keys = torch.tensor([[True] * (4 - pads) + [False] * pads])
    return edit.function(combined_mask(keys, n_queries, causal=causal))[0].int().tolist()


def test_masks_written_out():
    assert result(no_causal_mask("decoder", **PLACE), pads=1) == [[1, 1, 1, 0]] * 4
    assert result(no_padding_mask("decoder", **PLACE), pads=2) == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1] * 4]
    assert result(no_padding_mask("encoder", **PLACE), causal=False, pads=2) == [[1] * 4] * 4
    assert result(no_padding_mask("decoder", kind="cross", **PLACE), causal=False, n_queries=2, pads=1) == [[1] * 4] * 2
    assert result(sliding_window("decoder", size=2, **PLACE)) == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    assert result(sliding_window("encoder", size=2, **PLACE), causal=False)[1] == [1, 1, 1, 0]
    assert result(attend_only_to_itself("encoder", **PLACE), causal=False, pads=1) == [
        *np.eye(4, dtype=int).tolist()[:3],
        [0] * 4,
    ]
    assert result(block_keys("encoder", keys=[1, 9], **PLACE), causal=False) == [[1, 0, 1, 1]] * 4
    cells = [(0, 3), (9, 0)]
    assert result(set_cells("decoder", cells=cells, allowed=True, **PLACE))[0] == [1, 0, 0, 1]
    assert result(set_cells("decoder", cells=[(2, 0)], allowed=False, **PLACE))[2] == [0, 1, 1, 0]


@pytest.mark.parametrize("name", ["translator", "gpt"])
def test_a_mask_holds_while_the_text_is_written_and_in_the_trace(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    edits = [sliding_window("decoder", layer=layer, size=2) for layer in range(2)]
    found = trace(checkpoint, "The cat sat", edits=edits, strategy=Greedy(8))
    view = found.attention("decoder", 1)
    distance = np.subtract.outer(np.arange(len(view.query)), np.arange(len(view.key)))
    assert (view.allowed == ((distance >= 0) & (distance < 2))).all()
    assert (view.weights[:, ~view.allowed] == 0).all()
    # A window over the whole text changes nothing, and the generated tokens are the most likely ones in the trace.
    wide = [sliding_window("decoder", layer=layer, size=90) for layer in range(2)]
    plain, changed = (decode(checkpoint, "The cat sat", Greedy(8), edits=e) for e in ((), wide))
    assert changed.tokens.ids == plain.tokens.ids
    rows = found.values("decoder.logits")[-8:].copy()
    rows[:, :2] = -np.inf
    assert rows.argmax(axis=-1).tolist() == [token.id for token in found.prediction][-8:]


def test_without_the_causal_mask_a_later_token_changes_the_past(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")

    def first_row(target, edits):
        return trace(checkpoint, "The", target, edits=edits).values("decoder.logits")[0]

    for edits, same in (([], True), ([no_causal_mask("decoder", layer=0)], False)):
        rows = first_row("dog sleeps", edits), first_row("cat sleeps", edits)
        assert np.allclose(*rows, atol=1e-6) == same


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="size is 0; a window holds at least the token itself"):
        sliding_window("encoder", size=0, **PLACE)
    with pytest.raises(ValueError, match="in cross-attention queries and keys are two"):
        attend_only_to_itself("decoder", kind="cross", **PLACE)
    with pytest.raises(ValueError, match="there is no position -1; count from 0"):
        block_keys("encoder", keys=[-1], **PLACE)
