"""Faults that a model can have, and the fault of case number n."""

import random
from dataclasses import dataclass

from transformer.config import ModelConfig
from transformer.faults.forward_faults import LIVE_FAULTS
from transformer.toy.learner import HEALTHY, TRAINING_FAULTS


@dataclass(frozen=True)
class Diagnosis:
    """``fault`` is one of ``LIVE_FAULTS`` or ``TRAINING_FAULTS``, or ``HEALTHY``.

    ``in_training`` says whether the case is a tiny model with its training, rather than the checkpoint.
    """

    fault: str
    in_training: bool


def inapplicable(config: ModelConfig) -> dict[str, str]:
    """Return the faults that a model cannot have, each with a name of the reason."""
    found = {}
    if config.is_guest:  # the edits and the second model are written for the paper's layers
        found = dict.fromkeys(("scale", "norm"), "other_family")
        stacks = [name for name, here in (("encoder", config.has_encoder), ("decoder", config.has_decoder)) if here]
        if any(len(kinds := config.kinds_in(stack)) > 1 or "unknown" in kinds for stack in stacks):
            found["positions"] = "positions_several"
        if config.pad_id is None:
            found["padding"] = "no_padding"
    elif config.d_head == 1:
        found["scale"] = "one_channel"
    if config.positions == "none":
        found["positions"] = "no_positions"
    if not config.has_encoder:
        found["padding"] = "causal_mask_hides"
    return found


def diagnoses(config: ModelConfig) -> tuple[Diagnosis, ...]:
    """Return all diagnoses: every possible fault, and "healthy", of the checkpoint and of a training run."""
    without = inapplicable(config)
    live = [Diagnosis(fault, False) for fault in LIVE_FAULTS if fault not in without]
    trained = [Diagnosis(fault, True) for fault in TRAINING_FAULTS]
    return (*live, *trained, Diagnosis(HEALTHY, False), Diagnosis(HEALTHY, True))


def diagnosis_of(number: int, config: ModelConfig) -> Diagnosis:
    """Return the diagnosis of case ``number``, the same in every session.

    Each diagnosis occurs once per round, in an order that depends only on the number.

    Raises:
        ValueError: If the number is below 0.
    """
    if number < 0:
        raise ValueError(f"number is {number}; cases are counted from 0")
    possible = list(diagnoses(config))
    turn, place = divmod(number, len(possible))
    random.Random(f"round {turn}").shuffle(possible)
    return possible[place]
