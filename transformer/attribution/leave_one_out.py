"""Leave-one-out: how a prediction changes without one word or one token, measured.

Li, Monroe & Jurafsky 2016, "Understanding Neural Networks through Representation Erasure":

    a_i = F(all tokens) − F(all tokens but i)

``leave_one_out`` removes the words of a classifier's sentence, ``remove_each`` the tokens of any model. They are really
left out: later tokens move up by one position. If a_i is positive, the token supports the prediction. If two tokens
carry the same information, leaving out either has no effect, so the a_i need not sum to anything.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer.fast.shortcut import fast_path
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.quantity import Quantity, numbers
from transformer.runs.inputs import source_tensor
from transformer.text.word_spans import Word, words_of

_BATCH = 32


@dataclass(frozen=True)
class LeaveOneOut:
    """Class probabilities of the whole sentence, [class], and ``without`` one word, [word, class]."""

    class_names: tuple[str, ...]
    words: tuple[Word, ...]
    probabilities: np.ndarray
    without: np.ndarray

    @property
    def contributions(self) -> np.ndarray:
        """p(class | all words) − p(class | all but one), [word, class]; positive if it supports the class."""
        return self.probabilities - self.without

    @property
    def predicted(self) -> int:
        """The class that is predicted for the whole sentence."""
        return int(self.probabilities.argmax())

    @property
    def decisive(self) -> int | None:
        """Word without which the predicted class is least probable; ``None`` if no removal lowers it."""
        effects = self.contributions[:, self.predicted]
        return int(effects.argmax()) if len(effects) and effects.max() > 0 else None


def leave_one_out(checkpoint: Checkpoint, sentence: str, *, pads: int = 0) -> LeaveOneOut:
    """Classify the sentence, then classify it again without each word; nothing is estimated.

    For an image, the words are its patches, and a patch is replaced by ``<mask>``: without it the others would move.

    Raises:
        ValueError: If the model has no classes.
        InputError: If the model cannot take the text.
    """
    if not checkpoint.config.n_classes:
        raise ValueError(f"{checkpoint.name} is not a classifier: it has no classes for a word to count towards")
    ids = source_tensor(checkpoint, sentence, pads=pads)[0].tolist()
    words = words_of(checkpoint.tokenizer.sequence(ids))
    instead = [checkpoint.special.mask] if checkpoint.config.reads_images else []
    shortened = [ids[: word.start] + instead + ids[word.end :] for word in words]
    probabilities = _classify(checkpoint, [ids, *shortened])
    return LeaveOneOut(checkpoint.config.class_names, words, probabilities[0], probabilities[1:])


def _classify(checkpoint: Checkpoint, texts: list[list[int]]) -> np.ndarray:
    """Return the softmax of the class logits, [text, class]; shorter texts are padded and masked."""
    pad_id, longest = checkpoint.config.pad_id, max(len(ids) for ids in texts)
    if pad_id is None and any(len(ids) < longest for ids in texts):
        parts = [torch.tensor([ids]) for ids in texts]
    else:
        parts = torch.tensor([ids + [pad_id] * (longest - len(ids)) for ids in texts]).split(_BATCH)
    with torch.inference_mode(), fast_path():
        logits = torch.cat([checkpoint.model(part) for part in parts])
    return logits.softmax(dim=-1).cpu().numpy()


ROWS = 32  # texts in a batch


@dataclass(frozen=True)
class RemovedTokens:
    """Effect of removing each token: F(x) − F(x without this token), in the unit of F.

    It is NaN where nothing can be computed without the token: it is the only one of its sentence, or the very position
    (``<mask>``) that F is about.

    Attributes:
        source: [token].
        target: [token].
        value: F(x).
    """

    quantity: Quantity
    source: np.ndarray | None
    target: np.ndarray | None
    value: float


def remove_each(checkpoint: Checkpoint, quantity: Quantity) -> RemovedTokens:
    """Run the model again without each input token; texts of the same length share a batch."""
    whole = {stack: list(tokens.ids) for stack, tokens in quantity.read.items()}
    with torch.inference_mode(), fast_path():
        value = float(_ask(checkpoint, quantity, [whole], row=quantity.row)[0])
        parts = {stack: value - _without_each(checkpoint, quantity, whole, stack) for stack in whole}
    return RemovedTokens(quantity, parts.get("encoder"), parts.get("decoder"), value)


def _without_each(checkpoint: Checkpoint, quantity: Quantity, whole: dict[str, list[int]], stack: str) -> np.ndarray:
    """Return F without each token of one stack: [token]."""
    ids = whole[stack]
    found = np.full(len(ids), np.nan)
    asked_here = quantity.place is not None and quantity.place[0] == stack
    possible = np.arange(len(ids)) if len(ids) > 1 else np.arange(0)
    if asked_here and stack == "encoder":
        possible = possible[possible != quantity.row]
    # Without a token before it (or its own), the row of the prediction moves up by one position.
    moved = possible <= quantity.row if asked_here else np.zeros(len(possible), dtype=bool)
    for places, row in ((possible[moved], quantity.row - 1), (possible[~moved], quantity.row)):
        texts = [{**whole, stack: ids[:place] + ids[place + 1 :]} for place in places]
        if texts:
            found[places] = _ask(checkpoint, quantity, texts, row=row)
    return found


def _ask(checkpoint: Checkpoint, quantity: Quantity, texts: list[dict[str, list[int]]], *, row: int) -> np.ndarray:
    """Return F of texts of equal length, in batches: [text]."""
    found = []
    for start in range(0, len(texts), ROWS):
        part = texts[start : start + ROWS]
        ids = {stack: torch.tensor([text[stack] for text in part], device=checkpoint.model.device) for stack in part[0]}
        found.append(numbers(checkpoint, quantity, ids, row=row).double().cpu().numpy())
    return np.concatenate(found)
