"""Gradients with respect to an activation, never to a parameter, whatever the caller has set."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from transformer.probes import Edit


def gradients_begin_at(name: str) -> Edit:
    """Return an edit that makes the activation ``name`` a leaf, where back-propagation stops."""
    return Edit(name, lambda tensor: tensor.detach().clone().requires_grad_())


@contextmanager
def gradients() -> Iterator[None]:
    """Enable autograd for this thread and this block only, whatever the caller has set."""
    with torch.inference_mode(False), torch.enable_grad():
        yield
