"""Conversion of recorded tensors to arrays."""

from collections.abc import Iterator, Mapping
from operator import attrgetter

from torch import Tensor, float64, stack

from transformer.models import Model
from transformer.probes import Probe, Recording
from transformer.runs.activation import Activation


class RecordedActivations(Mapping[str, Activation]):
    """Everything recorded for the first text of the batch, as read-only arrays without the batch axis.

    The tensors of the forward pass are kept as they are. A tensor becomes an array on demand, so recording everything
    costs little; on a CPU the array is a view that copies nothing.
    """

    def __init__(self, probes: Mapping[str, Probe], tensors: Mapping[str, Tensor]) -> None:
        self._probes, self._tensors = probes, dict(tensors)

    def __getitem__(self, name: str) -> Activation:
        values = self._tensors[name].numpy(force=True)[0]
        values.flags.writeable = False  # traces are shared between threads
        return Activation(name, self._probes[name].axes, values)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def have_finite_sums(self) -> bool:
        """Whether the sum of every tensor is finite, which implies that all numbers are finite.

        If it is false, a sum may have overflowed, or another text of the batch may have a number that is not finite.
        """
        sums = [tensor.sum(dtype=float64) for tensor in self._tensors.values() if tensor.is_floating_point()]
        return not sums or bool(stack(sums).isfinite().all())

    @property
    def n_bytes(self) -> int:
        """Memory of the recorded tensors in bytes, exact if none shares memory with another."""
        return sum(map(attrgetter("nbytes"), self._tensors.values()))

    @property
    def n_numbers(self) -> int:
        """Number of values in all activations together."""
        return sum(tensor[0].numel() for tensor in self._tensors.values())


def activations_of(model: Model, recording: Recording) -> Mapping[str, Activation]:
    """Return what ``recording`` holds of a pass of ``model``, by probe name, in the order of the pass."""
    return RecordedActivations(model.probes, recording.tensors)
