"""Conversion of recorded tensors to arrays."""

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter

from torch import Tensor, float64, stack

from transformer.models import Model
from transformer.probes import Probe, Recording
from transformer.runs.activation import Activation


class RecordedActivations(Mapping[str, Activation]):
    """Everything recorded for the first text of the batch, as read-only arrays without the batch axis.

    The tensors of the forward pass are kept as they are. A tensor becomes an array on demand, so recording everything
    costs little; on a CPU the array is a view that copies nothing. ``derived`` (see ``Recording``) is computed whenever
    it is read, and not kept.
    """

    def __init__(
        self,
        probes: Mapping[str, Probe],
        tensors: Mapping[str, Tensor],
        derived: Mapping[str, Mapping[str, Callable[[], Tensor]]] | None = None,
    ) -> None:
        self._probes, self._tensors = probes, dict(tensors)
        self._derived: dict[str, Callable[[], Tensor]] = {}
        self._names = tuple(self._tensors)
        if derived:
            self._names = tuple(name for source in tensors for name in (source, *derived.get(source, ())))
            for functions in derived.values():
                self._derived |= functions

    def __getitem__(self, name: str) -> Activation:
        values = self._tensor(name).numpy(force=True)[0]
        values.flags.writeable = False  # traces are shared between threads
        return Activation(name, self._probes[name].axes, values)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors or name in self._derived

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _tensor(self, name: str) -> Tensor:
        return self._derived[name]() if name in self._derived else self._tensors[name]

    @property
    def have_finite_sums(self) -> bool:
        """Whether the sum of every tensor is finite, which implies that all numbers are finite.

        If it is false, a sum may have overflowed, or another text of the batch may have a number that is not finite.
        """
        tensors = map(self._tensor, self._names)
        sums = [tensor.sum(dtype=float64) for tensor in tensors if tensor.is_floating_point()]
        return not sums or bool(stack(sums).isfinite().all())

    @property
    def n_bytes(self) -> int:
        """Memory of the recorded tensors in bytes, exact if none shares memory with another."""
        return sum(map(attrgetter("nbytes"), self._tensors.values()))

    @property
    def n_numbers(self) -> int:
        """Number of values in all activations together."""
        return sum(self._tensor(name)[0].numel() for name in self._names)


def activations_of(model: Model, recording: Recording) -> RecordedActivations:
    """Return what ``recording`` holds of a pass of ``model``, by probe name, in the order of the pass."""
    return RecordedActivations(model.probes, recording.tensors, recording.derived)
