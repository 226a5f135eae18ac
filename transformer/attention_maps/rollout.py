"""Attention rollout: the share of each input token in a position, from attention weights alone.

"Quantifying Attention Flow in Transformers" (Abnar & Zuidema 2020, §3). A position keeps part of itself through the
residual connection and receives from others through attention, so each layer mixes by

    Ã = r·I + (1 − r)·Ā,   Ā = mean over the heads of the weights, r = ½, every row divided by its sum,

and the layers multiply: R_0 = I, R_l = Ã_l R_{l−1}. Row i of R_l holds the shares of the input tokens in position i.

The decoder of an encoder-decoder mixes twice per layer, and from two sentences. Row t of T holds the shares of target
tokens and row t of S those of source tokens; R is the rollout of the whole encoder:

    self-attention:   T ← Ã T,   S ← Ã S                  Ã from the weights of self-attention
    cross-attention:  T ← r T,   S ← r S + (1 − r) Ā R    Ā from the weights of cross-attention

with T = I and S = 0 at the start, so that a row of S and the same row of T together always sum to 1.

Rollout ignores the value vectors, differences between heads, the feed-forward layers, the norms, and the real weight of
the residual connection (here r). It accounts for weights; it does not measure effects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence


@dataclass(frozen=True)
class Shares:
    """Shares of the input tokens in each position.

    Attributes:
        values: [query, token].
        reached: Whether a path leads from the token to the query, [query, token]; elsewhere the share is exactly 0.
    """

    values: np.ndarray
    reached: np.ndarray

    def mixed_by(self, mix: Shares) -> Shares:
        """Return the shares after one more layer with the mixing matrix ``mix``."""
        return Shares(mix.values @ self.values, mix.reached @ self.reached)


@dataclass(frozen=True)
class Rollout:
    """Shares of input tokens in the positions of one stack after layer ``layer``.

    A row of ``source`` and the same row of ``target`` together sum to 1.

    Attributes:
        query: Tokens of the stack.
        key: Tokens of the source, or of the stack itself if it reads no source.
        source: Shares of source tokens; ``None`` if the stack does not read the source.
        target: Shares of target tokens; ``None`` if the stack does not read the target.
    """

    stack: str
    layer: int
    query: TokenSequence
    key: TokenSequence
    source: Shares | None
    target: Shares | None

    def view(self, kind: str = "self") -> AttentionView:
        """Return one attention view with a single "head" whose rows sum to 1.

        ``kind`` is "self" for the stack's own tokens or "cross" for decoder × source. In an encoder-decoder each of the
        two is a part of the whole and is divided by its own sum. There are no scores, so they are all NaN.
        """
        if kind not in ("self", "cross") or (kind == "cross" and (self.stack != "decoder" or self.source is None)):
            raise ValueError(f"the rollout of this {self.stack} has no map of kind {kind!r}")
        of_source = self.stack == "encoder" or kind == "cross"
        shares = self.source if of_source else self.target
        sums = shares.values.sum(axis=-1, keepdims=True)
        weights = np.divide(shares.values, sums, out=np.zeros_like(shares.values), where=sums > 0)
        weights = weights.astype(np.float32)[None]
        return AttentionView(
            name=f"{self.stack}.rollout.{kind}",
            stack=self.stack,
            layer=self.layer,
            kind=kind,
            weights=weights,
            allowed=shares.reached,
            scores=np.full_like(weights, np.nan),
            query=self.query,
            key=self.key if of_source else self.query,
        )


def attention_rollout(trace: Trace, stack: str, *, layer: int | None = None, residual: float = 0.5) -> Rollout:
    """Compute the rollout of ``stack`` through layers 0 to ``layer`` (default: all).

    ``residual`` is r, between 0 and 1.

    Raises:
        ValueError: If the stack or layer does not exist.
    """
    if not 0 <= residual <= 1:
        raise ValueError(f"residual is {residual}; it is the share that a position keeps of itself, 0 to 1")
    tokens, n_layers = trace.tokens(stack), trace.n_layers(stack)
    last = n_layers - 1 if layer is None else layer
    if not 0 <= last < n_layers:
        raise ValueError(f"there is no layer {layer}; the {stack} has layers 0 to {n_layers - 1}")
    size = len(tokens)
    own = Shares(np.eye(size), np.eye(size, dtype=bool))
    crossed = (stack, "cross") in trace.attention_kinds()
    encoder = attention_rollout(trace, "encoder", residual=residual).source if crossed else None
    other = None
    if crossed:
        nothing = np.zeros((size, len(trace.source)))
        other = Shares(nothing, nothing.astype(bool))
    for index in range(last + 1):
        mix = _mixing_matrix(trace.attention(stack, index), residual)
        own = own.mixed_by(mix)
        if crossed:
            cross = trace.attention(stack, index, "cross")
            own, other = _add_cross(own, other.mixed_by(mix), cross, encoder, residual)
    source, target = (own, None) if stack == "encoder" else (other, own)
    return Rollout(stack, last, tokens, trace.source if crossed else tokens, source, target)


def _mixing_matrix(view: AttentionView, residual: float) -> Shares:
    """Return Ã = r·I + (1 − r)·Ā, rows divided by their sums; a fully masked query keeps itself."""
    identity = np.eye(len(view.query))
    mix = residual * identity + (1 - residual) * view.weights.mean(axis=0, dtype=np.float64)
    sums = mix.sum(axis=-1, keepdims=True)
    mix = np.where(sums > 0, mix / np.where(sums > 0, sums, 1.0), identity)
    return Shares(mix, view.allowed | identity.astype(bool))


def _add_cross(
    own: Shares, other: Shares, view: AttentionView, encoder: Shares, residual: float
) -> tuple[Shares, Shares]:
    """Compute T ← r T and S ← r S + (1 − r) Ā R; a fully masked row keeps its shares."""
    weights = view.weights.mean(axis=0, dtype=np.float64)
    sums = weights.sum(axis=-1, keepdims=True)
    weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    kept = np.where(sums > 0, residual, 1.0)
    return (
        Shares(kept * own.values, own.reached),
        Shares(
            kept * other.values + (1 - kept) * (weights @ encoder.values),
            other.reached | (view.allowed @ encoder.reached),
        ),
    )
