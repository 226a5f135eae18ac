"""A run without one feed-forward unit, and the units that matter most for a class.

Removing every unit in turn would take one run per unit. To first order, one gradient gives the same
(``attribution_patching``); what is shown of a unit is then measured.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.interventions.attribution_patching import embeddings_as_leaves, slopes_of
from transformer.interventions.experiment import same_tokens
from transformer.layers.readable_units import MOST_BESIDE, peaks_of
from transformer.probes import Edit, record
from transformer.runs.autograd import gradients
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class ClassUnit:
    """A unit that fires at one token and makes the predicted class more likely.

    ``change`` estimates p(class) without it minus p(class) with it. ``beside`` is its largest value at any other word,
    as a share of its largest value.
    """

    layer: int
    position: int
    unit: int
    change: float
    beside: float


def without_unit(trace: Trace, stack: str, layer: int, unit: int) -> Trace:
    """Run the same tokens with one unit at 0 for every token."""

    def silence(hidden: Tensor) -> Tensor:
        kept = torch.ones(hidden.shape[-1], dtype=hidden.dtype, device=hidden.device)
        kept[unit] = 0
        return hidden * kept

    return same_tokens(trace, [Edit(f"{stack}.layers.{layer}.feed_forward.hidden", silence)])


def class_units(trace: Trace, *, count: int = 4) -> tuple[ClassUnit, ...]:
    """Return the units of a classifier whose removal lowers p(predicted class) most, to first order.

    There is at most one per token, and each fires at its token clearly more than at any other word (``MOST_BESIDE``);
    units that fire at their token only are preferred.
    """
    model = trace.checkpoint.model
    names = [f"encoder.layers.{layer}.feed_forward.hidden" for layer in range(trace.n_layers("encoder"))]
    words = [token.index for token in trace.source if not token.special]
    if not words:
        return ()
    with gradients(), record(embeddings_as_leaves(model), {*names, "classifier.logits"}) as recording:
        model(torch.tensor([trace.source.ids], device=model.device))
        hidden = {name: recording.tensors[name] for name in names}
        chances = torch.softmax(recording.tensors["classifier.logits"][0], dim=-1)
        slopes = slopes_of(chances.max(), hidden)
    found = []
    for layer, name in enumerate(names):
        with torch.no_grad():
            changes = -(hidden[name] * slopes[name])[0].sum(dim=0).float().cpu().numpy()
        peaks, beside = peaks_of(trace.values(name)[words])
        for unit in np.flatnonzero(beside <= MOST_BESIDE):
            found.append(ClassUnit(layer, words[peaks[unit]], int(unit), float(changes[unit]), float(beside[unit])))
    strongest: dict[int, ClassUnit] = {}  # by token, the strongest first
    for one in sorted((one for one in found if one.change < 0), key=lambda one: one.change * (1 - one.beside)):
        strongest.setdefault(one.position, one)
    return tuple(strongest.values())[:count]
