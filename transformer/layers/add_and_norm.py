"""One token's vector through one sub-layer's addition and norm, in the order in which this model computes."""

from dataclasses import dataclass

import numpy as np

from transformer.layers.residual_stream import SubLayer, residual_identity, sublayers
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Half:
    """Either half of the name, with one token's vectors as recorded, each [model], in the order of computing.

    ``kind`` "norm": ``vectors`` holds "x" or "written" (what comes in), "normalized", "scaled" (γ and β on it); where
    the sum above it comes in, it is not repeated. "add": "x" or "x_and_attention", "update", "sum". ``sublayer``: its
    kind ("self_attention" …), or "" for a norm that stands beside no sub-layer. ``norm``: the name of the norm.
    """

    kind: str
    sublayer: str
    norm: str
    vectors: dict[str, np.ndarray]


def add_and_norm(trace: Trace, stack: str, layer: int, norm: str, position: int) -> tuple[Half, ...]:
    """The halves around the sub-layer of ``norm`` (a name of ``norm_names``) at one position.

    pre-norm: the norm, whose output the sub-layer reads; then x + update = sum. post-norm: x + update = sum, then its
    norm. Where what a sub-layer writes is normalised as well (Gemma 2), that norm stands in between. The final norm of
    a stack and its like add nothing: one half.
    """
    found = _sublayer_of(trace, stack, layer, norm)
    if found is None:
        return (_norm(trace, norm, position, "", start="x"),)
    order = trace.checkpoint.config.norm
    sums = residual_identity(trace, found, norm=order)
    before, update, total = (part[position] for part in (sums.before, sums.update, sums.total))
    if order == "post":
        add = Half("add", found.kind, found.norm, {"x": before, "update": update, "sum": total})
        return add, _norm(trace, found.norm, position, found.kind, start="")
    # Side by side (GPT-NeoX): the second sub-layer reads the stream as it came into the layer, and is added last.
    alike = np.array_equal(before, trace.values(f"{found.norm}.input")[position])
    add = Half(
        "add", found.kind, found.norm, {"x" if alike else "x_and_attention": before, "update": update, "sum": total}
    )
    halves = [_norm(trace, found.norm, position, found.kind, start="x")]
    if found.update.endswith("_output_norm.output"):
        halves.append(_norm(trace, found.update.removesuffix(".output"), position, found.kind, start="written"))
    return (*halves, add)


def _sublayer_of(trace: Trace, stack: str, layer: int, norm: str) -> SubLayer | None:
    for one in sublayers(trace, stack):
        if one.layer == layer and norm in (one.norm, one.update.removesuffix(".output")):
            return one
    return None


def _norm(trace: Trace, norm: str, position: int, sublayer: str, *, start: str) -> Half:
    parts = {"normalized": "normalized", "scaled": "output"}
    if start:
        parts = {start: "input", **parts}
    vectors = {what: trace.values(f"{norm}.{part}")[position] for what, part in parts.items()}
    return Half("norm", sublayer, norm, vectors)
