"""Batches with a maximum number of tokens, of texts to be padded or packed."""

from collections.abc import Sequence

import torch
from torch import Tensor


def length_batches(lengths: Sequence[int], batch_tokens: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Group sequences of similar length so that sequences × longest sequence ≤ ``batch_tokens``.

    Sequences of the same length are shuffled, then the batches are shuffled. The result depends only on ``seed`` and
    ``epoch``, so a resumed training run sees the same batches in the same order.

    Returns:
        Batches of indices. A sequence longer than ``batch_tokens`` has a batch to itself.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    shuffled = torch.randperm(len(lengths), generator=generator).tolist()
    batches: list[list[int]] = []
    for index in sorted(shuffled, key=lambda index: lengths[index]):  # stable: ties keep their shuffled order
        if not batches or (len(batches[-1]) + 1) * lengths[index] > batch_tokens:
            batches.append([])
        batches[-1].append(index)
    return [batches[index] for index in torch.randperm(len(batches), generator=generator).tolist()]


def packed_batches(lengths: Sequence[int], batch_tokens: int, *, seed: int, epoch: int) -> list[list[int]]:
    """Shuffle the sequences and cut them into batches of at most ``batch_tokens`` tokens.

    This suits objectives that concatenate the sequences of a batch. The result depends only on ``seed`` and ``epoch``.

    Returns:
        Batches of indices. A sequence longer than ``batch_tokens`` has a batch to itself.
    """
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
    """Stack sequences of different lengths, padded on the right with ``pad_id``: [batch, longest]."""
    longest = max(len(sequence) for sequence in sequences)
    return torch.tensor([[*sequence, *[pad_id] * (longest - len(sequence))] for sequence in sequences])
