"""The five position schemes: textbook numbers, and the properties of each scheme."""

from __future__ import annotations

import math

import pytest
import torch

from tests.transformer.tiny import config, random_model
from transformer.positions import (
    LearnedEncoding,
    RelativePositionBias,
    RotaryEncoding,
    SinusoidalEncoding,
    additive_encoding,
    sinusoidal_encoding,
)
from transformer.probes import name_probes


def test_sinusoidal_textbook_numbers() -> None:
    """seq_len 5, d_model 4: sin and cos of the position, then of a hundredth of it."""
    expected = torch.tensor(
        [
            [0.0, 1.0, 0.0, 1.0],
            [0.841470985, 0.540302306, 0.00999983333, 0.999950000],
            [0.909297427, -0.416146837, 0.0199986667, 0.999800007],
            [0.141120008, -0.989992497, 0.0299955002, 0.999550034],
            [-0.756802495, -0.653643621, 0.0399893342, 0.999200107],
        ]
    )
    torch.testing.assert_close(sinusoidal_encoding(5, 4), expected, rtol=0, atol=1e-7)


def test_sinusoidal_formula_element_by_element() -> None:
    table = sinusoidal_encoding(50, 10)
    for position in (0, 1, 7, 49):
        for channel in range(10):
            angle = position / 10_000 ** ((channel - channel % 2) / 10)
            expected = math.cos(angle) if channel % 2 else math.sin(angle)
            assert float(table[position, channel]) == pytest.approx(expected, abs=1e-6)


def test_sinusoidal_shift_is_a_rotation_that_does_not_depend_on_the_position() -> None:
    """§3.5: PE(pos + k) is a linear function of PE(pos)."""
    table = sinusoidal_encoding(40, 6).double()
    shift = 3
    for pair in range(3):
        angle = shift / 10_000 ** (2 * pair / 6)
        rotation = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64
        )
        waves = table[:, 2 * pair : 2 * pair + 2]
        torch.testing.assert_close(waves[:-shift] @ rotation.T, waves[shift:], rtol=0, atol=1e-6)


def test_sinusoidal_table_is_a_buffer_and_is_not_stored() -> None:
    encoding = SinusoidalEncoding(config())
    assert list(encoding.parameters()) == []
    assert [name for name, _ in encoding.named_buffers()] == ["table"]
    assert encoding.state_dict() == {}


@pytest.mark.parametrize("kind", [SinusoidalEncoding, LearnedEncoding])
def test_added_encodings_begin_at_start(kind: type) -> None:
    encoding = kind(config())
    assert torch.equal(encoding(3, start=4), encoding(7)[:, 4:])


@pytest.mark.parametrize(
    ("scheme", "added"),
    [("sinusoidal", True), ("learned", True), ("rotary", False), ("relative", False), ("none", False)],
)
def test_which_schemes_are_added_to_the_embedding(scheme: str, added: bool) -> None:
    settings = config("encoder-only", positions=scheme)
    assert (additive_encoding(settings) is not None) == added
    probes = random_model("encoder-only", positions=scheme).probes
    assert ("encoder.embedding.position" in probes) == added
    assert any("position_bias" in name for name in probes) == (scheme == "relative")


def test_without_positions_a_shuffled_sentence_gives_the_shuffled_result() -> None:
    ids = torch.tensor([[4, 9, 17, 5, 8]])
    order = torch.tensor([3, 0, 4, 1, 2])
    with torch.inference_mode():
        blind = random_model("encoder-only", positions="none")
        torch.testing.assert_close(blind(ids[:, order]), blind(ids)[:, order], rtol=0, atol=1e-5)
        for scheme in ("sinusoidal", "learned", "rotary", "relative"):
            seeing = random_model("encoder-only", positions=scheme)
            difference = (seeing(ids[:, order]) - seeing(ids)[:, order]).abs().max()
            assert difference > 1e-3, f"{scheme} does not see the order"


# ---- rotary ---------------------------------------------------------------------------------------------------------


def test_rotary_dot_product_depends_only_on_the_distance() -> None:
    rotary = RotaryEncoding(config(d_model=16, n_heads=2, max_length=24))
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 8, generator=generator)
    products = torch.tensor([[float((rotary(query, m) * rotary(key, n)).sum()) for n in range(20)] for m in range(20)])
    for distance in range(-19, 20):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=2e-5)
    assert products[0].std() > 0.1, "all distances look the same"


def test_rotary_turns_each_pair_by_position_times_frequency() -> None:
    rotary = RotaryEncoding(config(d_model=8, n_heads=2))
    turned = rotary(torch.tensor([1.0, 0.0, 0.0, 1.0]).view(1, 1, 1, 4), start=5)[0, 0, 0]
    slow = 5 * 10_000 ** (-1 / 2)
    expected = torch.tensor([math.cos(5), -math.sin(slow), math.sin(5), math.cos(slow)])
    torch.testing.assert_close(turned, expected)


def test_rotary_keeps_lengths_and_position_0() -> None:
    rotary = RotaryEncoding(config())
    heads = torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(rotary(heads).norm(dim=-1), heads.norm(dim=-1))
    torch.testing.assert_close(rotary(heads)[:, :, 0], heads[:, :, 0])


# ---- relative -------------------------------------------------------------------------------------------------------


def t5_bucket(distance: int, *, causal: bool, n_buckets: int, max_distance: int) -> int:
    """Raffel et al. 2020, §2.1, for one number, written out."""
    bucket = 0
    if causal:
        distance = max(-distance, 0)
    else:
        n_buckets //= 2
        bucket = n_buckets if distance > 0 else 0
        distance = abs(distance)
    exact = n_buckets // 2
    if distance < exact:
        return bucket + distance
    wide = exact + int(math.log(distance / exact) / math.log(max_distance / exact) * (n_buckets - exact))
    return bucket + min(wide, n_buckets - 1)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 20)])
def test_relative_buckets(causal: bool, n_buckets: int, max_distance: int) -> None:
    bias = RelativePositionBias(config(), causal=causal, n_buckets=n_buckets, max_distance=max_distance)
    distances = range(-200, 201)
    buckets = bias.bucket(torch.tensor(distances)).tolist()
    by_hand = [t5_bucket(d, causal=causal, n_buckets=n_buckets, max_distance=max_distance) for d in distances]
    # At a boundary the logarithm may be off by one rounding on either side, but never by more.
    different = [d for d, a, b in zip(distances, buckets, by_hand, strict=True) if a != b]
    assert all(abs(buckets[d + 200] - by_hand[d + 200]) == 1 and abs(d) & (abs(d) - 1) == 0 for d in different)
    assert len(different) <= 4
    never = set() if causal else {n_buckets // 2}  # "later, by 0 tokens" does not exist
    assert set(buckets) == set(range(n_buckets)) - never


def test_relative_buckets_at_known_distances() -> None:
    both = RelativePositionBias(config(), causal=False)
    assert both.bucket(torch.tensor([0, -1, -7, 1, 7, -1000, 1000])).tolist() == [0, 1, 7, 17, 23, 15, 31]
    past = RelativePositionBias(config(), causal=True)
    assert past.bucket(torch.tensor([0, -1, -15, 5, -1000])).tolist() == [0, 1, 15, 0, 31]


def test_relative_bias_depends_only_on_the_distance() -> None:
    bias = RelativePositionBias(config(), causal=False)
    name_probes(bias)
    torch.nn.init.normal_(bias.table)
    values = bias(6, 6)
    assert values.shape == (1, 2, 6, 6)
    for distance in range(-5, 6):
        diagonal = values[0].diagonal(distance, dim1=1, dim2=2)
        assert torch.equal(diagonal, diagonal[:, :1].expand_as(diagonal))


def test_relative_bias_of_the_last_queries() -> None:
    bias = RelativePositionBias(config(), causal=True)
    torch.nn.init.normal_(bias.table)
    assert torch.equal(bias(2, 7), bias(7, 7)[:, :, 5:])
