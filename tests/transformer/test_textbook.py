"""Examples that textbooks compute by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from tests.transformer.tiny import SOURCE, TARGET, config, random_model, run
from transformer.embedding import Embedding, embedding_table
from transformer.files.build import build_model
from transformer.layer_norm import LayerNorm
from transformer.models import log_probabilities
from transformer.probes import name_probes, record


def test_layer_norm_of_1_2_3() -> None:
    norm = LayerNorm(config(d_model=3, n_heads=1, positions="none"))
    name_probes(norm)
    with record() as recording:
        output = norm(torch.tensor([[[1.0, 2.0, 3.0]]]))
    torch.testing.assert_close(output[0, 0], torch.tensor([-1.2247, 0.0, 1.2247]), rtol=0, atol=1e-4)
    assert recording.tensors["mean"].item() == pytest.approx(2.0)
    assert recording.tensors["std"].item() == pytest.approx(math.sqrt(2 / 3 + 1e-5))  # biased, ε inside the root


def test_layer_norm_scales_and_shifts_after_normalising() -> None:
    norm = LayerNorm(config(d_model=3, n_heads=1, positions="none"))
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([2.0, 1.0, 1.0]))
        norm.bias.copy_(torch.tensor([0.0, 10.0, 0.0]))
        output = norm(torch.tensor([[[1.0, 2.0, 3.0]]]))
    torch.testing.assert_close(output[0, 0], torch.tensor([-2.4495, 10.0, 1.2247]), rtol=0, atol=1e-4)


def test_layer_norm_of_a_constant_is_the_shift() -> None:
    norm = LayerNorm(config(d_model=4))
    assert torch.equal(norm(torch.full((1, 2, 4), 7.0)), torch.zeros(1, 2, 4))


def test_looking_up_a_row_is_multiplying_by_a_one_hot_vector() -> None:
    settings = config("encoder-only", positions="none", dropout=0.0)
    table = embedding_table(settings)
    embedded = Embedding(settings, table)(SOURCE)
    one_hot = F.one_hot(SOURCE, settings.vocabulary_size).float()
    torch.testing.assert_close(embedded, one_hot @ table.weight * math.sqrt(16))


def test_embedding_is_row_times_root_of_the_width_plus_position() -> None:
    settings = config("encoder-only", dropout=0.0)
    table = embedding_table(settings)
    embedded = Embedding(settings, table)(SOURCE).detach()
    for position, id in enumerate(SOURCE[0].tolist()):
        for channel in (0, 1, 6):
            angle = position / 10_000 ** ((channel - channel % 2) / 16)
            wave = math.cos(angle) if channel % 2 else math.sin(angle)
            expected = float(table.weight.detach()[id, channel]) * 4.0 + wave
            assert float(embedded[0, position, channel]) == pytest.approx(expected, abs=1e-6)


def test_a_fresh_embedding_times_root_of_the_width_has_unit_variance() -> None:
    torch.manual_seed(0)
    table = embedding_table(config(vocabulary_size=500, d_model=64))
    assert float((table.weight.detach() * 8).std()) == pytest.approx(1.0, abs=0.02)


def moved_rows(before: torch.Tensor, after: torch.Tensor) -> set[int]:
    return set(torch.nonzero((before != after).any(dim=1)).flatten().tolist())


@pytest.mark.parametrize("tied", [False, True])
def test_one_sgd_step_moves_only_the_rows_that_were_looked_up_unless_tied(tied: bool) -> None:
    torch.manual_seed(0)
    model = build_model(config(tie_embeddings=tied, dropout=0.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    source, target = model.encoder.embedding.table.weight, model.decoder.embedding.table.weight
    before = source.detach().clone(), target.detach().clone()
    logits = model(SOURCE, TARGET)
    F.cross_entropy(logits.flatten(0, 1), torch.tensor([7, 19, 11, 2])).backward()
    optimizer.step()
    if tied:
        assert source is target
        assert moved_rows(before[0], source) == set(range(23)), "the projection pulls at every row"
    else:
        assert moved_rows(before[0], source) == set(SOURCE[0].tolist())
        assert moved_rows(before[1], target) == set(TARGET[0].tolist())


def test_tied_matrices_are_one() -> None:
    tied = build_model(config(tie_embeddings=True))
    assert tied.decoder.vocabulary_projection.weight is tied.encoder.embedding.table.weight
    assert tied.decoder.embedding.table.weight is tied.encoder.embedding.table.weight
    untied = build_model(config(tie_embeddings=False))
    matrices = {
        id(untied.encoder.embedding.table.weight),
        id(untied.decoder.embedding.table.weight),
        id(untied.decoder.vocabulary_projection.weight),
    }
    assert len(matrices) == 3
    assert untied.n_parameters - tied.n_parameters == 2 * 23 * 16


@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only", "encoder-only"])
def test_tied_logits_are_dot_products_with_the_embedding_rows(kind: str) -> None:
    model = random_model(kind, tie_embeddings=True)
    stack = "encoder" if kind == "encoder-only" else "decoder"
    with record() as recording:
        run(model)
    hidden = recording.tensors[f"{stack}.final_norm.output"]
    table = getattr(model, stack).embedding.table.weight.detach()
    torch.testing.assert_close(recording.tensors[f"{stack}.logits"], hidden @ table.T)


@pytest.mark.parametrize("n_hidden", [20, 23])  # 23 is also the size of the vocabulary
@pytest.mark.parametrize("tied", [False, True])
def test_matrices_begin_as_xavier_and_biases_at_0(tied: bool, n_hidden: int) -> None:
    torch.manual_seed(0)
    model = build_model(config(tie_embeddings=tied, d_ff=n_hidden))
    tables = {id(model.encoder.embedding.table.weight), id(model.decoder.embedding.table.weight)}
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        elif id(parameter) not in tables:
            bound = math.sqrt(6 / sum(parameter.shape))
            assert 0.9 * bound < float(parameter.detach().abs().max()) <= bound, name


def test_log_probabilities_are_logs_of_the_softmax_over_the_vocabulary() -> None:
    logits = torch.tensor([[[0.0, math.log(3.0)], [1000.0, 0.0]]])
    log_p = log_probabilities(logits)
    torch.testing.assert_close(log_p[0, 0].exp(), torch.tensor([0.25, 0.75]))
    assert torch.isfinite(log_p).all()
