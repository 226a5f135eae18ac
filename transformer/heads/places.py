"""Heads that look at a kind of place: neighbours, the token itself, special tokens and punctuation, the same token
elsewhere, the first token, the rarest one; in cross-attention the diagonal.

Clark et al. 2019, "What Does BERT Look At?" (§3): neighbours, the token itself, special tokens and punctuation (in
BERT's layers 6 to 10 more than half of the attention goes to ``[SEP]``). Xiao et al. 2023, "Efficient Streaming
Language Models with Attention Sinks": the first position. Wang et al. 2022, "Interpretability in the Wild" (§3):
duplicate-token heads. Each place is measured by the share of the attention that goes there, against what attention
spread evenly would send there; a head looks there from half of its attention on, if that is half as much again as
chance.

"rare" is the share of rows whose largest weight falls on the rarest token of the sentence (Voita et al. 2019, §5.3:
66 % of the rows of the head that they found; here half). Rare is what stands last in the vocabulary: its order is that
of frequency in word-piece and unigram vocabularies, and nearly so in the merges of byte pairs.
"""

import numpy as np

from transformer.heads.tally import (
    Tally,
    counted_rows,
    evenly,
    is_causal,
    keys_allowed,
    padding_tokens,
    special_tokens,
    word_rows,
)
from transformer.runs.attention_view import AttentionView, stands_alone
from transformer.text.tokens import TokenSequence

LEAST_SHARE = 0.5  # at least half of the attention goes there …
LEAST_LIFT = 1.5  # … and half as much again as attention spread evenly would send there
LEAST_ROWS = 3  # in one sentence fewer rows that have a choice tell nothing
_NEEDED = ("previous", "next", "same", "repeated")  # rows without such a key are left out of the mean


def places_in(query: TokenSequence, key: TokenSequence, *, cross: bool) -> dict[str, np.ndarray]:
    """Where each place is that gives a role its name, [query, key]. "diagonal" is one of cross-attention, which has no
    neighbours; nor does the task before a sentence, which the answer does not say again, lie on it."""
    n_queries, n_keys = len(query), len(key)
    everywhere = np.ones((n_queries, 1), dtype=bool)
    first = np.zeros((n_queries, n_keys), dtype=bool)
    first[:, 0] = True
    marks = np.array([not token.special and stands_alone(key, token.index) for token in key], dtype=bool)
    places = {"sink": everywhere & special_tokens(key), "punctuation": everywhere & marks, "first": first}
    if cross:
        real_queries, real_keys = int((~padding_tokens(query)).sum()), int((~padding_tokens(key)).sum())
        begins = sum(token.role == "task" for token in key)
        band = np.zeros((n_queries, n_keys), dtype=bool)
        band[:real_queries, begins:real_keys] = diagonal_band(real_queries, real_keys - begins)
        return {**places, "diagonal": band}
    distance = np.arange(n_keys)[None, :] - np.arange(n_queries)[:, None]
    ids = np.array(key.ids)
    first[0, 0] = False  # the first token that looks at itself looks at "the same token"
    return {
        "previous": distance == -1,
        "next": distance == 1,
        "same": distance == 0,
        "repeated": (ids[:, None] == ids[None, :]) & (distance != 0) & ~special_tokens(key),
        **places,
    }


def place_shares(view: AttentionView) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """For each place in one sentence: the mean share of a row that goes there, [head], and what evenly spread attention
    would give.

    share = mean over rows i of Σ_{j in place(i)} α_ij. Rows of padding, and rows with at most one key to look at, do
    not count. Neighbours, the token itself and repeated tokens are averaged over the rows that have such a key.
    With fewer than three rows a share is NaN.
    """
    counted = counted_rows(view)
    shares, chances = {}, {}
    for name, place in _places_in(view).items():
        possible = (place & view.allowed).any(axis=1)
        rows = counted & possible if name in _NEEDED else counted
        if rows.sum() < LEAST_ROWS or not (possible & rows).any():
            shares[name], chances[name] = np.full(view.n_heads, np.nan), float("nan")
            continue
        shares[name] = (view.weights * place).sum(axis=-1)[:, rows].mean(axis=1)
        chances[name] = float((evenly(view) * place).sum(axis=-1)[rows].mean())
    return shares, chances


def place_tallies(view: AttentionView) -> dict[str, Tally]:
    """The same over the tokens of the text alone, to be added up over sentences: "sink" (in causal attention the first
    position, too), "delimiter" (punctuation), "repeated" or "diagonal", and "rare"."""
    rows, places = word_rows(view), _places_in(view)
    sink = places["sink"] | places["first"] if is_causal(view) else places["sink"]
    found = {"sink": _share_of(view, sink, rows), "delimiter": _share_of(view, places["punctuation"], rows)}
    if view.kind == "cross":
        return {**found, "diagonal": _share_of(view, places["diagonal"], rows)}
    again = places["repeated"]
    found["repeated"] = _share_of(view, again, rows & (again & view.allowed).any(axis=1))
    if not special_tokens(view.key).all():
        rarest = int(np.where(special_tokens(view.key), -1, np.array(view.key.ids)).argmax())
        seen = rows & view.allowed[:, rarest]
        hit = (view.weights.argmax(axis=-1) == rarest) & seen
        found["rare"] = Tally.of(hit.sum(axis=-1), (seen / keys_allowed(view)).sum(), seen.sum())
    return found


def least_share(chance: float) -> float:
    """How much must go to a place that gets ``chance`` of attention without a preference. In a sentence of three tokens
    a third of everything goes to any place."""
    return max(LEAST_SHARE, LEAST_LIFT * chance)


def diagonal_band(n_queries: int, n_keys: int) -> np.ndarray:
    """[query, key], ``True`` within one token of the straight line from the first pair to the last."""
    line = np.linspace(0, n_keys - 1, n_queries) if n_queries > 1 else np.zeros(n_queries)
    return np.abs(np.arange(n_keys)[None, :] - line[:, None]) <= 1.0


def _places_in(view: AttentionView) -> dict[str, np.ndarray]:
    return places_in(view.query, view.key, cross=view.kind == "cross")


def _share_of(view: AttentionView, place: np.ndarray, rows: np.ndarray) -> Tally:
    chance = (place & view.allowed).sum(axis=1) / keys_allowed(view)
    total = np.where(place, view.weights, 0.0).sum(axis=-1)[:, rows].sum(axis=1)
    return Tally.of(total, chance[rows].sum(), rows.sum())
