"""What a head does in one sentence: where it looks, how sharply, and which of a few known jobs that is.

The jobs are those that were found in trained models: the places of ``places``, the shapes of ``shapes``, and induction,
which only a text shows that repeats itself. A role describes the head in this sentence only, and does not say whether
the model needs the head.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from transformer.heads.head_jobs import PLACES
from transformer.heads.induction import followers
from transformer.heads.places import LEAST_ROWS, least_share, place_shares, places_in
from transformer.heads.shapes import LEAST_BROAD, LEAST_MONOTONE, shape_scores
from transformer.heads.tally import counted_rows, evenly
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import OfHead

AT_REST = ("first", "sink")  # where a head looks that has nothing to do
LEAST_AWAKE = 0.1  # of a row: a head that sends less to what followed is not said to have woken up


class Scored:
    """What has a ``role`` and ``scores``, all measures by name, NaN where one is not defined."""

    role: str
    scores: Mapping[str, float]

    @property
    def score(self) -> float:
        """Of the role itself, NaN for "none"."""
        return self.scores.get(self.role, math.nan)

    @property
    def nearest(self) -> str:
        """The place with the largest share, however small that is; "" where none gets any."""
        shares = {place: share for place in PLACES if (share := self.scores.get(place, math.nan)) > 0}
        return max(shares, key=shares.__getitem__, default="")


@dataclass(frozen=True)
class HeadRole(OfHead, Scored):
    """The role of one head in one sentence.

    Shares lie in 0…1; "broad" is the entropy as a share of
    the largest possible, 0…1; "monotone" lies in −1…1; "entropy" is in bits; "distance" in tokens; "confidence" and
    "sinks" are shares.
    """

    role: str
    scores: Mapping[str, float]


def sentence_roles(view: AttentionView) -> tuple[HeadRole, ...]:
    """``head_roles``, and "induction" where a head sends more to what followed the last time than to any other place.

    A head may rest in the rows of which nothing has been read before; so only the others count. It must be as clear as
    every role (``least_share``, ``LEAST_ROWS``).

    In those rows, too, the heads of large models rest for the most part. So "induction" is also the role of a head at
    rest, or of one without a role, where from ``LEAST_AWAKE`` of a row on goes to what followed, and that is as clear a
    share ("awake") of what goes neither to the first token nor to special ones:

        awake = mean of Σ_{j followed} α_ij ÷ (1 − mean of Σ_{j at rest} α_ij)
    """
    roles = head_roles(view)
    followed = followers(view)
    rows = followed.any(axis=1) & counted_rows(view)
    if rows.sum() < LEAST_ROWS:
        return roles
    places = places_in(view.query, view.key, cross=False)
    resting = (places["first"] | places["sink"]) & ~followed

    def share(weights: np.ndarray, place: np.ndarray) -> np.ndarray:
        return (weights * place).sum(axis=-1)[..., rows].mean(axis=-1)

    chance, chance_at_rest = (float(share(evenly(view), place)) for place in (followed, resting))
    shares, at_rest = share(view.weights, followed), share(view.weights, resting)  # [head]
    awake = shares / np.maximum(1 - at_rest, 1e-9)
    least, least_awake = least_share(chance), least_share(chance / (1 - chance_at_rest))
    found = []
    for role, most, of_rest in zip(roles, shares.tolist(), awake.tolist(), strict=True):
        clear = most >= least and not most <= role.score  # a role without a score, "none", is no rival
        clear |= role.role in (*AT_REST, "none") and most >= LEAST_AWAKE and of_rest >= least_awake
        name = "induction" if clear else role.role
        found.append(replace(role, role=name, scores={**role.scores, "induction": most, "awake": of_rest}))
    return tuple(found)


def head_roles(view: AttentionView) -> tuple[HeadRole, ...]:
    """The role of every head of one layer, see ``place_shares`` and ``choose_role``."""
    shares, chances = place_shares(view)
    measured = {**shares, **shape_scores(view)}
    roles = []
    for head in range(view.n_heads):
        scores = {name: float(values[head]) for name, values in measured.items()}
        roles.append(HeadRole(view.stack, view.kind, view.layer, head, choose_role(scores, chances), scores))
    return tuple(roles)


def choose_role(scores: Mapping[str, float], chances: Mapping[str, float]) -> str:
    """The place that gets the largest share, if it gets enough (``least_share``); else "broad", else "monotone", else
    "none"."""
    clear = [place for place in PLACES if scores.get(place, np.nan) >= least_share(chances.get(place, np.nan))]
    if clear:
        return max(clear, key=lambda place: scores[place])  # the first of equals
    if scores.get("broad", np.nan) >= LEAST_BROAD:
        return "broad"
    return "monotone" if scores.get("monotone", np.nan) >= LEAST_MONOTONE else "none"
