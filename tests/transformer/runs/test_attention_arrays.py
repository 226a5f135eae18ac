"""Attention weights of other programs: which arrays are read, and why the others are refused."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.errors import MessageError
from transformer.runs.attention_arrays import attention_views


def random_weights(*shape: int, causal: bool = False, seed: int = 0) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    if causal:
        scores = np.where(np.tri(shape[-2], shape[-1], dtype=bool), scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def texts(count: int) -> list[str]:
    return [f"t{index}" for index in range(count)]


class OnlyDLPack:
    """An array of a framework that shares its memory by DLPack alone, as JAX does."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self.shape = tuple(tensor.shape)

    def __dlpack__(self, **options: object) -> object:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.booleans(), st.sampled_from("ltab")
)
def test_every_shape_gives_the_same_views(
    n_layers: int, n_heads: int, n_queries: int, n_keys: int, batched: bool, form: str
) -> None:
    """Layers as a tuple or, with a batch of 1, as one array, of NumPy or PyTorch."""
    weights = random_weights(n_layers, n_heads, n_queries, n_keys)
    given_weights = weights[:, None] if batched else weights
    arrays = {
        "l": lambda: list(given_weights),
        "t": lambda: tuple(torch.from_numpy(given_weights)),
        "a": lambda: given_weights if batched else given_weights.tolist(),
        "b": lambda: torch.from_numpy(weights)[None],
    }
    views = attention_views(arrays[form](), texts(n_queries), key_tokens=texts(n_keys))
    assert [view.layer for view in views] == list(range(n_layers))
    for view, layer in zip(views, weights, strict=True):
        np.testing.assert_array_equal(view.weights, layer)
        assert view.allowed.all()
        np.testing.assert_allclose(np.exp(view.scores), layer, rtol=1e-5)
        assert (view.stack, view.kind) == ("decoder", "cross")


@pytest.mark.parametrize(
    "convert",
    [
        lambda w: OnlyDLPack(torch.from_numpy(w)),
        lambda w: torch.from_numpy(w).half(),
        lambda w: torch.from_numpy(w).bfloat16().requires_grad_(),
        lambda w: OnlyDLPack(torch.from_numpy(w).bfloat16()),
        lambda w: w.astype(np.float16),
        lambda w: w.astype(ml_dtypes.bfloat16),  # what NumPy makes of an array of JAX
        lambda w: w.astype(np.float64),
    ],
)
def test_one_layer_and_one_head_are_read_in_every_precision(convert) -> None:
    weights = random_weights(12, 40, 40)
    for array, expected in ((convert(weights), weights), (convert(weights[0]), weights[:1])):
        (view,) = attention_views(array, texts(40))
        assert view.weights.dtype == np.float32
        np.testing.assert_allclose(view.weights, expected, rtol=1 / 256)
    np.testing.assert_array_equal(attention_views(weights[0].tolist(), texts(40))[0].weights, weights[:1])


def test_the_mask_is_read_from_exact_zeros() -> None:
    weights = [*random_weights(2, 3, 5, 5, causal=True)]
    weights[1][0, 4, :4], weights[1][0, 4, 4] = 0.0, 1.0  # one sharp head masks nothing for the others
    views = attention_views(weights, texts(5))
    assert all(np.array_equal(view.allowed, np.tri(5, dtype=bool)) for view in views)
    assert all((view.stack, view.kind) == ("decoder", "self") for view in views)
    assert attention_views(random_weights(2, 5, 5), texts(5))[0].stack == "encoder"


def test_a_mask_can_be_given_for_all_layers_or_for_each() -> None:
    weights = [*random_weights(2, 3, 4, 4, causal=True)]
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    assert np.array_equal(attention_views(weights, texts(4), allowed=causal)[1].allowed, causal.numpy())
    everything = np.ones((2, 4, 4), dtype=int)
    everything[0] = np.tri(4)
    views = attention_views(weights, texts(4), allowed=everything)
    assert not views[0].allowed[0, 1] and views[1].allowed[0, 1]


GOOD = random_weights(3, 4, 4)


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        (None, "no weights. .*attn_implementation=\"eager\""),
        ((), "no weights"),
        ((None, None), "layer 0 are None. .*output_attentions=True"),
        (((GOOD, GOOD),), r"as generate\(\) returns them"),
        (random_weights(2, 3, 4, 4), r"shape \(2, 3, 4, 4\), .* list\(weights\) .* weights\[0\]"),
        (random_weights(2, 5, 3, 4, 4), r"shape \(5, 3, 4, 4\), with a batch of 5 texts; choose one"),
        ([random_weights(5, 3, 4, 4)], r"shape \(5, 3, 4, 4\), with a batch of 5 texts"),
        (GOOD[0, 0], r"shape \(4,\); the attention weights of a layer are \[head, query, key\]"),
        (np.zeros((0, 4, 4)), r"shape \(0, 4, 4\)"),
        (random_weights(3, 5, 5), r"shape \(3, 5, 5\), \[head, query, key\], but there are 4 query tokens"),
        (random_weights(3, 4, 6), r"shape \(3, 4, 6\).* key_tokens"),
        ([GOOD, random_weights(3, 4, 5)], r"Layer 1 has shape \(3, 4, 5\)"),
        (np.where(np.arange(4) == 2, np.nan, GOOD), "Layer 0, head 0, query 0 holds NaN"),
        (np.minimum(GOOD * 0 + 1.001, 2), "reach from 1.001 to 1.001, but"),
        (SimpleNamespace(encoder_attentions=(GOOD,)), "several kinds of attention.* outputs.encoder_attentions"),
        (SimpleNamespace(attentions=None), "no weights. .*output_attentions=True"),
        (np.log(GOOD), "reach from .* but attention weights lie between 0 and 1. If they are scores"),
        (GOOD.swapaxes(-1, -2), "columns sum to 1 and the rows do not"),
        (np.minimum(GOOD * 1.2, 1), "sums to 1.2, but .* Dropout"),
        (GOOD * 1j, "cannot be read as real numbers: complex64"),
        (torch.from_numpy(GOOD) * 1j, "cannot be read as real numbers: torch.complex64"),
        (np.full((3, 4, 4), "a"), "cannot be read as real numbers"),
        ("weights", "cannot be read as real numbers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_sentence(weights: object, problem: str) -> None:
    with pytest.raises(MessageError, match=problem):
        attention_views(weights, texts(4))


@pytest.mark.parametrize(
    ("allowed", "problem"),
    [
        (np.ones((4, 5), bool), r"allowed has shape \(4, 5\), but the weights have \(4, 4\)"),
        (np.full((4, 4), -1e9), "only True and False"),
        (
            np.tri(4, dtype=bool),
            "allowed is False for query 1 and key 3, but in layer 0 head 2 gives .* cut the padding off",
        ),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(allowed: np.ndarray, problem: str) -> None:
    with pytest.raises(MessageError, match=problem):
        attention_views(GOOD, texts(4), allowed=allowed)
