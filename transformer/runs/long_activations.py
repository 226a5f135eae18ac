"""Activations of a long text: the residual stream, and the inside of one layer at a time.

2,048 tokens in 30 layers of 9 heads are 9 GB of attention weights and scores. So a pass with fused kernels, which never
store the weights (Dao et al. 2022), keeps only the input of each layer, and a layer runs again when something inside it
is read. Its numbers equal those of a complete recording up to the rounding of the fused kernels.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from transformer.fast.shortcut import fast_path
from transformer.masks import combined_mask, padding_mask
from transformer.models import Model
from transformer.probes import record
from transformer.runs.activation_arrays import activations_of
from transformer.runs.not_finite import NotFinite, first_not_finite
from transformer.runs.partial_activations import PartialActivations
from transformer.runs.recording_size import is_kept_of_long_text, kept_of_long_text_bytes

_NAMES: MutableMapping[Model, tuple[str, ...]] = WeakKeyDictionary()
BUDGET = 500_000_000  # bytes of layers that are remembered
_LOGITS = "decoder.logits"


class LongActivations(PartialActivations):
    """Everything that ``ids`` give in a decoder-only model, of which little is kept.

    A layer runs when it, or a later one, is read for the first time: a map of layer 3 does not need those above it.

    Args:
        model: The model, not a guest.
        ids: What it reads.
    """

    def __init__(self, model: Model, ids: Sequence[int]) -> None:
        self._decoder = cast(Any, model.decoder)
        self._ids = torch.tensor([ids], device=model.device)
        self._outside = {name for name in model.probes if is_kept_of_long_text(name) and ".layers." not in name}
        keys_allowed = padding_mask(self._ids, model.config.pad_id)
        self._allowed = combined_mask(keys_allowed, len(ids), causal=True)  # [1, query, key]
        with torch.inference_mode(), record(names=self._outside) as recording:
            stream = self._decoder.embedding(self._ids)  # [1, token, model]
        self._streams = [stream]  # before each layer, and after the last one
        self._hidden: Tensor | None = None  # after the final norm
        super().__init__(model, _names_of(model, self._ids), recording.tensors, budget=BUDGET)

    @property
    def first_not_finite(self) -> NotFinite | None:
        """The first number that is not finite, so far as the layers have run."""
        # NaN and infinities stay in the residual stream, so the last vectors show whether there are any.
        last = self._streams[-1] if self._hidden is None else self._hidden
        return None if bool(torch.isfinite(last).all()) else first_not_finite(self._kept)

    @property
    def n_bytes(self) -> int:
        """Memory that is held once all layers have run, with the layers that are or may be remembered."""
        missing = kept_of_long_text_bytes(self._model, self._ids.shape[1]) - self._kept.n_bytes
        return super().n_bytes + missing

    def next_logits(self) -> Tensor:
        """Return the logits after the last token, [vocabulary]."""
        with self._lock, torch.inference_mode():
            logits: Tensor = self._decoder.project(self._decode()[:, -1:])[0, 0]
        return logits

    def _reach(self, name: str) -> None:
        place = name.split(".", 3)
        if place[1] == "layers":
            self._run_to(int(place[2]))
        elif name not in self._kept:
            self._decode()

    def _run_to(self, layer: int) -> None:
        """Run the layers below ``layer`` that have not run yet."""
        layers = self._decoder.layers
        with torch.inference_mode(), fast_path():
            for below in range(len(self._streams) - 1, layer):
                self._streams.append(layers[below](self._streams[below], self._allowed))
        inputs = self._streams[: len(layers)]
        self._keep({f"decoder.layers.{index}.residual.in": stream for index, stream in enumerate(inputs)})

    def _decode(self) -> Tensor:
        """Return the output of the last layer, after the final norm if there is one, [1, token, model]."""
        if self._hidden is None:
            self._run_to(len(self._decoder.layers))
            norm = self._decoder.final_norm
            with torch.inference_mode(), fast_path(), record(names=self._outside) as recording:
                self._hidden = self._streams[-1] if norm is None else norm(self._streams[-1])
            self._keep(recording.tensors)
        return self._hidden

    def _run_again(self, part: str) -> Mapping[str, Tensor]:
        with torch.inference_mode():
            if part == _LOGITS:
                return {part: self._decoder.project(self._decode())}
            with fast_path(), record(names=self._names_in(part)) as recording:
                layer = int(part.rsplit(".", 1)[-1])
                self._decoder.layers[layer](self._streams[layer], self._allowed)
        return recording.tensors


class LongGuestActivations(PartialActivations):
    """Everything that ``ids`` give in a guest that continues texts, of which little is kept.

    The layers of a guest cannot run alone: its stack runs as a whole when a layer is read, and only that layer is
    recorded.
    """

    def __init__(self, model: Model, ids: Sequence[int]) -> None:
        self._guest = cast(Any, model)
        self._ids = torch.tensor([ids], device=model.device)
        kept = {name for name in model.probes if is_kept_of_long_text(name)}
        with torch.inference_mode(), fast_path(), record(names=kept) as recording:
            self._hidden: Tensor = self._guest.decode(self._ids)  # [1, token, model]
        super().__init__(model, _names_of(model, self._ids), recording.tensors, budget=BUDGET)
        self.first_not_finite = None if bool(torch.isfinite(self._hidden).all()) else first_not_finite(self._kept)

    def next_logits(self) -> Tensor:
        """Return the logits after the last token, [vocabulary]."""
        with torch.inference_mode():
            logits: Tensor = self._guest.project(self._hidden[:, -1:])[0, 0]
        return logits

    def _run_again(self, part: str) -> Mapping[str, Tensor]:
        with torch.inference_mode():
            if part == _LOGITS:
                return {part: self._guest.project(self._hidden)}
            with fast_path(), record(names=self._names_in(part)) as recording:
                self._guest.decode(self._ids)
        return recording.tensors


def long_activations(model: Model, ids: Sequence[int]) -> LongActivations | LongGuestActivations:
    """Return everything that ``ids`` give in a decoder-only model, of which little is kept."""
    return (LongGuestActivations if model.is_guest else LongActivations)(model, ids)


def _names_of(model: Model, ids: Tensor) -> tuple[str, ...]:
    """Return the names of all activations in the order of a pass, found with two tokens."""
    if (known := _NAMES.get(model)) is None:
        with torch.inference_mode(), record() as short:
            model(ids[:, :2])
        known = _NAMES[model] = tuple(activations_of(model, short))
    return known
