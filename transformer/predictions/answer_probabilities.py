"""Rows of the logits that an output was predicted from, with the probability of each token.

``prediction_rows`` finds the rows of a trace's logits and what was chosen there. ``read_answer`` returns the
probability of every token of the output and of the whole. ``fillings`` returns what a masked-token model predicts at a
position (Devlin et al. 2019, §3.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.files.checkpoints import Checkpoint
from transformer.predictions.target import log_probabilities
from transformer.runs.inputs import prompt_ids, text_read
from transformer.runs.traces import Trace
from transformer.text.word_spans import words_of

MAX_CLASSES = 12  # of more classes, only the most likely are listed


@dataclass(frozen=True)
class PredictionRows:
    """Rows of the logits that an output was predicted from, with the chosen id (or class) of each.

    Attributes:
        rows: Rows of the activation ``logits``.
        everywhere: Whether there is no output: a masked-token model had no blank to fill, or a decoder-only model found
            the text complete. Then the prediction at every real token counts.
    """

    logits: str
    rows: tuple[int, ...]
    ids: tuple[int, ...]
    displays: tuple[str, ...]
    everywhere: bool = False

    @property
    def predicts_nothing(self) -> bool:
        """Whether a masked-token model had nothing to fill in; a decoder-only model at least predicts the end."""
        return self.everywhere and self.logits == "encoder.logits"

    @property
    def opening(self) -> int | None:
        """The row that is shown first: the second of an output, or the only one; at a complete text, its end."""
        if not self.rows:
            return None
        ends_a_text = self.everywhere and not self.predicts_nothing
        return self.rows[-1] if ends_a_text else self.rows[:2][-1]

    def log_probabilities(self, trace: Trace) -> np.ndarray:
        """Return log p of everything possible in these rows: [row, vocabulary] (or [1, class]), in float64.

        Raises:
            NotFiniteError: If the trace has NaN or infinite numbers, which would compare as equal to anything.
        """
        trace.check_finite()
        return self.log_softmax(trace.checkpoint, trace.values(self.logits))

    def log_softmax(self, checkpoint: Checkpoint, logits: np.ndarray) -> np.ndarray:
        """Return log probabilities from other ``logits`` of the same tokens.

        Tokens that are never generated (usually ``<pad>`` and ``<s>``) have −∞, as in ``decode``.
        """
        own = np.atleast_2d(logits)[list(self.rows)].astype(np.float64)
        return log_probabilities(checkpoint, torch.from_numpy(own)).numpy()

    def chosen(self, log_probabilities: np.ndarray) -> np.ndarray:
        """Select the values of the chosen ids, [row], from [row, vocabulary]."""
        return log_probabilities[np.arange(len(self.ids)), list(self.ids)]


def prediction_rows(trace: Trace) -> PredictionRows:
    """Return the rows that the output of ``trace`` was predicted from.

    - Classifier: its prediction. Encoder without a head: no rows.
    - Decoder: every token that was generated or given. The ``</s>`` after a given output is neither, and is left out: a
      model that would have continued gives it such a low probability that it would outweigh every word.
    - Decoder-only model that ends a text at once: every token of that text, and the end.
    - Masked-token model: its blanks or, without a blank, every token that is not special, with the most likely token
      there.
    """
    config = trace.checkpoint.config
    if config.n_classes:
        best = int(trace.values("classifier.logits").argmax())
        return PredictionRows("classifier.logits", (0,), (best,), (config.class_names[best],))
    if config.encodes_sentences:
        return PredictionRows("pooling.vector", (), (), ())
    everywhere = False
    if config.has_decoder:
        # A decoder-only model predicts from the last token of the prompt on; everything before was typed.
        first = 0 if config.has_encoder else len(prompt_ids(trace.checkpoint, trace.sentence)) - 1
        rows = [token.index for token in trace.prediction if token.index >= first and token.role != "pad"]
        ends = trace.prediction[rows[-1]].role == "end" if rows else False
        if trace.forced and len(rows) > 1 and ends:
            rows.pop()
        if everywhere := not (config.has_encoder or trace.forced) and len(rows) == 1 and ends and first > 0:
            never = trace.checkpoint.framing.never
            rows = [token.index for token in trace.prediction.tokens[: first + 1] if token.id not in never]
    else:
        rows = [token.index for token in trace.source if token.role == "mask"]
        if everywhere := not rows:
            rows = [token.index for token in trace.source if not token.special]
    tokens = [trace.prediction[row] for row in rows]
    logits = "decoder.logits" if config.has_decoder else "encoder.logits"
    ids, displays = tuple(token.id for token in tokens), tuple(token.display for token in tokens)
    return PredictionRows(logits, tuple(rows), ids, displays, everywhere)


@dataclass(frozen=True)
class AnswerPart:
    """One token (or the class) of the output, with the probability that the model gave it there."""

    display: str
    probability: float


@dataclass(frozen=True)
class Answer:
    """The output of a run with its probabilities.

    Attributes:
        text: The output as generated, or as given.
        parts: Its tokens in order; empty if nothing was predicted (a masked-token model without a blank).
    """

    text: str
    parts: tuple[AnswerPart, ...]

    @property
    def probability(self) -> float:
        """Π p(token | everything before it), the probability of exactly this output."""
        return float(np.prod([part.probability for part in self.parts])) if self.parts else float("nan")

    @property
    def mean_probability(self) -> float:
        """Geometric mean over the tokens, which makes outputs of different lengths comparable."""
        return self.probability ** (1 / len(self.parts)) if self.parts else float("nan")


def read_answer(trace: Trace) -> Answer:
    """Return the output in ``trace`` with its probabilities.

    They are the softmax of the recorded logits among the tokens that the model may generate.

    Raises:
        NotFiniteError: If the trace has NaN or infinite numbers.
    """
    trace.check_finite()
    question = prediction_rows(trace)
    if question.predicts_nothing:
        return Answer(trace.text, ())
    if question.everywhere:  # nothing but the end
        question = replace(question, rows=question.rows[-1:], ids=question.ids[-1:], displays=question.displays[-1:])
    chances = np.exp(question.chosen(question.log_probabilities(trace)))
    parts = tuple(AnswerPart(*part) for part in zip(question.displays, chances.tolist(), strict=True))
    # The text of a decoder-only model begins with the prompt; the output is what it generated.
    only_written = not trace.checkpoint.config.has_encoder
    return Answer(trace.checkpoint.tokenizer.decode(question.ids) if only_written else trace.text, parts)


def least_probable_word(trace: Trace) -> AnswerPart | None:
    """Return the word of a generated text to which the model gave the lowest probability.

    The probability of a word is the product over its tokens, each given everything before it. ``None`` if the output
    has fewer than two words.
    """
    answer, rows = read_answer(trace), prediction_rows(trace).rows
    given = dict(zip(rows, answer.parts, strict=False))
    words = [word for word in words_of(trace.prediction) if any(letter.isalnum() for letter in word.text)]
    written = [
        AnswerPart(word.text, float(np.prod([given[at].probability for at in range(word.start, word.end)])))
        for word in words
        if all(at in given for at in range(word.start, word.end))
    ]
    return min(written, key=lambda word: word.probability) if len(written) > 1 else None


def class_probabilities(trace: Trace) -> tuple[AnswerPart, ...]:
    """Return every class of a classifier with its probability, in the config's order; they sum to 1."""
    chances = softmax(trace.values("classifier.logits"))
    names = trace.checkpoint.config.class_names
    return tuple(AnswerPart(name, float(chance)) for name, chance in zip(names, chances, strict=True))


def shown_classes(trace: Trace) -> tuple[AnswerPart, ...]:
    """Return ``class_probabilities``, or only the most likely if there are more than ``MAX_CLASSES``."""
    found = class_probabilities(trace)
    if len(found) <= MAX_CLASSES:
        return found
    return tuple(sorted(found, key=lambda part: -part.probability)[:MAX_CLASSES])


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return exp(x) / Σ exp(x) over the last axis, in float64."""
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(axis=-1, keepdims=True)


def divergence(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """Return KL(p ‖ q) = Σ p log(p / q) over the last axis, in nats; where p is 0, a term is 0."""
    with np.errstate(invalid="ignore"):  # −∞ − (−∞), where both probabilities are 0
        terms = np.where(np.isneginf(log_p), 0.0, np.exp(log_p) * (log_p - log_q))
    return np.maximum(terms.sum(axis=-1), 0.0)  # rounding may take it slightly below 0


def entropy(log_p: np.ndarray) -> np.ndarray:
    """Return H(p) = − Σ p log₂ p over the last axis, in bits."""
    return np.maximum(-(np.exp(log_p) * np.maximum(log_p, np.finfo(float).min)).sum(axis=-1) / np.log(2), 0.0)


@dataclass(frozen=True)
class Filling:
    """One token that the model predicts at a position; ``stands_there`` is true if the text has it there."""

    id: int
    piece: str
    logit: float
    probability: float
    stands_there: bool


@dataclass(frozen=True)
class Fillings:
    """Most likely tokens at one position, best first; ``rest`` is the probability of all others."""

    rows: tuple[Filling, ...]
    rest: float


def blanks(trace: Trace) -> tuple[int, ...]:
    """Return the positions of ``<mask>`` in the sentence."""
    return tuple(token.index for token in trace.source if token.role == "mask")


def answered_position(trace: Trace, blank: int | None, token: int) -> int:
    """Return the position that is answered: ``blank``, else the blank at ``token``, else the first.

    Without a blank it is ``token`` or, if that is a special token, the last word, because a special token is predicted
    as itself.
    """
    found = blanks(trace)
    if not found:
        words = [one.index for one in trace.source if any(letter.isalnum() for letter in one.text) and not one.special]
        return words[-1] if words and trace.source[token].special else token
    return blank if blank in found else first_blank(found, token)


def first_blank(positions: Sequence[int], token: int) -> int:
    """Return the blank at ``token``, or the first one."""
    return token if token in positions else positions[0]


def fill_blanks(trace: Trace) -> str:
    """Return the sentence with the most likely word in each blank, each blank independently of the others."""
    ids = list(trace.source.ids)
    for position in blanks(trace):
        ids[position] = fillings(trace, position, shown=1).rows[0].id
    return text_read(trace.checkpoint, ids)


def fillings(trace: Trace, position: int, *, shown: int = 10, typed: int | None = None) -> Fillings:
    """Return the most likely tokens at a position, from softmax(logits).

    The list, unlike the softmax, leaves out ``<mask>``, and ``<pad>`` and ``<s>`` unless the text has them there. If
    the sentence has a word at the position, the list includes it, as its last entry if it is not among the most likely.
    The same applies to ``typed``, the id of the word that ``<mask>`` replaces.
    """
    logits, display = trace.values("encoder.logits")[position], trace.checkpoint.tokenizer.display
    probabilities = softmax(logits)
    special, read = trace.checkpoint.special, trace.source[position].id if typed is None else typed
    no_words = {special.pad, special.start} - {read} | {special.mask}
    order = [int(id) for id in np.argsort(-logits, kind="stable")[: shown + 3] if id not in no_words][:shown]
    if read not in order and read != special.mask:
        order[-1:] = [read]
    rows = tuple(Filling(id, display(id), float(logits[id]), float(probabilities[id]), id == read) for id in order)
    return Fillings(rows, max(0.0, 1.0 - sum(row.probability for row in rows)))
