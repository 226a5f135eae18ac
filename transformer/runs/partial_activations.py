"""Activations of which part is kept; a layer runs again when something inside it is read."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from torch import Tensor

from transformer.models import Model
from transformer.runs.activation import Activation
from transformer.runs.activation_arrays import RecordedActivations


class PartialActivations(Mapping[str, Activation]):
    """Everything that one pass gives: some of it is kept, the rest computed layer by layer.

    A subclass defines how a layer runs again.

    Args:
        model: The model.
        names: Names of all activations, in the order of the pass.
        kept: The tensors that are kept, by name.
        budget: Bytes of layers that are remembered; the last one is, whatever its size.
    """

    def __init__(self, model: Model, names: Iterable[str], kept: Mapping[str, Tensor], *, budget: int = 0) -> None:
        self._model, self._names, self._budget = model, dict.fromkeys(names), budget
        self._kept = RecordedActivations(model.probes, kept)
        self._tensors = dict(kept)
        self._lock = threading.Lock()  # a trace is shared by all sessions
        self._remembered: OrderedDict[str, RecordedActivations] = OrderedDict()

    def __getitem__(self, name: str) -> Activation:
        if name not in self._names:
            raise KeyError(name)
        with self._lock:
            self._reach(name)
            if name in self._kept:
                return self._kept[name]
            part = part_of(name)
            if part not in self._remembered:
                self._forget_for_another()
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
        """Memory that is held, in bytes, with the layers that are or may be remembered."""
        return self._kept.n_bytes + max(self._budget, *(part.n_bytes for part in self._remembered.values()), 0)

    def _keep(self, tensors: Mapping[str, Tensor]) -> None:
        """Keep tensors that have been computed since."""
        self._tensors.update(tensors)
        self._kept = RecordedActivations(self._model.probes, self._tensors)

    def _reach(self, name: str) -> None:
        """Compute what ``name`` depends on; by default, all of it is kept."""

    def _run_again(self, part: str) -> Mapping[str, Tensor]:
        """Return all tensors inside ``part``."""
        raise NotImplementedError

    def _names_in(self, part: str) -> list[str]:
        return [name for name in self._names if part_of(name) == part]

    def _forget_for_another(self) -> None:
        """Make space for another part: a layer is about as large as the others."""
        while self._remembered:
            largest = max(known.n_bytes for known in self._remembered.values())
            if sum(known.n_bytes for known in self._remembered.values()) + largest <= self._budget:
                return
            self._remembered.popitem(last=False)


def part_of(name: str) -> str:
    """Return the layer that a probe is inside of, or its own name."""
    parts = name.split(".", 3)
    return ".".join(parts[:3]) if parts[1] == "layers" else name
