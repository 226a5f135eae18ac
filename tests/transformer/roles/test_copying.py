"""Copying by the weights alone: 1 for a head that writes what it reads, −1 for its opposite, about 0 by chance."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from transformer.roles.copying import copying_measures, copying_scores, meeting


def attention(value: torch.Tensor, output: torch.Tensor, *, n_heads: int) -> SimpleNamespace:
    d_head = output.shape[1] // n_heads
    layers = [nn.Linear(*matrix.shape[::-1], bias=False) for matrix in (value, output)]
    for layer, matrix in zip(layers, (value, output), strict=True):
        layer.weight.data = matrix
    return SimpleNamespace(n_heads=n_heads, d_head=d_head, value_projection=layers[0], output_projection=layers[1])


def test_a_head_that_writes_what_it_reads_copies_and_its_opposite_suppresses() -> None:
    torch.manual_seed(0)
    embedding, value = torch.randn(60, 16), torch.randn(8, 16)
    heads = attention(torch.cat((value, value)), torch.cat((value, -value)).T, n_heads=2)
    scores = copying_scores(heads, meeting(embedding, embedding))
    assert scores == pytest.approx([1.0, -1.0], abs=1e-6)
    shared = attention(value, torch.cat((value, -value)).T, n_heads=2)  # one value head for both
    assert copying_scores(shared, meeting(embedding, embedding)) == pytest.approx(scores)


def test_the_eigenvalues_are_those_of_the_whole_matrix_and_random_weights_are_at_chance() -> None:
    torch.manual_seed(1)
    embedding, unembedding = torch.randn(40, 16), torch.randn(40, 16)
    heads = attention(torch.randn(16, 16), torch.randn(16, 16), n_heads=4)
    found = copying_scores(heads, meeting(embedding, unembedding := unembedding + 3))
    centred = [(matrix - matrix.mean(dim=0)).numpy() for matrix in (embedding, unembedding)]
    for head in range(4):
        rows = slice(4 * head, 4 * head + 4)
        value = heads.value_projection.weight[rows].detach().numpy()
        output = heads.output_projection.weight[:, rows].detach().numpy()
        eigenvalues = np.linalg.eigvals(centred[0] @ value.T @ output.T @ centred[1].T)
        assert found[head] == pytest.approx(eigenvalues.sum().real / np.abs(eigenvalues).sum(), abs=1e-3)
    many = [
        copying_scores(attention(torch.randn(16, 16), torch.randn(16, 16), n_heads=2), meeting(embedding, unembedding))
        for _ in range(60)
    ]
    assert np.mean(many) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize(("kind", "count"), [("translator", 8), ("gpt", 4), ("bert", 4), ("sentiment", 0)])
def test_every_head_that_writes_words_has_a_score(tiny_checkpoint, kind: str, count: int) -> None:
    found = copying_measures(tiny_checkpoint(kind))
    assert len(found) == count and all(-1 <= one.score <= 1 and one.chance == 0 for one in found.values())
