"""A text being generated, on the canvas: the candidates and the attention of every step.

Probabilities are sent as float32, as in the model; attention weights as uint16, weight = round(w · 65535), with an
error of at most 1/131070. ``charts.toolkit.payload_bytes`` defines the layout of the bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charts.canvas.figure import CanvasFigure
from charts.toolkit.payload_bytes import TOLERANCE, mask_bits
from charts.toolkit.words import localize, say
from transformer.text.tokens import Token, TokenSequence

TITLE = "The text being written, step by step"


@dataclass(frozen=True)
class StepBars:
    """One step.

    Attributes:
        candidates: Tokens that could be chosen.
        probabilities: Their probabilities.
        chosen: Index of the chosen one.
        rest: Probability of all other tokens.
        weights: Attention of the step, [key]; there may be fewer keys than at a later step.
        allowed: Mask of the keys, [key].
        said: The sentence about the step, in pieces of which every second one is emphasised.
        rank: Rank of the chosen one among all tokens, from 1; 0 if unknown.
    """

    said: tuple[str, ...]
    candidates: tuple[str, ...]
    probabilities: tuple[float, ...]
    rest: float
    chosen: int
    weights: np.ndarray
    allowed: np.ndarray
    rank: int = 0


def written_steps(
    steps: Sequence[StepBars],
    *,
    tokens: TokenSequence,
    key: TokenSequence,
    of: str,
    before: Sequence[Token] = (),
    n_given: int = 0,
    begin: tuple[int, int] = (0, 0),
) -> CanvasFigure:
    """Draw all ``steps`` of the text ``tokens``, one step per token.

    Args:
        steps: The steps.
        tokens: Generated tokens.
        key: Tokens that the last step could attend to; an earlier step could attend to the first of them.
        of: Name of the head or heads whose weights are drawn.
        before: Tokens before the first step (a prompt).
        n_given: Number of tokens at the start that were given, not chosen.
        begin: The step to show first, and a number that changes whenever the reader is to be moved there; otherwise the
            reader stays at the step reached in the browser.

    Raises:
        ValueError: If numbers are not probabilities or weights, or arrays do not fit their labels.
    """
    if not steps or len(steps) != len(tokens):
        raise ValueError(f"there are {len(steps)} steps and {len(tokens)} tokens; every token needs its step")
    most = max(len(step.candidates) for step in steps)
    probabilities = np.zeros((len(steps), most), dtype=np.float32)
    weights = np.zeros((len(steps), len(key)), dtype=np.uint16)
    allowed = np.zeros((len(steps), len(key)), dtype=bool)
    for row, step in enumerate(steps):
        _check(step, row=row, n_keys=len(key))
        probabilities[row, : len(step.probabilities)] = step.probabilities
        count = len(step.weights)
        weights[row, :count] = np.rint(np.clip(step.weights, 0.0, 1.0) * 65535)
        allowed[row, :count] = step.allowed
    metadata = {
        "kind": "steps",
        "title": localize(TITLE),
        "tokens": [{**_plain(token), "given": token.index < n_given} for token in tokens],
        "before": [_plain(token) for token in before],
        "said": [list(step.said) for step in steps],
        "candidates": [list(step.candidates) for step in steps],
        "chosen": [int(step.chosen) for step in steps],
        # Drawn where a bar follows a gap: the likelier tokens between are not drawn.
        "ranks": [int(step.rank) if step.rank > step.chosen + 1 else 0 for step in steps],
        "columns": list(key.labels),
        "counts": [len(step.weights) for step in steps],
        "of": of,
        "axis": say("names.key_axis"),
        "begin": [int(number) for number in begin],
    }
    rest = np.array([step.rest for step in steps], dtype=np.float32)
    arrays: dict[str, np.ndarray] = {
        "probabilities": probabilities,
        "rest": rest,
        "weights": weights,
        "allowed": mask_bits(allowed),
    }
    return CanvasFigure(metadata, arrays)


def _plain(token: Token) -> dict:
    return {"text": token.display, "special": token.special}


def _check(step: StepBars, *, row: int, n_keys: int) -> None:
    name = f"step {row}"
    if len(step.candidates) != len(step.probabilities):
        raise ValueError(f"{name}: {len(step.candidates)} candidates, but {len(step.probabilities)} probabilities")
    if not 0 <= step.chosen < len(step.candidates):
        raise ValueError(f"{name}: candidate {step.chosen} is the chosen one, but there are {len(step.candidates)}")
    if len(step.weights) != len(step.allowed) or len(step.weights) > n_keys:
        raise ValueError(f"{name}: {len(step.weights)} weights, {len(step.allowed)} of a mask, {n_keys} keys")
    for what, values in (("probabilities", [*step.probabilities, step.rest]), ("weights", step.weights)):
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.size and not (numbers.min() >= 0 and numbers.max() <= 1 + TOLERANCE):  # false for NaN
            low, high = numbers.min(), numbers.max()
            raise ValueError(f"{name}: its {what} reach from {low:.3g} to {high:.3g}; they must lie within 0…1")
