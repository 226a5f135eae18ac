"""Activations of a long text: the residual stream, and the inside of one layer at a time.

2,048 tokens in 30 layers of 9 heads are 9 GB of attention weights and scores. So one pass with fused kernels, which
never store the weights (Dao et al. 2022), keeps only the input of each layer, and a layer runs again when something
inside it is read. Its numbers equal those of a complete recording up to the rounding of the fused kernels.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer.fast.shortcut import fast_path
from transformer.masks import combined_mask, padding_mask
from transformer.models import Model
from transformer.probes import Edit, record
from transformer.runs.activation import Activation
from transformer.runs.activation_arrays import RecordedActivations, activations_of
from transformer.runs.not_finite import first_not_finite
from transformer.runs.recording_size import is_kept_of_long_text, is_kept_of_sound, recorded_numbers

BUDGET = 500_000_000  # bytes of layers that are remembered; the last one is, whatever its size
_LOGITS = "decoder.logits"


class LongActivations(Mapping[str, Activation]):
    """Everything that ``ids`` give in a decoder-only model, of which little is kept.

    A guest, whose layers cannot run alone, runs as a whole when a layer is read, and only that layer is recorded.

    Args:
        model: The model.
        ids: What it reads.
    """

    def __init__(self, model: Model, ids: Sequence[int]) -> None:
        self._model: Any = model
        self._ids = torch.tensor([ids], device=model.device)
        kept = {name for name in model.probes if is_kept_of_long_text(name)}
        with torch.inference_mode():
            with record() as short:  # two tokens: which names there are, in the order of a pass
                model(self._ids[:, :2])
            with fast_path(), record(names=kept) as recording:
                self._hidden = self._decode()
        self._names = tuple(activations_of(model, short))
        self._kept = RecordedActivations(model.probes, recording.tensors)
        self._inputs = recording.tensors
        # NaN and infinities stay in the residual stream, so the last vectors show whether there are any.
        finite = bool(torch.isfinite(self._hidden).all())
        self.first_not_finite = None if finite else first_not_finite(self._kept)
        self._lock = threading.Lock()  # a trace is shared by all sessions
        self._remembered: OrderedDict[str, RecordedActivations] = OrderedDict()

    def next_logits(self) -> Tensor:
        """Return the logits after the last token, [vocabulary]."""
        with torch.inference_mode():
            return self._model.project(self._hidden[:, -1:])[0, 0]

    def __getitem__(self, name: str) -> Activation:
        if name in self._kept:
            return self._kept[name]
        if name not in self._names:
            raise KeyError(name)
        part = _part_of(name)
        with self._lock:
            if part not in self._remembered:
                self._forget_for(part)
                self._remembered[part] = RecordedActivations(self._model.probes, self._run_again(part))
            self._remembered.move_to_end(part)
            return self._remembered[part][name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def n_bytes(self) -> int:
        """Memory that is held, in bytes; parts that are remembered may take ``BUDGET`` more."""
        return self._kept.n_bytes + max(BUDGET, *(part.n_bytes for part in self._remembered.values()), 0)

    def _decode(self) -> Tensor:
        hidden: Tensor = self._model.decode(self._ids)
        return hidden  # [1, token, model]

    def _forget_for(self, part: str) -> None:
        """Make space before ``part`` is computed: a layer is about as large as the others."""
        while self._remembered:
            largest = max(known.n_bytes for known in self._remembered.values())
            if sum(known.n_bytes for known in self._remembered.values()) + largest <= BUDGET:
                return
            self._remembered.popitem(last=False)

    def _run_again(self, part: str) -> dict[str, Tensor]:
        with torch.inference_mode():
            if part == _LOGITS:
                return {part: self._model.project(self._hidden)}
            names = {name for name in self._names if _part_of(name) == part}
            with fast_path(), record(names=names) as recording:
                if self._model.own_code:
                    keys_allowed = padding_mask(self._ids, self._model.config.pad_id)
                    allowed = combined_mask(keys_allowed, self._ids.shape[1], causal=True)
                    self._model.get_submodule(part)(self._inputs[f"{part}.residual.in"], allowed)
                else:
                    self._decode()
        return recording.tensors


class SoundActivations(LongActivations):
    """Everything that a sound gives in a model that writes text, of which the encoder keeps little.

    1,500 positions in 4 layers of 6 heads are 430 MB of attention weights and scores. The encoder, whose layers cannot
    run alone, runs as a whole when a layer is read, and only that layer is recorded. The decoder is kept completely.

    Args:
        model: The model.
        source: What the encoder reads, [1, position].
        ids: What the decoder reads.
        edits: Changes to the model in this recording.
    """

    def __init__(self, model: Model, source: Tensor, ids: Sequence[int], edits: Sequence[Edit] = ()) -> None:
        self._model, self._source, self._edits = model, source, tuple(edits)
        kept = {name for name in model.probes if is_kept_of_sound(name)}
        with torch.inference_mode(), fast_path(), record(self._edits, names=kept) as recording:
            model(source, torch.tensor([ids], device=model.device))
        self.n_numbers = recorded_numbers(model, source=source.shape[1], target=len(ids))
        self._names = tuple(model.probes)
        self._kept = RecordedActivations(model.probes, recording.tensors)
        finite = bool(torch.isfinite(recording.tensors["decoder.logits"]).all())
        self.first_not_finite = None if finite else first_not_finite(self._kept)
        self._lock = threading.Lock()
        self._remembered = OrderedDict()

    def _run_again(self, part: str) -> dict[str, Tensor]:
        names = {name for name in self._names if _part_of(name) == part}
        with torch.inference_mode(), fast_path(), record(self._edits, names=names) as recording:
            self._model.encode(self._source)
        return recording.tensors


def _part_of(name: str) -> str:
    """Return the layer that a probe is inside of, or its own name."""
    parts = name.split(".", 3)
    return ".".join(parts[:3]) if parts[1] == "layers" else name
