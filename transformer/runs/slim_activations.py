"""Reduced storage of a large trace: the residual stream and attention; the rest is recomputed.

GPT-2 small produces 144 MB for 128 tokens. Most of it can be computed at once from the input of a layer. So the input
of each layer is kept, and the layer runs again on demand, with the same numbers to the last bit.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from transformer.models import Model
from transformer.probes import Recording, record
from transformer.runs.activation import Activation
from transformer.runs.activation_arrays import RecordedActivations, activations_of
from transformer.runs.not_finite import first_not_finite
from transformer.runs.partial_activations import PartialActivations, part_of

LARGE = 48_000_000  # bytes; a trace of at least this size is reduced
# Pages that show every head read the attention of all layers at once.
_KEPT = ("residual.in", "residual.out", "attention.scores", "attention.weights", "attention.allowed")


class SlimActivations(PartialActivations):
    """``RecordedActivations`` that recompute the inside of a layer on demand and remember one layer."""

    def __init__(self, model: Model, recording: Recording) -> None:
        whole = RecordedActivations(model.probes, recording.tensors)
        self.n_numbers = whole.n_numbers
        self.first_not_finite = first_not_finite(whole)  # found now, because later every layer would have to run again
        kept = {name: t for name, t in recording.tensors.items() if part_of(name) == name or name.endswith(_KEPT)}
        self._memory = None
        if model.config.kind == "encoder-decoder":
            last = f"encoder.layers.{model.config.n_encoder_layers - 1}.residual.out"
            self._memory = kept.get("encoder.final_norm.output", kept[last])
        super().__init__(model, recording.tensors, kept)

    def _run_again(self, part: str) -> Mapping[str, Tensor]:
        stack = part.split(".")[0]
        given: list[Tensor | None] = [
            self._tensors[f"{part}.residual.in"],
            self._tensors[f"{part}.self_attention.allowed"],
        ]
        if stack == "decoder":
            given += [self._memory, self._tensors.get(f"{part}.cross_attention.allowed")]
        given.append(self._tensors.get(f"{stack}.position_bias.values"))
        with torch.inference_mode(), record() as recording:
            self._model.get_submodule(part)(*given)
        return recording.tensors


def reduce_activations(model: Model, recording: Recording) -> Mapping[str, Activation]:
    """Return what a trace keeps of ``recording``: all of it if it is small or was edited."""
    whole = activations_of(model, recording)
    whole_kept = whole.n_bytes < LARGE or recording.edits or model.is_guest
    return whole if whole_kept else SlimActivations(model, recording)
