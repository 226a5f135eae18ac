"""The cell of the attention maps with which pages open a sentence that nobody has prepared.

A page that opens at the first token and the first head often shows a row that can only attend to itself, or a head that
rests on ``<s>``. All pages open at the same cell instead: ``followed_rows`` finds the token that the picture of the
whole run is about, and ``telling_cell`` the layer whose heads agree on another word, and the head that attends to this
word most. ``most_useful`` prefers a head without which the output is less probable. ``clearest_cell`` finds the row of
one head, in a stack that the picture is not about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from transformer.interventions.head_importance import importance_by_chunks
from transformer.predictions.answer_probabilities import PredictionRows, prediction_rows
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from transformer.text.tokens import Token

LETTERS = 3  # of a token that most likely means something by itself
CONTENT_LETTERS = 4  # and of a content word
APART = 2  # tokens: every model has heads that attend to a neighbour, whatever the sentence
CLEAR = 0.5  # of a row: least weight on the key that all agree on
AGREED = 0.3  # least mean weight with which the heads of a layer name the source of a word


class TellingCell(NamedTuple):
    """One attention weight: which token attends to which, in which head."""

    place: Head
    query: int
    key: int
    weight: float


def telling_kind(trace: Trace) -> tuple[str, str]:
    """Return the stack that the output comes from, and its attention: to the source if there is one."""
    config = trace.checkpoint.config
    return trace.stacks[-1], "cross" if config.has_encoder and config.has_decoder else "self"


def followed_rows(trace: Trace, *, layer: int, decisive: int | None = None) -> tuple[int, ...]:
    """Return the rows of the maps of ``telling_kind`` that the picture of the run may follow; usually one.

    - Text is generated, or a blank is filled: the row that predicts the first content word. For a translation, this
      word mainly attends to a content word of the source with another spelling, if there is one.
    - Nothing is generated: the row that predicts a word with the largest probability.
    - A class is predicted: the word that it depends on most, ``decisive``; for an image, the class token.
    - Nothing of this is known: all words.

    ``opensAt`` in charts/canvas/source/drawings/living_picture.js chooses alike where there is no Python.

    Args:
        trace: The run.
        layer: The layer whose heads name the source of a translated word.
        decisive: The position of the word on which the class depends most.
    """
    config = trace.checkpoint.config
    if config.n_classes and config.reads_images:
        return (0,)
    if decisive is not None:
        return (decisive,)
    question = prediction_rows(trace)
    if config.n_classes or not question.rows:
        words = tuple(token.index for token in trace.tokens(trace.stacks[-1]) if _is_word(token))
        return words or (0,)
    if question.everywhere:
        return (_most_expected(trace, question),)
    content = [
        (row, display)
        for row, display in zip(question.rows, question.displays, strict=True)
        if _n_letters(display) >= CONTENT_LETTERS
    ]
    for row, display in content if telling_kind(trace)[1] == "cross" else ():
        weights = _mean(trace, layer, row)
        source = trace.tokens("encoder").displays[int(weights.argmax())]
        if weights.max() > AGREED and source != display and _n_letters(source) >= CONTENT_LETTERS:
            return (row,)
    return (content[0][0] if content else question.rows[0],)


def telling_cell(trace: Trace, rows: Iterable[int], layers: Sequence[int]) -> TellingCell:
    """Return the cell on whose column the heads of a layer agree, in the head that attends to it most.

    The layer is the one whose heads have the largest mean weight on another word, counted only where no other token
    has more. If there is none, any token with a letter counts, and then any other token.

    Args:
        trace: The run.
        rows: The rows that are searched, in the maps of ``telling_kind``.
        layers: The layers that are searched.
    """
    stack, kind = telling_kind(trace)
    keys = trace.tokens("encoder" if kind == "cross" else stack)
    found = []
    for row in rows:
        for layer in layers:
            weights = _mean(trace, layer, row)
            if kind == "self":
                weights[row] = 0.0  # the picture names another token
            key = int(weights.argmax())
            rank = _rank(keys[key])
            found.append((rank, float(weights[key]), -layer, row, key))
    _, _, before, row, key = max(found)
    weights = trace.attention(stack, -before, kind).weights[:, row]
    mostly = [head for head in range(len(weights)) if int(weights[head].argmax()) == key]
    head = max(mostly or range(len(weights)), key=lambda head: weights[head, key])
    return TellingCell(Head(stack, kind, -before, head), row, key, float(weights[head, key]))


def most_useful(trace: Trace, cell: TellingCell) -> TellingCell:
    """Return the cell in the head of its layer that the output needs most, of those with a clear row.

    A head that attends to the word most may not matter for the output at all. If the output is more probable without
    each of the heads, the cell stays as it is.
    """
    stack, kind, layer, _ = cell.place
    weights = trace.attention(stack, layer, kind).weights[:, cell.query]
    clear = [Head(stack, kind, layer, head) for head in range(len(weights)) if weights[head, cell.key] >= CLEAR]
    if len(clear) < 2 or not prediction_rows(trace).rows:
        return cell
    measured = [head for part in importance_by_chunks(trace, heads=clear) for head in part]
    found = min(measured, key=lambda effect: effect.change)
    if not found.change < 0:
        return cell
    return cell._replace(place=found.place, weight=float(weights[found.place.head, cell.key]))


def clearest_cell(trace: Trace, place: Head) -> TellingCell | None:
    """Return the largest weight of one head between two words that are not neighbours, if there is one."""
    view = trace.attention(place.stack, place.layer, place.kind)
    words = [[token.index for token in tokens if _is_word(token)] for tokens in (view.query, view.key)]
    near = place.kind == "self"
    pairs = [(query, key) for query in words[0] for key in words[1] if not near or abs(key - query) >= APART]
    weights = np.where(view.allowed, view.weights[place.head], 0.0)
    if not pairs:
        return None
    query, key = max(pairs, key=lambda pair: weights[pair])
    return TellingCell(place, query, key, float(weights[query, key]))


def _mean(trace: Trace, layer: int, row: int) -> np.ndarray:
    """Return the mean row of all heads of a layer: [key]; 0 where the mask forbids a key."""
    stack, kind = telling_kind(trace)
    view = trace.attention(stack, layer, kind)
    return np.where(view.allowed[row], view.weights[:, row].mean(axis=0), 0.0)


def _most_expected(trace: Trace, question: PredictionRows) -> int:
    """Return the row that predicts a word with the largest probability."""
    chances = np.exp(question.log_probabilities(trace))
    likely, most = chances.argmax(axis=-1).tolist(), chances.max(axis=-1)
    display = trace.checkpoint.tokenizer.display
    words = [at for at, token in enumerate(likely) if _n_letters(display(token)) >= LETTERS]
    return question.rows[max(words, key=lambda at: most[at])] if words else question.rows[0]


def _rank(token: Token) -> int:
    """Return 2 for a word or an image patch, 1 for another token with letters, 0 otherwise."""
    if token.pixels or _is_word(token):
        return 2
    return int(not token.special and any(map(str.isalpha, token.display)))


def _is_word(token: Token) -> bool:
    return not token.special and sum(map(str.isalpha, token.display)) >= LETTERS


def _n_letters(display: str) -> int:
    """Return the number of letters of a token that has nothing else but the space before it, otherwise 0."""
    bare = display.removeprefix("·")
    return len(bare) if bare.isalpha() else 0
