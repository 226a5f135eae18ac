"""One attention weight worked out by hand: from a query and a key to the number on the map."""

from dataclasses import dataclass

import numpy as np

from transformer.attention_maps.score_rule import ScoreRule, added_to_scores, score_rule
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class CellArithmetic:
    """Everything between q, k and the weight of one cell, in float64, and what the model recorded.

    ``query``, ``key``, ``products``: [channel]. ``scores``, ``powers``: [key], the whole row of the softmax.
    ``rule``: what this model makes of q · k. ``bias``: what positions add to the score (``None`` where they add none).
    """

    rule: ScoreRule
    query: np.ndarray
    key: np.ndarray
    products: np.ndarray  # q_c · k_c
    bias: float | None
    allowed: np.ndarray  # [key]
    scores: np.ndarray  # [key], before the mask
    powers: np.ndarray  # [key], exp(score − largest allowed score), 0 where masked
    column: int
    recorded: float

    @property
    def dot_product(self) -> float:
        """q · k = Σ_c q_c k_c."""
        return float(self.products.sum())

    @property
    def scaled(self) -> float:
        """q · k · scale (1/√d_k in the paper), plus the bias where there is one: the score, unless there is a cap."""
        return self.dot_product * self.rule.scale + (self.bias or 0.0)

    @property
    def score(self) -> float:
        return float(self.rule.score(self.dot_product, self.bias or 0.0))

    @property
    def largest(self) -> float:
        """The largest score of the row among the allowed keys; subtracting it before exp changes no weight."""
        return float(self.scores[self.allowed].max()) if self.allowed.any() else 0.0

    @property
    def is_allowed(self) -> bool:
        return bool(self.allowed[self.column])

    @property
    def power(self) -> float:
        """exp(score − largest), the numerator; 0 where masked."""
        return float(self.powers[self.column])

    @property
    def denominator(self) -> float:
        """Σ exp(score − largest) over the allowed keys of the row."""
        return float(self.powers.sum())

    @property
    def weights(self) -> np.ndarray:
        """The whole row, [key]; all 0 where the query may look at nothing."""
        return self.powers / self.denominator if self.allowed.any() else self.powers

    @property
    def weight(self) -> float:
        return float(self.weights[self.column])

    @property
    def difference(self) -> float:
        """Ours minus the recorded weight: float64 here, float32 in the model."""
        return self.weight - self.recorded


def cell_arithmetic(
    trace: Trace, stack: str, layer: int, kind: str, *, head: int, query: int, key: int
) -> CellArithmetic:
    """The cell (query, key) of one head, from the recorded queries and keys (rotary positions are in them already).

    α_ij = exp(s_ij) / Σ_{j' allowed} exp(s_ij'),  s_ij = q_i · k_j / √d_k (+ b_ij), or the model's own ``ScoreRule``.
    Raises ``ValueError`` for a head, row or column that does not exist.
    """
    view = trace.attention(stack, layer, kind)
    for name, index, size in (
        ("head", head, view.n_heads),
        ("query token", query, len(view.query)),
        ("key token", key, len(view.key)),
    ):
        if not 0 <= index < size:
            raise ValueError(f"{view.name}: there is no {name} {index}; choose 0 to {size - 1}")
    queries = trace.values(f"{view.name}.query")[head, query].astype(np.float64)  # [channel]
    keys = trace.values(f"{view.name}.key")[head].astype(np.float64)  # [key, channel]
    rule = score_rule(trace.checkpoint, stack, layer, kind)
    bias = added_to_scores(trace, rule)
    row_bias = None if bias is None else bias[head, query].astype(np.float64)
    scores = rule.score(keys @ queries, 0.0 if row_bias is None else row_bias)
    allowed = view.allowed[query]
    largest = scores[allowed].max() if allowed.any() else 0.0
    powers = np.exp(np.where(allowed, scores - largest, -np.inf))
    return CellArithmetic(
        rule=rule,
        query=queries,
        key=keys[key],
        products=queries * keys[key],
        bias=None if row_bias is None else float(row_bias[key]),
        allowed=allowed,
        scores=scores,
        powers=powers,
        column=key,
        recorded=float(view.weights[head, query, key]),
    )


def why_masked(view: AttentionView, rule: ScoreRule, *, query: int, key: int) -> str:
    """Why a cell that is not allowed is masked: "padding", "causal", "window" (of the layer) or "other"."""
    if view.key[key].is_padding:
        return "padding"
    if view.kind == "self" and view.stack == "decoder" and key > query:
        return "causal"
    return "other" if rule.window is None or query - key < rule.window else "window"
