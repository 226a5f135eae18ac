"""Positional heads: the largest weight falls on one fixed offset, on a window of three, or on the token itself.

Voita et al. 2019, "Analyzing Multi-Head Self-Attention" (§5.1): "at least 90 % of the time its maximum attention weight
is assigned to a specific relative position". They found −1 and +1; here every offset up to ``MAX_OFFSET`` is tried.

    score(d) = share of the rows i, among those that may look at i + d, in which argmax_j α_ij = i + d

A special token is no neighbour: where it stands at i + d, the row does not count, as at the edge of the text. In short
sentences those are a tenth of all rows, so that counting them would fail every head that leaves special tokens alone.
The score of a head is that of its best offset among those that at least half of all rows have: in short sentences a
head that rests on the first token would look like one with a large offset. A window counts the rows whose argmax is
one of three neighbouring offsets, all of which the row has, with a fourth key to choose ("the last three tokens").
Chance: 1, or 3, over the number of keys that the row may look at.
"""

import numpy as np

from transformer.heads.tally import Measure, Tallies, Tally, keys_allowed, special_tokens, word_rows
from transformer.runs.attention_view import AttentionView

LEAST_ON_OFFSET = 0.9  # Voita et al. 2019, §5.1
LEAST_WINDOW_LIFT = 1.5  # times chance: three of four keys are hit often whatever a head does
MAX_OFFSET = 8  # tokens to either side
WINDOW = 3
OFFSETS = tuple(range(-MAX_OFFSET, MAX_OFFSET + 1))


def positional_tallies(view: AttentionView) -> dict[str, Tally]:
    """Self-attention of one sentence: "offset" and "profile" by offset, "window" by its first offset. The profile is
    the mean weight at a distance, Σ_i α_{i,i+d} over the rows that have it (Vig & Belinkov 2019, §4.4, by distance)."""
    n_queries, n_keys = view.allowed.shape
    queries, offsets = np.arange(n_queries), np.array(OFFSETS)
    keys = queries[None, :] + offsets[:, None]  # [offset, query]
    inside = (keys >= 0) & (keys < n_keys)
    keys = np.where(inside, keys, 0)
    has = inside & view.allowed[queries, keys] & word_rows(view) & ~special_tokens(view.key)[keys]
    best = view.weights.argmax(axis=-1)  # [head, query]
    hit = (best[:, None, :] == keys[None]) & has
    evenly = 1 / keys_allowed(view)
    offset = Tally(hit.sum(axis=-1).astype(float), (has * evenly).sum(axis=-1), has.sum(axis=-1))
    weights = np.where(has, view.weights[:, queries, keys], 0.0).sum(axis=-1)
    triples = range(len(OFFSETS) - WINDOW + 1)
    choice = keys_allowed(view) > WINDOW
    has_all = np.stack([has[d : d + WINDOW].all(axis=0) & choice for d in triples])  # [window, query]
    hits = np.stack([hit[:, d : d + WINDOW].any(axis=1) for d in triples], axis=1) & has_all
    window = Tally(hits.sum(axis=-1).astype(float), (has_all * evenly).sum(axis=-1) * WINDOW, has_all.sum(axis=-1))
    return {"offset": offset, "profile": Tally(weights, offset.chance, offset.rows), "window": window}


def positional_measures(tallies: Tallies, head: int) -> tuple[dict[str, Measure], dict[str, int]]:
    """("offset", "same", "window" of one head, and the offset at which "offset" and "window" are largest).

    "same" is offset 0, which is no relative position to look at but the token itself.
    """
    itself = OFFSETS.index(0)
    offset, window = tallies["offset"], tallies["window"]
    common = offset.rows >= 0.5 * offset.rows.max()
    measures, where = {}, {}
    if offset.rows[itself]:
        measures["same"] = offset.measure(head, LEAST_ON_OFFSET, place=itself)
    common[itself] = False
    if (place := _best(offset, head, common)) is not None:
        measures["offset"], where["offset"] = offset.measure(head, LEAST_ON_OFFSET, place=place), OFFSETS[place]
    common = window.rows >= max(1, 0.5 * window.rows.max())
    if (place := _best(window, head, common)) is not None:
        least = max(LEAST_ON_OFFSET, LEAST_WINDOW_LIFT * float(window.chances[place]))
        measures["window"], where["window"] = window.measure(head, least, place=place), OFFSETS[place]
    return measures, where


def profile(tallies: Tallies, head: int) -> dict[int, float]:
    """Offset → mean weight, for the offsets that any row has."""
    shares, rows = tallies["profile"].shares[head], tallies["profile"].rows
    return {offset: float(share) for offset, share, count in zip(OFFSETS, shares, rows, strict=True) if count}


def _best(tally: Tally, head: int, common: np.ndarray) -> int | None:
    places = np.flatnonzero(common & (tally.rows > 0))
    return int(places[np.argmax(tally.shares[head, places])]) if len(places) else None
