"""One recorded pass of a model: every activation by the name of its probe, whole or lazy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Self

import torch
from torch import Tensor, float64, stack

from transformer.models import Model
from transformer.probes import Edit, Recording, record
from transformer.runs.activation import Activation
from transformer.runs.lazy_pass import LazyPass


class Recorded(Mapping[str, Activation]):
    """The activations of one pass for the first text of a batch, as read-only arrays.

    A tensor becomes an array when it is read, so recording everything costs little; on a CPU the array is a view that
    copies nothing. What the pass itself did not need (``Recording.derived``) is computed whenever it is read.

    Args:
        model: The model.
        inputs: Token ids that each of its stacks reads, [1, position].
        edits: Changes to the model in this pass.
        lazy: Whether a layer of a decoder-only model runs again when it is read, instead of being kept (``LazyPass``).
        recording: A pass that has run, instead of ``inputs`` and ``edits``.

    Raises:
        ValueError: If a lazy pass has edits: an edit may read any other tensor.
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[Tensor] = (),
        edits: Iterable[Edit] = (),
        *,
        lazy: bool = False,
        recording: Recording | None = None,
    ) -> None:
        self._probes = model.probes
        self._rows: slice | None = None  # of a decoding step
        if lazy and (edits := tuple(edits)):
            raise ValueError(
                f"a pass with {len(edits)} edits cannot be lazy: an edit may read a tensor that is not kept; "
                "record it whole, or without edits"
            )
        self._lazy = LazyPass(model, *inputs) if lazy else None
        if self._lazy is not None:
            self._names = dict.fromkeys(self._lazy.names)
            return
        if recording is None:
            with torch.inference_mode(), record(edits) as recording:
                model(*inputs)
        self._tensors = dict(recording.tensors)
        self._derived = {name: compute for found in recording.derived.values() for name, compute in found.items()}
        self._names = dict.fromkeys(recording.all_names())

    def __getitem__(self, name: str) -> Activation:
        if name not in self._names:
            raise KeyError(name)
        values = self._tensor(name).numpy(force=True)[0]
        values.flags.writeable = False  # traces are shared between threads
        axes = self._probes[name].axes
        if self._rows is not None:
            values = values[_rows_of(name, axes, self._rows)]
        return Activation(name, axes, values)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _tensor(self, name: str) -> Tensor:
        if self._lazy is not None:
            return self._lazy.tensor(name)
        return self._derived[name]() if name in self._derived else self._tensors[name]

    def step(self, start: int, stop: int) -> Self:
        """Return the rows of the decoding step that feeds positions ``start`` to ``stop`` − 1.

        In a causal model no position depends on a later one, so the pass over the whole text holds the numbers of every
        step, at the cost of one pass instead of one recorded step per token. Tensors that a cache provides (the
        encoder, keys and values of cross-attention) belong to the first step only. Logits are those of the step's last
        position.
        """
        step = copy(self)
        step._rows = slice(start, stop)
        step._names = {name: None for name in self._names if not (start and _is_cached(name))}
        return step

    def next_logits(self) -> Tensor:
        """Return the logits after the last token, [vocabulary]."""
        return self._tensor("decoder.logits")[0, -1] if self._lazy is None else self._lazy.next_logits()

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are finite; in a lazy pass, those of the layers that have run.

        For a whole pass, only sums are checked. So the result may also be false because a sum has overflowed, or
        because another text of the batch has a number that is not finite.
        """
        return self._has_finite_sums if self._lazy is None else self._lazy.is_finite

    @cached_property
    def _has_finite_sums(self) -> bool:
        tensors = map(self._tensor, self._names)
        sums = [tensor.sum(dtype=float64) for tensor in tensors if tensor.is_floating_point()]
        return not sums or bool(stack(sums).isfinite().all())

    @property
    def n_bytes(self) -> int:
        """Memory of the recorded tensors in bytes, exact if none shares memory with another."""
        if self._rows is not None:
            return sum(activation.values.nbytes for activation in self.values())
        return sum(tensor.nbytes for tensor in self._tensors.values()) if self._lazy is None else self._lazy.n_bytes

    @property
    def n_numbers(self) -> int:
        """Number of values in all activations together."""
        return sum(self._tensor(name)[0].numel() for name in self._names)


def _rows_of(name: str, axes: Sequence[str], rows: slice) -> tuple[slice, ...]:
    """Return the slice of each axis that a decoding step computes."""
    if _is_cached(name):
        return ()
    own = slice(rows.stop - 1, rows.stop) if name == "decoder.logits" else rows
    keys = slice(None) if "cross_attention" in name else slice(rows.stop)
    slices = {"position": own, "query": own, "key": keys}
    return tuple(slices.get(axis, slice(None)) for axis in axes)


def _is_cached(name: str) -> bool:
    """Return whether a decoder with a cache computes this tensor once for all steps."""
    return name.startswith("encoder.") or name.endswith(("cross_attention.key", "cross_attention.value"))
