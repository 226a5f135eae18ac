"""One head from queries, keys and values to its output, including steps that no probe records.

``norm_weighted`` measures how much a token contributes: the weight times the length of the weighted vector (Kobayashi
et al. 2020).
"""

from dataclasses import dataclass, replace

import numpy as np

from transformer.attention_maps.attention_arithmetic import (
    CellArithmetic,
    ScoreRule,
    score_rule,
)
from transformer.files.checkpoints import Checkpoint
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class AttentionPath:
    """Arrays of one head.

    Attributes:
        view: The whole layer.
        head: Index of the head.
        rule: How this model turns q · k into a score.
        query: [query, channel].
        key: [key, channel].
        value: [key, channel].
        products: Q Kᵀ, [query, key].
        bias: [query, key], or ``None``.
        context: weights @ V, [query, channel].
    """

    view: AttentionView
    head: int
    rule: ScoreRule
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    products: np.ndarray
    bias: np.ndarray | None
    context: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """Recorded scores before the mask, [query, key]: Q Kᵀ / √d_k (+ bias), or by the model's own rule."""
        return self.view.scores[self.head]

    @property
    def weights(self) -> np.ndarray:
        """Attention weights, [query, key]."""
        return self.view.weights[self.head]

    @property
    def d_head(self) -> int:
        """Width of the head, d_k."""
        return self.query.shape[1]

    def cell(self, *, query: int, key: int) -> CellArithmetic:
        """Compute one weight from the recorded query and keys, which include rotary positions.

        α_ij = exp(s_ij) / Σ_{j' allowed} exp(s_ij'), with s_ij = q_i · k_j / √d_k (+ b_ij) or the model's own
        ``ScoreRule``.

        Raises:
            ValueError: For a query or key token that does not exist.
        """
        for name, index, size in (("query token", query, len(self.view.query)), ("key token", key, len(self.view.key))):
            if not 0 <= index < size:
                raise ValueError(f"{self.view.name}: there is no {name} {index}; choose 0 to {size - 1}")
        own, keys = self.query[query].astype(np.float64), self.key.astype(np.float64)
        bias = None if self.bias is None else self.bias[query].astype(np.float64)
        scores = self.rule.score(keys @ own, 0.0 if bias is None else bias)
        allowed = self.view.allowed[query]
        largest = scores[allowed].max() if allowed.any() else 0.0
        return CellArithmetic(
            rule=self.rule,
            query=own,
            key=keys[key],
            products=own * keys[key],
            bias=None if bias is None else float(bias[key]),
            allowed=allowed,
            scores=scores,
            powers=np.exp(np.where(allowed, scores - largest, -np.inf)),
            column=key,
            recorded=float(self.weights[query, key]),
        )

    def weights_without_scaling(self, row: int) -> np.ndarray:
        """Return softmax(q Kᵀ) of one row, [key], i.e. without division by √d_k.

        The larger the products are, the more of the weight goes to a single key.
        """
        return replace(self, rule=replace(self.rule, scale=1.0)).cell(query=row, key=0).weights


def attention_path(trace: Trace, stack: str, layer: int, kind: str, *, head: int) -> AttentionPath:
    """Return the arrays of one head.

    Raises:
        ValueError: If the layer or head does not exist.
    """
    view = trace.attention(stack, layer, kind)
    if not 0 <= head < view.n_heads:
        raise ValueError(f"{view.name}: there is no head {head}; choose 0 to {view.n_heads - 1}")
    query, key, value, context = (
        trace.values(f"{view.name}.{name}")[head] for name in ("query", "key", "value", "context")
    )
    rule = score_rule(trace.checkpoint, stack, layer, kind)
    bias = sum(trace.values(name) for name in rule.added) if rule.added else None
    return AttentionPath(
        view=view,
        head=head,
        rule=rule,
        query=query,
        key=key,
        value=value,
        products=query @ key.T,
        bias=None if bias is None else bias[head],
        context=context,
    )


@dataclass(frozen=True)
class OutputSum:
    """One row of the output: Σ_head ``contributions`` [head, model] + ``bias`` [model] = ``output``.

    ``bias`` is ``None`` if the projection has none.
    """

    contributions: np.ndarray
    bias: np.ndarray | None
    output: np.ndarray

    @property
    def error(self) -> float:
        """Largest difference between the sum and the recorded output, due to rounding to float32."""
        bias = 0.0 if self.bias is None else self.bias
        return float(np.abs(self.contributions.sum(axis=0) + bias - self.output).max())


def output_sum(trace: Trace, stack: str, layer: int, kind: str, *, row: int) -> OutputSum:
    """Split the output at one query token by head: Concat(…) W_O + b_O = Σ_h head_h W_O,h + b_O."""
    name = f"{stack}.layers.{layer}.{kind}_attention"
    matrices, bias = output_matrices(trace.checkpoint, stack, layer, kind)
    context = trace.values(f"{name}.context")[:, row]  # [head, channel]
    contributions = np.einsum("hc,hcm->hm", context, matrices)
    return OutputSum(contributions, bias, trace.values(f"{name}.output")[row])


def output_matrices(checkpoint: Checkpoint, stack: str, layer: int, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return W_O per head, [head, channel, model], and b_O, if any (Vaswani et al. 2017, §3.2.2)."""
    module = checkpoint.model.get_submodule(f"{stack}.layers.{layer}.{kind}_attention")
    projection = module.output_projection
    matrix = projection.weight.detach().cpu().numpy().T  # [heads · channel, model]
    bias = None if projection.bias is None else projection.bias.detach().cpu().numpy()
    return matrix.reshape(module.n_heads, module.d_head, -1), bias


def norm_weighted(trace: Trace, stack: str, layer: int, kind: str) -> np.ndarray:
    """Return ‖α_ij f(x_j)‖ = α_ij ‖f(x_j)‖, [head, query, key], ≥ 0, in units of the residual stream.

    f(x) = (x W_V + b_V) W_O is what a key would write with a weight of 1.

    "Attention is Not Only a Weight" (Kobayashi et al. 2020): a key with a large weight and a short value contributes
    little, which is how heads can put weight on special tokens to no effect.
    """
    name = f"{stack}.layers.{layer}.{kind}_attention"
    matrices, _ = output_matrices(trace.checkpoint, stack, layer, kind)
    lengths = np.linalg.norm(trace.values(f"{name}.value") @ matrices, axis=-1)  # [head, key]
    return trace.values(f"{name}.weights") * lengths[:, None, :]
