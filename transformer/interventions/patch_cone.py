"""The cone of a patch: everything that can change if one activation of a run is replaced.

A layer passes a change on in two ways only. The residual connection, the norms and the feed-forward layer work at each
position alone, and attention carries a change from a key to the queries that may attend to it. So the positions whose
residual stream a change can have reached are, from one sub-layer to the next,

    R ← R ∪ {q : q may attend to some k ∈ R}

with the masks of the run. Cross-attention reads the encoder's output, so a change anywhere in it reaches every position
of the decoder that may attend to one of the reached positions. Earlier layers never change, and a
feed-forward layer in parallel to the attention (GPT-NeoX) reads what the layer reads. Outside of the cone, not a
bit changes; inside, a change is possible but may be small.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from transformer.interventions.activation_patching import HEADS, PARTS, Place
from transformer.layers.residual_stream import CONVOLUTION
from transformer.runs.traces import Trace
from transformer.variants.layer_orders import ParallelLayer


@dataclass(frozen=True)
class Cone:
    """What a patch can reach.

    Attributes:
        start: The patched location, itself part of the cone.
        places: All locations of the parts ``PARTS`` that can change.
        output: The positions at which the output of the last stack can change.
    """

    start: Place
    places: frozenset[Place]
    output: frozenset[int]


def patch_cone(trace: Trace, start: Place) -> Cone:
    """Compute the cone of a patch from the masks of a run and the order of its layers.

    Args:
        trace: The run, whose masks count; edits of them do, too.
        start: The patched location: a part of ``PARTS`` at one position, or a head at all positions.

    Raises:
        ValueError: If the run has no such location.
    """
    _check(trace, start)
    found: list[Place] = []
    memory = stream = np.zeros(0, dtype=bool)
    for stack in trace.stacks:
        stream = np.zeros(len(trace.tokens(stack)), dtype=bool)
        for layer in range(trace.n_layers(stack)):
            stream = _through(trace, start, stack, layer, stream, memory, found)
        memory = stream
    return Cone(start, frozenset(found), frozenset(np.flatnonzero(stream).tolist()))


def _through(
    trace: Trace,
    start: Place,
    stack: str,
    layer: int,
    stream: np.ndarray,
    memory: np.ndarray,
    found: list[Place],
) -> np.ndarray:
    """Return which positions are reached after a layer, and add what changes in it to ``found``."""
    module = getattr(trace.checkpoint.model, stack).layers[layer]
    crosses = (stack, "cross") in trace.attention_kinds()
    entering = stream
    for part in (part for part in PARTS if part != "cross_attention" or crosses):
        if part == "residual":
            reached = stream.copy()
        elif part == "feed_forward":
            reached = entering.copy() if isinstance(module, ParallelLayer) else stream.copy()
        else:
            kind = part.removesuffix("_attention")
            allowed = trace.attention(stack, layer, kind).allowed  # [query, key]
            keys = memory if kind == "cross" else stream
            reached = (allowed & keys).any(axis=1) | (stream & allowed.any(axis=1))
        if start[:3] == (stack, part, layer):
            reached[start.index] = True
        elif (start.stack, HEADS.get(start.part), start.layer) == (stack, part, layer):
            reached[:] = True
        found += _places(stack, part, layer, reached)
        stream = stream | reached
        entering = stream if part == "residual" else entering
    convolves = hasattr(module, CONVOLUTION) and bool(entering.any())
    return stream | convolves  # a convolution over positions reads what the layer reads


def _places(stack: str, part: str, layer: int, reached: np.ndarray) -> Iterable[Place]:
    return (Place(stack, part, layer, int(index)) for index in np.flatnonzero(reached))


def _check(trace: Trace, start: Place) -> None:
    known = start.stack in trace.stacks and (start.part in PARTS or start.part in HEADS)
    if known and HEADS.get(start.part, start.part) == "cross_attention":
        known = (start.stack, "cross") in trace.attention_kinds()
    if known:
        heads = trace.checkpoint.config.heads_in(start.stack)
        size = heads if start.part in HEADS else len(trace.tokens(start.stack))
        known = 0 <= start.layer < trace.n_layers(start.stack) and 0 <= start.index < size
    if not known:
        raise ValueError(f"this run has no location {start}")
