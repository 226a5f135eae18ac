"""How sure the model was of its answer: the probability of every token that it wrote, and of all of them together."""

from dataclasses import dataclass

import numpy as np

from transformer.predictions.answer_rows import asked
from transformer.runs.traces import Trace


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


def answer_of(trace: Trace) -> Answer:
    """The answer in ``trace`` with its probabilities: softmax of the recorded logits, among the tokens that the model
    may write.

    Raises ``NotFiniteError`` for a trace with NaN or infinite numbers.
    """
    trace.check_finite()
    question = asked(trace)
    if question.everywhere:  # nothing was asked
        return Answer(trace.text, ())
    chances = np.exp(question.chosen(question.log_probabilities(trace)))
    parts = tuple(AnswerPart(*part) for part in zip(question.displays, chances.tolist(), strict=True))
    # The text of a decoder-only model begins with what was typed; the answer is what it wrote.
    only_written = not trace.checkpoint.config.has_encoder
    return Answer(trace.checkpoint.tokenizer.decode(question.ids) if only_written else trace.text, parts)


def class_probabilities(trace: Trace) -> tuple[AnswerPart, ...]:
    """Every class of a classifier with its probability, in the order of the config; they sum to 1."""
    chances = softmax(trace.values("classifier.logits"))
    names = trace.checkpoint.config.class_names
    return tuple(AnswerPart(name, float(chance)) for name, chance in zip(names, chances, strict=True))


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(x) / Σ exp(x) over the last axis, in float64."""
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=-1, keepdims=True)


def divergence(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """KL(p ‖ q) = Σ p log₂(p / q) over the last axis, in bits; what p rules out adds nothing."""
    with np.errstate(invalid="ignore"):  # −∞ − (−∞), where both rule it out
        terms = np.where(np.isneginf(log_p), 0.0, np.exp(log_p) * (log_p - log_q))
    return np.maximum(terms.sum(axis=-1) / np.log(2), 0.0)  # rounding may take a 0 a hair below it


def entropy(log_p: np.ndarray) -> np.ndarray:
    """H(p) = − Σ p log₂ p over the last axis, in bits."""
    return np.maximum(-(np.exp(log_p) * np.maximum(log_p, np.finfo(float).min)).sum(axis=-1) / np.log(2), 0.0)
