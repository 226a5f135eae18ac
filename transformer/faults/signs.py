"""Visible signs of a run: entropy of each attention, size of the residual stream."""

from dataclasses import dataclass

import numpy as np

from transformer.runs.traces import Trace
from transformer.text.message import Message

_INPUTS = {"encoder": Message("encoder in"), "decoder": Message("decoder in")}


@dataclass(frozen=True)
class Signs:
    """Signs of one run.

    Attributes:
        attentions: Names such as "encoder 0", "decoder 1 cross".
        entropy: Mean over heads and rows of real tokens, in bits, [attention].
        stages: The residual stream "in" and after each layer.
        size: Standard deviation of its numbers there, [stage].
    """

    attentions: tuple[str, ...]
    entropy: np.ndarray
    stages: tuple[str, ...]
    size: np.ndarray


def signs_of(trace: Trace) -> Signs:
    """Return the signs in the activations of one trace, without rows of padding."""
    attentions, entropy, stages, size = [], [], [], []
    for stack in trace.stacks:
        real = np.array([token.role != "pad" for token in trace.tokens(stack)])
        for layer in range(trace.n_layers(stack)):
            if layer == 0:
                stages.append(_INPUTS[stack])
                size.append(trace.values(f"{stack}.layers.0.residual.in")[real].std())
            stages.append(_layer(stack, layer))
            size.append(trace.values(f"{stack}.layers.{layer}.residual.out")[real].std())
            for own_stack, kind in trace.attention_kinds():
                if own_stack != stack:
                    continue
                cross = Message("decoder {layer} cross", layer=layer)
                attentions.append(cross if kind == "cross" else _layer(stack, layer))
                entropy.append(trace.attention(stack, layer, kind).entropy[:, real].mean())
    return Signs(tuple(attentions), np.array(entropy), tuple(stages), np.array(size))


def _layer(stack: str, layer: int) -> Message:
    return Message("encoder {layer}", layer=layer) if stack == "encoder" else Message("decoder {layer}", layer=layer)
