"""What is kept of a large trace: the residual stream, the attention, and the way to the rest.

GPT-2 small leaves 144 MB behind for 128 tokens. Most of it follows at once from what a layer was given. So a layer's
input is kept, and the layer runs again when somebody asks for more of it: the same numbers, to the last bit.
"""

import threading
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from transformer.models import Model
from transformer.probes import Recording, record
from transformer.runs.activation import Activation
from transformer.runs.activation_arrays import RecordedActivations
from transformer.runs.not_finite import first_not_finite

LARGE = 48_000_000  # bytes from which a trace is slimmed
# The attention of all layers is asked for together, by pages that show every head.
_KEPT = ("residual.in", "residual.out", "attention.scores", "attention.weights", "attention.allowed")


class SlimActivations(Mapping[str, Activation]):
    """As ``RecordedActivations``, with the inside of the layers computed again on demand; one layer is remembered."""

    def __init__(self, model: Model, recording: Recording) -> None:
        self._model, self._names = model, tuple(recording.tensors)
        whole = RecordedActivations(model.probes, recording.tensors)
        self.n_numbers = whole.n_numbers
        self.first_not_finite = first_not_finite(whole)  # now: later every layer would run again
        tensors = {name: t for name, t in recording.tensors.items() if not _inside(name) or name.endswith(_KEPT)}
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
        """Memory that is kept for good; what is computed again comes and goes."""
        return self._kept.n_bytes

    def _rerun(self, layer: str) -> dict[str, Tensor]:
        """Everything inside one layer, from what it was given."""
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


def _inside(name: str) -> bool:
    """Whether a probe lies inside a layer: ``decoder.layers.3.feed_forward.hidden``."""
    return name.split(".", 2)[1] == "layers"


def slimmed(model: Model, recording: Recording) -> Mapping[str, Activation]:
    """What a trace keeps of ``recording``: all of it where that is little, or where edits changed it on the way."""
    whole = RecordedActivations(model.probes, recording.tensors)
    return whole if whole.n_bytes < LARGE or recording.edits else SlimActivations(model, recording)
