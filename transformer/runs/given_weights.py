"""Attention weights that another program computed: any framework's arrays as float32, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer.errors import MessageError

# Rows in bfloat16 may sum to somewhat more than 1: each weight has a relative error of up to 1/256.
MOST_OF_A_ROW = 1.02
TOLERANCE = 1e-4  # float32 may exceed 1 in the last digit


def weights_by_layer(weights: Any, n_queries: int, n_keys: int, *, cross: bool) -> list[np.ndarray]:
    """Return [head, query, key] of each layer.

    Args:
        weights: [query, key], [head, query, key], [layer, head, query, key], or one array per layer; in front of the
            heads there may be a batch of 1.
        n_queries: Number of query tokens.
        n_keys: Number of key tokens.
        cross: Whether the keys have tokens of their own.

    Raises:
        MessageError: If they are not attention weights of that number of tokens.
    """
    layers = _layers(weights)
    _check_counts(layers, n_queries, n_keys, cross=cross)
    for index, layer in enumerate(layers):
        _check_weights(layer, index)
    return layers


def masks_by_layer(allowed: Any, layers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the mask of each layer: ``allowed``, or where some head has a nonzero weight.

    Raises:
        MessageError: If ``allowed`` does not fit the weights.
    """
    return [np.any(layer > 0, axis=0) for layer in layers] if allowed is None else _masks(allowed, layers)


def as_numbers(array: Any) -> np.ndarray:
    """Return an array of any framework as float32 in NumPy.

    Raises:
        MessageError: If it does not hold real numbers, or cannot be converted.
    """
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


def _layers(weights: Any) -> list[np.ndarray]:
    """Return [head, query, key] of each layer."""
    if weights is None or (isinstance(weights, Sequence) and not len(weights)):
        raise MessageError(f"There are no weights. {_remedy()}")
    if isinstance(weights, Sequence) and (weights[0] is None or hasattr(weights[0], "shape") or _written(weights[0])):
        for index, layer in enumerate(weights):
            if layer is None:
                raise MessageError(f"The weights of layer {index} are None. {_remedy()}")
            if _written(layer):
                raise MessageError(
                    "The weights are a sequence of sequences, as generate() returns them, one per token that it wrote. "
                    "Call the model itself with the whole text."
                )
        return [_heads(as_numbers(layer)) for layer in weights]
    array = as_numbers(weights)
    if array.ndim == 5 and 1 in array.shape[:2]:
        array = array[:, 0] if array.shape[1] == 1 else array[0]
    if array.ndim == 5:
        raise MessageError(
            f"The weights have shape {array.shape}, with a batch of {array.shape[1]} texts; choose one with "
            "weights[:, 0]."
        )
    return [_heads(layer) for layer in array] if array.ndim == 4 else [_heads(array)]


def _remedy() -> str:
    return (
        'A model of transformers returns them if it is loaded with attn_implementation="eager" and '
        "called with output_attentions=True."
    )


def _written(step: Any) -> bool:
    """Return whether ``step`` holds the weights of all layers for one token that ``generate`` wrote."""
    return isinstance(step, tuple) and any(hasattr(layer, "shape") for layer in step)


def _heads(layer: np.ndarray) -> np.ndarray:
    shape = layer.shape
    if layer.ndim == 4 and shape[0] == 1:
        layer = layer[0]
    if layer.ndim == 4:
        raise MessageError(
            f"A layer has shape {shape}, with a batch of {shape[0]} texts; choose one with [layer[0] for "
            "layer in weights]."
        )
    layer = layer[None] if layer.ndim == 2 else layer
    if layer.ndim != 3 or 0 in shape:
        raise MessageError(
            f"The weights have shape {shape}; attention weights are [head, query, key] or [layer, head, "
            "query, key], and no axis is empty."
        )
    return layer


def _check_counts(layers: Sequence[np.ndarray], n_queries: int, n_keys: int, *, cross: bool) -> None:
    for index, layer in enumerate(layers):
        if layer.shape[1:] != layers[0].shape[1:]:
            raise MessageError(
                f"Layer {index} has shape {layer.shape} but layer 0 has {layers[0].shape}; all layers must have "
                "the same tokens."
            )
    shape = layers[0].shape
    if shape[1:] == (n_queries, n_keys):
        return
    if not cross and shape[1] == n_queries:
        raise MessageError(
            f"The weights have shape {shape}, [head, query, key], with {n_queries} query tokens and {shape[2]} key "
            "tokens. Give the texts of the key tokens as key_tokens."
        )
    raise MessageError(
        f"The weights have shape {shape}, [head, query, key], but the tokens have {(n_queries, n_keys)}, [query, key]."
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
            f"The numbers of layer {index} reach from {layer.min():.3g} to {layer.max():.3g}, but attention "
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
    given = as_numbers(allowed)
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
                f"key the weight {hidden.max():.3g}."
            )
    return masks
