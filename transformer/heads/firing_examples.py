"""Examples of where a head or a hidden unit is most active: its largest weights or values.

Looking at the largest activations over many texts is the oldest way to guess what a unit does, but it shows nothing
about all other activations ("An Interpretability Illusion for BERT", Bolukbasi et al. 2021). Only the strongest
position of each sentence counts, so that one sentence cannot fill the list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.runs.head_places import Head
from transformer.runs.readings import BATCH_SIZE, Progress, readings, recorded_batches
from transformer.text.tokens import Token, TokenSequence

MOST = 12  # sentences per head or unit


@dataclass(frozen=True, eq=False)
class RowExample:
    """Position in one sentence: token ``query`` of ``asked`` attends to token ``key`` of ``read``.

    ``value`` is the number that it is an example of.
    """

    value: float
    sentence: int
    query: int
    key: int
    asked: TokenSequence
    read: TokenSequence

    @property
    def in_context(self) -> str:
        """The text with the query in [ ] and the key in « »; both texts if they differ."""
        if self.asked is not self.read:
            asked, read = (self.asked, {self.query: "[{}]"}), (self.read, {self.key: "«{}»"})
            return f"{_mark_tokens(*asked)} ← {_mark_tokens(*read)}"
        return _mark_tokens(self.read, {self.key: "«{}»", self.query: "[{}]"})


@dataclass(frozen=True, eq=False)
class Firing(RowExample):
    """Strongest position of one sentence.

    Attributes:
        value: The weight α, or a unit's hidden value at the token, which is both query and key.
        strip: All weights of that query, or the unit's value at every token, [key].
    """

    strip: np.ndarray


def head_firings(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    special: bool = False,
    batch_size: int = BATCH_SIZE,
    progress: Progress | None = None,
) -> dict[Head, tuple[Firing, ...]]:
    """Return the ``MOST`` sentences with the largest weights of every head, strongest first.

    A row with a single allowed key never counts, because its weight is 1 whatever the head does. What the model reads,
    ``progress`` and the errors are described in ``transformer.runs.readings``.

    Args:
        checkpoint: The model.
        sentences: Sentences to search.
        special: Whether ``<s>``, ``</s>`` and other special tokens count as queries and keys.
        batch_size: Largest number of sentences in a batch.
        progress: As in ``readings``.
    """
    found: dict[Head, list[Firing]] = {}
    for reading in readings(checkpoint, sentences, batch_size=batch_size, progress=progress):
        for view in reading.views:
            counted = view.allowed & (view.allowed.sum(axis=1, keepdims=True) > 1)
            if not special:
                counted &= np.outer(_words(view.query), _words(view.key))
            if not counted.any():
                continue
            best = np.where(counted, view.weights, -1.0).reshape(view.n_heads, -1).argmax(axis=1)
            for head, (query, key) in enumerate(zip(*np.unravel_index(best, counted.shape), strict=True)):
                strip = view.weights[head, query].copy()
                cell = reading.index, int(query), int(key), view.query, view.key
                place = Head(view.stack, view.kind, view.layer, head)
                _keep(found.setdefault(place, []), Firing(float(strip[key]), *cell, strip))
    return {head: tuple(firings) for head, firings in found.items()}


def unit_firings(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    stack: str,
    layer: int,
    units: Sequence[int],
    *,
    special: bool = False,
    batch_size: int = BATCH_SIZE,
    progress: Progress | None = None,
) -> dict[int, tuple[Firing, ...]]:
    """Return the sentences with the largest hidden values of some units of one feed-forward layer.

    Values are ranked by size, since a gated unit has values of either sign. For the other arguments and errors see
    ``head_firings``.

    Raises:
        ValueError: If a unit does not exist.
    """
    found: dict[int, list[Firing]] = {unit: [] for unit in units}
    for batch in recorded_batches(checkpoint, sentences, parts=("hidden",), batch_size=batch_size, progress=progress):
        for row, index in enumerate(batch.indices):
            tokens = batch.tokens[stack][row]
            hidden = batch.recording.tensors[f"{stack}.layers.{layer}.feed_forward.hidden"][row, : len(tokens)]
            if wrong := [unit for unit in units if not 0 <= unit < hidden.shape[-1]]:
                raise ValueError(f"there is no unit {wrong[0]}; this layer has units 0 to {hidden.shape[-1] - 1}")
            counted = np.ones(len(tokens), dtype=bool) if special else _words(tokens)
            if not counted.any():
                continue
            for unit, strip in zip(units, hidden[:, list(units)].T.numpy(force=True), strict=True):
                best = int(np.where(counted, np.abs(strip), -1.0).argmax())
                _keep(found[unit], Firing(float(strip[best]), index, best, best, tokens, tokens, strip.copy()))
    return {unit: tuple(firings) for unit, firings in found.items()}


def _mark_tokens(tokens: TokenSequence, marks: Mapping[int, str]) -> str:
    return "".join(_mark_token(token, marks.get(token.index)) for token in tokens).strip()


def _mark_token(token: Token, mark: str | None) -> str:
    if mark is None:
        return "" if token.special else token.text
    if token.special:
        return f" {mark.format(token.display)} "
    bare = token.text.lstrip()
    return token.text[: len(token.text) - len(bare)] + mark.format(bare)


def _words(tokens: TokenSequence) -> np.ndarray:
    return np.array([not token.special for token in tokens])


def _keep(firings: list[Firing], firing: Firing) -> None:
    """Keep the ``MOST`` firings of largest magnitude; of equal ones, the earlier sentence's."""
    firings.append(firing)
    firings.sort(key=lambda one: (-abs(one.value), one.sentence))
    del firings[MOST:]
