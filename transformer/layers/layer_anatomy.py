"""Parts of one layer: position and kind of norms, positions, attention, feed-forward, with shapes.

Everything is read from the modules, nothing from a table of models.
"""

from dataclasses import dataclass

from torch import nn

from transformer.guests.described_layers import GatedFeedForward, ParallelLayer, SandwichLayer
from transformer.guests.rotary_positions import RotaryPositions
from transformer.layer_norm import RMSNorm
from transformer.layers.positional_encodings import rotary_of
from transformer.models import Model
from transformer.positions import LearnedEncoding, RotaryEncoding

NORMS = {
    "LayerNorm": r"N(x) = \gamma\,\frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta",
    "RMSNorm": r"N(x) = \gamma\,\frac{x}{\sqrt{\operatorname{mean}(x^2) + \varepsilon}}",
}
_SCALINGS = {"linear": "one factor", "llama3": "Llama 3", "yarn": "YaRN", "longrope": "LongRoPE"}


@dataclass(frozen=True)
class LayerPart:
    """One part of a layer: its name, its formula as LaTeX, and (name, value) pairs."""

    name: str
    formula: str
    facts: tuple[tuple[str, str | int], ...]


def anatomy(model: Model, stack: str, layer: int) -> tuple[LayerPart, ...]:
    """Return the parts of one layer: order of its norms, norm, positions, attention, feed-forward, size."""
    whole = getattr(model, stack)
    block = whole.layers[layer]
    return (
        _order(whole, block),
        _norm(block.self_attention_norm),
        _positions(whole, block, model.config.kinds_in(stack)),
        _attention(block.self_attention),
        _feed_forward(block.feed_forward),
        _size(block),
    )


def _order(stack: nn.Module, block: nn.Module) -> LayerPart:
    writes = ("A", "C", "F") if getattr(block, "cross_attention", None) is not None else ("A", "F")
    if isinstance(block, ParallelLayer):
        place, formula = "before both, in parallel", r"x \leftarrow x + A(N_1(x)) + F(N_2(x))"
    else:
        template = r"x \leftarrow N(x + %s(x))"
        place = "after each sub-layer (post-norm)"
        if isinstance(block, SandwichLayer):
            template, place = r"x \leftarrow x + N'(%s(N(x)))", "before and after each sub-layer"
        elif block.pre_norm:
            template, place = r"x \leftarrow x + %s(N(x))", "before each sub-layer (pre-norm)"
        formula = r",\; ".join(template % write for write in writes)
    final = type(stack.final_norm).__name__ if stack.final_norm is not None else "none"
    return LayerPart("order", formula, (("position of the norms", place), ("norm after the last layer", final)))


def _norm(norm: nn.Module) -> LayerPart:
    kind = type(norm).__name__
    numbers = "γ" if isinstance(norm, RMSNorm) else "γ, β"
    facts = (
        ("kind of norm", kind),
        ("its numbers", f"{numbers}: {norm.weight.shape[0]}"),
        ("ε", f"{norm.epsilon:g}"),
    )
    return LayerPart("norms", NORMS[kind], facts)


def _positions(stack: nn.Module, block: nn.Module, kinds: tuple[str, ...]) -> LayerPart:
    attention = block.self_attention
    name, where, formula = "none", "nowhere", "–"
    if (encoding := stack.embedding.position_encoding) is not None:
        name = "learned" if isinstance(encoding, LearnedEncoding) else "sines and cosines"
        where, formula = "added to the embedding", r"x = E[\text{id}] + P[\text{pos}]"
    if isinstance(attention.rotary, RotaryEncoding | RotaryPositions):
        name, where = "rotary", "in every layer: queries and keys are rotated"
        formula = r"s_{ij} \propto (R_i\, q_i) \cdot (R_j\, k_j)"
    elif stack.position_bias is not None:
        name, where = "relative", "in every layer: added to the scores"
        formula = r"s_{ij} \mathrel{+}= b_{j - i}"
    elif "alibi" in kinds:
        name, where = "ALiBi", "in every layer: added to the scores"
        formula = r"s_{ij} \mathrel{-}= m_h\, |i - j|"
    if len(kinds) > 1:
        name, where = "several kinds", "at several locations"
    elif "unknown" in kinds:
        name, where, formula = "not established", "not established", "–"
    facts = (
        ("kind of positions", name),
        ("where they enter", where),
        ("wavelengths stretched by", _stretched_by(attention)),
    )
    return LayerPart("positions", formula, facts)


def _stretched_by(attention: nn.Module) -> str:
    rotary = rotary_of(attention)
    return _SCALINGS.get(rotary.way, "one factor per pair") if rotary.is_stretched else "nothing"


def _attention(attention: nn.Module) -> LayerPart:
    n_heads, width = attention.n_heads, attention.d_head
    keys = n_heads // attention.heads_a_key
    product, radicand = r"Q K^\top", attention.scale**-2
    if abs(radicand - round(radicand)) > 1e-4 * radicand:
        product = rf"{attention.scale:.3g}\, {product}"
    elif attention.scale != 1:
        product = rf"\frac{{{product}}}{{\sqrt{{{round(radicand)}}}}}"
    if (cap := attention.score_cap) is not None:
        product = rf"{cap:g} \tanh\big({product} / {cap:g}\big)"
    window = attention.window
    facts = (
        ("query heads", f"{n_heads} × {width}"),
        ("key and value heads", f"{keys} × {width}"),
        ("W_Q", _shape(attention.query_projection)),
        ("W_K, W_V", _shape(attention.key_projection)),
        ("W_O", _shape(attention.output_projection)),
        ("biases of Q, K, V", _yes(attention.query_projection.bias is not None)),
        ("bias of W_O", _yes(attention.output_projection.bias is not None)),
        ("norms of queries and keys", _yes(attention.normalizes)),
        ("attends back by at most", "everything" if window is None else str(window)),
    )
    bias = " + b_O" if attention.output_projection.bias is not None else ""
    return LayerPart("attention", rf"A = \operatorname{{softmax}}\Big({product}\Big) V\, W_O{bias}", facts)


def _feed_forward(layer: nn.Module) -> LayerPart:
    gated, bias = isinstance(layer, GatedFeedForward), layer.input_projection.bias is not None
    gate, first, second = (" + b_g", " + b_1", " + b_2") if bias else ("", "", "")
    hidden = rf"\big(f(x W_g{gate}) \odot (x W_1{first})\big)" if gated else f"f(x W_1{first})"
    formula = rf"F(x) = {hidden}\, W_2{second}"
    matrices = {"W_g": layer.gate_projection} if gated else {}
    matrices |= {"W_1": layer.input_projection, "W_2": layer.output_projection}
    facts = (
        ("activation f", layer.activation.__name__),
        ("matrices", ", ".join(f"{name} {_shape(matrix)}" for name, matrix in matrices.items())),
        ("its biases", _yes(bias)),
    )
    return LayerPart("feed-forward", formula, facts)


def _size(block: nn.Module) -> LayerPart:
    def count(part: str) -> int:
        return sum(p.numel() for name, p in block.named_parameters() if name.split(".")[0].endswith(part))

    attention, feed_forward = count("attention"), count("feed_forward")
    total = sum(parameter.numel() for parameter in block.parameters())
    numbers = (attention, feed_forward, total - attention - feed_forward, total)
    facts = (
        ("numbers in attention", attention),
        ("numbers in feed-forward", feed_forward),
        ("numbers in the layer", total),
    )
    formula = "{} + {} + {} = {}".format(*(f"{number:,}".replace(",", r"\,") for number in numbers))
    return LayerPart("size", formula, facts)


def _shape(linear: nn.Linear) -> str:
    return f"{linear.in_features} × {linear.out_features}"


def _yes(there: bool) -> str:
    return "yes" if there else "no"
