"""Next-sentence prediction: does sentence B follow sentence A? (Devlin et al. 2019, §3.1, Task 2)."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np
import torch

from transformer.config import NEXT_SENTENCE
from transformer.embedding import segment_numbers
from transformer.runs.traces import Trace

LOGITS = "next_sentence.logits"


class NextSentenceAnswer(NamedTuple):
    """The class of a pair with its probability, and both probabilities in the order of ``NEXT_SENTENCE``."""

    name: str
    probability: float
    probabilities: tuple[float, ...]


def segments_of(trace: Trace) -> tuple[int, ...]:
    """Return the segment of every token that the encoder read: 0 for sentence A, 1 for sentence B.

    Without segment embeddings the result is empty.
    """
    if trace.source is None or not trace.checkpoint.config.n_segments:
        return ()
    embedding: Any = trace.checkpoint.model.get_submodule("encoder.embedding")
    ids, n_segments = torch.tensor([trace.source.ids]), trace.checkpoint.config.n_segments
    return tuple(segment_numbers(ids, embedding.separator_id, embedding.pad_id, n_segments)[0].tolist())


def letters_of(trace: Trace) -> tuple[str, ...]:
    """Return the sentence of every token that the encoder read, "A", "B" …; empty without segments."""
    return tuple(ascii_uppercase[segment % len(ascii_uppercase)] for segment in segments_of(trace))


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
