"""Sources of one attention score: a sum over the parts that wrote its query and its key.

    s = q · k · scale = Σ_i Σ_j (R W_Q x_i) · (R W_K y_j) · scale

The parts x_i at the query's position and y_j at the key's are the embedding, the position, each earlier head, each
earlier feed-forward layer and biases (QK attribution: Kamath et al. 2025, "Tracing Attention Computation Through
Feature Interactions", there with features in place of parts). The sum is exact: the norms divide by the σ of this run,
and rotary positions rotate every part by the same angle. It does not show why a part wrote what it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer.attention import MultiHeadAttention
from transformer.attention_maps.attention_arithmetic import added_to_scores, score_rule
from transformer.layers.residual_stream import Part, array, stream_parts
from transformer.runs.traces import Trace


@dataclass(frozen=True, eq=False)
class ScoreSources:
    """Contributions of pairs of parts to a score.

    With a second key, all numbers are differences: this key minus that one.

    Attributes:
        values: What each pair contributes, [query part, key part], in units of the score.
        added: What the model adds to its products (relative positions); 0 if nothing.
        score: The model's own score, before the ``cap`` if it has one.
    """

    query_parts: tuple[Part, ...]
    key_parts: tuple[Part, ...]
    values: np.ndarray
    added: float
    score: float
    cap: float | None

    @property
    def total(self) -> float:
        """Sum of all contributions."""
        return float(self.values.sum()) + self.added

    @property
    def deviation(self) -> float:
        """|sum − score|, due to rounding only."""
        return abs(self.total - self.score)

    def strongest(self, most: int) -> tuple[tuple[Part, Part, float], ...]:
        """Return the pairs (query part, key part, contribution) that change the score most, up or down."""
        order = np.argsort(-np.abs(self.values), axis=None, kind="stable")[:most]
        places = zip(*np.unravel_index(order, self.values.shape), strict=True)
        return tuple((self.query_parts[i], self.key_parts[j], float(self.values[i, j])) for i, j in places)

    def table(self, most: int) -> tuple[tuple[Part | None, ...], tuple[Part | None, ...], np.ndarray]:
        """Return a table of the ``most`` largest parts of each side, by Σ |values|.

        The parts are in the order of the forward pass; all others are summed in a last row and column, whose part is
        ``None``. The total stays the same.
        """
        rows, columns = (_largest(np.abs(self.values).sum(axis=axis), most) for axis in (1, 0))
        values = _keep_and_sum_rest(_keep_and_sum_rest(self.values, rows).T, columns).T
        return _kept_parts(self.query_parts, rows), _kept_parts(self.key_parts, columns), values


def score_sources(
    trace: Trace, stack: str, layer: int, kind: str, *, head: int, query: int, key: int, against: int | None = None
) -> ScoreSources:
    """Split the score of (``query``, ``key``) in one head.

    A softmax ignores what all keys of a query have in common. So the difference from another key shows why a head
    attends to one key and not to the other.

    Args:
        trace: The recorded pass.
        stack: "encoder" or "decoder".
        layer: Index of the layer.
        kind: "self" or "cross".
        head: Index of the head.
        query: Index of the query token.
        key: Index of the key token.
        against: Index of another key, whose score for the same query is subtracted.

    Raises:
        ValueError: If the head or a token does not exist.
    """
    view = trace.attention(stack, layer, kind)
    sizes = (("head", head, view.n_heads), ("query token", query, len(view.query)), ("key token", key, len(view.key)))
    for name, index, size in (*sizes, ("key token", against or 0, len(view.key))):
        if not 0 <= index < size:
            raise ValueError(f"{view.name}: there is no {name} {index}; choose 0 to {size - 1}")
    rule = score_rule(trace.checkpoint, stack, layer, kind)
    bias = added_to_scores(trace, rule)
    reader = (layer, f"{kind}_attention")
    queries = _project_parts(trace, view.name, "query", stream_parts(trace, stack, query, reader=reader), head, query)
    keys: dict[Part, np.ndarray] = {}
    score = added = 0.0
    for place, sign in ((key, 1.0), (against, -1.0)):
        if place is None:
            continue
        of_encoder = kind == "cross"  # keys come from the output of the encoder
        parts = (
            stream_parts(trace, "encoder", place) if of_encoder else stream_parts(trace, stack, place, reader=reader)
        )
        for part, vector in _project_parts(trace, view.name, "key", parts, head, place).items():
            keys[part] = keys.get(part, 0.0) + sign * vector
        q, k = (trace.values(f"{view.name}.{side}")[head, at] for side, at in (("query", query), ("key", place)))
        score += sign * float(q.astype(np.float64) @ k) * rule.scale
        added += 0.0 if bias is None else sign * float(bias[head, query, place])
    values = np.stack(list(queries.values())) @ np.stack(list(keys.values())).T * rule.scale
    return ScoreSources(tuple(queries), tuple(keys), values, added, score + added, rule.cap)


def _project_parts(
    trace: Trace, name: str, side: str, parts: dict[Part, np.ndarray], head: int, row: int
) -> dict[Part, np.ndarray]:
    """Project each part through W_Q or W_K of one head, its norm and its rotation: {part: [channel]}.

    The bias is a part as well.
    """
    module: MultiHeadAttention = trace.checkpoint.model.get_submodule(name)
    projection = getattr(module, f"{side}_projection")
    if side == "key":  # several heads may share one head of keys
        head = head * getattr(module, "n_key_heads", module.n_heads) // module.n_heads
    own = slice(head * module.d_head, (head + 1) * module.d_head)
    names, vectors = list(parts), np.stack(list(parts.values())) @ array(projection.weight[own]).T
    if projection.bias is not None:
        names.append(Part(f"{side}_bias", int(name.split(".")[2])))
        vectors = np.concatenate((vectors, array(projection.bias[own])[None]))
    if (norm := getattr(module, f"{side}_norm", None)) is not None:
        mean_square = float(trace.values(f"{name}.{side}_norm.mean_square")[head, row])
        vectors = vectors * array(norm.weight) / np.sqrt(mean_square + norm.epsilon)
    if module.rotary is not None:
        length = trace.values(f"{name}.key").shape[1]
        # Its frequencies depend on the text's length.
        whole = (length,) if trace.checkpoint.config.switch_lengths else ()
        with torch.inference_mode():
            turned = module.rotary(torch.from_numpy(vectors)[:, None, None], row, *whole)  # [part, 1, 1, channel]
        vectors = turned[:, 0, 0].numpy(force=True)
    return dict(zip(names, vectors, strict=True))


def _largest(sizes: np.ndarray, most: int) -> list[int]:
    return sorted(np.argsort(-sizes, kind="stable")[:most].tolist())


def _keep_and_sum_rest(values: np.ndarray, kept: Sequence[int]) -> np.ndarray:
    """Return the rows ``kept``, followed by the sum of all others if there are any."""
    if len(kept) == len(values):
        return values
    others = np.delete(values, kept, axis=0).sum(axis=0, keepdims=True)
    return np.concatenate((values[kept], others))


def _kept_parts(parts: Sequence[Part], kept: Sequence[int]) -> tuple[Part | None, ...]:
    return (*(parts[place] for place in kept), *((None,) if len(kept) < len(parts) else ()))
