"""One number of a query worked out by hand: from what attention reads, through W_Q, to what the model recorded."""

from dataclasses import dataclass

import numpy as np

from transformer.attention import MultiHeadAttention
from transformer.layers.positional import rotary_of
from transformer.runs.traces import Trace


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
