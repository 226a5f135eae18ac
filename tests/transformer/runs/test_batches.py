"""Batches of similar length: every sentence once per epoch, a token limit, and a fixed order."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.runs.batches import length_batches, packed_batches, pad

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=80)


@given(LENGTHS, st.integers(1, 120), st.integers(0, 5), st.integers(0, 5))
def test_every_index_comes_once_and_batches_hold_neighbours_in_length(
    lengths: list[int], batch_tokens: int, seed: int, epoch: int
) -> None:
    """The lengths in different batches do not overlap, so there is little padding."""
    batches = length_batches(lengths, batch_tokens, seed=seed, epoch=epoch)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    ranges = sorted((min(lengths[i] for i in batch), max(lengths[i] for i in batch)) for batch in batches)
    assert all(before[1] <= after[0] for before, after in zip(ranges, ranges[1:], strict=False))
    for batch in batches:
        longest = max(lengths[index] for index in batch)
        assert len(batch) * longest <= batch_tokens or len(batch) == 1
    assert batches == length_batches(lengths, batch_tokens, seed=seed, epoch=epoch)


@given(LENGTHS, st.integers(1, 120), st.integers(0, 5))
def test_packed_batches_hold_every_index_once_and_are_as_full_as_their_order_allows(
    lengths: list[int], batch_tokens: int, epoch: int
) -> None:
    batches = packed_batches(lengths, batch_tokens, seed=1, epoch=epoch)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    sums = [sum(lengths[index] for index in batch) for batch in batches]
    assert all(total <= batch_tokens or len(batch) == 1 for total, batch in zip(sums, batches, strict=True))
    following = [lengths[batch[0]] for batch in batches[1:]]
    assert all(total + more > batch_tokens for total, more in zip(sums[:-1], following, strict=True))


def test_epochs_and_seeds_differ() -> None:
    for lengths in ([5 + index % 7 for index in range(200)], [6] * 40):  # sequences of one length change company
        orders = [
            {frozenset(batch) for batch in length_batches(lengths, 60, seed=seed, epoch=epoch)}
            for seed, epoch in ((1, 0), (1, 1), (2, 0))
        ]
        assert all(orders[0] != other for other in orders[1:])


def test_batches_neither_read_nor_move_the_global_generator() -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    expected = length_batches([3, 4, 5] * 20, 30, seed=1, epoch=0)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert length_batches([3, 4, 5] * 20, 30, seed=1, epoch=0) == expected


def test_padding_is_on_the_right() -> None:
    assert pad([[5, 6, 7], [8], [9, 10]], 0).tolist() == [[5, 6, 7], [8, 0, 0], [9, 10, 0]]
    assert pad([[5]], 0).tolist() == [[5]]
