"""What one number of the answer loses when an input token is taken away: measured, for every kind of model.

Leave one out (Li, Monroe & Jurafsky 2016, "Understanding Neural Networks through Representation Erasure"):

    a_i = F(all tokens) − F(all tokens but i)

Really left out: the tokens behind it move up by one place. Positive: the token speaks for the answer. Tokens that say
the same thing can each be left out without harm, so the a_i sum to nothing in particular.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer.fast.shortcut import fast_path
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.quantity import Quantity, numbers

ROWS = 32  # of a batch


@dataclass(frozen=True)
class Removal:
    """``source`` [token], ``target`` [token]: F(x) − F(x without this token), in F's unit; ``value`` = F(x).

    NaN where nothing can be asked without the token: it is the only one of its sentence, or the very place (``<mask>``)
    that the question is about.
    """

    quantity: Quantity
    source: np.ndarray | None
    target: np.ndarray | None
    value: float


def remove_each(checkpoint: Checkpoint, quantity: Quantity) -> Removal:
    """Ask the model once more for every input token, without that token; texts of the same length go in one batch."""
    whole = {stack: list(tokens.ids) for stack, tokens in quantity.read.items()}
    with torch.inference_mode(), fast_path():
        value = float(_ask(checkpoint, quantity, [whole], row=quantity.row)[0])
        parts = {stack: value - _without_each(checkpoint, quantity, whole, stack) for stack in whole}
    return Removal(quantity, parts.get("encoder"), parts.get("decoder"), value)


def _without_each(checkpoint: Checkpoint, quantity: Quantity, whole: dict[str, list[int]], stack: str) -> np.ndarray:
    """F without each token of one stack: [token]."""
    ids = whole[stack]
    found = np.full(len(ids), np.nan)
    asked_here = quantity.place is not None and quantity.place[0] == stack
    possible = np.arange(len(ids)) if len(ids) > 1 else np.arange(0)
    if asked_here and stack == "encoder":
        possible = possible[possible != quantity.row]
    # Without a token before it (or without its own), the row that is asked stands one place earlier.
    moved = possible <= quantity.row if asked_here else np.zeros(len(possible), dtype=bool)
    for places, row in ((possible[moved], quantity.row - 1), (possible[~moved], quantity.row)):
        texts = [{**whole, stack: ids[:place] + ids[place + 1 :]} for place in places]
        if texts:
            found[places] = _ask(checkpoint, quantity, texts, row=row)
    return found


def _ask(checkpoint: Checkpoint, quantity: Quantity, texts: list[dict[str, list[int]]], *, row: int) -> np.ndarray:
    """F of texts that are equally long, in batches: [text]."""
    found = []
    for start in range(0, len(texts), ROWS):
        part = texts[start : start + ROWS]
        ids = {stack: torch.tensor([text[stack] for text in part], device=checkpoint.model.device) for stack in part[0]}
        found.append(numbers(checkpoint, quantity, ids, row=row).double().cpu().numpy())
    return np.concatenate(found)
