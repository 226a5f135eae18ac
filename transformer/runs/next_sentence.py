"""Next-sentence prediction: does sentence B follow sentence A? (Devlin et al. 2019, §3.1, Task 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transformer.config import NEXT_SENTENCE
from transformer.runs.traces import Trace

LOGITS = "next_sentence.logits"


class NextSentenceAnswer(NamedTuple):
    """The class of a pair with its probability, and both probabilities in the order of ``NEXT_SENTENCE``."""

    name: str
    probability: float
    probabilities: tuple[float, ...]


def segments_of(trace: Trace) -> tuple[int, ...]:
    """Return the segment of every token that the encoder read: 0 for sentence A, 1 for sentence B.

    A separator belongs to the sentence that it ends, and padding to the first, as ``transformer.embedding`` has it.
    Without segment embeddings the result is empty.
    """
    if trace.source is None or not trace.checkpoint.config.n_segments:
        return ()
    separators = np.cumsum([token.role == "end" for token in trace.source])
    return tuple(
        0 if token.is_padding else int(min(before - (token.role == "end"), trace.checkpoint.config.n_segments - 1))
        for token, before in zip(trace.source, separators, strict=True)
    )


def is_pair(trace: Trace) -> bool:
    """Return whether the encoder read two sentences, each with its own segment embedding."""
    return 1 in segments_of(trace)


def next_sentence(trace: Trace) -> NextSentenceAnswer | None:
    """Return the prediction of the next-sentence head; ``None`` without the head or a second sentence."""
    if not trace.checkpoint.config.predicts_next_sentence or not is_pair(trace):
        return None
    logits = trace.values(LOGITS).astype(np.float64)
    powers = np.exp(logits - logits.max())
    probabilities = powers / powers.sum()
    best = int(probabilities.argmax())
    return NextSentenceAnswer(NEXT_SENTENCE[best], float(probabilities[best]), tuple(probabilities.tolist()))
