"""Why does this head look there? One score, split by what wrote its query and what wrote its key.

    s = q · k · scale = Σ_i Σ_j (R W_Q x_i) · (R W_K y_j) · scale

for the parts x_i of what stands at the query's place, and y_j at the key's: embedding, position, each earlier head,
each earlier feed-forward layer, biases (QK attribution: Kamath et al. 2025, "Tracing Attention Computation Through
Feature Interactions", there with features in place of parts). The sum is exact: the norms divide by the σ that they had
in this run, and rotary positions turn every part by the same angle. What it leaves open is why a part wrote what it
wrote.
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
    """``values`` [query part, key part], in units of the score: what each pair brought. ``added``: what the model adds
    to its products besides (relative positions), 0 where it adds nothing. ``score``: what the model itself has, before
    the ``cap`` of a model that bends its scores. With a second key all of them are differences: this key − that one.
    """

    query_parts: tuple[Part, ...]
    key_parts: tuple[Part, ...]
    values: np.ndarray
    added: float
    score: float
    cap: float | None

    @property
    def total(self) -> float:
        return float(self.values.sum()) + self.added

    @property
    def deviation(self) -> float:
        """|sum − score|: rounding, and nothing else."""
        return abs(self.total - self.score)

    def strongest(self, most: int) -> tuple[tuple[Part, Part, float], ...]:
        """The pairs (what wrote the query, what wrote the key) that moved the score most, up or down."""
        order = np.argsort(-np.abs(self.values), axis=None, kind="stable")[:most]
        places = zip(*np.unravel_index(order, self.values.shape), strict=True)
        return tuple((self.query_parts[i], self.key_parts[j], float(self.values[i, j])) for i, j in places)

    def table(self, most: int) -> tuple[tuple[Part | None, ...], tuple[Part | None, ...], np.ndarray]:
        """The ``most`` parts of each side that bring most (Σ |values|), in the order of the forward pass, and all
        others added up in a last row and column, whose part is ``None``. The sum stays the same."""
        rows, columns = (_largest(np.abs(self.values).sum(axis=axis), most) for axis in (1, 0))
        values = _gathered(_gathered(self.values, rows).T, columns).T
        return _named(self.query_parts, rows), _named(self.key_parts, columns), values


def score_sources(
    trace: Trace, stack: str, layer: int, kind: str, *, head: int, query: int, key: int, against: int | None = None
) -> ScoreSources:
    """Of the score of (``query``, ``key``) in one head; ``against``: minus that of the same query and another key.

    Softmax does not see what all keys of a query have in common, so the difference to another key is what makes a head
    look here and not there. Raises ``ValueError`` for a head or a token that does not exist.
    """
    view = trace.attention(stack, layer, kind)
    sizes = (("head", head, view.n_heads), ("query token", query, len(view.query)), ("key token", key, len(view.key)))
    for name, index, size in (*sizes, ("key token", against or 0, len(view.key))):
        if not 0 <= index < size:
            raise ValueError(f"{view.name}: there is no {name} {index}; choose 0 to {size - 1}")
    rule = score_rule(trace.checkpoint, stack, layer, kind)
    bias = added_to_scores(trace, rule)
    reader = (layer, f"{kind}_attention")
    queries = _projected(trace, view.name, "query", stream_parts(trace, stack, query, reader=reader), head, query)
    keys: dict[Part, np.ndarray] = {}
    score = added = 0.0
    for place, sign in ((key, 1.0), (against, -1.0)):
        if place is None:
            continue
        of_encoder = kind == "cross"  # keys are made from what the encoder gives out
        parts = (
            stream_parts(trace, "encoder", place) if of_encoder else stream_parts(trace, stack, place, reader=reader)
        )
        for part, vector in _projected(trace, view.name, "key", parts, head, place).items():
            keys[part] = keys.get(part, 0.0) + sign * vector
        q, k = (trace.values(f"{view.name}.{side}")[head, at] for side, at in (("query", query), ("key", place)))
        score += sign * float(q.astype(np.float64) @ k) * rule.scale
        added += 0.0 if bias is None else sign * float(bias[head, query, place])
    values = np.stack(list(queries.values())) @ np.stack(list(keys.values())).T * rule.scale
    return ScoreSources(tuple(queries), tuple(keys), values, added, score + added, rule.cap)


def _projected(
    trace: Trace, name: str, side: str, parts: dict[Part, np.ndarray], head: int, row: int
) -> dict[Part, np.ndarray]:
    """Each part through W_Q or W_K of one head, its norm and its turn: {part: [channel]}; the bias is a part, too."""
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
        whole = (length,) if trace.checkpoint.config.switch_lengths else ()  # its waves depend on the text's length
        with torch.inference_mode():
            turned = module.rotary(torch.from_numpy(vectors)[:, None, None], row, *whole)  # [part, 1, 1, channel]
        vectors = turned[:, 0, 0].numpy(force=True)
    return dict(zip(names, vectors, strict=True))


def _largest(sizes: np.ndarray, most: int) -> list[int]:
    return sorted(np.argsort(-sizes, kind="stable")[:most].tolist())


def _gathered(values: np.ndarray, kept: Sequence[int]) -> np.ndarray:
    """The rows ``kept``, and the sum of all others below them, where there are others."""
    if len(kept) == len(values):
        return values
    others = np.delete(values, kept, axis=0).sum(axis=0, keepdims=True)
    return np.concatenate((values[kept], others))


def _named(parts: Sequence[Part], kept: Sequence[int]) -> tuple[Part | None, ...]:
    return (*(parts[place] for place in kept), *((None,) if len(kept) < len(parts) else ()))
