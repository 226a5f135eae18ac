"""A run in which one hidden unit adds nothing, made by the weights instead of an edit."""

from __future__ import annotations

import torch

from transformer.interventions.experiment import same_tokens
from transformer.runs.traces import Trace


def without_row(trace: Trace, stack: str, layer: int, unit: int) -> Trace:
    """Run the same tokens with a row of W₂ at 0: what a silent unit adds."""
    weight = trace.checkpoint.model.get_submodule(f"{stack}.layers.{layer}.feed_forward.output_projection").weight
    column = weight[:, unit].detach().clone()
    with torch.no_grad():
        weight[:, unit] = 0
        try:
            return same_tokens(trace)
        finally:
            weight[:, unit] = column
