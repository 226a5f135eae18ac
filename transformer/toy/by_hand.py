"""A decoder so small that every number of its forward pass fits on one sheet of paper.

It has the modules of every other model of this package: one post-norm layer (Vaswani et al. 2017, §3.1), d_model 4, one
head or two, a vocabulary of eight words. ``by_hand.toml`` holds its weights, numbers with one decimal, which
were found by training.

    sheet = load_sheet()
    numbers = forward_pass(sheet, [sheet.ids["the"], sheet.ids["cat"]])
    numbers["weights0"]  # attention weights of head 0, [query, key]
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import torch

from transformer.config import ModelConfig
from transformer.models import DecoderOnly, Model
from transformer.probes import record

FILE = Path(__file__).with_suffix(".toml")
D_MODEL = 4
MAX_WORDS = 5
HEAD_COUNTS = (1, 2)
Cell = tuple[str, int, int]  # parameter, row, column
_CELL = re.compile(r"(?P<name>[A-Za-z]\w?)\.(?P<row>\d)\.(?P<column>\d):(?P<value>-?\d(?:\.\d\d?)?)")
_LAYER = "decoder.layers.0"
_ATTENTION, _FEED_FORWARD = f"{_LAYER}.self_attention", f"{_LAYER}.feed_forward"
_FIRST_NORM, _SECOND_NORM = f"{_LAYER}.self_attention_norm", f"{_LAYER}.feed_forward_norm"
# Name on the sheet → parameter of the model. A matrix W of a linear layer is written as in the formula x W + b, which
# is the transpose of what torch stores.
PARAMETERS: Mapping[str, str] = {
    "E": "decoder.embedding.table.weight",
    "P": "decoder.embedding.position_encoding.table",
    "WQ": f"{_ATTENTION}.query_projection.weight",
    "bQ": f"{_ATTENTION}.query_projection.bias",
    "WK": f"{_ATTENTION}.key_projection.weight",
    "bK": f"{_ATTENTION}.key_projection.bias",
    "WV": f"{_ATTENTION}.value_projection.weight",
    "bV": f"{_ATTENTION}.value_projection.bias",
    "WO": f"{_ATTENTION}.output_projection.weight",
    "bO": f"{_ATTENTION}.output_projection.bias",
    "g1": f"{_FIRST_NORM}.weight",
    "c1": f"{_FIRST_NORM}.bias",
    "W1": f"{_FEED_FORWARD}.input_projection.weight",
    "b1": f"{_FEED_FORWARD}.input_projection.bias",
    "W2": f"{_FEED_FORWARD}.output_projection.weight",
    "b2": f"{_FEED_FORWARD}.output_projection.bias",
    "g2": f"{_SECOND_NORM}.weight",
    "c2": f"{_SECOND_NORM}.bias",
}
# Name on the sheet → probe, for numbers with the axes [position, …].
_PROBES: Mapping[str, str] = {
    "token": "decoder.embedding.token",
    "x": "decoder.embedding.sum",
    "out": f"{_ATTENTION}.output",
    "sum1": f"{_FIRST_NORM}.input",
    "mean1": f"{_FIRST_NORM}.mean",
    "std1": f"{_FIRST_NORM}.std",
    "norm1": f"{_FIRST_NORM}.output",
    "pre": f"{_FEED_FORWARD}.pre_activation",
    "hidden": f"{_FEED_FORWARD}.hidden",
    "ff": f"{_FEED_FORWARD}.output",
    "sum2": f"{_SECOND_NORM}.input",
    "mean2": f"{_SECOND_NORM}.mean",
    "std2": f"{_SECOND_NORM}.std",
    "norm2": f"{_SECOND_NORM}.output",
    "logits": "decoder.logits",
}


@dataclass(frozen=True)
class Sheet:
    """The numbers and words of the model; never change an array in place.

    Attributes:
        words: The vocabulary in each language, by the language's code; the index of a word is its id.
        text: Ids of the words that the sheet opens with.
        parameters: Every parameter by its name on the sheet (``PARAMETERS``), [row, column].
        n_heads: 1 or 2. Two heads share the same matrices; head 0 has the first two channels.
    """

    words: Mapping[str, tuple[str, ...]]
    text: tuple[int, ...]
    parameters: Mapping[str, np.ndarray]
    n_heads: int = 1

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Ids of the English words."""
        return {word: number for number, word in enumerate(self.words["en"])}

    def edited(self, cells: Mapping[Cell, float], *, n_heads: int) -> "Sheet":
        """Return the sheet with ``n_heads`` heads and new numbers in some cells (parameter, row, column)."""
        parameters = dict(self.parameters)
        for (name, row, column), value in cells.items():
            parameters[name] = parameters[name].copy()
            parameters[name][row, column] = value
        return replace(self, parameters=parameters, n_heads=n_heads)


@cache
def load_sheet() -> Sheet:
    """Read ``by_hand.toml``."""
    stored = tomllib.loads(FILE.read_text(encoding="utf-8"))
    words = {language: tuple(names) for language, names in stored["words"].items()}
    text = tuple(words["en"].index(word) for word in stored["text"])
    return Sheet(words, text, {name: np.array(stored["parameters"][name], dtype=np.float64) for name in PARAMETERS})


def sheet_model(sheet: Sheet) -> Model:
    """Return the model whose weights are those of the sheet, in double precision and ``eval()`` mode."""
    config = ModelConfig(
        kind="decoder-only",
        vocabulary_size=8,
        d_model=D_MODEL,
        n_heads=sheet.n_heads,
        d_ff=D_MODEL,
        n_encoder_layers=0,
        n_decoder_layers=1,
        max_length=MAX_WORDS,
        positions="learned",
        norm="post",
        dropout=0.0,
        tie_embeddings=True,
    )
    model = DecoderOnly(config).eval().double()
    model.decoder.pad_id = None  # type: ignore[assignment]  # all eight entries are words, a text is never padded
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, path in PARAMETERS.items():
            written = torch.from_numpy(sheet.parameters[name])
            is_matrix = name.startswith("W")  # written as in x W + b, and stored transposed
            parameters[path].copy_(written.T if is_matrix else written.reshape(parameters[path].shape))
    return model


def forward_pass(sheet: Sheet, ids: Sequence[int]) -> dict[str, np.ndarray]:
    """Return every number of one forward pass, by its name on the sheet, [row, column].

    All come from the recorded pass of the model, except three that the modules do not record: ``onehot``,
    ``products`` (Q Kᵀ before the division by √d_k) and ``probabilities``. The names ``products``, ``scores`` and
    ``weights`` end in the number of the head. ``scores`` are those before the mask.

    Args:
        sheet: Weights and number of heads.
        ids: One to five word ids.

    Raises:
        ValueError: If there are too few or too many words.
    """
    if not 1 <= len(ids) <= MAX_WORDS:
        raise ValueError(f"the sheet takes 1 to {MAX_WORDS} words, but ids holds {len(ids)}")
    model = sheet_model(sheet)
    with torch.inference_mode(), record() as recording:
        logits = model(torch.tensor([list(ids)]))
        probabilities = torch.softmax(logits, dim=-1)[0]
    found = {name: tensor[0].numpy(force=True) for name, tensor in recording.tensors.items()}
    numbers = dict(sheet.parameters)
    numbers["onehot"] = np.eye(model.config.vocabulary_size)[list(ids)]
    numbers |= {name: found[probe].reshape(len(ids), -1) for name, probe in _PROBES.items()}
    query, key, value, context = (found[f"{_ATTENTION}.{name}"] for name in ("query", "key", "value", "context"))
    for name, heads in {"Q": query, "K": key, "V": value, "context": context}.items():
        numbers[name] = np.concatenate(list(heads), axis=1)  # [position, model]
    for head in range(sheet.n_heads):
        numbers[f"products{head}"] = query[head] @ key[head].T
        numbers[f"scores{head}"] = found[f"{_ATTENTION}.scores"][head]
        numbers[f"weights{head}"] = found[f"{_ATTENTION}.weights"][head]
    numbers["probabilities"] = probabilities.numpy(force=True)
    return numbers


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
    def from_texts(cls, *, words: str, heads: str, cells: str) -> "SheetChoices":
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


def vocabulary(code: str) -> tuple[str, ...]:
    """Return the eight words in a language, in English if the sheet has none in it."""
    words = load_sheet().words
    return words.get(code, words["en"])


def numbers_of(choices: SheetChoices) -> dict[str, np.ndarray]:
    """Return every number of the forward pass with the reader's changes, from the recorded pass."""
    return forward_pass(load_sheet().edited(choices.cells, n_heads=choices.n_heads), choices.words)


def _is_on(sheet: Sheet, cell: Cell) -> bool:
    name, row, column = cell
    if name not in sheet.parameters:
        return False
    rows, columns = sheet.parameters[name].shape
    return row < rows and column < columns
