"""What a head does in one sentence: where it looks, how sharply, and which of a few known jobs that is.

The jobs are those that were found in trained models: neighbours, the token itself, special tokens and punctuation
(Clark et al. 2019, "What Does BERT Look At?", §3), positional heads (Voita et al. 2019, §5.1), heads that look at
repeated or first tokens, entropy and distance (Vig & Belinkov 2019). A role describes the head in this sentence only,
and does not say whether the model needs the head.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence

# In the order in which equal scores are decided: a first token that is special is called a sink.
PLACES = ("previous", "next", "same", "sink", "punctuation", "repeated", "first", "diagonal")
ROLES = (*PLACES, "monotone", "broad", "none")
SHAPES = ("monotone", "broad", "entropy", "distance", "confidence", "sinks")  # measures of the whole map
LEAST_SHARE = 0.5  # at least half of the attention goes there …
LEAST_LIFT = 1.5  # … and half as much again as attention spread evenly would send there
LEAST_MONOTONE = 0.7
LEAST_BROAD = 0.85
LEAST_ROWS = 3  # fewer rows that have a choice tell nothing


@dataclass(frozen=True)
class HeadRole:
    """The role of one head in one sentence. ``scores``: all measures by name, NaN where one is not defined.

    ``score`` is the one of the role itself (NaN for "none"). Shares lie in 0…1; "broad" is the entropy as a share of
    the largest possible, 0…1; "monotone" lies in −1…1; "entropy" is in bits; "distance" in tokens; "confidence" and
    "sinks" are shares.
    """

    stack: str
    kind: str
    layer: int
    head: int
    role: str
    scores: Mapping[str, float]

    @property
    def score(self) -> float:
        return self.scores.get(self.role, float("nan"))


def head_roles(view: AttentionView) -> tuple[HeadRole, ...]:
    """The role of every head of one layer, see ``place_shares`` and ``choose_role``."""
    shares, chances = place_shares(view)
    others = _shape_scores(view)
    roles = []
    for head in range(view.n_heads):
        scores = {name: float(values[head]) for name, values in {**shares, **others}.items()}
        role = choose_role(scores, chances)
        roles.append(HeadRole(view.stack, view.kind, view.layer, head, role, scores))
    return tuple(roles)


def choose_role(scores: Mapping[str, float], chances: Mapping[str, float]) -> str:
    """The place that gets the largest share, if it gets enough; else "broad", else "monotone", else "none".

    Enough is at least ``LEAST_SHARE``, and ``LEAST_LIFT`` times what attention spread evenly would send there: in a
    sentence of three tokens a third of everything goes to any place.
    """
    clear = [
        place
        for place in PLACES
        if scores.get(place, np.nan) >= max(LEAST_SHARE, LEAST_LIFT * chances.get(place, np.nan))
    ]
    if clear:
        return max(clear, key=lambda place: scores[place])  # the first of equals
    if scores.get("broad", np.nan) >= LEAST_BROAD:
        return "broad"
    return "monotone" if scores.get("monotone", np.nan) >= LEAST_MONOTONE else "none"


def place_shares(view: AttentionView) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """For each place: the mean share of a row that goes there, [head], and what evenly spread attention would give.

    share = mean over rows i of Σ_{j in place(i)} α_ij. Rows of padding, and rows with at most one key to look at, do
    not count. Neighbours, the token itself and repeated tokens are averaged over the rows that have such a key.
    With fewer than three rows a share is NaN.
    """
    counted = counted_rows(view)
    allowed = view.allowed
    evenly = allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
    shares, chances = {}, {}
    for name, (place, only_where_possible) in _places(view).items():
        possible = (place & allowed).any(axis=1)
        rows = counted & possible if only_where_possible else counted
        if rows.sum() < LEAST_ROWS or not (possible & rows).any():
            shares[name], chances[name] = np.full(view.n_heads, np.nan), float("nan")
            continue
        shares[name] = (view.weights * place).sum(axis=-1)[:, rows].mean(axis=1)
        chances[name] = float((evenly * place).sum(axis=-1)[rows].mean())
    return shares, chances


def counted_rows(view: AttentionView) -> np.ndarray:
    """[query], ``True`` for rows that have a choice: at least two keys allowed, and the query is not padding."""
    return ~_padding(view.query) & (view.allowed.sum(axis=1) >= 2)


def diagonal_band(n_queries: int, n_keys: int) -> np.ndarray:
    """[query, key], ``True`` within one token of the straight line from the first pair to the last."""
    line = np.linspace(0, n_keys - 1, n_queries) if n_queries > 1 else np.zeros(n_queries)
    return np.abs(np.arange(n_keys)[None, :] - line[:, None]) <= 1.0


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


def _places(view: AttentionView) -> dict[str, tuple[np.ndarray, bool]]:
    """For each place where it is, [query, key], and whether rows without such a key are left out of the mean."""
    n_queries, n_keys = view.allowed.shape
    special = np.array([token.special for token in view.key], dtype=bool)
    everywhere = np.ones((n_queries, 1), dtype=bool)
    first = np.zeros((n_queries, n_keys), dtype=bool)
    first[:, 0] = True
    places = {
        "sink": (everywhere & special, False),
        "punctuation": (everywhere & view.sinks & ~special, False),
        "first": (first, False),
    }
    if view.kind == "cross":
        real_queries, real_keys = int((~_padding(view.query)).sum()), int((~_padding(view.key)).sum())
        band = np.zeros((n_queries, n_keys), dtype=bool)
        band[:real_queries, :real_keys] = diagonal_band(real_queries, real_keys)
        return {**places, "diagonal": (band, False)}
    distance = np.arange(n_keys)[None, :] - np.arange(n_queries)[:, None]
    ids = np.array(view.key.ids)
    first[0, 0] = False  # the first token that looks at itself looks at "the same token"
    return {
        "previous": (distance == -1, True),
        "next": (distance == 1, True),
        "same": (distance == 0, True),
        "repeated": ((ids[:, None] == ids[None, :]) & (distance != 0) & ~special, True),
        **places,
    }


def _shape_scores(view: AttentionView) -> dict[str, np.ndarray]:
    """Measures of the whole map, [head] each: monotone (cross only), broad, entropy in bits, distance in tokens,
    confidence and the share of sinks.

    confidence = mean over rows of max_j α_ij over the tokens j that are not special (Voita et al. 2019, §4, who leave
    out ``</s>``): a head that rests on ``</s>`` is not sure of anything.
    """
    rows = counted_rows(view)
    nothing = np.full(view.n_heads, np.nan)
    if rows.sum() < LEAST_ROWS:
        return dict.fromkeys(SHAPES, nothing)
    entropy = view.entropy[:, rows]
    distance = np.abs(np.arange(len(view.key))[None, :] - np.arange(len(view.query))[:, None])
    cross = view.kind == "cross"
    real = ~np.array([token.special for token in view.key], dtype=bool)
    return {
        "monotone": monotonicity(view.weights[:, rows]) if cross else nothing,
        "broad": (entropy / np.log2(view.allowed.sum(axis=1)[rows])).mean(axis=1),
        "entropy": entropy.mean(axis=1),
        "distance": nothing if cross else (view.weights * distance).sum(axis=-1)[:, rows].mean(axis=1),
        "confidence": (view.weights * real).max(axis=-1)[:, rows].mean(axis=1),
        "sinks": view.sink_share[:, rows].mean(axis=1),
    }


def _padding(tokens: TokenSequence) -> np.ndarray:
    return np.array([token.is_padding for token in tokens], dtype=bool)
