"""The data of the Heads page: built once per run from a trace, a location and the reader's choices.

It needs neither Streamlit nor figures, so a notebook builds the same object:

    >>> import transformer
    >>> from transformer.runs.head_places import Head
    >>> from views.heads.heads_view_model import HeadsChoices, heads_view_model
    >>> trace = transformer.trace(transformer.load("checkpoints/gpt-en"), "My dog is big and my cat is small.")
    >>> heads = heads_view_model(trace, Head("decoder", "self", 2, 4), HeadsChoices(order="entropy"))
    >>> heads.chosen_here.role, heads.named[0], len(heads.tiles)
    ('sink', (3, 7), 32)
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from transformer.heads.head_roles import RESTING, CorpusRole, CorpusRoles, HeadRole, sentence_roles
from transformer.heads.induction import followers
from transformer.heads.role_measures import ALIGNED, NO_ROLE, ROLES
from transformer.heads.weight_patterns import LEAST_LIFT, counted_rows, even_attention, places_of
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence
from views.view_models import RunViewModel

Place = tuple[int, int]  # layer, head
Role = HeadRole | CorpusRole

ORDERS = ("layer", "role", "entropy", "sinks")
CORPUS_ORDERS = (*ORDERS, "consistency")  # a decoder-only model also has "induction"
ROLES_HERE = ("induction", *ROLES)  # roles in one sentence (``sentence_roles``)
MOST_NAMED = 3  # large maps side by side
FEW_ROLES = 2  # with fewer heads that have a role, heads without one are large, too
LEAST_CONTRAST = 0.4  # of a score or weight, for a head that is shown although it has no role, or over an image
LEAST_FIXED = 0.3  # of a head's attention on a single token, and LEAST_LIFT times that of even attention
_WORD_LETTERS = 3  # of a token that is named as an example before others
IDLE = (*RESTING, *NO_ROLE)  # what a head attends to that counts as no role
# Roles whose maps look alike.
_LOOKS = {**dict.fromkeys(("diagonal", "monotone", *ALIGNED), "order"), **dict.fromkeys(RESTING, "rest")}


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

    @cached_property
    def with_role(self) -> tuple[Role, ...]:
        """The heads whose role is neither attending everywhere nor attending to a sink, the strongest first."""
        return tuple(head for head in self.clear if role_name(head) not in IDLE)

    @cached_property
    def at_rest(self) -> tuple[Role, ...]:
        """The heads that attend to the same few positions in every sentence."""
        return tuple(head for head in self.clear if role_name(head) in RESTING)

    @cached_property
    def sharpest(self) -> Role:
        """The head with the lowest entropy over the keys it may attend to; sinks only if there are no others.

        If the sentence is too short for a comparison, it is the first head.
        """
        resting = set(map(place_of, self.at_rest))
        return _sharpest([head for head in self.roles if place_of(head) not in resting] or self.roles)

    def opened_with(
        self, followed: Place | None = None, *, fixed: Sequence[Place] = (), aligned: Collection[Place] = ()
    ) -> tuple[Place, ...]:
        """Return up to three heads with which the page opens, as (layer, head).

        First the strongest head of each look (``look_of``), active roles before resting ones and attending everywhere;
        the followed head represents its own look. Then ``fixed``, heads without a role that look unlike these, then
        the strongest head of each other role, then further heads with a role. Only if fewer than two have one: the
        sharpest head, and those of ``contrasts``. A followed head that has no other place is the last one.

        Args:
            followed: The head that all pages follow.
            fixed: Heads without a role that attend mainly to one token, each to another one.
            aligned: Heads that align words, which represent a look before others.
        """
        followed = followed if followed in map(place_of, self.roles) else None
        # Stable: the strongest stay first, but τ is no share, and a head that moves forward is seen less clearly.
        ordered = sorted(
            self.clear,
            key=lambda head: (
                head not in self.with_role,
                role_name(head) == "monotone",
                place_of(head) not in aligned,
            ),
        )
        strongest = {look_of(role_name(head)): place_of(head) for head in reversed(ordered)}
        own = next((look_of(role_name(head)) for head in self.clear if place_of(head) == followed), "")
        looks = dict.fromkeys(look_of(role_name(head)) for head in ordered)
        found = [followed if look == own else strongest[look] for look in looks]
        found += [place for place in fixed if place not in found]
        if len(ordered) < FEW_ROLES:
            if not self.with_role and place_of(self.sharpest) not in found:
                found.insert(len(found) if fixed else 0, place_of(self.sharpest))
            found += [place for place in self.contrasts if place not in found]
        else:
            if not set(found) & set(aligned):
                found += [place_of(head) for head in ordered if place_of(head) in aligned][:1]
            of_role = {role_name(head): place_of(head) for head in reversed(ordered)}
            shown = {role_name(head) for head in ordered if place_of(head) in found}
            found += [place for role, place in reversed(of_role.items()) if role not in shown and place not in found]
            found += [place_of(head) for head in ordered if place_of(head) not in found]
        if followed is None or followed in found[:MOST_NAMED]:
            return tuple(found[:MOST_NAMED])
        return (*found[: MOST_NAMED - 1], followed)

    @cached_property
    def contrasts(self) -> dict[Place, str]:
        """Heads that look unlike all roles, by their score: "sinks" (at rest) or "broad" (even).

        A head with a role already has a look of its own; so has a sentence in which a head of that look has a role.
        """
        looks = {look_of(role_name(head)) for head in self.clear}
        unnamed = [head for head in self.roles if head not in self.clear]
        found: dict[Place, str] = {}
        for score, look in (("sinks", "rest"), ("broad", "broad")):
            rest = [head for head in unnamed if place_of(head) not in found and not math.isnan(_score(head, score))]
            if look not in looks and rest:
                most = max(rest, key=lambda head: _score(head, score))
                if _score(most, score) >= LEAST_CONTRAST:
                    found[place_of(most)] = score
        return found

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
class StrongestEdge:
    """A row of a map and the key that it attends to most, with its weight."""

    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class HeadsViewModel(RunViewModel):
    """All that the Heads page draws; make it with ``heads_view_model``.

    Attributes:
        location: The head that all pages follow.
        choices: What the reader chose.
        corpus: The roles of all heads over many sentences, where they are known.
        noted_row: The row of the selected head that the example's note names.
        token: The token that all pages follow.
        follows: Whether the map of the selected head is large even if it has no role: the reader has selected it.
    """

    location: Head
    choices: HeadsChoices
    corpus: CorpusRoles | None = field(default=None, repr=False)
    noted_row: int | None = None
    token: int = 0
    follows: bool = True

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
    def is_followed(self) -> bool:
        """Whether the selected head has a role, was chosen by the reader, or is in the note."""
        return self.follows or self.noted_row is not None or self.place in map(place_of, self.shown.clear)

    @property
    def named(self) -> tuple[Place, ...]:
        """(layer, head) of the large maps; the selected head is among them if it has a role or was chosen."""
        followed = self.place if self.is_followed else None
        if self.image_row is None:
            return self.shown.opened_with(followed, fixed=self.fixed_without_role, aligned=self.aligned)
        return self.different_on_image

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

    @cached_property
    def edge_here(self) -> StrongestEdge | None:
        """The row that describes a selected head without a role: the note's, or the one with most weight.

        Rows and keys of special tokens count only if there is nothing else, or if the note names them.
        """
        if self.chosen_here.role != "none":
            return None
        view = self.views[self.location.layer]
        weights = np.where(view.allowed, view.weights[self.location.head], 0.0)
        if self.noted_row is not None and self.noted_row < len(weights):
            query, key = self.noted_row, int(weights[self.noted_row].argmax())
        else:
            words = np.outer(*([not token.special for token in tokens] for tokens in (view.query, view.key)))
            query, key = np.unravel_index((weights * words if words.any() else weights).argmax(), weights.shape)
        return StrongestEdge(int(query), int(key), float(weights[query, key]))

    def most_seen(self, place: Place) -> tuple[int, float]:
        """Return the key that a head attends to most, and the mean of its weight over the rows with a choice."""
        layer, head = place
        view = self.views[layer]
        rows = view.allowed.sum(axis=1) > 1
        mean = np.where(view.allowed, view.weights[head], 0.0)[rows if rows.any() else slice(None)].mean(axis=0)
        return int(mean.argmax()), float(mean.max())

    @cached_property
    def fixed(self) -> dict[Place, int]:
        """The key that gets at least ``LEAST_FIXED`` of a head's attention over all rows; most first.

        A head with an active role is named after that.
        """
        if self.speaks_of_many or self.shown.is_too_short:
            return {}
        active = {place_of(head) for head in self.shown.clear if role_name(head) not in RESTING}
        seen = {place: self.most_seen(place) for place in map(place_of, self.shown.roles) if place not in active}
        ranked = sorted(seen.items(), key=lambda one: -one[1][1])
        view = self.views[0]
        even = even_attention(view)[counted_rows(view)].mean(axis=0)
        return {place: key for place, (key, share) in ranked if share >= max(LEAST_FIXED, LEAST_LIFT * even[key])}

    @property
    def fixed_without_role(self) -> tuple[Place, ...]:
        """The first head without a role on each key that no head at rest attends to."""
        resting = set(map(place_of, self.shown.at_rest))
        known = {key for place, key in self.fixed.items() if place in resting}
        found: dict[int, Place] = {}
        for place, key in self.fixed.items():
            if key not in known:
                found.setdefault(key, place)
        return tuple(found.values())

    @cached_property
    def aligned(self) -> frozenset[Place]:
        """Heads that follow the order of the words here, and align words over many sentences."""
        clear = {
            place_of(role) for role in self.roles_over_many if role.measured.has_role and role_name(role) in ALIGNED
        }
        return frozenset(clear & {place_of(head) for head in self.shown.clear if look_of(role_name(head)) == "order"})

    @cached_property
    def groups(self) -> dict[Place, str]:
        """What each head does, as the name of its colour; a head without a clear pattern has none.

        Attending mainly to one token is "key" with its position; beyond three such tokens, "key" alone.

        Over an image: whether the patch that it attends to most has ink; none for an image in colours.
        """
        if self.image_row is not None:
            return {place: name for place in self.tiles if (name := self._group_on_image(place))}
        if self.speaks_of_many:
            return {place_of(head): role_name(head) for head in self.shown.clear}
        names = {place_of(head): look_of(role_name(head)) for head in self.shown.clear}
        names |= dict.fromkeys(self.aligned, "aligned")
        large = [key for place, key in self.fixed.items() if place in self.named]
        named = list(dict.fromkeys((*large, *self.fixed.values())))[:MOST_NAMED]
        for place, key in self.fixed.items():
            names[place] = f"key {key}" if key in named else "key"
        return names

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

    def example(self, place: Place) -> StrongestEdge | None:
        """Return the clearest row that does what the head does, words first; ``None`` if there is none.

        For a head without a clear pattern, it is the clearest of all rows.
        """
        view, name = self.views[place[0]], self.groups.get(place, "")
        if self.speaks_of_many or name == "broad" or self.image_row is not None:
            return None
        weights = np.where(view.allowed, view.weights[place[1]], 0.0)
        keys = weights.argmax(axis=1)
        rows = np.arange(len(keys))
        fits = counted_rows(view)
        role = next((role_name(head) for head in self.shown.clear if place_of(head) == place), "")
        if place in self.fixed:
            fits = fits & (keys == self.fixed[place])
        elif name and role in (places := {**places_of(view), "induction": followers(view)}):
            fits = fits & places[role][rows, keys]
        if not fits.any():
            return None
        query = self.trace.prediction if view.kind == "cross" and self.trace.prediction is not None else view.query
        letters = [np.array([sum(map(str.isalpha, token.display)) for token in tokens]) for tokens in (query, view.key)]
        fewest = np.minimum(letters[0][: len(keys)], letters[1][keys])
        rank = (fewest > 0).astype(int) + (fewest >= _WORD_LETTERS)
        whole = [np.array(_are_whole_words(tokens)) for tokens in (query, view.key)]
        rank += whole[0][: len(keys)] & whole[1][keys]
        if view.kind == "cross":  # a word with another spelling shows what is looked for
            ids = np.array([token.display for token in query])[: len(keys)], np.array(view.key.displays)
            rank += (rank > 0) & (ids[0] != ids[1][keys])
        row = int(np.where(fits, rank + weights[rows, keys], -1.0).argmax())
        return StrongestEdge(row, int(keys[row]), float(weights[row, keys[row]]))

    def most_even_row(self, place: Place) -> tuple[int, float]:
        """Return the row of a head whose largest weight is smallest, and that weight."""
        view = self.views[place[0]]
        most = np.where(view.allowed, view.weights[place[1]], 0.0).max(axis=1)
        row = int(np.where(counted_rows(view), most, np.inf).argmin())
        return row, float(most[row])

    def marked(self, place: Place) -> tuple[int, int] | None:
        """Return the cell of a map of which the head's words speak: row and column, or those of the image.

        The row is −1 where they speak of a whole column.
        """
        if self.image_row is not None:
            view = self.views[0]
            key = self.patches_of(place)[0][0]
            if not view.key[key].pixels:
                return None
            return divmod(list(view.key.patches).index(key), view.key.patches_across)
        if place in self.fixed:
            return -1, self.fixed[place]
        edge = self.edge_here if place == self.place and self.noted_row is not None else self.example(place)
        return None if edge is None else (edge.query, edge.key)

    def rows_fixed(self, place: Place) -> tuple[int, int]:
        """Return how many rows attend most to the head's key (``fixed``), and how many have a choice."""
        view = self.views[place[0]]
        rows = counted_rows(view)
        keys = np.where(view.allowed, view.weights[place[1]], 0.0).argmax(axis=1)
        return int((keys[rows] == self.fixed[place]).sum()), int(rows.sum())

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
    noted_row: int | None = None,
    token: int = 0,
    follows: bool = True,
) -> HeadsViewModel:
    """Build the data of the Heads page; costly parts are computed once, when first read.

    Args:
        trace: The recorded sentence.
        location: The selected head; its stack and kind determine the heads of the page.
        choices: What the reader chose, by default what the page begins with.
        corpus: The roles of all heads over many sentences (``corpus_roles``).
        noted_row: The row of this head that the note of the example names, if it does.
        token: The followed token, whose row lies over an image.
        follows: Whether the map of the selected head is large even if it has no role.

    Raises:
        ValueError: For a head that the trace does not have.
    """
    n_layers, view = trace.n_layers(location.stack), trace.attention(location.stack, location.layer, location.kind)
    if not 0 <= location.head < view.n_heads:
        raise ValueError(f"head is {location.head}; layer {location.layer} has heads 0 to {view.n_heads - 1}")
    choices = choices or HeadsChoices()
    if choices.layers is not None and not set(choices.layers) & set(range(n_layers)):
        raise ValueError(f"layers is {choices.layers}; choose from 0 to {n_layers - 1}")
    return HeadsViewModel(trace, location, choices, corpus, noted_row, token, follows)


def _are_whole_words(tokens: TokenSequence) -> list[bool]:
    """Return for each token whether it is a word, neither a piece nor a mark."""
    starts = [token.starts_word or not any(map(str.isalpha, token.display)) for token in tokens]
    return [
        starts[token.index] and not token.special and (token.index + 1 == len(tokens) or starts[token.index + 1])
        for token in tokens
    ]


def place_of(head: Role) -> Place:
    """(layer, head)."""
    return head.layer, head.head


def role_name(head: Role) -> str:
    """Return the head's strongest test over many sentences; without tests its role."""
    if isinstance(head, CorpusRole) and head.measured.strongest:
        return head.measured.strongest
    return head.role


def look_of(name: str) -> str:
    """Return the look of a map with this role, e.g. "order" if it follows both sentences."""
    return _LOOKS.get(name, name)


def _score(head: Role, name: str) -> float:
    return head.scores.get(name, math.nan)


def _views(trace: Trace, stack: str, kind: str) -> tuple[AttentionView, ...]:
    return tuple(trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack)))


def _strength(head: Role) -> float:
    return _or_zero(head.measured.strength if isinstance(head, CorpusRole) and head.measured.strongest else head.score)


def _sharpest(heads: Sequence[Role]) -> Role:
    def entropy(head: Role) -> float:
        value = head.scores.get("broad", math.nan)
        return math.inf if math.isnan(value) else value

    return min(heads, key=entropy)


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
