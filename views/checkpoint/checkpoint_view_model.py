"""The data of the Checkpoint page: the size of one checkpoint, its parameters and its configuration.

A notebook builds the same object:

>>> import transformer
>>> from views.checkpoint.checkpoint_view_model import CheckpointViewModel
>>> view_model = CheckpointViewModel(transformer.load("checkpoints/bert-en"))
>>> view_model.settings["positions"], sum(row.numbers for row in view_model.parameters()) == view_model.n_parameters
('learned', True)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

from transformer import Checkpoint
from transformer.files.checkpoints import WEIGHTS
from transformer.guests.folder import stored_files
from transformer.guests.half_precision import HALF_TYPES
from transformer.layers.costs import ParameterStatistics, parameter_costs, parameter_statistics


@dataclass(frozen=True)
class CheckpointViewModel:
    """One checkpoint on disk.

    Attributes:
        checkpoint: The opened checkpoint.
    """

    checkpoint: Checkpoint

    @property
    def n_parameters(self) -> int:
        """How many trained numbers the model has."""
        return self.checkpoint.model.n_parameters

    @property
    def shares(self) -> dict[str, float]:
        """The share of all trained numbers that each kind of part has, in percent, the largest first."""
        numbers: Counter[str] = Counter()
        for cost in parameter_costs(self.checkpoint.model):
            numbers[cost.part] += cost.parameters
        return {part: 100 * count / numbers.total() for part, count in numbers.most_common() if count}

    @property
    def vocabulary_size(self) -> int | None:
        """The size of the vocabulary; ``None`` for a model that reads images and has no vocabulary."""
        config = self.checkpoint.config
        return None if config.reads_images else config.vocabulary_size

    @property
    def megabytes(self) -> float:
        """The size of the weights on disk, in 10⁶ bytes."""
        path = self.checkpoint.path
        files = stored_files(path) if self.checkpoint.is_guest else [path / WEIGHTS]
        return sum(file.stat().st_size for file in files) / 1e6

    @property
    def in_memory(self) -> tuple[str, float, float] | None:
        """Type of the matrices in half precision, GB of all weights, GB in float32; or ``None``."""
        parameters = list(self.checkpoint.model.parameters())
        half = next((parameter.dtype for parameter in parameters if parameter.dtype in HALF_TYPES), None)
        if half is None:
            return None
        held = sum(parameter.nbytes for parameter in parameters)
        return str(half).removeprefix("torch."), held / 1e9, 4 * self.n_parameters / 1e9

    @property
    def settings(self) -> dict[str, str]:
        """The fields of the configuration as strings."""
        return {name: str(value) for name, value in asdict(self.checkpoint.config).items()}

    def parameters(self) -> tuple[ParameterStatistics, ...]:
        """Measure every parameter: its shape, mean, standard deviation and largest magnitude."""
        return tuple(parameter_statistics(self.checkpoint.model))
