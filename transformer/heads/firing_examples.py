"""Examples of where a head or a hidden unit is most active: its largest weights or values.

The largest activations over many texts are the oldest way to guess what a unit is for, and they show nothing about all
other activations ("An Interpretability Illusion for BERT", Bolukbasi et al. 2021). Only the strongest position of each
sentence counts, so that one sentence cannot fill the list.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.runs.head_places import Head, attention_layers
from transformer.runs.readings import BATCH_SIZE, Recorded, nothing_read_error, recorded_batches
from transformer.text.tokens import TokenSequence

ROWS = ("weights", "allowed")  # the probes that ``head_rows`` reads
MOST = 12  # sentences per head or unit
Progress = Callable[[int, int], None]


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
    most: int = MOST,
    batch_size: int = BATCH_SIZE,
    progress: Progress | None = None,
) -> dict[Head, tuple[Firing, ...]]:
    """Return the ``most`` sentences with the largest weights of every head, strongest first.

    A row with a single allowed key has weight 1 whatever the head does, and never counts. For what the model reads, see
    ``transformer.runs.readings``.

    Args:
        checkpoint: The model.
        sentences: Sentences to search.
        special: Whether ``<s>``, ``</s>`` and other special tokens count as queries and keys.
        most: Sentences per head.
        batch_size: Largest number of sentences in a batch.
        progress: Called as ``progress(done, total)`` with numbers of sentences; an exception that it raises ends the
            work.

    Raises:
        InputError: If no sentence can be read.
    """
    found: dict[Head, list[Firing]] = {}
    for batch in read_batches(checkpoint, sentences, batch_size=batch_size, parts=ROWS, progress=progress):
        for stack, kind, layer in attention_layers(checkpoint.config):
            for row, index in enumerate(batch.indices):
                asked, read, weights, allowed = head_rows(batch, stack, kind, layer, row)
                counted = allowed & (allowed.sum(axis=1, keepdims=True) > 1)
                if not special:
                    counted &= np.outer(_words(asked), _words(read))
                if not counted.any():
                    continue
                best = np.where(counted, weights, -1.0).reshape(len(weights), -1).argmax(axis=1)
                for head, (query, key) in enumerate(zip(*np.unravel_index(best, counted.shape), strict=True)):
                    strip = weights[head, query].copy()
                    firing = Firing(float(strip[key]), index, int(query), int(key), asked, read, strip)
                    _keep(found.setdefault(Head(stack, kind, layer, head), []), firing, most)
    return {head: tuple(firings) for head, firings in found.items()}


def unit_firings(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    stack: str,
    layer: int,
    units: Sequence[int],
    *,
    special: bool = False,
    most: int = MOST,
    batch_size: int = BATCH_SIZE,
    progress: Progress | None = None,
) -> dict[int, tuple[Firing, ...]]:
    """Return the sentences with the largest hidden values of some units of one feed-forward layer.

    Values are ranked by size, since a gated unit has values of either sign. For arguments and errors see
    ``head_firings``.

    Raises:
        ValueError: If a unit does not exist.
    """
    found: dict[int, list[Firing]] = {unit: [] for unit in units}
    for batch in read_batches(checkpoint, sentences, batch_size=batch_size, parts=("hidden",), progress=progress):
        hidden = batch.recording.tensors[f"{stack}.layers.{layer}.feed_forward.hidden"]
        if wrong := [unit for unit in units if not 0 <= unit < hidden.shape[-1]]:
            raise ValueError(f"there is no unit {wrong[0]}; this layer has units 0 to {hidden.shape[-1] - 1}")
        values = hidden[..., list(units)].numpy(force=True)  # [sentence, position, unit]
        for row, index in enumerate(batch.indices):
            tokens = batch.tokens[stack][row]
            counted = np.ones(len(tokens), dtype=bool) if special else _words(tokens)
            if not counted.any():
                continue
            own = values[row, : len(tokens)]
            for place, unit in enumerate(units):
                best = int(np.where(counted, np.abs(own[:, place]), -1.0).argmax())
                strip = own[:, place].copy()
                _keep(found[unit], Firing(float(strip[best]), index, best, best, tokens, tokens, strip), most)
    return {unit: tuple(firings) for unit, firings in found.items()}


def read_batches(
    checkpoint: Checkpoint,
    sentences: Sequence[str],
    *,
    batch_size: int,
    parts: Collection[str],
    progress: Progress | None,
) -> Iterator[Recorded]:
    """Yield all recorded passes with the probes ``parts``.

    Raises:
        InputError: If no sentence can be read.
    """
    done, read = 0, 0
    for batch in recorded_batches(checkpoint, sentences, batch_size=batch_size, parts=parts):
        if batch.indices:
            yield batch
        done, read = done + len(batch.indices) + len(batch.unread), read + len(batch.indices)
        if progress is not None:
            progress(done, len(sentences))
    if not read:
        raise nothing_read_error(checkpoint, len(sentences))


def head_rows(
    batch: Recorded, stack: str, kind: str, layer: int, row: int
) -> tuple[TokenSequence, TokenSequence, np.ndarray, np.ndarray]:
    """Return one attention layer of one sentence of a batch, without padding.

    Returns:
        The query tokens, the key tokens, the weights [head, query, key], and the mask [query, key].
    """
    name = f"{stack}.layers.{layer}.{kind}_attention"
    asked, read = batch.tokens[stack][row], batch.tokens["encoder" if kind == "cross" else stack][row]
    weights, allowed = (
        batch.recording.tensors[f"{name}.{part}"][row, ..., : len(asked), : len(read)].numpy(force=True)
        for part in ("weights", "allowed")
    )
    return asked, read, weights, allowed


def _words(tokens: TokenSequence) -> np.ndarray:
    return np.array([not token.special for token in tokens])


def _keep(firings: list[Firing], firing: Firing, most: int) -> None:
    """Keep the ``most`` firings of largest magnitude; of equal ones, the earlier sentence's."""
    firings.append(firing)
    firings.sort(key=lambda one: (-abs(one.value), one.sentence))
    del firings[most:]
