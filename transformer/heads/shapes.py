"""The shape of a whole map: how spread out and how far a head looks, and whether cross-attention moves forward.

- "broad": entropy of a row over the largest possible, H(α_i) / log₂(number of keys allowed), mean over the rows (Clark
  et al. 2019, §3.3: "broad" heads). A broad head is no head with a job, so its chance level is 0 and it is named only
  if nothing else fits.
- "monotone": Kendall's τ_b between the row and its strongest key; cross-attention only. Chance: 0.
- "entropy" in bits and "distance" in tokens (Vig & Belinkov 2019), "confidence", and "sinks", the share of special
  tokens and punctuation.

confidence = mean over rows of max_j α_ij over the tokens j that are not special (Voita et al. 2019, §4, who leave out
``</s>``): a head that rests on ``</s>`` is not sure of anything.
"""

import numpy as np

from transformer.heads.places import LEAST_ROWS
from transformer.heads.tally import Tally, counted_rows, keys_allowed, special_tokens, word_rows
from transformer.runs.attention_view import AttentionView

SHAPES = ("monotone", "broad", "entropy", "distance", "confidence", "sinks")
LEAST_MONOTONE = 0.7
LEAST_BROAD = 0.85


def shape_scores(view: AttentionView) -> dict[str, np.ndarray]:
    """``SHAPES`` of one sentence, [head] each; NaN where one is not defined, or where fewer than three rows count."""
    rows = counted_rows(view)
    nothing = np.full(view.n_heads, np.nan)
    if rows.sum() < LEAST_ROWS:
        return dict.fromkeys(SHAPES, nothing)
    entropy = view.entropy[:, rows]
    distance = np.abs(np.arange(len(view.key))[None, :] - np.arange(len(view.query))[:, None])
    cross = view.kind == "cross"
    return {
        "monotone": monotonicity(view.weights[:, rows]) if cross else nothing,
        "broad": (entropy / np.log2(view.allowed.sum(axis=1)[rows])).mean(axis=1),
        "entropy": entropy.mean(axis=1),
        "distance": nothing if cross else (view.weights * distance).sum(axis=-1)[:, rows].mean(axis=1),
        "confidence": (view.weights * ~special_tokens(view.key)).max(axis=-1)[:, rows].mean(axis=1),
        "sinks": view.sink_share[:, rows].mean(axis=1),
    }


def shape_tallies(view: AttentionView) -> dict[str, Tally]:
    """ "broad" and "monotone" over the tokens of the text alone, to be added up over sentences."""
    rows = word_rows(view)
    shares = view.entropy[:, rows] / np.log2(keys_allowed(view)[rows])
    found = {"broad": Tally.of(shares.sum(axis=1), 0.0, rows.sum())}
    if view.kind == "cross" and rows.sum() >= LEAST_ROWS:
        order = monotonicity(view.weights[:, rows]) * rows.sum()  # a long sentence tells more
        found["monotone"] = Tally.of(order, 0.0, rows.sum())
    return found


def monotonicity(weights: np.ndarray) -> np.ndarray:
    """Whether the strongest key moves forward with the query: Kendall's τ_b, [head], from weights [head, query, key].

    τ_b = (forward pairs − backward pairs) / √(pairs · pairs whose strongest keys differ), over all pairs of rows
    (Kendall 1945). 1 = always forward, 0 = no order, −1 = always backwards. A head that never moves gets 0.
    """
    strongest = weights.argmax(axis=-1)  # [head, query]
    n_rows = strongest.shape[1]
    steps = np.sign(strongest[:, None, :] - strongest[:, :, None])[:, *np.triu_indices(n_rows, 1)]  # later − earlier
    moved = (steps != 0).sum(axis=-1)
    return steps.sum(axis=-1) / np.sqrt(np.maximum(moved, 1) * max(1, steps.shape[-1]))
