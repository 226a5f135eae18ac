"""Masks compared with handwritten matrices. 1 = may attend."""

from __future__ import annotations

import torch

from transformer.masks import causal_mask, combined_mask, padding_mask

SENTENCES = torch.tensor([[5, 6, 7, 0], [5, 0, 0, 0]])


def matrix(*rows: str) -> torch.Tensor:
    return torch.tensor([[character == "1" for character in row] for row in rows])


def test_padding() -> None:
    assert torch.equal(padding_mask(SENTENCES, 0), matrix("1110", "1000"))


def test_the_padding_id_is_not_always_0() -> None:
    assert torch.equal(padding_mask(SENTENCES, 7), matrix("1101", "1111"))


def test_causal() -> None:
    assert torch.equal(causal_mask(4, 4), matrix("1000", "1100", "1110", "1111"))


def test_causal_with_fewer_queries_than_keys_means_the_last_queries() -> None:
    assert torch.equal(causal_mask(2, 5), matrix("11110", "11111"))
    assert torch.equal(causal_mask(1, 3), matrix("111"))


def test_padding_of_the_source_seen_from_a_longer_target() -> None:
    keys = padding_mask(SENTENCES, 0)
    allowed = combined_mask(keys, 5, causal=False)
    assert allowed.shape == (2, 5, 4)
    assert torch.equal(allowed[0], matrix(*["1110"] * 5))
    assert torch.equal(allowed[1], matrix(*["1000"] * 5))


def test_causal_and_padding_together() -> None:
    allowed = combined_mask(padding_mask(SENTENCES, 0), 4, causal=True)
    assert torch.equal(allowed[0], matrix("1000", "1100", "1110", "1110"))
    assert torch.equal(allowed[1], matrix("1000", "1000", "1000", "1000"))


def test_causal_and_padding_on_the_left_leave_rows_without_a_key() -> None:
    allowed = combined_mask(matrix("0111"), 4, causal=True)
    assert torch.equal(allowed[0], matrix("0000", "0100", "0110", "0111"))
