"""The arithmetic of one attention weight: from what attention reads to q · k, the score and the weight.

``score_rule``: how one attention of a model turns q · k into a score, by its own scale, with what it adds, bent by its
cap. ``cell_arithmetic``: one weight worked out by hand, from a query and a key to the number on the map.
``query_arithmetic``: one number of a query worked out by hand, from what attention reads, through W_Q, to the recorded
one.
"""

from dataclasses import dataclass

import numpy as np

from transformer.attention import MultiHeadAttention
from transformer.files.checkpoints import Checkpoint
from transformer.layers.positional_encodings import rotary_of
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace

RELATIVE = "position_bias.values"
DISENTANGLED = ("content_to_position", "position_to_content")


@dataclass(frozen=True)
class ScoreRule:
    """s = cap · tanh((q · k · scale + what is added) / cap), of which a model has what it has.

    The paper's models multiply by ``scale`` = 1/√d_k, add nothing and have no ``cap`` (Vaswani et al. 2017, §3.2.1).
    ``added``: the activations [head, query, key] that are added. ``window``: how many positions back a query may look,
    itself included. ``normalized``: queries and keys are divided by their root mean square first (Qwen3, Gemma 3).
    ``heads_a_key``: how many heads of queries share one head of keys and values (1 in the paper).
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
        """Whether products are multiplied at all (T5's are not: Raffel et al. 2020)."""
        return self.scale != 1.0

    @property
    def is_of_the_paper(self) -> bool:
        """q · k / √d_k, whether or not something is added."""
        return self.radicand == self.d_head and self.cap is None

    @property
    def radicand(self) -> int | None:
        """n, where the scale is 1/√n for a whole number n: d_k in the paper; ``None`` where there is none."""
        squared = self.scale**-2
        return round(squared) if abs(squared - round(squared)) < 1e-4 * squared else None

    def score(self, dot_product: np.ndarray | float, added: np.ndarray | float = 0.0) -> np.ndarray:
        """The score of q · k, in double precision."""
        score = np.float64(dot_product) * self.scale + added
        return score if self.cap is None else self.cap * np.tanh(score / self.cap)


def score_rule(checkpoint: Checkpoint, stack: str, layer: int, kind: str) -> ScoreRule:
    """The rule of one layer's self- or cross-attention, read from the modules that compute it."""
    name = f"{stack}.layers.{layer}.{kind}_attention"
    module = checkpoint.model.get_submodule(name)
    added = tuple(f"{name}.{term}" for term in DISENTANGLED if getattr(module, term, None) is not None)
    if kind == "self" and getattr(checkpoint.model, stack).position_bias is not None:
        added = (f"{stack}.{RELATIVE}",)
    return ScoreRule(
        d_head=module.d_head,
        scale=module.scale,
        cap=getattr(module, "score_cap", None),
        added=added,
        window=getattr(module, "window", None),
        normalized=getattr(module, "query_norm", None) is not None,
        heads_a_key=module.n_heads // getattr(module, "n_key_heads", module.n_heads),
    )


def added_to_scores(trace: Trace, rule: ScoreRule) -> np.ndarray | None:
    """The sum of what the model adds to its scaled products: [head, query, key]; ``None`` where it adds nothing."""
    return sum(trace.values(name) for name in rule.added) if rule.added else None


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
    require_cell(view, head=head, query=query, key=key)
    rule = score_rule(trace.checkpoint, stack, layer, kind)
    bias = added_to_scores(trace, rule)
    return cell_of(
        view,
        rule,
        head=head,
        row=query,
        column=key,
        query=trace.values(f"{view.name}.query")[head, query],
        keys=trace.values(f"{view.name}.key")[head],
        bias=None if bias is None else bias[head, query],
    )


def require_cell(view: AttentionView, *, head: int, query: int, key: int) -> None:
    """Raise ``ValueError`` for a head, row or column that does not exist."""
    for name, index, size in (
        ("head", head, view.n_heads),
        ("query token", query, len(view.query)),
        ("key token", key, len(view.key)),
    ):
        if not 0 <= index < size:
            raise ValueError(f"{view.name}: there is no {name} {index}; choose 0 to {size - 1}")


def cell_of(
    view: AttentionView,
    rule: ScoreRule,
    *,
    head: int,
    row: int,
    column: int,
    query: np.ndarray,
    keys: np.ndarray,
    bias: np.ndarray | None,
) -> CellArithmetic:
    """``cell_arithmetic`` of arrays that were read already.

    Args:
        view: The layer.
        rule: What the model makes of q · k.
        head: The head of ``view``.
        row: The query token.
        column: The key token.
        query: The query of that token: [channel].
        keys: All keys of the head: [key, channel].
        bias: What is added to the scores of the row: [key]; ``None`` where the model adds nothing.
    """
    queries, keys = query.astype(np.float64), keys.astype(np.float64)
    row_bias = None if bias is None else bias.astype(np.float64)
    scores = rule.score(keys @ queries, 0.0 if row_bias is None else row_bias)
    allowed = view.allowed[row]
    largest = scores[allowed].max() if allowed.any() else 0.0
    powers = np.exp(np.where(allowed, scores - largest, -np.inf))
    return CellArithmetic(
        rule=rule,
        query=queries,
        key=keys[column],
        products=queries * keys[column],
        bias=None if row_bias is None else float(row_bias[column]),
        allowed=allowed,
        scores=scores,
        powers=powers,
        column=column,
        recorded=float(view.weights[head, row, column]),
    )


def why_masked(view: AttentionView, rule: ScoreRule, *, query: int, key: int) -> str:
    """Why a cell that is not allowed is masked: "padding", "causal", "window" (of the layer) or "other"."""
    if view.key[key].is_padding:
        return "padding"
    if view.kind == "self" and view.stack == "decoder" and key > query:
        return "causal"
    return "other" if rule.window is None or query - key < rule.window else "window"


@dataclass(frozen=True)
class QueryArithmetic:
    """q_c = Σ_i x_i W_Q[i, c] + b_c for one channel of one token, in float64.

    ``source``: the activation that holds X. ``x``, ``weights``: [model]. ``bias``: ``None`` where there is none.
    ``normalized``: the model then divides each head's query by its root mean square. ``rotated``: it turns this channel
    by the position (rotary encoding), and the turn multiplies it by ``factor`` (``rotary_scaling``). With either,
    ``recorded``, what stands in the trace, is another number.
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
        return self.x * self.weights

    @property
    def value(self) -> float:
        return float(self.products.sum()) + (self.bias or 0.0)


def query_input(trace: Trace, stack: str, layer: int, kind: str) -> str:
    """The activation that the queries of a layer are made from, the X of X W_Q: [position, model].

    Pre-norm: the output of the LayerNorm in front of this attention (Xiong et al. 2020). Post-norm: the residual stream
    as it enters the sub-layer (Vaswani et al. 2017).
    """
    place = f"{stack}.layers.{layer}"
    if trace.checkpoint.config.norm == "pre":
        return f"{place}.{kind}_attention_norm.output"
    return f"{place}.residual.{'in' if kind == 'self' else 'after_self_attention'}"


def query_arithmetic(trace: Trace, stack: str, layer: int, kind: str, *, head: int, row: int) -> QueryArithmetic:
    """Of the query of token ``row``: its largest channel, product by product."""
    name, source = f"{stack}.layers.{layer}.{kind}_attention", query_input(trace, stack, layer, kind)
    module = trace.checkpoint.model.get_submodule(name)
    recorded = trace.values(f"{name}.query")[head, row]  # [channel]
    channel = int(np.abs(recorded).argmax())
    place = head * module.d_head + channel  # the heads' matrices stand below each other in one
    projection, rotated = module.query_projection, channel < rotary_width(module)
    return QueryArithmetic(
        source=source,
        channel=channel,
        x=trace.values(source)[row].astype(np.float64),
        weights=projection.weight[place].detach().cpu().double().numpy(),
        bias=None if projection.bias is None else projection.bias[place].item(),
        recorded=float(recorded[channel]),
        normalized=getattr(module, "query_norm", None) is not None,
        rotated=rotated,
        factor=rotary_of(module).attention_factor if rotated else 1.0,
    )


def rotary_width(attention: MultiHeadAttention) -> int:
    """How many of a head's channels positions turn: all, the first few (GPT-NeoX), or none."""
    return 0 if attention.rotary is None else rotary_of(attention).n_turned
