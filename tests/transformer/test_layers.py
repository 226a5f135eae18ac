"""Attention, masks, layers and whole models: torch's own results, invariants, and how weights begin."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from tests.transformer.numpy_forward import NumpyTransformer
from tests.transformer.tiny import SOURCE, TARGET, config, random_model, run
from transformer.attention import (
    MultiHeadAttention,
    attention_weights,
    scaled_dot_product_attention,
)
from transformer.config import NORMS, POSITIONS
from transformer.decoder import DecoderLayer
from transformer.embedding import embedding_table
from transformer.encoder import EncoderLayer
from transformer.fast.shortcut import fast_path
from transformer.files.build import build_model
from transformer.masks import causal_mask, combined_mask, padding_mask
from transformer.models import log_probabilities
from transformer.positions import RelativePositionBias

# ---- attention and masks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [-1e30, 0.0, 1e30])
def test_masked_entries_stay_zero_beside_extreme_scores(score: float) -> None:
    weights = attention_weights(torch.full((1, 1, 1, 3), score), torch.tensor([[[[True, False, True]]]]))
    assert weights[0, 0, 0].tolist() == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_row_that_may_look_at_nothing_gives_zeros_on_both_paths(with_bias: bool) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(config()).eval()
    query_input, key_input = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
    allowed = torch.rand(2, 3, 5) > 0.3
    allowed[:, :, 1], allowed[1, 2] = True, False
    bias = torch.randn(1, 2, 3, 5) if with_bias else None
    readable = attention(query_input, key_input, allowed, bias)
    with fast_path():
        fast = attention(query_input, key_input, allowed, bias)
    torch.testing.assert_close(fast, readable, rtol=0, atol=1e-5)
    assert torch.equal(readable[1, 2], attention.output_projection.bias), "zeros, not NaN"


def test_attention_is_torchs_and_0_without_a_key() -> None:
    torch.manual_seed(1)
    query, key, value = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 6)
    allowed = torch.rand(2, 1, 3, 5) > 0.4
    allowed[..., 0], allowed[1, :, 2] = True, False
    expected = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed).nan_to_num(0.0)
    torch.testing.assert_close(scaled_dot_product_attention(query, key, value, allowed), expected, rtol=0, atol=1e-5)


def matrix(*rows: str) -> torch.Tensor:
    return torch.tensor([[character == "1" for character in row] for row in rows])


def test_masks_of_padding_and_of_the_last_queries_of_a_text() -> None:
    sentences = torch.tensor([[5, 6, 7, 0], [5, 0, 0, 0]])
    assert torch.equal(padding_mask(sentences, 7), matrix("1101", "1111")), "the padding id is not always 0"
    assert torch.equal(causal_mask(2, 5), matrix("11110", "11111"))
    assert torch.equal(causal_mask(1, 3), matrix("111"))
    padded_left = combined_mask(matrix("0111"), 4, causal=True)
    assert torch.equal(padded_left[0], matrix("0000", "0100", "0110", "0111")), "the first row has no key"


# ---- positions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_buckets", [32, 8])
def test_relative_buckets_of_long_distances(causal: bool, n_buckets: int) -> None:
    distances = range(-200, 201)
    found = RelativePositionBias(config(), causal=causal, n_buckets=n_buckets).bucket(torch.tensor(distances)).tolist()
    wanted = [NumpyTransformer.bucket(distance, n_buckets, causal=causal) for distance in distances]
    # At a power of two, the logarithm may be off by one rounding on either side.
    different = [(d, a - b) for d, a, b in zip(distances, found, wanted, strict=True) if a != b]
    assert len(different) <= 4 and all(abs(by) == 1 and abs(d) & (abs(d) - 1) == 0 for d, by in different)


# ---- torch's layers --------------------------------------------------------------------------------------------------

BATCH, N_SOURCE, N_TARGET, MODEL = 3, 7, 5, 16


def translated(layer: EncoderLayer | DecoderLayer) -> dict[str, Tensor]:
    """Return our weights with torch's names. torch numbers its norms in the order of the sub-layers."""
    state, linears = {}, {}
    sublayers = [name for name, _ in layer.named_children() if name.endswith("_attention")]
    for name, theirs in zip(sublayers, ("self_attn", "multihead_attn"), strict=False):
        attention = getattr(layer, name)
        parts = (attention.query_projection, attention.key_projection, attention.value_projection)
        state[f"{theirs}.in_proj_weight"] = torch.cat([part.weight for part in parts])
        state[f"{theirs}.in_proj_bias"] = torch.cat([part.bias for part in parts])
        linears[f"{theirs}.out_proj"] = attention.output_projection
    norms = [getattr(layer, f"{name}_norm") for name in (*sublayers, "feed_forward")]
    linears |= {f"norm{number}": norm for number, norm in enumerate(norms, 1)}
    linears |= {"linear1": layer.feed_forward.input_projection, "linear2": layer.feed_forward.output_projection}
    for name, linear in linears.items():
        state |= {f"{name}.weight": linear.weight, f"{name}.bias": linear.bias}
    return {name: tensor.detach() for name, tensor in state.items()}


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_a_layer_is_torchs(kind: type, norm: str, activation: str) -> None:
    torch.manual_seed(3)
    settings, of_encoder = config(norm=norm, activation=activation), kind is EncoderLayer
    ours = kind(settings).eval()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.3)
    theirs = (nn.TransformerEncoderLayer if of_encoder else nn.TransformerDecoderLayer)(
        MODEL, settings.n_heads, settings.d_ff, dropout=0.0, activation=activation,
        layer_norm_eps=settings.layer_norm_epsilon, batch_first=True, norm_first=norm == "pre",
    ).eval()  # fmt: skip
    theirs.load_state_dict(translated(ours))  # strict: every weight of theirs is one of ours
    source, target = torch.randn(BATCH, N_SOURCE, MODEL), torch.randn(BATCH, N_TARGET, MODEL)
    real, read = torch.ones(BATCH, N_SOURCE, dtype=torch.bool), torch.ones(BATCH, N_TARGET, dtype=torch.bool)
    real[1, 5:] = real[2, 3:] = read[1, 4:] = False  # True = real; torch's own masks mean the opposite
    if of_encoder:
        found = ours(source, combined_mask(real, N_SOURCE, causal=False))[real]  # torch may leave zeros in padding
        expected = theirs(source, src_key_padding_mask=~real)[real]
    else:
        masks = combined_mask(read, N_TARGET, causal=True), source, combined_mask(real, N_TARGET, causal=False)
        found, unseen = ours(target, *masks), ~causal_mask(N_TARGET, N_TARGET)
        expected = theirs(
            target, source, tgt_mask=unseen, tgt_key_padding_mask=~read, memory_key_padding_mask=~real
        )  # fmt: skip
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


# ---- any kind of model with any weights ------------------------------------------------------------------------------

KINDS = ("encoder-decoder", "decoder-only", "encoder-only")
# Every kind with every position scheme; pre- and post-norm alternate, so that each meets every scheme somewhere.
ALL = [(k, p, NORMS[(i + j) % 2]) for i, k in enumerate(KINDS) for j, p in enumerate(POSITIONS)]
DECODERS = [case for case in ALL if case[0] != "encoder-only"]


def padded(ids: Tensor, k: int) -> Tensor:
    return torch.nn.functional.pad(ids, (0, k), value=0)


@pytest.mark.parametrize(("kind", "positions", "norm"), DECODERS)
def test_a_later_token_leaves_earlier_rows_bitwise_unchanged(kind: str, positions: str, norm: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    changed = TARGET.clone()
    changed[0, 2] = 15
    before, after = run(model), run(model, target=changed)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.equal(before[:, 2:], after[:, 2:])


@pytest.mark.parametrize(("kind", "positions", "norm"), ALL)
def test_a_batch_gives_what_each_sentence_gives_alone(kind: str, positions: str, norm: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    short = SOURCE[:, :3], TARGET[:, :2]
    batch = run(model, torch.cat((SOURCE, padded(short[0], 3))), torch.cat((TARGET, padded(short[1], 2))))
    alone = run(model, *short)
    torch.testing.assert_close(batch[:1], run(model), rtol=0, atol=1e-5)
    torch.testing.assert_close(batch[1:, : alone.shape[1]], alone, rtol=0, atol=1e-5)


# ---- how weights begin -----------------------------------------------------------------------------------------------


def test_a_fresh_embedding_times_root_of_the_width_has_unit_variance() -> None:
    torch.manual_seed(0)
    table = embedding_table(config(vocabulary_size=500, d_model=64))
    assert float((table.weight.detach() * 8).std()) == pytest.approx(1.0, abs=0.02)


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
