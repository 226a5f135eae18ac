"""Reduced storage of a large trace: the residual stream and attention; the rest is recomputed.

GPT-2 small produces 144 MB for 128 tokens. Most of it can be computed at once from the input of a layer. So the input
of each layer is kept, and the layer runs again on demand, with the same numbers to the last bit.
"""

import threading
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from transformer.models import Model
from transformer.probes import Recording, record
from transformer.runs.activation import Activation
from transformer.runs.activation_arrays import RecordedActivations, activations_of
from transformer.runs.not_finite import first_not_finite

LARGE = 48_000_000  # bytes; a trace of at least this size is reduced
# Pages that show every head read the attention of all layers at once.
_KEPT = ("residual.in", "residual.out", "attention.scores", "attention.weights", "attention.allowed")


class SlimActivations(Mapping[str, Activation]):
    """``RecordedActivations`` that recompute the inside of a layer on demand and remember one layer."""

    def __init__(self, model: Model, recording: Recording) -> None:
        self._model, self._names = model, tuple(recording.tensors)
        whole = RecordedActivations(model.probes, recording.tensors)
        self.n_numbers = whole.n_numbers
        self.first_not_finite = first_not_finite(whole)  # found now, because later every layer would have to run again
        tensors = {
            name: t for name, t in recording.tensors.items() if not _is_inside_layer(name) or name.endswith(_KEPT)
        }
        self._kept = RecordedActivations(model.probes, tensors)
        self._tensors = tensors
        self._memory = None
        if model.config.kind == "encoder-decoder":
            last = f"encoder.layers.{model.config.n_encoder_layers - 1}.residual.out"
            self._memory = tensors.get("encoder.final_norm.output", tensors[last])
        self._lock = threading.Lock()  # a trace is shared by all sessions
        self._last: tuple[str, RecordedActivations] | None = None

    def __getitem__(self, name: str) -> Activation:
        if name in self._kept:
            return self._kept[name]
        if name not in self._names:
            raise KeyError(name)
        layer = ".".join(name.split(".", 3)[:3])
        with self._lock:
            if self._last is None or self._last[0] != layer:
                self._last = (layer, RecordedActivations(self._model.probes, self._rerun(layer)))
            return self._last[1][name]

    def __contains__(self, name: object) -> bool:
        return name in self._kept or name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def n_bytes(self) -> int:
        """Memory that is held permanently, in bytes, without recomputed tensors."""
        return self._kept.n_bytes

    def _rerun(self, layer: str) -> dict[str, Tensor]:
        """Recompute everything inside one layer from its input."""
        stack = layer.split(".")[0]
        given: list[Tensor | None] = [
            self._tensors[f"{layer}.residual.in"],
            self._tensors[f"{layer}.self_attention.allowed"],
        ]
        if stack == "decoder":
            given += [self._memory, self._tensors.get(f"{layer}.cross_attention.allowed")]
        given.append(self._tensors.get(f"{stack}.position_bias.values"))
        with torch.inference_mode(), record() as recording:
            self._model.get_submodule(layer)(*given)
        return recording.tensors


def _is_inside_layer(name: str) -> bool:
    """Return whether a probe is inside a layer: ``decoder.layers.3.feed_forward.hidden``."""
    return name.split(".", 2)[1] == "layers"


def reduce_activations(model: Model, recording: Recording) -> Mapping[str, Activation]:
    """Return what a trace keeps of ``recording``: all of it if it is small or was edited."""
    whole = activations_of(model, recording)
    whole_kept = whole.n_bytes < LARGE or recording.edits or not model.own_code
    return whole if whole_kept else SlimActivations(model, recording)
