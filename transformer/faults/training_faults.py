"""Tiny models trained with a fault, and one without: weights and training curves.

``python -m transformer.faults.training_faults`` makes them (a minute or two on one core) from their seed alone, and
stores them in ``weights/``, so that a class has them at once.
"""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import torch

from transformer.disk.tensor_files import TensorFile
from transformer.disk.whole_files import write_text
from transformer.errors import CheckpointError
from transformer.files.checkpoints import save_weights
from transformer.toy.learner import TRAINING_FAULTS, ToyLearner, toy_config
from transformer.toy.tasks import TASKS
from transformer.toy.toy_training import train_toy

FOLDER = Path(__file__).with_name("weights")
COMMAND = "python -m transformer.faults.training_faults"
TASK, STEPS, EVERY, SEED = "copy", 400, 10, 0
HEALTHY = "healthy"
NAMES = (HEALTHY, *TRAINING_FAULTS)


@dataclass(frozen=True)
class TrainingMoment:
    """One moment of a training.

    Attributes:
        reported: Loss that the training itself reports, in nats.
        loss: Loss on held-out words that are read as in generation, in nats.
        writes: Share of them that the model generates correctly.
        written: Output for the example.
    """

    step: int
    reported: float
    loss: float
    writes: float
    written: str


@dataclass(frozen=True)
class TrainedToy:
    """A finished training: its model and its moments. It is shared, so it must not be changed."""

    learner: ToyLearner
    moments: tuple[TrainingMoment, ...]


@lru_cache(maxsize=len(NAMES))
def trained_toy(name: str) -> TrainedToy:
    """Return one of the three trainings: "healthy", "no_causal_mask" or "shifted_target".

    Raises:
        ValueError: If the name is unknown.
        CheckpointError: If its files are missing or do not fit.
    """
    if name not in NAMES:
        raise ValueError(f"there is no training {name!r}; choose one of {', '.join(NAMES)}")
    weights, moments_file = FOLDER / f"{name}.safetensors", FOLDER / f"{name}.json"
    if not (weights.is_file() and moments_file.is_file()):
        raise CheckpointError(f"{FOLDER} lacks the training {name}; make it with {COMMAND}")
    learner = _learner(name)
    parameters = dict(learner.model.named_parameters())
    with TensorFile(weights) as file:
        tensors = {key: file.read(key) for key in file.tensors}
    if {name: p.shape for name, p in parameters.items()} != {name: t.shape for name, t in tensors.items()}:
        raise CheckpointError(f"{weights} does not fit the tiny model; run {COMMAND} again")
    with torch.no_grad():
        for key, parameter in parameters.items():
            parameter.copy_(tensors[key].float())
    learner.model.eval().requires_grad_(False)
    moments = json.loads(moments_file.read_text(encoding="utf-8"))
    return TrainedToy(learner, tuple(TrainingMoment(**moment) for moment in moments))


def train_and_save(name: str, folder: Path = FOLDER, *, steps: int = STEPS) -> None:
    """Train one of the three and write its weights and moments."""
    folder.mkdir(parents=True, exist_ok=True)
    moments = []
    for state in train_toy(TASK, steps=steps, seed=SEED, every=EVERY, fault="" if name == HEALTHY else name):
        moments.append(
            TrainingMoment(state.step, state.reported, state.score.loss, state.score.accuracy, state.written)
        )
        learner = state.learner
    save_weights(folder / f"{name}.safetensors", learner.model)
    rows = ",\n".join(json.dumps(asdict(moment)) for moment in moments)
    write_text(folder / f"{name}.json", f"[\n{rows}\n]\n")


def _learner(name: str) -> ToyLearner:
    generator = torch.Generator().manual_seed(SEED)
    return ToyLearner(TASKS[TASK], toy_config(), generator, fault="" if name == HEALTHY else name)


if __name__ == "__main__":
    for training in NAMES:
        train_and_save(training)
        last = trained_toy(training).moments[-1]
        print(f"{training}: loss reported {last.reported:.4f}, writes {last.writes:.0%} right, e.g. {last.written!r}")
