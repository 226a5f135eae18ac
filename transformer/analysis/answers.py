"""How sure the model was of its answer: the probability of every token that it wrote, and of all of them together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transformer.checkpoint import Checkpoint
from transformer.inputs import prompt_ids
from transformer.tokenizer import MASK_ID, PAD_ID
from transformer.tokens import Token
from transformer.traces import Trace


@dataclass(frozen=True)
class AnswerPart:
    """One token (or the class) of the answer, with the probability that the model gave it where it stands."""

    display: str
    probability: float


@dataclass(frozen=True)
class Answer:
    """``text`` as the model (or the person, when forced) wrote it; ``parts`` in the order of writing.

    ``probability`` is the product of the parts': how likely the model finds exactly this answer. Empty ``parts``: the
    model was asked nothing (a masked-token model without a blank).
    """

    text: str
    parts: tuple[AnswerPart, ...]

    @property
    def probability(self) -> float:
        """Π p(token | everything before it)."""
        return float(np.prod([part.probability for part in self.parts])) if self.parts else float("nan")

    @property
    def mean_probability(self) -> float:
        """Geometric mean over the tokens, so that long answers can be compared with short ones."""
        return self.probability ** (1 / len(self.parts)) if self.parts else float("nan")


def answer_of(checkpoint: Checkpoint, trace: Trace, sentence: str) -> Answer:
    """The answer in ``trace``, made from ``sentence``, with its probabilities: softmax of the recorded logits."""
    config = checkpoint.config
    if config.n_classes:
        chances = softmax(trace.values("classifier.logits"))
        best = int(chances.argmax())
        return Answer(trace.text, (AnswerPart(config.class_names[best], float(chances[best])),))
    if not config.has_decoder:
        blanks = [token.index for token in trace.source if token.id == MASK_ID]
        return Answer(trace.text, _parts(trace, "encoder.logits", blanks))
    # A decoder-only model is asked from the last token of the prompt on; everything before was typed.
    first = 0 if config.has_encoder else len(prompt_ids(checkpoint, sentence)) - 1
    written = [token.index for token in trace.prediction if token.index >= first and token.id != PAD_ID]
    text = trace.text
    if not config.has_encoder:
        text = checkpoint.tokenizer.decode(trace.prediction[index].id for index in written)
    return Answer(text, _parts(trace, "decoder.logits", written))


def class_probabilities(checkpoint: Checkpoint, trace: Trace) -> tuple[AnswerPart, ...]:
    """Every class of a classifier with its probability, in the order of the config; they sum to 1."""
    chances = softmax(trace.values("classifier.logits"))
    names = checkpoint.config.class_names
    return tuple(AnswerPart(name, float(chance)) for name, chance in zip(names, chances, strict=True))


def _parts(trace: Trace, logits: str, positions: list[int]) -> tuple[AnswerPart, ...]:
    chances = softmax(trace.values(logits)[positions])
    tokens: list[Token] = [trace.prediction[position] for position in positions]
    return tuple(AnswerPart(token.display, float(row[token.id])) for token, row in zip(tokens, chances, strict=True))


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(x) / Σ exp(x) over the last axis, in float64."""
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=-1, keepdims=True)
