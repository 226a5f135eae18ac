"""The data of the Heads page: built once per run from a trace, a location and the reader's choices.

It needs neither Streamlit nor figures, so a notebook builds the same object:

    >>> import transformer
    >>> from transformer.runs.head_places import Head
    >>> from views.heads.heads_view_model import HeadsChoices, heads_view_model
    >>> trace = transformer.trace(transformer.load("checkpoints/gpt-en"), "My dog is big and my cat is small.")
    >>> heads = heads_view_model(trace, Head("decoder", "self", 2, 4), HeadsChoices(order="entropy"))
    >>> heads.chosen_here.role, heads.named[0], len(heads.tiles)
    ('sink', (2, 4), 32)
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from transformer.heads.head_roles import RESTING, CorpusRole, CorpusRoles, HeadRole, sentence_roles
from transformer.heads.role_measures import NO_ROLE, ROLES
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from views.view_models import RunViewModel

Place = tuple[int, int]  # layer, head
Role = HeadRole | CorpusRole

ORDERS = ("layer", "role", "entropy", "sinks")
CORPUS_ORDERS = (*ORDERS, "consistency")  # a decoder-only model also has "induction"
IDLE = (*RESTING, *NO_ROLE)  # patterns of heads that attend to fixed positions, or everywhere
ROLES_HERE = ("induction", *ROLES)  # roles in one sentence (``sentence_roles``)
MOST_NAMED = 3  # large maps side by side
LEAST_CONTRAST = 0.4  # of a weight, for a head that is large although the reader has not selected it, over an image


@dataclass(frozen=True)
class HeadsChoices:
    """The choices above the maps.

    Attributes:
        scope: The sentences that names, order and numbers refer to: "sentence", "corpus" or "own".
        order: One of ``ORDERS``, ``CORPUS_ORDERS`` or "induction".
        layers: The layers whose maps are shown; ``None`` for all.
        stretch: Whether the scale of each map ends at its own largest weight.
        scrolls: Whether the small maps are as large as the width allows.
        whole: Whether a model that reads images shows whole maps instead of one row over the image.
    """

    scope: str = "sentence"
    order: str = "layer"
    layers: range | None = None
    stretch: bool = False
    scrolls: bool = False
    whole: bool = False


@dataclass(frozen=True)
class RankedHeads:
    """Heads with their roles, in one sentence or over many, ranked by how clearly each has one."""

    roles: tuple[Role, ...]

    @property
    def over_many(self) -> bool:
        """Whether these are roles over many sentences."""
        return isinstance(self.roles[0], CorpusRole)

    @cached_property
    def has_tests(self) -> bool:
        """Whether the tests of the literature were counted: neither in one sentence nor in an older file."""
        return any(isinstance(head, CorpusRole) and head.measured.measures for head in self.roles)

    @cached_property
    def is_too_short(self) -> bool:
        """Whether no measure is defined for any head, because the sentence is too short."""
        return all(math.isnan(score) for head in self.roles for score in head.scores.values())

    @cached_property
    def clear(self) -> tuple[Role, ...]:
        """The heads with a role, whatever it is, the strongest first."""
        found = [head for head in self.roles if (head.measured.has_role if self.has_tests else head.role != "none")]
        return tuple(sorted(found, key=_strength, reverse=True))

    def opened_with(self, chosen: Place) -> tuple[Place, ...]:
        """Return the heads whose maps are large: the chosen one, then two that match other patterns.

        Each is the head with the highest score of its pattern; heads that attend to fixed positions, or everywhere,
        come last. If the chosen head is not among these heads, there are up to three such heads, or the first of all.
        """
        patterns = {place_of(head): role_name(head) for head in sorted(self.clear, key=_is_idle)}
        found = [place for place in map(place_of, self.roles) if place == chosen]
        seen = {patterns.get(chosen)}
        for place, pattern in patterns.items():
            if pattern not in seen and place != chosen:
                found.append(place)
                seen.add(pattern)
        return tuple(found[:MOST_NAMED]) or (place_of(self.roles[0]),)

    def sorted(self, order: str) -> list[Place] | None:
        """(layer, head) in the order of the tiles; ``None`` for the table of layers × heads ("layer").

        "consistency" and "induction" are orders of roles over many sentences only.
        """
        if order == "layer":
            return None
        keys = {
            "role": lambda head: (ROLES_HERE.index(head.role), -_or_zero(head.score)),
            "entropy": lambda head: _or_zero(head.scores["broad"]),
            "sinks": lambda head: -_or_zero(head.scores["sinks"]),
            "consistency": lambda head: (head.role == "none", -_or_zero(head.consistency)),
            "induction": lambda head: -_or_zero(head.scores["induction"]),
        }
        return list(map(place_of, sorted(self.roles, key=keys[order])))


@dataclass(frozen=True)
class HeadsViewModel(RunViewModel):
    """All that the Heads page draws; make it with ``heads_view_model``.

    Attributes:
        location: The head that all pages follow.
        choices: What the reader chose.
        corpus: The roles of all heads over many sentences, where they are known.
        token: The token that all pages follow.
    """

    location: Head
    choices: HeadsChoices
    corpus: CorpusRoles | None = field(default=None, repr=False)
    token: int = 0

    @property
    def place(self) -> Place:
        """(layer, head) of the selected head."""
        return self.location.layer, self.location.head

    @cached_property
    def views(self) -> tuple[AttentionView, ...]:
        """The attention of this kind, one view for each layer."""
        return _views(self.trace, self.location.stack, self.location.kind)

    @cached_property
    def roles_here(self) -> tuple[HeadRole, ...]:
        """The roles in this sentence."""
        return tuple(role for view in self.views for role in sentence_roles(view))

    @cached_property
    def roles_over_many(self) -> tuple[CorpusRole, ...]:
        """The roles over many sentences, if they are known, whatever the page shows."""
        return self.corpus.of(self.location.stack, self.location.kind) if self.corpus else ()

    @property
    def speaks_of_many(self) -> bool:
        """Whether names, order and numbers refer to many sentences."""
        return bool(self.roles_over_many) and self.choices.scope != "sentence"

    @cached_property
    def heads(self) -> RankedHeads:
        """Every head of this kind, with the role that the page shows."""
        return RankedHeads(self.roles_over_many if self.speaks_of_many else self.roles_here)

    @cached_property
    def shown(self) -> RankedHeads:
        """The heads of the layers that were chosen."""
        layers = self.choices.layers
        if layers is None or len(layers) == len(self.views):
            return self.heads
        return RankedHeads(tuple(head for head in self.heads.roles if head.layer in layers))

    @property
    def shown_views(self) -> tuple[AttentionView, ...]:
        """The views of the layers that were chosen."""
        layers = self.choices.layers
        return self.views if layers is None else tuple(view for view in self.views if view.layer in layers)

    @cached_property
    def tiles(self) -> list[Place]:
        """(layer, head) of every small map, in order."""
        return self.shown.sorted(self.choices.order) or list(map(place_of, self.shown.roles))

    @property
    def in_table(self) -> bool:
        """Whether the small maps are in the table of layers × heads."""
        return self.choices.order == "layer"

    @property
    def named(self) -> tuple[Place, ...]:
        """(layer, head) of the large maps, the selected head first."""
        return self.shown.opened_with(self.place) if self.image_row is None else self.different_on_image

    @property
    def image_row(self) -> int | None:
        """The row that every head shows over a square image: the followed token's; ``None`` for whole maps."""
        view = self.views[0]
        is_shown = view.key.patches_across and not self.choices.whole
        return min(self.token, len(view.query) - 1) if is_shown else None

    @cached_property
    def different_on_image(self) -> tuple[Place, ...]:
        """Up to three heads that clearly attend to different patches, the selected one first if it is shown."""
        rows = {(view.layer, head): w for view in self.shown_views for head, w in enumerate(self._image_weights(view))}
        found = [self.place if self.place in rows else max(rows, key=lambda place: float(rows[place].max()))]
        sharp = {place: row for place, row in rows.items() if row.max() >= LEAST_CONTRAST and place not in found}
        while sharp and len(found) < MOST_NAMED:
            near = {place: min(float(np.abs(row - rows[one]).sum()) for one in found) for place, row in sharp.items()}
            found.append(max(near, key=near.__getitem__))
            del sharp[found[-1]]
        return tuple(found)

    def patches_of(self, place: Place) -> list[tuple[int, float]]:
        """Return the keys of one head in the row over the image with their weights, strongest first."""
        layer, head = place
        weights = self.views[layer].weights[head, self.image_row]
        return [(int(key), float(weights[key])) for key in np.argsort(-weights, kind="stable")]

    def _image_weights(self, view: AttentionView) -> np.ndarray:
        return view.weights[:, self.image_row, list(view.key.patches)]

    @property
    def selected(self) -> Place | None:
        """The selected head, if its map is shown."""
        return self.place if self.place in self.tiles else None

    @cached_property
    def chosen_here(self) -> HeadRole:
        """The selected head, in this sentence."""
        return next(role for role in self.roles_here if place_of(role) == self.place)

    @cached_property
    def chosen_over_many(self) -> CorpusRole | None:
        """The selected head, over many sentences."""
        return next((role for role in self.roles_over_many if place_of(role) == self.place), None)

    def strongest_pair(self, place: Place) -> tuple[int, int] | None:
        """Return the row and column of a head's largest weight between two different tokens."""
        layer, head = place
        return self.views[layer].strongest_pair(head)

    @cached_property
    def groups(self) -> dict[Place, str]:
        """The pattern that each head matches, by its role; a head that matches none has no group.

        Over an image: whether the patch that it attends to most has ink; none for an image in colours.
        """
        if self.image_row is not None:
            return {place: name for place in self.tiles if (name := self._group_on_image(place))}
        return {place_of(head): role_name(head) for head in self.shown.clear}

    def _group_on_image(self, place: Place) -> str:
        key = self.views[0].key[self.patches_of(place)[0][0]]
        if not key.pixels:
            return "itself"
        if isinstance(key.pixels[0], str):
            return ""
        return "ink" if any(key.pixels) else "empty"

    def third_of_image(self, place: Place) -> tuple[int, int]:
        """Return the third of the image, down and across, with the patch that a head attends to most."""
        view = self.views[0]
        row, column = divmod(list(view.key.patches).index(self.patches_of(place)[0][0]), view.key.patches_across)
        return tuple(int(3 * (at + 0.5) / view.key.patches_across) for at in (row, column))

    def marked(self, place: Place) -> tuple[int, int] | None:
        """Return the cell of a map of which the head's words speak: row and column, or those of the image."""
        if self.image_row is not None:
            view = self.views[0]
            key = self.patches_of(place)[0][0]
            if not view.key[key].pixels:
                return None
            return divmod(list(view.key.patches).index(key), view.key.patches_across)
        return None if self.speaks_of_many or place in self.groups else self.strongest_pair(place)

    @cached_property
    def sharing_keys(self) -> range:
        """The heads of its layer that share keys and values with the selected one, itself included.

        Grouped queries: Ainslie et al. 2023, "GQA".
        """
        n_heads = self.views[0].n_heads
        config = self.trace.run.checkpoint.config if self.trace.run else None
        size = n_heads // (getattr(config, "n_key_heads", 0) or n_heads)
        first = self.location.head - self.location.head % size
        return range(first, first + size)

    @cached_property
    def queries(self) -> tuple[int, ...]:
        """The positions that may attend to more than one key; the first one if none may."""
        return tuple(np.flatnonzero(self.views[0].allowed.sum(axis=1) > 1).tolist()) or (0,)

    def strongest_key(self, query: int) -> int:
        """Return the position to which the selected head attends most from ``query``."""
        return int(self.views[self.location.layer].weights[self.location.head, query].argmax())

    def is_masked(self, query: int, key: int) -> bool:
        """Return whether the mask hides ``key`` from ``query`` in every layer."""
        return not any(view.allowed[query, key] for view in self.views)

    def even_share(self, query: int, key: int) -> float:
        """Return the weight of ``key`` in the row of ``query`` under uniform attention, averaged over layers."""
        return float(np.mean([view.allowed[query, key] / max(1, view.allowed[query].sum()) for view in self.views]))

    def between(self, query: int, key: int) -> tuple[tuple[Place, float], ...]:
        """Return ((layer, head), weight) of every head for one pair of tokens, the strongest first."""
        found = [
            ((view.layer, head), float(w)) for view in self.views for head, w in enumerate(view.weights[:, query, key])
        ]
        return tuple(sorted(found, key=lambda one: -one[1]))


def heads_view_model(
    trace: Trace,
    location: Head,
    choices: HeadsChoices | None = None,
    *,
    corpus: CorpusRoles | None = None,
    token: int = 0,
) -> HeadsViewModel:
    """Build the data of the Heads page; costly parts are computed once, when first read.

    Args:
        trace: The recorded sentence.
        location: The selected head; its stack and kind determine the heads of the page.
        choices: What the reader chose, by default what the page begins with.
        corpus: The roles of all heads over many sentences (``corpus_roles``).
        token: The followed token, whose row lies over an image.

    Raises:
        ValueError: For a head that the trace does not have.
    """
    n_layers, view = trace.n_layers(location.stack), trace.attention(location.stack, location.layer, location.kind)
    if not 0 <= location.head < view.n_heads:
        raise ValueError(f"head is {location.head}; layer {location.layer} has heads 0 to {view.n_heads - 1}")
    choices = choices or HeadsChoices()
    if choices.layers is not None and not set(choices.layers) & set(range(n_layers)):
        raise ValueError(f"layers is {choices.layers}; choose from 0 to {n_layers - 1}")
    return HeadsViewModel(trace, location, choices, corpus, token)


def place_of(head: Role) -> Place:
    """(layer, head)."""
    return head.layer, head.head


def role_name(head: Role) -> str:
    """Return the head's strongest test over many sentences; without tests its role."""
    if isinstance(head, CorpusRole) and head.measured.strongest:
        return head.measured.strongest
    return head.role


def _is_idle(head: Role) -> bool:
    return role_name(head) in IDLE


def _views(trace: Trace, stack: str, kind: str) -> tuple[AttentionView, ...]:
    return tuple(trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack)))


def _strength(head: Role) -> float:
    return _or_zero(head.measured.strength if isinstance(head, CorpusRole) and head.measured.strongest else head.score)


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
