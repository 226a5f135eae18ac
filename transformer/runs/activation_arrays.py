"""From recorded tensors to plain arrays."""

from collections.abc import Iterator, Mapping
from operator import attrgetter

from torch import Tensor, float64, stack

from transformer.models import Model
from transformer.probes import Probe, Recording
from transformer.runs.activation import Activation


class RecordedActivations(Mapping[str, Activation]):
    """Everything recorded for the first text of the batch; the batch axis is dropped, values are read-only.

    The tensors of the forward pass are kept as they are. A tensor becomes an array on demand, so keeping everything
    costs little; on a CPU the array is a view, and nothing is copied then either.
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
        """Whether the numbers of every tensor have a finite sum, so that all of them are finite.

        Where it is false, a sum may have overflowed, or the tensor of another text of the batch is not finite.
        """
        sums = [tensor.sum(dtype=float64) for tensor in self._tensors.values() if tensor.is_floating_point()]
        return not sums or bool(stack(sums).isfinite().all())

    @property
    def n_bytes(self) -> int:
        """Memory that the recorded tensors take, to the byte where none shares it with another."""
        return sum(map(attrgetter("nbytes"), self._tensors.values()))

    @property
    def n_numbers(self) -> int:
        """How many numbers all activations have."""
        return sum(tensor[0].numel() for tensor in self._tensors.values())


def activations_of(model: Model, recording: Recording) -> Mapping[str, Activation]:
    """What ``recording`` holds of a pass of ``model``, by probe name, in the order of the pass."""
    return RecordedActivations(model.probes, recording.tensors)
