"""What every head does in every row of a sentence, by three measures: how strongly it looks, how much it passes on, and
what it adds to the answer.

- "weight": the largest α of the row.
- "passed": the largest ‖α f(x)‖ (Kobayashi et al. 2020), in units of the residual stream. A strong look at a short
  value passes little on.
- "effect": the direct effect on the answer, in logits (Elhage et al. 2021): what the head added at this row to
  logit(word) − logit(runner-up), where the word is what the model finds likeliest there (in a classifier the class of
  the sentence). It is summed over all keys; the key is the one from which most of it came. Only of the stack that
  words are read out of.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch

from transformer.attention_maps.attention_path import output_matrices
from transformer.attribution.attribution_last_step import last_step, read_out
from transformer.attribution.attribution_question import Question
from transformer.attribution.attribution_walk import Walk
from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import ROWS, head_rows
from transformer.predictions.lens import lens_stack
from transformer.runs.head_places import attention_layers
from transformer.runs.readings import Recorded
from transformer.text.tokens import TokenSequence
from transformer.variants.output_heads import FirstTokenClassifier

MEASURES = ("weight", "passed", "effect")


class Rows(NamedTuple):
    """One measure of one attention layer in one sentence: ``values`` [head, query], and the key that it is about,
    ``keys`` [head, query]."""

    values: np.ndarray
    keys: np.ndarray


class LayerRows(NamedTuple):
    """One attention layer (stack, kind, layer) in one sentence; ``allowed`` [query, key]; ``measures`` by name."""

    place: tuple[str, str, int]
    asked: TokenSequence
    read: TokenSequence
    allowed: np.ndarray
    measures: Mapping[str, Rows]


class RowMeasures:
    """The measures of a checkpoint's heads; ``parts``: which probes a batch must have kept for them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.stack = checkpoint, lens_stack(checkpoint)
        model = checkpoint.model
        self.parts: Collection[str] = {*ROWS, "value", "std", "mean_square", read_out(model, self.stack)}
        self.lengths = {}  # by attention: W_O W_Oᵀ of every head [head, channel, channel], for ‖v W_O‖² = v W_O W_Oᵀ vᵀ
        for place in attention_layers(checkpoint.config):
            stack, kind, layer = place
            matrices, _ = output_matrices(checkpoint, stack, layer, kind)
            self.lengths[place] = matrices @ matrices.transpose(0, 2, 1)

    def of_sentence(self, batch: Recorded, row: int) -> Iterator[LayerRows]:
        """Every attention layer in the sentence ``row`` of a batch."""
        readings = self._readings(batch, row)
        for place, squares in self.lengths.items():
            stack, kind, layer = place
            asked, read, weights, allowed = head_rows(batch, stack, kind, layer, row)
            name = f"{stack}.layers.{layer}.{kind}_attention"
            values = _array(batch, f"{name}.value", row)[:, : len(read)]  # [head, key, channel]
            lengths = np.sqrt(np.maximum(((values @ squares) * values).sum(axis=-1), 0.0))
            found = {"weight": _largest(weights), "passed": _largest(weights * lengths[:, None])}
            if name in readings:
                shares = weights * (readings[name] @ values.transpose(0, 2, 1))  # [head, query, key]
                total = shares.sum(axis=-1)
                keys = (shares * np.where(total < 0, -1, 1)[..., None]).argmax(axis=-1)
                found["effect"] = Rows(total, keys)
            yield LayerRows(place, asked, read, allowed, found)

    def _readings(self, batch: Recorded, row: int) -> Mapping[str, np.ndarray]:
        """By the name of an attention: what its context is multiplied by to give logits, [head, query, channel]."""
        model, stack = self.checkpoint.model, self.stack
        if isinstance(getattr(model, "classifier", None), FirstTokenClassifier):
            return {}  # of the rows of a text only the first one is read
        given = batch.logits[row].numpy(force=True)
        n_rows = len(batch.tokens[stack][row])

        def values(name: str) -> np.ndarray:
            return given if name.endswith(".logits") else _array(batch, name, row)

        def direction(*rows: int, position: int | None) -> np.ndarray:
            logits = torch.from_numpy(given if position is None else given[position])
            word, other = logits.topk(2).indices.tolist()
            return last_step(model, values, Question(stack, position, rows, word, other)).direction

        if self.checkpoint.config.n_classes:
            directions = direction(*range(n_rows), position=None)
        else:
            directions = np.concatenate([direction(place, position=place) for place in range(n_rows)])
        walk = _Readings(values, model.get_submodule(stack), stack, list(range(n_rows)), directions)
        return {name: read.transpose(1, 0, 2).astype(np.float32) for name, read in walk.readings.items()}


class _Readings(Walk):
    """The way back without what was written on the way: of that nothing need be recorded."""

    def added(self, name: str, read: np.ndarray) -> np.ndarray:
        return np.zeros(read.shape[1])

    def product(self, name: str, direction: np.ndarray) -> float:
        return 0.0


def _array(batch: Recorded, name: str, row: int) -> np.ndarray:
    return batch.recording.tensors[name][row].numpy(force=True)


def _largest(values: np.ndarray) -> Rows:
    keys = values.argmax(axis=-1)
    return Rows(np.take_along_axis(values, keys[..., None], axis=-1)[..., 0], keys)
