"""Leave-one-out: how a prediction changes without one word or one token, measured.

Li, Monroe & Jurafsky 2016, "Understanding Neural Networks through Representation Erasure":

    a_i = F(all tokens) − F(all tokens but i)

``leave_one_out`` removes the words of a classifier's sentence, ``remove_each`` the tokens of any model. They are really
left out: later tokens move up by one position. If a_i is positive, the token supports the prediction. If two tokens
carry the same information, leaving out either has no effect, so the a_i need not sum to anything.
"""

from dataclasses import dataclass

import numpy as np

from transformer.attribution.input_attribution import InputAttribution
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.sweep import run_texts
from transformer.predictions.target import Target, number_of
from transformer.runs.inputs import source_tensor
from transformer.text.word_spans import Word, words_of


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
    logits = run_texts(checkpoint.model, [{"encoder": read} for read in (ids, *shortened)])
    probabilities = logits.softmax(dim=-1).numpy(force=True)
    return LeaveOneOut(checkpoint.config.class_names, words, probabilities[0], probabilities[1:])


def remove_each(checkpoint: Checkpoint, quantity: Target) -> InputAttribution:
    """Run the model again without each input token: F(x) − F(x without this token), in the unit of F.

    It is NaN for a token that cannot be left out: the only token of a sentence, or the position (``<mask>``) that F is
    about.
    """
    whole = {stack: list(tokens.ids) for stack, tokens in quantity.read.items()}
    texts, rows, places = [whole], [quantity.row], []
    for stack, ids in whole.items():
        asked_here = quantity.position is not None and quantity.stack == stack
        for token in range(len(ids) if len(ids) > 1 else 0):
            if asked_here and stack == "encoder" and token == quantity.row:
                continue
            texts.append({**whole, stack: ids[:token] + ids[token + 1 :]})
            # Without a token before it (or its own), the row of the prediction moves up by one position.
            rows.append(quantity.row - (asked_here and token <= quantity.row))
            places.append((stack, token))
    value, *without = number_of(checkpoint, quantity, run_texts(checkpoint.model, texts, rows)).double().tolist()
    parts = {stack: np.full(len(ids), np.nan) for stack, ids in whole.items()}
    for (stack, token), other in zip(places, without, strict=True):
        parts[stack][token] = value - other
    return InputAttribution(quantity, parts.get("encoder"), parts.get("decoder"), value)
