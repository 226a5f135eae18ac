"""Gradients with respect to an activation of one call: never to a parameter, whatever the caller has switched on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from transformer.probes import Edit


def gradients_begin_at(name: str) -> Edit:
    """The activation ``name`` as a leaf: what is differentiated goes back to it and no further, to no parameter."""
    return Edit(name, lambda tensor: tensor.detach().clone().requires_grad_())


@contextmanager
def gradients() -> Iterator[None]:
    """Switch autograd on for this thread and this block only, whatever the caller has set."""
    with torch.inference_mode(False), torch.enable_grad():
        yield
