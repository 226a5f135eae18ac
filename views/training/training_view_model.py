"""Content of the Training page for one sentence: outputs, one head's maps, all heads' roles.

Everything that the page draws for it is computed here, without Streamlit. A notebook builds the same object:

>>> import transformer
>>> from transformer.heads.roles_through_training import development
>>> from views.training.training_view_model import training_view_model
>>> checkpoint = transformer.load("checkpoints/gpt-en")
>>> moments = development(checkpoint, "horse milk Paris Friday Mary. horse milk Paris Friday")
>>> view_model = training_view_model(moments)
>>> view_model.early.text.split()[-2:], view_model.late.text.split()[-2:]
(['Paris', 'Friday.'], ['Friday', 'Mary.'])
>>> tuple(view_model.location)
('decoder', 'self', 2, 4)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from transformer.heads.head_roles import HeadRole
from transformer.heads.roles_through_training import (
    Moment,
    changed_most,
    greatest_turn,
    map_change,
    settled_heads,
    settled_moment,
)
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.text.tokens import Token, TokenSequence


class Interval(NamedTuple):
    """Two consecutive moments, by the index of the later one, and what changed between them."""

    later: int
    amount: float


class Gain(NamedTuple):
    """The token that gained most attention in one row of a head, by the labels of both tokens."""

    query: str
    key: str
    before: float
    after: float


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
    def roles(self) -> tuple[HeadRole, ...]:
        """The role of the head that is shown, at every step."""
        return tuple(moment.role(self.location) for moment in self.moments)

    def gain(self, predicted: TokenSequence | None) -> Gain | None:
        """Return the row of a word and the word that gained most of its attention, if one did.

        Args:
            predicted: The predicted tokens, which name the rows of cross-attention.
        """
        queries = predicted if self.location.kind == "cross" and predicted is not None else self.views[-1].query
        keys, (before, after) = self.views[-1].key, (view.weights[self.location.head] for view in self._ends)
        pairs = [
            (float(after[row, column] - before[row, column]), row, column)
            for row, query in enumerate(queries)
            for column, key in enumerate(keys)
            if _is_word(query) and _is_word(key)
        ]
        grown, row, column = max(pairs, default=(0.0, 0, 0))
        if grown <= 0.0:
            return None
        shares = float(before[row, column]), float(after[row, column])
        return Gain(queries.labels[row], keys.labels[column], *shares)

    @property
    def _ends(self) -> tuple[AttentionView, AttentionView]:
        return self.views[0], self.views[-1]

    @cached_property
    def run(self) -> TrainingViewModel:
        """The same without random weights: the steps of the run itself."""
        return TrainingViewModel(tuple(one for one in self.moments if not one.has_random_weights), self.location)

    @cached_property
    def most_changed(self) -> tuple[Head, float]:
        """The head whose map differs most between the first step and the last, and the share that has moved."""
        return changed_most(self.moments)

    @cached_property
    def settled(self) -> int | None:
        """The step from which the head has its final role; ``None`` if it has none at the end."""
        return settled_moment(self.moments, self.location)

    @cached_property
    def greatest_turn(self) -> Interval:
        """Where the map of the head changes most from one step to the next."""
        return Interval(*greatest_turn(self.moments, self.location))

    @cached_property
    def busiest_interval(self) -> Interval | None:
        """Where most heads acquire their role, without those at rest; ``None`` where none does."""
        settled = settled_heads(self.moments)
        counts = [sum(self.late.role(place).is_active for place in places) for places in settled]
        if len(counts) < 2 or not max(counts[1:]):
            return None
        later = max(range(1, len(counts)), key=counts.__getitem__)
        return Interval(later, counts[later])

    @cached_property
    def distances(self) -> tuple[float, ...]:
        """The share of its attention that the head has yet to move, at every step."""
        return tuple(float(map_change(view, self.views[-1])[self.location.head]) for view in self.views)


def training_view_model(moments: Sequence[Moment], location: Head | None = None) -> TrainingViewModel:
    """Build what the page draws for a sentence.

    Args:
        moments: The model at each step (``development``), the finished one last.
        location: The head that is shown; by default the one whose map changes most (``telling_head``).
    """
    return TrainingViewModel(tuple(moments), location or telling_head(moments))


def telling_head(moments: Sequence[Moment]) -> Head:
    """Return the head whose map changes most, of those that have a role at the end.

    A head that ends on a special token or punctuation changes a lot, too, but does not show what a model learns; such
    heads count only if there are no others.
    """
    taught = [role.place for role in moments[-1].roles if role.is_active]
    return changed_most(moments, among=taught or None)[0]


def telling_row(shown: TrainingViewModel, displays: Sequence[str]) -> int | None:
    """Return the row of a typed text that shows best what was learned, by its index in ``predicted``.

    There the finished model is right, most clearly so, and the model before was wrong; if there is no such row, it is
    certain of another word. Whole words come before pieces of words.

    Args:
        shown: The moments.
        displays: The typed token that follows each row.
    """
    rows = []
    for row, ((early, _), (late, share), typed) in enumerate(
        zip(shown.early.predicted, shown.late.predicted, displays, strict=True)
    ):
        if early != late and typed.strip("·").isalnum():
            rows.append((typed.startswith("·"), late == typed, share, row))
    return max(rows)[-1] if rows else None


def _is_word(token: Token) -> bool:
    return not token.special and any(letter.isalnum() for letter in token.text)


def mean_probability(moment: Moment) -> float:
    """Return the probability per token (geometric mean) of the final output; NaN if there is none."""
    return math.exp(moment.log_probability / moment.n_tokens) if moment.n_tokens else math.nan
