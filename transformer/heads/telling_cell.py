"""The cell of the attention maps with which a page opens a sentence that nobody has prepared.

A page that opens at the first token and the first head often shows a row that can only attend to itself, or a head that
rests on ``<s>``. ``telling_cell`` finds a word that attends clearly to another word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from transformer.text.tokens import Token

LETTERS = 3  # of a token that most likely means something by itself
APART = 2  # tokens: every model has heads that attend to a neighbour, whatever the sentence


class TellingCell(NamedTuple):
    """One attention weight: which word attends to which, in which head."""

    place: Head
    query: int
    key: int
    weight: float


def telling_cell(trace: Trace, stack: str, kind: str, *, only: Head | None = None) -> TellingCell | None:
    """Return the largest weight between two words of the sentence, if it has any.

    The row is the last token of a prompt that is continued, a blank that is filled, or any word. In cross-attention it
    is a row that predicts a word. Words that are next to each other count only in rows of a prompt or a blank.

    Args:
        trace: The run.
        stack: The stack whose maps are searched.
        kind: "self" or "cross".
        only: The only head that is searched.
    """
    rows, apart = _rows(trace, stack, kind)
    read = trace.tokens("encoder" if kind == "cross" else stack)
    keys = [token.index for token in read if _is_word(token)]
    reached = {query: [key for key in keys if kind == "cross" or abs(key - query) >= apart] for query in rows}
    best: TellingCell | None = None
    for layer in range(trace.n_layers(stack)) if only is None else (only.layer,):
        view = trace.attention(stack, layer, kind)
        for head in range(view.n_heads) if only is None else (only.head,):
            for query, near in reached.items():
                weights = np.where(view.allowed[query], view.weights[head, query], 0.0)[near]
                if near and (best is None or weights.max() > best.weight):
                    key = near[int(weights.argmax())]
                    best = TellingCell(Head(stack, kind, layer, head), query, key, float(weights.max()))
    return best


def _rows(trace: Trace, stack: str, kind: str) -> tuple[Sequence[int], int]:
    """Return the rows to search, and the smallest distance of a key from its row."""
    config, question = trace.checkpoint.config, prediction_rows(trace)
    if config.has_decoder and not config.has_encoder and not question.everywhere:
        return question.rows[:1], 1
    if stack == "encoder" and not (config.has_decoder or config.n_classes or question.everywhere):
        return question.rows, 1
    tokens = trace.prediction if kind == "cross" else trace.tokens(stack)
    return [token.index for token in tokens if _is_word(token)], APART


def _is_word(token: Token) -> bool:
    return not token.special and sum(map(str.isalpha, token.display)) >= LETTERS
