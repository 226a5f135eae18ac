"""Heads that look for a kind of token, wherever it stands: sinks, delimiters, the same token, the rarest one; and, in
cross-attention, the diagonal.

Mean share of a row that goes there, against what attention spread evenly would send there:

- "sink": special tokens, and in causal attention the first position (Clark et al. 2019, §3.2: in BERT's layers 6 to 10
  more than half of the attention goes to ``[SEP]``; Xiao et al. 2023, "Efficient Streaming Language Models with
  Attention Sinks": the first position)
- "delimiter": tokens of punctuation only (Clark et al. 2019, §3.2)
- "repeated": other places of the same token, in the rows that have one (Wang et al. 2022, "Interpretability in the
  Wild", §3: duplicate-token heads)
- "diagonal": cross-attention within one token of the straight line through both sentences

A head has the job from half of its attention on, if that is half as much again as chance. Share of rows whose largest
weight falls there:

- "rare": the rarest token of the sentence (Voita et al. 2019, §5.3: 66 % of the rows of the head that they found; here
  half). Rare is what stands last in the vocabulary: its order is that of frequency in word-piece and unigram
  vocabularies, and nearly so in the merges of byte pairs.
"""

import numpy as np

from transformer.roles.head_roles import diagonal_band
from transformer.roles.tally import Measure, Tally, is_causal, keys_allowed, word_rows
from transformer.runs.attention_view import AttentionView

LEAST_SHARE = 0.5
LEAST_LIFT = 1.5


def place_tallies(view: AttentionView) -> dict[str, Tally]:
    """Of one sentence, by the names above."""
    rows = word_rows(view)
    special = np.array([token.special for token in view.key], dtype=bool)
    everywhere = np.ones((len(view.query), 1), dtype=bool)
    sink = special.copy()
    sink[0] |= is_causal(view)
    found = {
        "sink": _weight_tally(view, everywhere & sink, rows),
        "delimiter": _weight_tally(view, everywhere & view.sinks & ~special, rows),
    }
    if view.kind == "cross":
        real = [int(sum(not token.is_padding for token in tokens)) for tokens in (view.query, view.key)]
        band = np.zeros(view.allowed.shape, dtype=bool)
        band[: real[0], : real[1]] = diagonal_band(*real)
        return {**found, "diagonal": _weight_tally(view, band, rows)}
    ids = np.array(view.key.ids)
    again = (ids[:, None] == ids[None, :]) & ~np.eye(len(ids), dtype=bool) & ~special
    found["repeated"] = _weight_tally(view, again, rows & (again & view.allowed).any(axis=1))
    if not special.all():
        rarest = int(np.where(special, -1, ids).argmax())
        seen = rows & view.allowed[:, rarest]
        hit = (view.weights.argmax(axis=-1) == rarest) & seen
        found["rare"] = Tally(hit.sum(axis=-1)[:, None], _one((seen / keys_allowed(view)).sum()), _one(seen.sum()))
    return found


def place_measure(tally: Tally, head: int) -> Measure | None:
    """``None`` where no sentence had such a row."""
    if not tally.rows[0]:
        return None
    score, chance = float(tally.shares[head, 0]), float(tally.chances[0])
    return Measure(score, chance, max(LEAST_SHARE, LEAST_LIFT * chance), int(tally.rows[0]))


def _weight_tally(view: AttentionView, place: np.ndarray, rows: np.ndarray) -> Tally:
    evenly = (place & view.allowed).sum(axis=1) / keys_allowed(view)
    total = np.where(place, view.weights, 0.0).sum(axis=-1)[:, rows].sum(axis=1)
    return Tally(total[:, None], _one(evenly[rows].sum()), _one(rows.sum()))


def _one(value: float) -> np.ndarray:
    return np.array([value])
