"""Tiny models trained with a fault, and one without.

``python -m transformer.faults.training_faults`` makes them (a minute or two on one core) from their seed alone, and
stores them in ``weights/``, so that a class has them at once.
"""

from functools import lru_cache
from pathlib import Path

import torch

from transformer.disk.tensor_files import TensorFile
from transformer.errors import CheckpointError
from transformer.files.checkpoints import save_weights
from transformer.toy.learner import HEALTHY, TRAINING_FAULTS, ToyLearner, toy_config
from transformer.toy.tasks import TASKS
from transformer.toy.toy_training import held_out_words, train_toy

FOLDER = Path(__file__).with_name("weights")
COMMAND = "python -m transformer.faults.training_faults"
TASK, STEPS, SEED = "copy", 400, 0
NAMES = (HEALTHY, *TRAINING_FAULTS)


@lru_cache(maxsize=len(NAMES))
def trained_toy(fault: str) -> ToyLearner:
    """Return the model of a finished training, one of ``NAMES``; it is shared, so never change it.

    Raises:
        ValueError: If the fault is unknown.
        CheckpointError: If its file is missing or does not fit.
    """
    learner = ToyLearner(TASKS[TASK], toy_config(), torch.Generator().manual_seed(SEED), fault=fault)
    weights = FOLDER / f"{fault}.safetensors"
    if not weights.is_file():
        raise CheckpointError(f"{FOLDER} lacks the training {fault}; make it with {COMMAND}")
    parameters = dict(learner.model.named_parameters())
    with TensorFile(weights) as file:
        tensors = {key: file.read(key) for key in file.tensors}
    if {name: p.shape for name, p in parameters.items()} != {name: t.shape for name, t in tensors.items()}:
        raise CheckpointError(f"{weights} does not fit the tiny model; run {COMMAND} again")
    with torch.no_grad():
        for key, parameter in parameters.items():
            parameter.copy_(tensors[key].float())
    learner.model.eval().requires_grad_(False)
    return learner


def outcome(learner: ToyLearner) -> dict[str, float]:
    """Return how a training ended, on held-out words.

    ``reported`` is the loss that the training itself reports and ``loss`` that of words read as in generation, in nats;
    ``writes`` is the share of words that the model generates correctly.
    """
    words = held_out_words(learner.task)
    score = learner.score(words)
    return {"reported": learner.reported_loss(words), "loss": score.loss, "writes": score.accuracy}


def train_and_save(fault: str, folder: Path = FOLDER, *, steps: int = STEPS) -> None:
    """Train one of the three and write its weights."""
    *_, state = train_toy(TASK, steps=steps, seed=SEED, every=steps, fault=fault)
    save_weights(folder / f"{fault}.safetensors", state.learner.model)


if __name__ == "__main__":
    for name in NAMES:
        train_and_save(name)
        print(name, outcome(trained_toy(name)))
