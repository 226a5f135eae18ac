"""Tests of the literature on attention weights alone: kinds of position, offsets, shape of the map.

A ``Count`` selects rows of attention and sums over them; the resulting ``Measure`` is a score with its chance level. A
threshold is a published one, or the chance level plus a fixed distance.

**Kinds of position**: neighbours, the token itself, special tokens and punctuation, the same token elsewhere, the first
token, the rarest one; in cross-attention the diagonal. Clark et al. 2019, "What Does BERT Look At?" (§3): neighbours,
the token itself, special tokens and punctuation (in BERT's layers 6 to 10 more than half of the attention goes to
``[SEP]``). Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks": the first position. Wang et
al. 2022, "Interpretability in the Wild" (§3): duplicate-token heads. Each kind is measured by its share of the
attention, compared with evenly spread attention; a head attends there if its share is at least half, and at least 1.5
times chance.

"rare" is the share of rows whose largest weight is on the rarest token of the sentence (Voita et al. 2019, §5.3: 66 %
of the rows of the head that they found; here half). The rarest token is the one last in the vocabulary: its order is
that of frequency in word-piece and unigram vocabularies, and nearly so in the merges of byte pairs.

**Offsets** (positional heads): the largest weight is at one fixed offset, in a window of three, or on the token itself.
Voita et al. 2019, "Analyzing Multi-Head Self-Attention" (§5.1): "at least 90 % of the time its maximum attention weight
is assigned to a specific relative position". They found −1 and +1; here every offset up to ``MAX_OFFSET`` is tried.

    score(d) = share of the rows i, among those that may attend to i + d, in which argmax_j α_ij = i + d

A special token does not count as a neighbour: if it is at i + d, row i is skipped, as at the edge of the text. In short
sentences such rows are a tenth of all, so that if they counted, every head that ignores special tokens would fail. The
score of a head is that of its best offset among those that at least half of all rows have: in short sentences, a head
with its weight on the first token would otherwise look like one with a large offset. A window counts the rows whose
argmax is at one of three neighbouring offsets, all of which the row has, with a fourth key to choose ("the last three
tokens"). Chance level: 1, or 3, over the number of allowed keys.

**Shape of a map**: how spread out and how far a head attends, and whether cross-attention moves forward.

- "broad": entropy of a row over the largest possible, H(α_i) / log₂(number of keys allowed), averaged over the rows
  (Clark et al. 2019, §3.3: "broad" heads). A broad head has no role, so its chance level is 0 and it is named only if
  nothing else fits.
- "monotone": Kendall's τ_b between the row and its strongest key; cross-attention only. Chance level: 0.
- "entropy" in bits and "distance" in tokens (Vig & Belinkov 2019), "confidence", and "sinks", the share of special
  tokens and punctuation.

confidence = mean over rows of max_j α_ij over the tokens j that are not special (Voita et al. 2019, §4, who leave out
``</s>``): weight on ``</s>`` does not show confidence.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from transformer.runs.attention_view import AttentionView, stands_alone
from transformer.text.tokens import TokenSequence

LEAST_ROWS_IN_ALL = 20  # over all sentences; fewer rows are not enough for a test


@dataclass(frozen=True)
class Measure:
    """How well one head fits one role.

    Attributes:
        score: Score over ``rows`` rows (or arcs, or words).
        chance: Score of attention without a preference.
        least: Least score at which the head has the role.
        offset: The offset of "offset", and the first one of "window".
    """

    score: float
    chance: float
    least: float
    rows: int
    offset: int | None = None

    @property
    def strength(self) -> float:
        """(score − chance) / (least − chance): 0 at chance; the head has the role from 1 on."""
        way = self.least - self.chance
        return (self.score - self.chance) / way if way > 0 else 0.0

    @property
    def reached(self) -> bool:
        """Whether the score is at least ``least``, with enough rows."""
        return self.rows >= LEAST_ROWS_IN_ALL and self.score >= self.least


@dataclass(frozen=True)
class Count:
    """Counts over some rows; the counts of several sentences are added.

    Attributes:
        total: [head, place].
        chance: What the same rows would give to attention without a preference, [place].
        rows: Number of rows counted, [place].
    """

    total: np.ndarray
    chance: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, total: np.ndarray, chance: float, rows: int) -> "Count":
        """Return the count of one kind of position; ``total`` is [head]."""
        return cls(total[:, None], np.array([chance]), np.array([rows]))

    def __add__(self, other: "Count") -> "Count":
        return Count(self.total + other.total, self.chance + other.chance, self.rows + other.rows)

    @property
    def shares(self) -> np.ndarray:
        """Return the mean over the rows, [head, kind]; NaN if there were none."""
        return self.total / np.where(self.rows > 0, self.rows, np.nan)

    @property
    def chances(self) -> np.ndarray:
        """Return the chance level, [kind]."""
        return self.chance / np.where(self.rows > 0, self.rows, np.nan)

    def measure(self, head: int, least: float, *, place: int = 0, offset: int | None = None) -> Measure:
        """Return the measure of one head, with the threshold ``least``."""
        share, chance = float(self.shares[head, place]), float(self.chances[place])
        return Measure(share, chance, least, int(self.rows[place]), offset)


Counts = Mapping[str, Count]


def add_counts(total: dict[str, Count], found: Counts) -> None:
    """Add the counts that were ``found`` in one more sentence to ``total``, by name."""
    for name, count in found.items():
        total[name] = total[name] + count if name in total else count


def counted_rows(view: AttentionView) -> np.ndarray:
    """Return a mask of the rows with at least two allowed keys whose query is not padding: [query]."""
    return ~padding_tokens(view.query) & (view.allowed.sum(axis=1) >= 2)


def word_rows(view: AttentionView) -> np.ndarray:
    """Return a mask of the ``counted_rows`` whose query is a token of the text: [query]."""
    return counted_rows(view) & ~special_tokens(view.query)


def keys_allowed(view: AttentionView) -> np.ndarray:
    """Return the number of allowed keys per row, at least 1, for use as a divisor: [query]."""
    return np.maximum(view.allowed.sum(axis=1), 1)


def even_attention(view: AttentionView) -> np.ndarray:
    """Return attention without a preference, spread evenly over the allowed keys: [query, key]."""
    return view.allowed / keys_allowed(view)[:, None]


def special_tokens(tokens: TokenSequence) -> np.ndarray:
    """Return a mask of the special tokens, [position]."""
    return np.array([token.special for token in tokens], dtype=bool)


def sink_tokens(tokens: TokenSequence) -> np.ndarray:
    """Return a mask of the special tokens that are sinks, i.e. all but blanks: [position]."""
    return np.array([token.is_sink for token in tokens], dtype=bool)


def padding_tokens(tokens: TokenSequence) -> np.ndarray:
    """Return a mask of the padding tokens, [position]."""
    return np.array([token.is_padding for token in tokens], dtype=bool)


LEAST_SHARE = 0.5  # at least half of the attention goes there …
LEAST_LIFT = 1.5  # … and at least 1.5 times as much as with evenly spread attention
LEAST_ROWS = 3  # fewer rows with a choice in one sentence are not enough for a role
NEEDED = ("previous", "next", "same", "repeated")  # rows of one sentence without such a key do not count


def patterns(query: TokenSequence, key: TokenSequence, *, cross: bool) -> dict[str, np.ndarray]:
    """Return a mask of each kind of position that has a name, [query, key].

    "after_repeated" are the tokens after another occurrence of the query. "diagonal" is only for cross-attention, which
    has no neighbours. The task before a sentence is not on the diagonal, because the output does not repeat it.
    """
    n_queries, n_keys = len(query), len(key)
    everywhere = np.ones((n_queries, 1), dtype=bool)
    first = np.zeros((n_queries, n_keys), dtype=bool)
    first[:, 0] = True
    marks = np.array([not token.special and stands_alone(key, token.index) for token in key], dtype=bool)
    found = {"sink": everywhere & sink_tokens(key), "punctuation": everywhere & marks, "first": first}
    if cross:
        real_queries, real_keys = int((~padding_tokens(query)).sum()), int((~padding_tokens(key)).sum())
        begins = sum(token.role == "task" for token in key)
        band = np.zeros((n_queries, n_keys), dtype=bool)
        band[:real_queries, begins:real_keys] = diagonal_band(real_queries, real_keys - begins)
        return {**found, "diagonal": band}
    distance = np.arange(n_keys)[None, :] - np.arange(n_queries)[:, None]
    ids = np.array(key.ids)
    first[0, 0] = False  # the first token that attends to itself attends to "the same token"
    repeated = (ids[:, None] == ids[None, :]) & (distance != 0) & ~special_tokens(key)
    after_repeated = np.zeros_like(repeated)
    after_repeated[:, 1:] = repeated[:, :-1]
    return {
        "previous": distance == -1,
        "next": distance == 1,
        "same": distance == 0,
        "repeated": repeated,
        **found,
        "after_repeated": after_repeated,
    }


def count(view: AttentionView, cells: np.ndarray, rows: np.ndarray, *, needed: bool = False) -> Count:
    """Count the weight that ``rows``, [query], give to the cells of a mask, [query, key].

    ``needed`` leaves out the rows that may attend to no such cell.
    """
    allowed = (cells & view.allowed).sum(axis=1)
    rows = rows & (allowed > 0) if needed else rows
    chance = allowed / keys_allowed(view)
    total = np.where(cells, view.weights, 0.0).sum(axis=-1)[:, rows].sum(axis=1)
    return Count.of(total, chance[rows].sum(), rows.sum())


def patterns_of(view: AttentionView) -> dict[str, np.ndarray]:
    """Return the ``patterns`` of the tokens of a view."""
    return patterns(view.query, view.key, cross=view.kind == "cross")


def place_counts(view: AttentionView) -> dict[str, Count]:
    """Count kinds of position over the tokens of the text alone, to be added over sentences.

    The kinds are "sink" (which in causal attention includes the first position), "delimiter" (punctuation), "repeated"
    or "diagonal", and "rare".
    """
    rows, special, places = word_rows(view), special_tokens(view.key), patterns_of(view)
    sink = places["sink"] | places["first"] if view.is_causal else places["sink"]
    found = {"sink": count(view, sink, rows), "delimiter": count(view, places["punctuation"], rows)}
    if view.kind == "cross":
        return {**found, "diagonal": count(view, places["diagonal"], rows)}
    found["repeated"] = count(view, places["repeated"], rows, needed=True)
    if not special.all():
        rarest = int(np.where(special, -1, np.array(view.key.ids)).argmax())
        seen = rows & view.allowed[:, rarest]
        hit = (view.weights.argmax(axis=-1) == rarest) & seen
        found["rare"] = Count.of(hit.sum(axis=-1), (seen / keys_allowed(view)).sum(), seen.sum())
    return found


def least_share(chance: float) -> float:
    """Return the share needed for a kind of position that gets ``chance`` without a preference.

    In a sentence of three tokens, a third of the attention goes to any position.
    """
    return max(LEAST_SHARE, LEAST_LIFT * chance)


def diagonal_band(n_queries: int, n_keys: int) -> np.ndarray:
    """Return a mask within one token of the line from the first pair to the last: [query, key]."""
    line = np.linspace(0, n_keys - 1, n_queries) if n_queries > 1 else np.zeros(n_queries)
    return np.abs(np.arange(n_keys)[None, :] - line[:, None]) <= 1.0


LEAST_ON_OFFSET = 0.9  # Voita et al. 2019, §5.1
LEAST_WINDOW_LIFT = 1.5  # times chance, since three of four keys are often hit whatever a head does
MAX_OFFSET = 8  # tokens to either side
WINDOW = 3
OFFSETS = tuple(range(-MAX_OFFSET, MAX_OFFSET + 1))


def positional_counts(view: AttentionView) -> dict[str, Count]:
    """Count in the self-attention of one sentence "offset" by offset, and "window" by its first offset."""
    n_queries, n_keys = view.allowed.shape
    queries, offsets = np.arange(n_queries), np.array(OFFSETS)
    keys = queries[None, :] + offsets[:, None]  # [offset, query]
    inside = (keys >= 0) & (keys < n_keys)
    keys = np.where(inside, keys, 0)
    has = inside & view.allowed[queries, keys] & word_rows(view) & ~special_tokens(view.key)[keys]
    best = view.weights.argmax(axis=-1)  # [head, query]
    hit = (best[:, None, :] == keys[None]) & has
    evenly = 1 / keys_allowed(view)
    offset = Count(hit.sum(axis=-1).astype(float), (has * evenly).sum(axis=-1), has.sum(axis=-1))
    triples = range(len(OFFSETS) - WINDOW + 1)
    choice = keys_allowed(view) > WINDOW
    has_all = np.stack([has[d : d + WINDOW].all(axis=0) & choice for d in triples])  # [window, query]
    hits = np.stack([hit[:, d : d + WINDOW].any(axis=1) for d in triples], axis=1) & has_all
    window = Count(hits.sum(axis=-1).astype(float), (has_all * evenly).sum(axis=-1) * WINDOW, has_all.sum(axis=-1))
    return {"offset": offset, "window": window}


def positional_measures(counts: Counts, head: int) -> dict[str, Measure]:
    """Return "offset" and "window" of one head, at its best offsets, and "same", the token itself."""
    itself = OFFSETS.index(0)
    offset, window = counts["offset"], counts["window"]
    common = offset.rows >= 0.5 * offset.rows.max()
    measures = {}
    if offset.rows[itself]:
        measures["same"] = offset.measure(head, LEAST_ON_OFFSET, place=itself)
    common[itself] = False
    if (place := _best(offset, head, common)) is not None:
        measures["offset"] = offset.measure(head, LEAST_ON_OFFSET, place=place, offset=OFFSETS[place])
    common = window.rows >= max(1, 0.5 * window.rows.max())
    if (place := _best(window, head, common)) is not None:
        least = max(LEAST_ON_OFFSET, LEAST_WINDOW_LIFT * float(window.chances[place]))
        measures["window"] = window.measure(head, least, place=place, offset=OFFSETS[place])
    return measures


def _best(found: Count, head: int, common: np.ndarray) -> int | None:
    places = np.flatnonzero(common & (found.rows > 0))
    return int(places[np.argmax(found.shares[head, places])]) if len(places) else None


SHAPES = ("monotone", "broad", "entropy", "distance", "confidence", "sinks")
LEAST_MONOTONE = 0.7
LEAST_BROAD = 0.85


def shape_scores(view: AttentionView) -> dict[str, np.ndarray]:
    """Return ``SHAPES`` of one sentence, [head] each; NaN if undefined or if fewer than three rows count."""
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
        "confidence": (view.weights * ~sink_tokens(view.key)).max(axis=-1)[:, rows].mean(axis=1),
        "sinks": view.sink_share[:, rows].mean(axis=1),
    }


def shape_counts(view: AttentionView) -> dict[str, Count]:
    """Count "broad" and "monotone" over the tokens of the text alone, to be added over sentences."""
    rows = word_rows(view)
    shares = view.entropy[:, rows] / np.log2(keys_allowed(view)[rows])
    found = {"broad": Count.of(shares.sum(axis=1), 0.0, rows.sum())}
    if view.kind == "cross" and rows.sum() >= LEAST_ROWS:
        order = monotonicity(view.weights[:, rows]) * rows.sum()  # a long sentence is more informative
        found["monotone"] = Count.of(order, 0.0, rows.sum())
    return found


def monotonicity(weights: np.ndarray) -> np.ndarray:
    """Return Kendall's τ_b of each head, [head]: whether its strongest key moves forward with the query.

    τ_b = (forward pairs − backward pairs) / √(pairs · pairs whose strongest keys differ), over all pairs of rows
    (Kendall 1945). 1 = always forward, 0 = no order, −1 = always backwards. A head that never moves gets 0.

    ``weights`` are [head, query, key].
    """
    strongest = weights.argmax(axis=-1)  # [head, query]
    n_rows = strongest.shape[1]
    steps = np.sign(strongest[:, None, :] - strongest[:, :, None])[:, *np.triu_indices(n_rows, 1)]  # later − earlier
    moved = (steps != 0).sum(axis=-1)
    return steps.sum(axis=-1) / np.sqrt(np.maximum(moved, 1) * max(1, steps.shape[-1]))
