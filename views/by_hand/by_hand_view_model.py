"""Content of the By hand page: the sheet with the reader's changes, and the code of its tables.

A notebook builds the same object:

>>> from views.by_hand.by_hand_view_model import ByHandViewModel, SheetChoices
>>> view_model = ByHandViewModel(SheetChoices.from_texts(words="", heads="", cells=""))
>>> view_model.next_word("en")
'mat'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer.attention import MultiHeadAttention, attention_scores, attention_weights
from transformer.embedding import Embedding, vocabulary_projection
from transformer.feed_forward import FeedForward
from transformer.layer_norm import LayerNorm
from transformer.positions import LearnedEncoding
from transformer.predictions.answer_probabilities import softmax
from transformer.residual import residual_connection
from transformer.toy.by_hand import HEAD_COUNTS, MAX_WORDS, Sheet, forward_pass, load_sheet

LARGEST = 9.9  # largest number in a cell, as in charts/canvas/source/by_hand/state.js
_CELL = re.compile(r"(?P<name>[A-Za-z]\w?)\.(?P<row>\d)\.(?P<column>\d):(?P<value>-?\d(?:\.\d\d?)?)")
Cell = tuple[str, int, int]  # parameter, row, column


@dataclass(frozen=True)
class Step:
    """Where a table of the sheet is computed.

    Attributes:
        thing: The function, method or class.
        line: Text of the line in it, or the part of it that is shown.
        page: The page that shows the same numbers of a trained model.
    """

    thing: Callable | type
    line: str
    page: str


# One step per table, as in charts/canvas/source/by_hand/blocks.js (`step` or `of`).
STEPS: Mapping[str, Step] = {
    "onehot": Step(Embedding.forward, "self.table(ids)", "tokens"),
    "E": Step(Embedding.__init__, "self.table = table", "embeddings"),
    "token": Step(Embedding.forward, "self.table(ids) * self.scale", "embeddings"),
    "P": Step(LearnedEncoding.forward, "self.table[None, start : start + n_positions]", "positions"),
    "x": Step(Embedding.forward, "embedded + self.position(", "positions"),
    "WQ": Step(MultiHeadAttention.__init__, "self.query_projection = nn.Linear(", "heads"),
    "WK": Step(MultiHeadAttention.__init__, "self.key_projection = nn.Linear(", "heads"),
    "WV": Step(MultiHeadAttention.__init__, "self.value_projection = nn.Linear(", "heads"),
    "WO": Step(MultiHeadAttention.__init__, "self.output_projection = nn.Linear(", "heads"),
    "W1": Step(FeedForward.__init__, "self.input_projection = nn.Linear(", "feed_forward"),
    "W2": Step(FeedForward.__init__, "self.output_projection = nn.Linear(", "feed_forward"),
    "Q": Step(MultiHeadAttention.queries, "self.query_projection(query_input)", "attention"),
    "K": Step(MultiHeadAttention.keys_and_values, "self.key_projection(key_input)", "attention"),
    "V": Step(MultiHeadAttention.keys_and_values, "self.value_projection(key_input)", "attention"),
    "products": Step(attention_scores, "query @ key.transpose(-2, -1)", "attention"),
    "scores": Step(attention_weights, "torch.where(allowed, scores, lowest)", "masks"),
    "weights": Step(attention_weights, "torch.softmax(", "attention"),
    "context": Step(MultiHeadAttention.attend, "weights @ value", "attention"),
    "out": Step(MultiHeadAttention.project_output, "self.output_projection(", "attention"),
    "sum1": Step(residual_connection, "norm(stream + dropout(sublayer(stream)))", "add_norm"),
    "mean1": Step(LayerNorm.normalise, "std = self.std(", "add_norm"),
    "g1": Step(LayerNorm.__init__, "self.weight = ", "add_norm"),
    "norm1": Step(LayerNorm.normalise, "normalized * self.weight + self.bias", "add_norm"),
    "pre": Step(FeedForward.forward, "self.input_projection(x)", "feed_forward"),
    "hidden": Step(FeedForward.forward, "self.activation(", "feed_forward"),
    "ff": Step(FeedForward.forward, "self.output_projection(", "feed_forward"),
    "sum2": Step(residual_connection, "norm(stream + dropout(sublayer(stream)))", "add_norm"),
    "mean2": Step(LayerNorm.normalise, "std = self.std(", "add_norm"),
    "g2": Step(LayerNorm.__init__, "self.weight = ", "add_norm"),
    "norm2": Step(LayerNorm.normalise, "normalized * self.weight + self.bias", "add_norm"),
    "logits": Step(vocabulary_projection, "projection.weight = table.weight", "decoding"),
    "probabilities": Step(softmax, "powers / powers.sum(", "decoding"),
}


@dataclass(frozen=True)
class SheetChoices:
    """What a reader has changed.

    Attributes:
        words: Ids of the words.
        n_heads: 1 or 2.
        cells: Parameters whose number differs from the stored one.
    """

    words: tuple[int, ...]
    n_heads: int
    cells: Mapping[Cell, float]

    @classmethod
    def from_texts(cls, *, words: str, heads: str, cells: str) -> SheetChoices:
        """Read the parameters of a URL, "" for a default; values that do not exist on the sheet are ignored."""
        sheet = load_sheet()
        ids = [int(word) for word in words.split(".") if word.isascii() and word.isdigit() and len(word) < 3]
        known = tuple(each for each in ids if each < len(sheet.ids))[:MAX_WORDS]
        changed: dict[Cell, float] = {}
        for text in cells.split("_"):
            if found := _CELL.fullmatch(text):
                cell = (found["name"], int(found["row"]), int(found["column"]))
                if _is_on(sheet, cell) and sheet.parameters[cell[0]][cell[1:]] != (value := float(found["value"])):
                    changed[cell] = value
        return cls(known or sheet.text, 2 if heads == "2" else 1, changed)

    def to_texts(self) -> dict[str, str]:
        """Return the parameters of a URL, "" for a default."""
        opening = self.words == load_sheet().text
        return {
            "words": "" if opening else ".".join(map(str, self.words)),
            "heads": "" if self.n_heads == HEAD_COUNTS[0] else str(self.n_heads),
            "cells": "_".join(f"{name}.{row}.{column}:{value:g}" for (name, row, column), value in self.cells.items()),
        }


def _is_on(sheet: Sheet, cell: Cell) -> bool:
    name, row, column = cell
    if name not in sheet.parameters:
        return False
    rows, columns = sheet.parameters[name].shape
    return row < rows and column < columns


@dataclass(frozen=True)
class ByHandViewModel:
    """The sheet with a reader's changes."""

    choices: SheetChoices

    @cached_property
    def sheet(self) -> Sheet:
        """The sheet with the changed numbers."""
        return load_sheet().edited(self.choices.cells, n_heads=self.choices.n_heads)

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """Every number of the forward pass, from the recorded pass of the model."""
        return forward_pass(self.sheet, self.choices.words)

    def vocabulary(self, language: str) -> tuple[str, ...]:
        """Return the eight words in a language, in English if the sheet has none in it."""
        return self.sheet.words.get(language, self.sheet.words["en"])

    def next_word(self, language: str) -> str:
        """Return the most likely next word."""
        return self.vocabulary(language)[int(self.numbers["probabilities"][-1].argmax())]
