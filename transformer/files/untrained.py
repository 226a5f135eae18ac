"""A model before any training: the shape of a checkpoint with random weights, drawn with a seed.

Every training begins with such weights (``transformer.training.start``), even if not every run does: one that continues
from another checkpoint begins with trained ones.
"""

from dataclasses import replace

from transformer.files.build import random_model
from transformer.files.checkpoints import Checkpoint

SEED = 0


def can_be_untrained(checkpoint: Checkpoint) -> bool:
    """Return whether this library trains such models, and so knows how their weights are initialised."""
    return not checkpoint.config.is_guest


def untrained(checkpoint: Checkpoint, *, seed: int = SEED) -> Checkpoint:
    """Return the same checkpoint with random weights and a fingerprint of its own, for use like any other.

    Raises:
        ValueError: If it is a third-party model, because this library does not know how it was initialised.
    """
    if not can_be_untrained(checkpoint):
        raise ValueError(f"{checkpoint.name} is a third-party model; random weights are drawn only for our own models")
    model = random_model(checkpoint.config, seed=seed).to(checkpoint.model.device)
    return replace(checkpoint, model=model, seed=seed)
