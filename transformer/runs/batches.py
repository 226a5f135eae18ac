"""Batches, bounded by their number of tokens: of sequences of similar length, or of any, to be packed end to end."""

from collections.abc import Sequence

import torch
from torch import Tensor


def length_batches(lengths: Sequence[int], batch_tokens: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Indices grouped so that sequences × longest sequence ≤ ``batch_tokens`` (one longer sequence stands alone).

    Sequences of one length are shuffled among each other, then the batches are shuffled. Everything depends on
    ``seed`` and ``epoch`` alone, so that a resumed run sees the same batches in the same order.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    shuffled = torch.randperm(len(lengths), generator=generator).tolist()
    shuffled.sort(key=lambda index: lengths[index])  # stable: ties keep their shuffled order
    batches: list[list[int]] = []
    current: list[int] = []
    for index in shuffled:
        if current and (len(current) + 1) * lengths[index] > batch_tokens:
            batches.append(current)
            current = []
        current.append(index)
    if current:
        batches.append(current)
    return [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]


def packed_batches(lengths: Sequence[int], batch_tokens: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Indices in an order of their own for every epoch, cut where a batch would hold more than ``batch_tokens`` tokens
    (one longer sequence stands alone): for objectives that lay the sequences of a batch end to end."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    batches: list[list[int]] = []
    room = 0
    for index in torch.randperm(len(lengths), generator=generator).tolist():
        if lengths[index] > room:
            batches.append([])
            room = batch_tokens
        batches[-1].append(index)
        room -= lengths[index]
    return batches


def pad(sequences: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Stack sequences of different lengths: [batch, longest], filled up with ``pad_id`` on the right."""
    longest = max(len(sequence) for sequence in sequences)
    return torch.tensor([[*sequence, *[pad_id] * (longest - len(sequence))] for sequence in sequences])
