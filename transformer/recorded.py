"""From recorded tensors to plain arrays."""

from __future__ import annotations

from collections.abc import Mapping

from transformer.activation import Activation
from transformer.models import Model
from transformer.probes import Recording


def activations_of(model: Model, recording: Recording) -> Mapping[str, Activation]:
    """Everything recorded for the first text of the batch; the batch axis is dropped, values are read-only."""
    activations = {}
    for name, tensor in recording.tensors.items():
        values = tensor.cpu().numpy()[0]  # a view: nothing is copied on a CPU
        values.flags.writeable = False  # traces are shared between threads
        activations[name] = Activation(name, model.probes[name].axes, values)
    return activations
