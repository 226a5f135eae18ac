"""Attention weights that another program computed: arrays of any framework become ``AttentionView``s.

views = attention_views(model(**inputs, output_attentions=True).attentions, tokenizer.convert_ids_to_tokens(ids))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from transformer.errors import MessageError
from transformer.runs.attention_view import AttentionView, scores_of
from transformer.text.listed_tokens import sequence_of_pieces
from transformer.text.tokens import TokenSequence

Tokens = Iterable[str] | TokenSequence
# Rows in bfloat16 may sum to somewhat more than 1: each weight has a relative error of up to 1/256.
MOST_OF_A_ROW = 1.02
TOLERANCE = 1e-4  # float32 may exceed 1 in the last digit
_REMEDY = (
    'A model of transformers returns them if it is loaded with attn_implementation="eager" and called with '
    "output_attentions=True."
)


def attention_views(
    weights: Any, tokens: Tokens, *, key_tokens: Tokens | None = None, allowed: Any = None
) -> tuple[AttentionView, ...]:
    """Return one view per layer of attention weights.

    The scores of a view are then log w, whose softmax is w: weights determine scores up to one constant per row.

    Args:
        weights: A sequence with one array [head, query, key] per layer, or one layer alone, [head, query, key] or
            [query, key], of PyTorch, NumPy, JAX or any other framework with ``__array__`` or DLPack; or the output of a
            model of ``transformers`` with one kind of attention. In front of the heads there may be a batch of 1; with
            it, all layers may be one array. Rows may sum to less than 1, as those of models with learned sinks do.
        tokens: Texts of the query tokens; without ``key_tokens`` also of the key tokens.
        key_tokens: Texts of the key tokens, for cross-attention.
        allowed: [query, key] or [layer, query, key], ``True`` where a query may attend to a key. Without it, a key is
            masked where the weights of all heads of a layer are exactly 0.

    Raises:
        MessageError: If something does not fit; the message states both shapes or values.
    """
    query = sequence_of_pieces(tokens, "source" if key_tokens is None else "target")
    key = query if key_tokens is None else sequence_of_pieces(key_tokens)
    layers = _layers(weights)
    for index, layer in enumerate(layers):
        _check_shape(layer, index, len(query), len(key), cross=key_tokens is not None)
        _check_weights(layer, index)
    masks = [np.any(layer > 0, axis=0) for layer in layers] if allowed is None else _masks(allowed, layers)
    kind = "self" if key_tokens is None else "cross"
    causal = kind == "cross" or not any(np.triu(mask, 1).any() for mask in masks)
    stack = "decoder" if causal else "encoder"
    return tuple(
        AttentionView(
            name=f"{stack}.layers.{index}.{kind}_attention",
            stack=stack,
            layer=index,
            kind=kind,
            weights=layer,
            allowed=mask,
            scores=scores_of(layer),
            query=query,
            key=key,
        )
        for index, (layer, mask) in enumerate(zip(layers, masks, strict=True))
    )


def _layers(weights: Any) -> list[np.ndarray]:
    """Return [head, query, key] of each layer."""
    if several := [name for name in ("encoder_attentions", "decoder_attentions") if hasattr(weights, name)]:
        raise MessageError(f"This model has several kinds of attention; give one, such as outputs.{several[0]}.")
    weights = getattr(weights, "attentions", weights)
    if weights is None or (isinstance(weights, Sequence) and not len(weights)):
        raise MessageError(f"There are no weights. {_REMEDY}")
    if isinstance(weights, Sequence) and (weights[0] is None or hasattr(weights[0], "shape") or _written(weights[0])):
        return [_heads(layer, index) for index, layer in enumerate(weights)]
    array = _as_numbers(weights)
    if array.ndim == 5 and 1 in array.shape[:2]:
        array = array[:, 0] if array.shape[1] == 1 else array[0]
    elif array.ndim == 4 and len(array) > 1 and not isinstance(weights, Sequence):
        raise MessageError(
            f"The weights have shape {array.shape}, whose first axis may be layers or texts. Give list(weights) if it "
            "is layers, and weights[0] for the first of several texts."
        )
    return [_heads(layer, index) for index, layer in enumerate(array if array.ndim > 3 and len(array) else [array])]


def _written(step: Any) -> bool:
    """Return whether ``step`` holds the weights of all layers for one token that ``generate`` wrote."""
    return isinstance(step, tuple) and any(hasattr(layer, "shape") for layer in step)


def _heads(given: Any, index: int) -> np.ndarray:
    """Return one layer as [head, query, key], without a batch axis and with an axis of heads."""
    if given is None:
        raise MessageError(f"The weights of layer {index} are None. {_REMEDY}")
    if _written(given):
        raise MessageError(
            "The weights are a sequence of sequences, as generate() returns them, one per token that it wrote. "
            "Call the model itself with the whole text."
        )
    layer = _as_numbers(given)
    shape = layer.shape
    layer = layer[0] if layer.ndim == 4 and shape[0] == 1 else layer[None] if layer.ndim == 2 else layer
    if layer.ndim == 4:
        raise MessageError(
            f"Layer {index} has shape {shape}, with a batch of {shape[0]} texts; choose one with "
            "[layer[0] for layer in weights]."
        )
    if layer.ndim != 3 or 0 in shape:
        raise MessageError(
            f"The weights have shape {shape}; the attention weights of a layer are [head, query, key], and no axis is "
            "empty."
        )
    return layer


def _as_numbers(array: Any) -> np.ndarray:
    """Return an array of any framework as float32 in NumPy."""
    try:
        if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
            import torch  # which also reads bfloat16
            from torch.utils.dlpack import from_dlpack

            tensor = array if isinstance(array, torch.Tensor) else from_dlpack(array)
            if tensor.is_complex():
                raise TypeError(f"{tensor.dtype} numbers")
            return tensor.detach().to("cpu", torch.float32).numpy()
        found = np.asarray(array)
        if found.dtype.kind not in "fiub" and found.dtype.name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            raise TypeError(f"{found.dtype} numbers")
        return found.astype(np.float32, copy=False)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise MessageError(
            f"The weights cannot be read as real numbers: {str(error)[:200] or type(error).__name__}"
        ) from error


def _check_shape(layer: np.ndarray, index: int, n_queries: int, n_keys: int, *, cross: bool) -> None:
    if layer.shape[1:] == (n_queries, n_keys):
        return
    hint = "" if cross or layer.shape[1] != n_queries else " Give the texts of the key tokens as key_tokens."
    raise MessageError(
        f"Layer {index} has shape {layer.shape}, [head, query, key], but there are {n_queries} query tokens and "
        f"{n_keys} key tokens.{hint}"
    )


def _check_weights(layer: np.ndarray, index: int) -> None:
    """Refuse numbers that are not attention weights, with their location."""
    if not np.isfinite(layer).all():
        head, row = np.argwhere(~np.isfinite(layer).all(axis=-1))[0]
        raise MessageError(
            f"Layer {index}, head {head}, query {row} holds NaN or an infinity. If the query has no allowed "
            "key, set its row to 0."
        )
    if layer.min() < 0 or layer.max() > 1 + TOLERANCE:
        raise MessageError(
            f"The numbers of layer {index} reach from {layer.min():.6g} to {layer.max():.6g}, but attention "
            "weights lie between 0 and 1. If they are scores, apply the softmax."
        )
    sums = layer.sum(axis=-1, dtype=np.float64)
    if (sums <= MOST_OF_A_ROW).all():
        return
    if np.allclose(layer.sum(axis=-2), 1.0, atol=0.02):
        raise MessageError(
            f"In layer {index} the columns sum to 1 and the rows do not: the axes must be [head, query, key]."
        )
    head, row = np.unravel_index(sums.argmax(), sums.shape)
    raise MessageError(
        f"Layer {index}, head {head}, query {row} sums to {sums.max():.3g}, but the weights of a query "
        "sum to 1 at most. Dropout does this to a model in training mode."
    )


def _masks(allowed: Any, layers: Sequence[np.ndarray]) -> list[np.ndarray]:
    given = _as_numbers(allowed)
    expected = layers[0].shape[1:]
    if given.shape not in (expected, (len(layers), *expected)):
        raise MessageError(f"allowed has shape {given.shape}, but the weights have {expected}, [query, key].")
    if not np.isin(given, (0, 1)).all():
        raise MessageError("allowed must hold only True and False: True where a query may attend to a key.")
    masks = list(np.broadcast_to(given.astype(bool), (len(layers), *expected)))
    for index, (layer, mask) in enumerate(zip(layers, masks, strict=True)):
        hidden = np.where(mask, 0.0, layer)
        if hidden.any():
            head, row, column = np.unravel_index(hidden.argmax(), hidden.shape)
            raise MessageError(
                f"allowed is False for query {row} and key {column}, but in layer {index} head {head} gives this "
                f"key the weight {hidden.max():.3g}. If the query is padding, cut the padding off weights, tokens "
                "and mask."
            )
    return masks
