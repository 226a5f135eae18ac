"""What if a whole sub-layer, or the residual connection around it, were not there?"""

import torch
from torch import Tensor

from transformer.models import Model
from transformer.probes import Edit, recorded_so_far

SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


def remove_sublayer(stack: str, *, layer: int, which: str) -> Edit:
    """The sub-layer adds 0 to the residual stream: x + 0 (pre-norm), norm(x + 0) (post-norm).

    ``which``: "self_attention", "cross_attention" or "feed_forward".
    """
    _check_which(which)
    name = f"{stack}.layers.{layer}.{which}.output"
    return Edit(name, torch.zeros_like, f"{stack}, layer {layer}: no {which.replace('_', '-')}")


def remove_residual(model: Model, stack: str, *, layer: int, which: str) -> Edit:
    """The stream does not go past this sub-layer: sublayer(norm(x)) (pre-norm), norm(sublayer(x)) (post-norm).

    Everything that was known before has to come through the sub-layer. ``model`` says where its LayerNorm stands.
    """
    _check_which(which)
    prefix = f"{stack}.layers.{layer}"
    after = "out" if which == "feed_forward" else f"after_{which}"
    name = f"{prefix}.residual.{after}" if model.config.norm == "pre" else f"{prefix}.{which}_norm.input"

    def only_sublayer(stream: Tensor) -> Tensor:  # [batch, position, model]
        return recorded_so_far(f"{prefix}.{which}.output").expand_as(stream)

    return Edit(name, only_sublayer, f"{stack}, layer {layer}: no residual around {which.replace('_', '-')}")


def _check_which(which: str) -> None:
    if which not in SUBLAYERS:
        raise ValueError(f"which is {which!r}; choose one of {', '.join(SUBLAYERS)}")
