"""A pass that keeps only the inputs of layers; a layer runs again when a tensor inside it is read.

2,048 tokens in 30 layers of 9 heads are 9 GB of attention weights and scores. The pass uses fused kernels, which never
store the weights (Dao et al. 2022). So its numbers equal those of a complete recording up to rounding.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from transformer.fast.shortcut import fast_path
from transformer.guests.attention_function import layer_calls
from transformer.guests.trial_pass import close
from transformer.masks import combined_mask, padding_mask
from transformer.models import Model
from transformer.probes import Edit, Recording, record
from transformer.runs.recording_size import kept_bytes, part_of

BUDGET = 500_000_000  # bytes of layers that are remembered; the last one is, whatever its size
_SAME = 1e-4  # of the largest number of a residual stream; the rounding of fused kernels gives less
_LOGITS = "decoder.logits"
_FEW = 8  # tokens of a text with which it is tried whether a guest can continue a pass
_NAMES: MutableMapping[Model, tuple[str, ...]] = WeakKeyDictionary()
# The lowest layer with which a guest was found to continue a pass.
_CONTINUES: MutableMapping[Model, int] = WeakKeyDictionary()


class LazyPass:
    """A pass of a decoder-only model over ``ids`` that computes most tensors when they are read.

    Nothing runs until something is read. The layer that is read ends the pass: a map of layer 3 does not need the
    layers above it. If one of those is read later, the pass begins anew; a third-party model continues it.

    Args:
        model: The model.
        ids: What it reads, [1, position].

    Attributes:
        names: Names of all tensors, in the order of the pass.
    """

    def __init__(self, model: Model, ids: Tensor) -> None:
        self._model, self._ids, self._budget = cast(Any, model), ids, BUDGET
        self.names = _names_of(model, ids)
        self._outside = frozenset(name for name in self.names if part_of(name) is None)
        self._kept: dict[str, Tensor] = {}
        self._hidden: Tensor | None = None  # what the logits are computed from, [1, position, model]
        self._calls: dict[str, Callable[[], object]] | None = {}  # how each layer of a guest runs alone, if it can
        self._remembered: OrderedDict[str, Mapping[str, Tensor]] = OrderedDict()
        self._lock = threading.Lock()  # a trace is shared by all sessions

    def tensor(self, name: str) -> Tensor:
        """Return one tensor with its batch axis; what it depends on runs if it has not run yet."""
        with self._lock:
            if (part := part_of(name)) is None:
                if name not in self._kept:
                    self._run()
                return self._kept[name]
            if part not in self._remembered:
                self._forget_for_another()
                self._remembered[part] = self._run_part(part)
            self._remembered.move_to_end(part)
            return self._remembered[part][name]

    def next_logits(self) -> Tensor:
        """Return the logits after the last token, [vocabulary]."""
        with self._lock, torch.inference_mode():
            logits: Tensor = self._model.project(self._output()[:, -1:])[0, 0]
        return logits

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are finite, as far as the layers have run."""
        # NaN and infinities stay in the residual stream, so the last vectors show whether there are any.
        streams = [self._hidden] if self._hidden is not None else list(self._kept.values())[-1:]
        return all(bool(torch.isfinite(stream).all()) for stream in streams)

    @property
    def n_bytes(self) -> int:
        """Memory that is held once the whole pass has run, including the layers that are or may be kept."""
        kept = kept_bytes(self._model, self._ids.shape[1])
        return kept + max(self._budget, *map(_bytes, self._remembered.values()), 0)

    def _run(self, within: str | None = None) -> Mapping[str, Tensor]:
        """Run the pass up to the layer ``within``, if there is one, and return what is inside that layer."""
        inside, streams = self._inside(within), [self._kept[name] for name in self._kept if ".layers." in name]
        is_open = bool(streams) and self._hidden is None and self._calls is not None and self._model.is_guest
        if not (is_open and _can_continue(self._model, self._ids, len(streams) - 1)):
            streams = []
        # A pass that has to begin anew runs all layers, so that there is no third.
        last = None if within is None or (self._kept and not streams) else f"{within}.residual.out"
        recorded = _record_from(streams, names=(self._outside - self._kept.keys()) | inside, last=last)
        with torch.inference_mode(), fast_path(), layer_calls(self._calls), recorded as recording:
            self._hidden = self._model.decode(self._ids)
        found = recording.tensors
        self._kept |= {name: tensor for name, tensor in found.items() if name in self._outside}
        return {name: tensor for name, tensor in found.items() if name in inside}

    def _run_part(self, part: str) -> Mapping[str, Tensor]:
        """Return the tensors inside a layer, or the logits."""
        if part == _LOGITS:
            with torch.inference_mode():
                return {part: self._model.project(self._output())}
        inside, call = self._inside(part), self._call_of(part)
        if call is None:
            return self._run(part)
        with torch.inference_mode(), fast_path(), record(names=inside) as recording:
            call()
        if not self._continues(part, recording.tensors):
            self._calls = None
            return self._run(part)
        return recording.tensors

    def _call_of(self, part: str) -> Callable[[], object] | None:
        """Return a function that runs a layer alone; ``None`` if impossible, or not reached by the pass."""
        if self._model.is_guest:
            return self._calls.get(part) if self._calls is not None else None
        stream = self._kept.get(f"{part}.residual.in")
        return None if stream is None else partial(self._model.get_submodule(part), stream, self._allowed)

    def _continues(self, part: str, inside: Mapping[str, Tensor]) -> bool:
        """Return whether a layer that ran alone gave the same output that the next layer read in the pass."""
        stack, _, layer = part.split(".")
        following = self._kept.get(f"{stack}.layers.{int(layer) + 1}.residual.in")
        if following is None:
            return True
        difference = (inside[f"{part}.residual.out"] - following).abs().max()
        return not bool(difference > _SAME * following.abs().max())  # NaN is no difference

    def _output(self) -> Tensor:
        if self._hidden is None:
            self._run()
        assert self._hidden is not None
        return self._hidden

    @cached_property
    def _allowed(self) -> Tensor:
        """Which key each query may attend to, [1, query, key]."""
        keys_allowed = padding_mask(self._ids, self._model.config.pad_id)
        return combined_mask(keys_allowed, self._ids.shape[1], causal=True)

    def _inside(self, part: str | None) -> frozenset[str]:
        return frozenset(name for name in self.names if part is not None and part_of(name) == part)

    def _forget_for_another(self) -> None:
        """Make space for another part: a layer is about as large as the others."""
        while self._remembered:
            sizes = [_bytes(part) for part in self._remembered.values()]
            if sum(sizes) + max(sizes) <= self._budget:
                return
            self._remembered.popitem(last=False)


def _record_from(
    streams: Sequence[Tensor], *, names: Collection[str], last: str | None
) -> AbstractContextManager[Recording]:
    """Record a pass that begins with the last layer whose input is in ``streams``, or a whole pass."""
    if not streams:
        return record(names=names, last=last)
    first = len(streams) - 1
    given = Edit(f"decoder.layers.{first}.residual.in", lambda _: streams[first])
    return record([given], names, first=first, last=last)


def _can_continue(model: Any, ids: Tensor, first: int) -> bool:
    """Return whether the layers from ``first`` on need no more of those below them than their input."""
    n_layers = model.config.n_decoder_layers
    if _CONTINUES.get(model, n_layers) <= first:
        return True
    if works := _give_the_same(model, ids[:, :_FEW], range(first, n_layers)):
        _CONTINUES[model] = first
    return works


@torch.inference_mode()
def _give_the_same(model: Any, ids: Tensor, layers: range) -> bool:
    """Return whether each of these layers gives the same output if the pass begins with it."""
    ends = {layer: f"decoder.layers.{layer}.residual.out" for layer in layers}
    begins = [f"decoder.layers.{layer}.residual.in" for layer in range(layers.stop)]
    with record(names={*begins, *ends.values()}) as whole:
        model.decode(ids)
    streams = [whole.tensors[begin] for begin in begins]
    model.decode(ids.flip(1))  # replaces what a layer may have left behind in the network
    try:
        for layer in reversed(layers):  # so that none runs after a layer below it
            end = ends[layer]
            with _record_from(streams[: layer + 1], names={end}, last=end) as alone:
                model.decode(ids)
            if not close(whole.tensors[end], alone.tensors[end]):
                return False
    except Exception:  # a layer looks for what another has left behind
        return False
    return True


def _bytes(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors.values())


def _names_of(model: Model, ids: Tensor) -> tuple[str, ...]:
    """Return the names of all tensors in the order of a pass, found with two tokens."""
    if (known := _NAMES.get(model)) is None:
        with torch.inference_mode(), record() as short:
            model(ids[:, :2])
        known = _NAMES[model] = short.all_names()
    return known
