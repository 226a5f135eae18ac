"""What a masked-token model would put at a position (Devlin et al. 2019, §3.1)."""

from dataclasses import dataclass

import numpy as np

from transformer.predictions.answer_probabilities import softmax
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Filling:
    """One token that could stand at the position; ``stands_there``: it is the one that the model read there."""

    id: int
    piece: str
    logit: float
    probability: float
    stands_there: bool


@dataclass(frozen=True)
class Fillings:
    """The likeliest tokens of one position, most probable first; ``rest``: probability of all others."""

    rows: tuple[Filling, ...]
    rest: float


def blanks(trace: Trace) -> tuple[int, ...]:
    """The positions of ``<mask>`` in the sentence."""
    return tuple(token.index for token in trace.source if token.role == "mask")


def filled(trace: Trace) -> str:
    """The sentence with the likeliest word in each blank, every blank by itself."""
    ids = list(trace.source.ids)
    for position in blanks(trace):
        ids[position] = fillings(trace, position, shown=1).rows[0].id
    return trace.checkpoint.tokenizer.decode(ids)


def fillings(trace: Trace, position: int, *, shown: int = 10) -> Fillings:
    """softmax(logits) at a position; the list leaves out ``<mask>``, and ``<pad>`` and ``<s>`` where they are not read;
    the sum does not.

    Where the sentence has a word there, that word is among the rows (as the last if it is not one of the likeliest).
    """
    logits, display = trace.values("encoder.logits")[position], trace.checkpoint.tokenizer.display
    probabilities = softmax(logits)
    special, read = trace.checkpoint.special, trace.source[position].id
    no_words = {special.pad, special.start} - {read} | {special.mask}
    order = [int(id) for id in np.argsort(-logits, kind="stable")[: shown + 3] if id not in no_words][:shown]
    if read not in order and read != special.mask:
        order[-1:] = [read]
    rows = tuple(Filling(id, display(id), float(logits[id]), float(probabilities[id]), id == read) for id in order)
    return Fillings(rows, max(0.0, 1.0 - sum(row.probability for row in rows)))
