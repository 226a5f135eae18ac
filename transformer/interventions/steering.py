"""What steering does to an output, beside random directions of the same length.

A vector that is long enough changes any output, so an effect counts only if it is larger than the effects of random
directions of the same length at the same layer, or of another kind. Several of them show how much chance alone varies.
Even then the effect shows only that the later layers read something along this direction. It does not show that the
model uses the direction by itself, nor that the direction means what its two prompts or its word suggest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.errors import InputError
from transformer.interventions.experiment import Experiment, experiment
from transformer.predictions.target import shown_word
from transformer.runs.directions import Steering, direction_of, random_direction
from transformer.runs.edit_specs import EditSpec
from transformer.runs.edits import steer
from transformer.runs.traces import Trace

SEEDS = tuple(range(1, 9))


@dataclass(frozen=True)
class Steered:
    """What one direction does to the output.

    Attributes:
        seed: Seed of a random direction; ``None`` for the direction itself.
        change: Σ log p of the original output after − before, in nats.
        kl: Mean KL(original ‖ steered) over the tokens of the original output, in nats.
        gains: The token (or class) that gains most probability on average over these tokens.
        gain: That gain.
        text: The output that the steered model generates by itself.
    """

    seed: int | None
    change: float
    kl: float
    gains: str
    gain: float
    text: str


@dataclass(frozen=True)
class SteeringEffect:
    """A direction and its controls.

    Attributes:
        edit: The edit whose effect this is.
        length: |c| · ‖d‖, the length of what is added.
        before: The output that the original model generates.
        steered: The effect of the direction.
        controls: The effects of the random directions.
    """

    edit: EditSpec
    length: float
    before: str
    steered: Steered
    controls: tuple[Steered, ...]

    @property
    def weaker(self) -> int:
        """Number of controls that move the predictions less than the direction does, by their KL."""
        return sum(control.kl < self.steered.kl for control in self.controls)

    @property
    def changed(self) -> int:
        """Number of controls with which the model generates another output."""
        return sum(control.text != self.before for control in self.controls)

    def records(self) -> list[dict[str, object]]:
        """Return one row per direction, the direction itself first."""
        return [dict(vars(one)) for one in (self.steered, *self.controls)]


def steering_effect(
    trace: Trace,
    text: str,
    *,
    seeds: Sequence[int] = SEEDS,
    progress: Callable[[int, int], None] | None = None,
) -> SteeringEffect:
    """Measure what a direction does, and what random directions of the same length do.

    >>> import transformer
    >>> from transformer.interventions.steering import steering_effect
    >>> trace = transformer.trace(transformer.load("checkpoints/bert-en"), "I drank a cup of [MASK].")
    >>> found = steering_effect(trace, "steer:encoder.2.residual=2 prompts a cold beer ||| a hot tea")
    >>> found.before, found.steered.text, f"{found.weaker} of 8 weaker"
    ('I drank a cup of coffee.', 'I drank a cup of beer.', '8 of 8 weaker')

    Args:
        trace: The original run.
        text: An edit of the action "steer" (``transformer.runs.edit_specs``).
        seeds: Seeds of the random directions.
        progress: Called as ``progress(done, total)`` after every direction.

    Raises:
        InputError: If the model cannot take a text of the edit, or predicts nothing.
        ValueError: If the edit does not fit the model, or is of another action.
        NotFiniteError: If a steered run has numbers that are not finite.
    """
    edit = EditSpec.parse(text)
    if edit.action != "steer" or edit.layer is None:
        raise ValueError(f"{edit} does not steer; write an edit like steer:decoder.1.residual=4 word Paris")
    edit.check(trace.checkpoint.config)
    if trace.checkpoint.config.encodes_sentences:
        name = trace.checkpoint.name
        raise InputError(f"{name} does not predict a word, so there is nothing to measure.")
    steering = Steering.parse(edit.value)
    direction = direction_of(trace.checkpoint, edit.stack, edit.layer, steering)
    length = float(np.linalg.norm(direction))
    vectors = {None: direction} | {seed: random_direction(len(direction), length, seed) for seed in seeds}
    found: list[Steered] = []
    before = ""
    for seed, vector in vectors.items():
        change = steer(edit.stack, layer=edit.layer, direction=vector, strength=steering.strength)
        run = experiment(trace, [change])
        before = run.answer_before.text
        found.append(_effect(seed, run))
        if progress is not None:
            progress(len(found), len(vectors))
    return SteeringEffect(edit, abs(steering.strength) * length, before, found[0], tuple(found[1:]))


def _effect(seed: int | None, run: Experiment) -> Steered:
    checkpoint = run.original.checkpoint
    before, after = (np.exp(run.asked.log_probabilities(one)) for one in (run.original, run.changed))
    gains = (after - before).mean(axis=0)  # [vocabulary] or [class]
    most = int(gains.argmax())
    gained = shown_word(checkpoint, most), float(gains[most])
    return Steered(seed, run.change, run.mean_kl, *gained, run.answer_after.text)
