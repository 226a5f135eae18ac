"""Arithmetic of one attention weight: from the input of attention to q · k, the score and the weight.

``score_rule`` reads how an attention layer turns q · k into a score: its scale, what it adds, its cap.
``CellArithmetic`` is one weight by hand, from a query and a key to the number on the map. ``query_arithmetic``
computes one channel of a query by hand, from the input of attention through W_Q to the recorded number.
"""

from dataclasses import dataclass

import numpy as np

from transformer.attention import MultiHeadAttention
from transformer.files.checkpoints import Checkpoint
from transformer.guests.described_parts import not_exposed
from transformer.layers.positional_encodings import rotary_of
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace

RELATIVE = "position_bias.values"


@dataclass(frozen=True)
class ScoreRule:
    """Rule for scores: s = cap · tanh((q · k · scale + added) / cap); some models lack some steps.

    The models of the paper multiply by ``scale`` = 1/√d_k, add nothing and have no ``cap`` (Vaswani et al. 2017,
    §3.2.1).

    Attributes:
        added: Names of the activations, [head, query, key], that are added.
        window: Number of positions that a query may attend to, counted back from itself.
        normalized: Whether queries and keys are first divided by their root mean square (Qwen3, Gemma 3).
        heads_a_key: Number of query heads that share one head of keys and values (1 in the paper).
    """

    d_head: int
    scale: float
    cap: float | None = None
    added: tuple[str, ...] = ()
    window: int | None = None
    normalized: bool = False
    heads_a_key: int = 1

    @property
    def is_scaled(self) -> bool:
        """Whether products are scaled at all (T5 does not scale them: Raffel et al. 2020)."""
        return self.scale != 1.0

    @property
    def is_of_the_paper(self) -> bool:
        """Whether the rule is q · k / √d_k, with or without an added term."""
        return self.radicand == self.d_head and self.cap is None

    @property
    def radicand(self) -> int | None:
        """n, if the scale is 1/√n for an integer n (d_k in the paper); otherwise ``None``."""
        squared = self.scale**-2
        return round(squared) if abs(squared - round(squared)) < 1e-4 * squared else None

    def score(self, dot_product: np.ndarray | float, added: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the score of q · k in double precision."""
        score = np.float64(dot_product) * self.scale + added
        return score if self.cap is None else self.cap * np.tanh(score / self.cap)


def score_rule(checkpoint: Checkpoint, stack: str, layer: int, kind: str) -> ScoreRule:
    """Return the rule of one self- or cross-attention layer, from the modules that compute it.

    Raises:
        NotExposedError: If a guest does not expose its rule.
    """
    name = f"{stack}.layers.{layer}.{kind}_attention"
    module = checkpoint.model.get_submodule(name)
    if module.scale is None:  # a guest whose attention has its own code
        raise not_exposed("the formula of its scores, because its attention has its own code")
    biased = kind == "self" and getattr(checkpoint.model, stack).position_bias is not None
    added = (f"{stack}.{RELATIVE}",) if biased else ()
    return ScoreRule(
        d_head=module.d_head,
        scale=module.scale,
        cap=module.score_cap,
        added=added,
        window=module.window,
        normalized=module.normalizes,
        heads_a_key=module.heads_a_key,
    )


@dataclass(frozen=True)
class CellArithmetic:
    """All numbers between q, k and the weight of one cell, in float64, and what the model recorded.

    Attributes:
        query: [channel].
        key: [channel].
        products: q_c · k_c, [channel].
        scores: Scores of the whole row before the mask, [key].
        powers: exp(score − largest allowed score) of the whole row, [key]; 0 where masked.
        rule: How this model turns q · k into a score.
        bias: What positions add to the score; ``None`` if nothing.
        allowed: Keys that the query may attend to, [key].
    """

    rule: ScoreRule
    query: np.ndarray
    key: np.ndarray
    products: np.ndarray
    bias: float | None
    allowed: np.ndarray
    scores: np.ndarray
    powers: np.ndarray
    column: int
    recorded: float

    @property
    def dot_product(self) -> float:
        """Dot product q · k = Σ_c q_c k_c."""
        return float(self.products.sum())

    @property
    def score(self) -> float:
        """Score of the cell, before the mask."""
        return float(self.rule.score(self.dot_product, self.bias or 0.0))

    @property
    def largest(self) -> float:
        """Largest score of the row among the allowed keys; subtracting it before exp changes no weight."""
        return float(self.scores[self.allowed].max()) if self.allowed.any() else 0.0

    @property
    def is_allowed(self) -> bool:
        """Whether the query may attend to the key."""
        return bool(self.allowed[self.column])

    @property
    def power(self) -> float:
        """exp(score − largest), the numerator; 0 if masked."""
        return float(self.powers[self.column])

    @property
    def denominator(self) -> float:
        """Σ exp(score − largest) over the allowed keys of the row."""
        return float(self.powers.sum())

    @property
    def weights(self) -> np.ndarray:
        """Weights of the whole row, [key]; all 0 if the query may attend to no key."""
        return self.powers / self.denominator if self.allowed.any() else self.powers

    @property
    def weight(self) -> float:
        """Weight of the cell."""
        return float(self.weights[self.column])

    @property
    def difference(self) -> float:
        """Our weight minus the recorded one: float64 here, float32 in the model."""
        return self.weight - self.recorded


def masked_cells(view: AttentionView, rule: ScoreRule) -> dict[str, np.ndarray]:
    """Return, for each reason, which cells of a layer it masks, [query, key].

    The reasons are "causal", "padding", "window" (of the layer) and "other"; a cell counts for the first that holds.
    """
    back = np.arange(view.allowed.shape[0])[:, None] - np.arange(view.allowed.shape[1])[None, :]
    reasons = {
        "causal": (back < 0) & (view.kind == "self" and view.stack == "decoder"),
        "padding": np.array([token.is_padding for token in view.key], dtype=bool)[None, :],
        "window": np.full_like(view.allowed, False) if rule.window is None else back >= rule.window,
        "other": np.full_like(view.allowed, True),
    }
    found, rest = {}, ~view.allowed
    for name, holds in reasons.items():
        found[name], rest = rest & holds, rest & ~holds
    return found


@dataclass(frozen=True)
class QueryArithmetic:
    """One channel of a query: q_c = Σ_i x_i W_Q[i, c] + b_c, in float64.

    If the query is ``normalized`` or ``rotated``, the ``recorded`` value differs from the sum.

    Attributes:
        source: Name of the activation that holds X.
        x: Input of the projection, [model].
        weights: W_Q[:, c] of this head, [model].
        bias: b_c; ``None`` if the projection has no bias.
        normalized: Whether the model then divides each head's query by its root mean square.
        rotated: Whether rotary encoding rotates this channel.
        factor: Factor that the rotation multiplies the channel by.
        recorded: The number in the trace.
    """

    source: str
    channel: int
    x: np.ndarray
    weights: np.ndarray  # W_Q[:, c] of this head
    bias: float | None
    recorded: float
    normalized: bool
    rotated: bool
    factor: float

    @property
    def products(self) -> np.ndarray:
        """x_i W_Q[i, c], [model]."""
        return self.x * self.weights

    @property
    def value(self) -> float:
        """q_c before normalisation and rotation."""
        return float(self.products.sum()) + (self.bias or 0.0)


def query_input(trace: Trace, stack: str, layer: int, kind: str) -> str:
    """Return the name of the activation X of X W_Q, [position, model], in one layer.

    Pre-norm: the output of the LayerNorm before this attention (Xiong et al. 2020). Post-norm: the residual stream
    before the sub-layer (Vaswani et al. 2017).
    """
    place = f"{stack}.layers.{layer}"
    if trace.checkpoint.config.norm == "pre":
        return f"{place}.{kind}_attention_norm.output"
    return f"{place}.residual.{'in' if kind == 'self' else 'after_self_attention'}"


def query_arithmetic(trace: Trace, stack: str, layer: int, kind: str, *, head: int, row: int) -> QueryArithmetic:
    """Compute the largest channel of the query of token ``row``, product by product."""
    name, source = f"{stack}.layers.{layer}.{kind}_attention", query_input(trace, stack, layer, kind)
    module = trace.checkpoint.model.get_submodule(name)
    recorded = trace.values(f"{name}.query")[head, row]  # [channel]
    channel = int(np.abs(recorded).argmax())
    place = head * module.d_head + channel  # the matrices of the heads are stacked in one
    projection, rotated = module.query_projection, channel < rotary_width(module)
    return QueryArithmetic(
        source=source,
        channel=channel,
        x=trace.values(source)[row].astype(np.float64),
        weights=projection.weight[place].detach().cpu().double().numpy(),
        bias=None if projection.bias is None else projection.bias[place].item(),
        recorded=float(recorded[channel]),
        normalized=module.normalizes,
        rotated=rotated,
        factor=rotary_of(module).attention_factor if rotated else 1.0,
    )


def rotary_width(attention: MultiHeadAttention) -> int:
    """Return how many channels of a head are rotated: all, only the first ones (GPT-NeoX), or none."""
    return 0 if attention.rotary is None else rotary_of(attention).n_turned
