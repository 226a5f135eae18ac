"""Attention weights that another program computed: arrays of any framework become ``AttentionView``s.

views = attention_views(model(**inputs, output_attentions=True).attentions, tokenizer.convert_ids_to_tokens(ids))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from transformer.runs.attention_view import AttentionView, scores_of
from transformer.runs.given_weights import masks_by_layer, weights_by_layer
from transformer.text.listed_tokens import sequence_of_pieces
from transformer.text.tokens import TokenSequence

Tokens = Iterable[str] | TokenSequence


def attention_views(
    weights: Any, tokens: Tokens, *, key_tokens: Tokens | None = None, allowed: Any = None
) -> tuple[AttentionView, ...]:
    """Return one view per layer of attention weights.

    The scores of a view are then log w, whose softmax is w: weights determine scores up to one constant per row.

    Args:
        weights: [query, key], [head, query, key], [layer, head, query, key], or a sequence with one array per layer, of
            PyTorch, NumPy, JAX or any other framework with ``__array__`` or DLPack. In front of the heads there may be
            a batch of 1. Rows may sum to less than 1, as those of models with learned sinks do.
        tokens: Texts of the query tokens; without ``key_tokens`` also of the key tokens.
        key_tokens: Texts of the key tokens, for cross-attention.
        allowed: [query, key] or [layer, query, key], ``True`` where a query may attend to a key. Without it, a key is
            masked where the weights of all heads of a layer are exactly 0.

    Raises:
        MessageError: If something does not fit; the message states both shapes or values.
    """
    query = sequence_of_pieces(tokens, "source" if key_tokens is None else "target")
    key = query if key_tokens is None else sequence_of_pieces(key_tokens)
    layers = weights_by_layer(weights, len(query), len(key), cross=key_tokens is not None)
    masks = masks_by_layer(allowed, layers)
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
