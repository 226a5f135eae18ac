"""One sentence through training: outputs and one head's maps.

Everything that the page draws for it is computed here, without Streamlit. A notebook builds the same object:

>>> import transformer
>>> from transformer.heads.sentence_through_training import development
>>> from views.training.training_view_model import training_view_model
>>> checkpoint = transformer.load("checkpoints/gpt-en")
>>> moments = development(checkpoint, "horse milk Paris Friday Mary. horse milk Paris Friday")
>>> view_model = training_view_model(moments)
>>> tuple(view_model.location)
('decoder', 'self', 2, 4)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from transformer.heads.sentence_through_training import (
    Moment,
    changed_most,
    greatest_turn,
    map_change,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head


class Interval(NamedTuple):
    """Two consecutive moments, by the index of the later one, and what changed between them."""

    later: int
    amount: float


@dataclass(frozen=True)
class TrainingViewModel:
    """One sentence at several steps of a training; make it with ``training_view_model``.

    Attributes:
        moments: The model at each step, perhaps with random weights first, and the finished one last.
        location: The head that is shown.
    """

    moments: tuple[Moment, ...] = field(repr=False)
    location: Head

    @property
    def early(self) -> Moment:
        """The first step."""
        return self.moments[0]

    @property
    def late(self) -> Moment:
        """The finished model."""
        return self.moments[-1]

    @cached_property
    def views(self) -> tuple[AttentionView, ...]:
        """The attention of the layer that is shown, at every step."""
        stack, kind, layer, _head = self.location
        return tuple(moment.view(stack, layer, kind) for moment in self.moments)

    @cached_property
    def run(self) -> TrainingViewModel:
        """The same without random weights: the steps of the run itself, if there are several."""
        steps = tuple(one for one in self.moments if not one.has_random_weights)
        return TrainingViewModel(steps, self.location) if len(steps) > 1 else self

    @cached_property
    def most_changed(self) -> tuple[Head, float]:
        """The head whose map differs most between the first step and the last, and the share that has moved."""
        return changed_most(self.moments)

    @cached_property
    def greatest_turn(self) -> Interval:
        """Where the map of the head changes most from one step to the next."""
        return Interval(*greatest_turn(self.moments, self.location))

    @cached_property
    def distances(self) -> tuple[float, ...]:
        """The share of its attention that the head has yet to move, at every step."""
        return tuple(float(map_change(view, self.views[-1])[self.location.head]) for view in self.views)


def training_view_model(moments: Sequence[Moment], location: Head | None = None) -> TrainingViewModel:
    """Build what the page draws for a sentence.

    Args:
        moments: The model at each step (``development``), the finished one last.
        location: The head that is shown; by default the one whose map changes most.
    """
    return TrainingViewModel(tuple(moments), location or changed_most(moments)[0])


def mean_probability(moment: Moment) -> float:
    """Return the probability per token (geometric mean) of the final output; NaN if there is none."""
    return math.exp(moment.log_probability / moment.n_tokens) if moment.n_tokens else math.nan
