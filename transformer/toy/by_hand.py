"""A decoder so small that every number of its forward pass fits on one sheet of paper.

It has the modules of every other model of this package: one post-norm layer (Vaswani et al. 2017, §3.1), d_model 4, one
head or two, a vocabulary of eight words. ``by_hand.toml`` holds its weights, numbers with one decimal, which
were found by training.

    sheet = load_sheet()
    numbers = forward_pass(sheet, [sheet.ids["the"], sheet.ids["cat"]])
    numbers["weights0"]  # attention weights of head 0, [query, key]
"""

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
TRANSPOSED = frozenset(name for name in PARAMETERS if name.startswith("W"))
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
        words: The vocabulary in each language, by its code; a word's place is its id.
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

    def edited(self, cells: Mapping[tuple[str, int, int], float], *, n_heads: int) -> "Sheet":
        """Return the sheet with other numbers in some cells (parameter, row, column), and a number of heads."""
        parameters = dict(self.parameters)
        for (name, row, column), value in cells.items():
            parameters[name] = parameters[name].copy()
            parameters[name][row, column] = value
        return replace(self, parameters=parameters, n_heads=n_heads)


def sheet_config(n_heads: int = 1) -> ModelConfig:
    """Return the configuration: a decoder-only model with d_model 4, one layer and learned positions."""
    return ModelConfig(
        kind="decoder-only",
        vocabulary_size=8,
        d_model=D_MODEL,
        n_heads=n_heads,
        d_ff=D_MODEL,
        n_encoder_layers=0,
        n_decoder_layers=1,
        max_length=MAX_WORDS,
        positions="learned",
        norm="post",
        dropout=0.0,
        tie_embeddings=True,
    )


@cache
def load_sheet() -> Sheet:
    """Read ``by_hand.toml``."""
    stored = tomllib.loads(FILE.read_text(encoding="utf-8"))
    words = {language: tuple(names) for language, names in stored["words"].items()}
    text = tuple(words["en"].index(word) for word in stored["text"])
    return Sheet(words, text, {name: np.array(stored["parameters"][name], dtype=np.float64) for name in PARAMETERS})


def empty_model(n_heads: int = 1) -> Model:
    """Return the model with random weights, in ``eval()`` mode."""
    model = DecoderOnly(sheet_config(n_heads)).eval()
    model.decoder.pad_id = None  # type: ignore[assignment]  # all eight entries are words, a text is never padded
    return model


def sheet_model(sheet: Sheet) -> Model:
    """Return the model whose weights are those of the sheet, in double precision."""
    model = empty_model(sheet.n_heads).double()
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, path in PARAMETERS.items():
            written = torch.from_numpy(sheet.parameters[name])
            parameters[path].copy_(written.T if name in TRANSPOSED else written.reshape(parameters[path].shape))
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
