"""The rows of the logits that a prediction is read from, and the probability of every predicted token.

``asked``: which rows of a trace's logits the answer was read from, and what was chosen there. ``answer_of``: the
probability of every token of it, and of all of them together. ``fillings``: what a masked-token model predicts at a
position (Devlin et al. 2019, §3.1).
"""

from dataclasses import dataclass

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Asked:
    """``rows`` of the activation ``logits``; in each, the id (or class) that was chosen and how it is shown.

    ``everywhere``: a masked-token model that had no blank to fill; what counts is what it says at every real token.
    """

    logits: str
    rows: tuple[int, ...]
    ids: tuple[int, ...]
    displays: tuple[str, ...]
    everywhere: bool = False

    def log_probabilities(self, trace: Trace) -> np.ndarray:
        """ln p of everything that could have stood there: [row, vocabulary] (or [1, class]), in float64.

        Raises ``NotFiniteError`` for a trace with NaN or infinite numbers, which would compare as equal to anything.
        """
        trace.check_finite()
        return self.log_softmax(trace.checkpoint, trace.values(self.logits))

    def log_softmax(self, checkpoint: Checkpoint, logits: np.ndarray) -> np.ndarray:
        """The same from other ``logits`` of the same tokens.

        What a model that writes is never let write (``<pad>`` and ``<s>`` as a rule) has −∞, as in ``decode``.
        """
        logits = np.atleast_2d(logits)[list(self.rows)].astype(np.float64)
        if checkpoint.config.has_decoder:
            logits[:, list(checkpoint.framing.never)] = -np.inf
        shifted = logits - logits.max(axis=-1, keepdims=True, initial=-np.inf)
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))

    def chosen(self, log_probabilities: np.ndarray) -> np.ndarray:
        """Of [row, vocabulary] the values of what was chosen: [row]."""
        return log_probabilities[np.arange(len(self.ids)), list(self.ids)]


def asked(trace: Trace) -> Asked:
    """What ``trace`` is the answer to.

    A classifier: its verdict. An encoder without a head: nothing. A decoder: every token that it wrote, or that
    somebody gave; the ``</s>`` behind a given answer is neither, and a model that would have gone on finds it so
    improbable that it would outweigh every word. A masked-token model: its blanks, or without any blank every token
    that is not special, with the token that the model finds most probable there.
    """
    config = trace.checkpoint.config
    if config.n_classes:
        best = int(trace.values("classifier.logits").argmax())
        return Asked("classifier.logits", (0,), (best,), (config.class_names[best],))
    if config.encodes_sentences:
        return Asked("pooling.vector", (), (), ())
    everywhere = False
    if config.has_decoder:
        # A decoder-only model is asked from the last token of the prompt on; everything before was typed.
        first = 0 if config.has_encoder else len(prompt_ids(trace.checkpoint, trace.sentence)) - 1
        rows = [token.index for token in trace.prediction if token.index >= first and token.role != "pad"]
        if trace.forced and len(rows) > 1 and trace.prediction[rows[-1]].role == "end":
            rows.pop()
    else:
        rows = [token.index for token in trace.source if token.role == "mask"]
        if everywhere := not rows:
            rows = [token.index for token in trace.source if not token.special]
    tokens = [trace.prediction[row] for row in rows]
    logits = "decoder.logits" if config.has_decoder else "encoder.logits"
    ids, displays = tuple(token.id for token in tokens), tuple(token.display for token in tokens)
    return Asked(logits, tuple(rows), ids, displays, everywhere)


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
    """Return KL(p ‖ q) = Σ p ln(p / q) over the last axis, in nats; what p rules out adds nothing."""
    with np.errstate(invalid="ignore"):  # −∞ − (−∞), where both rule it out
        terms = np.where(np.isneginf(log_p), 0.0, np.exp(log_p) * (log_p - log_q))
    return np.maximum(terms.sum(axis=-1), 0.0)  # rounding may take a 0 a hair below it


def entropy(log_p: np.ndarray) -> np.ndarray:
    """H(p) = − Σ p log₂ p over the last axis, in bits."""
    return np.maximum(-(np.exp(log_p) * np.maximum(log_p, np.finfo(float).min)).sum(axis=-1) / np.log(2), 0.0)


@dataclass(frozen=True)
class Filling:
    """One token that could stand at the position; ``stands_there``: it is the one that the model read there."""

    id: int
    piece: str
    logit: float
    probability: float
    stands_there: bool


@dataclass(frozen=True)
class Fillings:
    """The likeliest tokens of one position, most probable first; ``rest``: probability of all others."""

    rows: tuple[Filling, ...]
    rest: float


def blanks(trace: Trace) -> tuple[int, ...]:
    """The positions of ``<mask>`` in the sentence."""
    return tuple(token.index for token in trace.source if token.role == "mask")


def filled(trace: Trace) -> str:
    """The sentence with the likeliest word in each blank, every blank by itself."""
    ids = list(trace.source.ids)
    for position in blanks(trace):
        ids[position] = fillings(trace, position, shown=1).rows[0].id
    return trace.checkpoint.tokenizer.decode(ids)


def fillings(trace: Trace, position: int, *, shown: int = 10) -> Fillings:
    """softmax(logits) at a position; the list leaves out ``<mask>``, and ``<pad>`` and ``<s>`` where they are not read;
    the sum does not.

    Where the sentence has a word there, that word is among the rows (as the last if it is not one of the likeliest).
    """
    logits, display = trace.values("encoder.logits")[position], trace.checkpoint.tokenizer.display
    probabilities = softmax(logits)
    special, read = trace.checkpoint.special, trace.source[position].id
    no_words = {special.pad, special.start} - {read} | {special.mask}
    order = [int(id) for id in np.argsort(-logits, kind="stable")[: shown + 3] if id not in no_words][:shown]
    if read not in order and read != special.mask:
        order[-1:] = [read]
    rows = tuple(Filling(id, display(id), float(logits[id]), float(probabilities[id]), id == read) for id in order)
    return Fillings(rows, max(0.0, 1.0 - sum(row.probability for row in rows)))
