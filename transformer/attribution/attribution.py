"""Who wrote this word? Its logit as a sum over the parts of the model (direct logit attribution, Elhage et al. 2021).

logit = embedding + Σ heads + Σ feed-forward layers + biases. The sum is exact; what it leaves open is how a part came
to write what it wrote: that a head reads another head's work is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from transformer.attribution.attribution_last_step import last_step
from transformer.attribution.attribution_question import Question, ask
from transformer.attribution.attribution_walk import Walk
from transformer.layers.stream_parts import Part, Values
from transformer.models import Model
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Attribution:
    """``values`` [part], in logits: what each of ``parts`` added, in the order of the forward pass. ``logit``: what the
    model itself gave (the difference of two, where the question has two), before the cap of a model that bends its
    logits (``cap``). ``gated``: a layer with an activation stands in front of the logits, of which every unit lets
    through the share that it let through in this run. ``readings``: see ``Walk``.
    """

    question: Question
    parts: tuple[Part, ...]
    values: np.ndarray
    logit: float
    cap: float | None
    gated: bool
    readings: Mapping[str, np.ndarray]

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return float(self.values.sum())

    @property
    def deviation(self) -> float:
        """|sum − logit|: rounding, and nothing else."""
        return abs(self.total - self.logit)

    def of(self, part: Part) -> float:
        return float(self.values[self.parts.index(part)])

    def table(self, kind: str) -> np.ndarray:
        """[layer, head] of one kind of attention; [layer, 1] of the feed-forward layers."""
        found = {(part.layer, max(part.head, 0)): self.of(part) for part in self.parts if part.kind == kind}
        if not found:
            raise ValueError(f"there is no part {kind!r}; there are {', '.join({part.kind: 0 for part in self.parts})}")
        shape = tuple(1 + max(place[axis] for place in found) for axis in (0, 1))
        return np.array([[found[layer, head] for head in range(shape[1])] for layer in range(shape[0])])

    def strongest(self, most: int) -> tuple[Part, ...]:
        """The parts that moved the logit most, up or down."""
        order = np.argsort(-np.abs(self.values), kind="stable")[:most]
        return tuple(self.parts[place] for place in order)


def attribute(
    trace: Trace, position: int | None = None, *, token: int | None = None, against: int | None = None
) -> Attribution:
    """Whose work is the logit of ``token`` at ``position`` (minus that of ``against``)?

    ``position``: of the decoder's tokens, where row t answers "what comes after token t"; in a masked-token model of
    the sentence's; a classifier has none. ``token``: an id, or a class; by default what the model finds likeliest
    there. Every norm divides by the σ that it had in this run. In a classifier that takes the mean of all tokens the
    parts are sums over the tokens.

    Raises ``ValueError`` for a position or a token that does not exist, or a position that is padding.
    """
    question = ask(trace, position, token=token, against=against)
    return attribution_of(trace.checkpoint.model, trace.values, question, edited=bool(trace.run.edits))


def attribution_of(model: Model, values: Values, question: Question, *, edited: bool = False) -> Attribution:
    """``attribute`` on any recorded pass; ``values(name)``: its activations without the batch axis."""
    last = last_step(model, values, question)
    stack = model.get_submodule(question.stack)
    walk = Walk(values, stack, question.stack, list(question.rows), last.direction)
    parts = walk.parts | last.parts
    if edited:  # what an edit put between two parts is nobody's work
        parts[Part("edits")] = last.logit - sum(parts.values())
    numbers = np.array(list(parts.values()))
    return Attribution(question, tuple(parts), numbers, last.logit, last.cap, last.gated, walk.readings)
