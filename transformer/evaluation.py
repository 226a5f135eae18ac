"""Scores of a checkpoint on a file: BLEU and chrF, perplexity per word, masked accuracy, accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from transformer.bleu_and_chrf import corpus_scores
from transformer.checkpoint import Checkpoint
from transformer.decoding import decode
from transformer.errors import InputError
from transformer.strategies import Beam, Greedy
from transformer.training.corpora import group_references, read_pairs, read_texts
from transformer.training.objectives import OBJECTIVES
from transformer.training.validation import dev_accuracy, dev_loss, masked_accuracy

Progress = Callable[[Iterable], Iterable]
_BATCH_TOKENS = 2_000


def evaluate(checkpoint: Checkpoint, data: str | Path, *, beam: int = 4, progress: Progress = iter) -> dict:
    """Score ``checkpoint`` on a file in the layout of its kind of corpus.

    encoder-decoder: ``bleu``, ``chrf`` (all translations of a source are references); decoder-only:
    ``perplexity_per_word``; masked-token: ``masked_accuracy``; classifier: ``accuracy``. Raises ``InputError`` for a
    file without examples.
    """
    config = checkpoint.config
    if config.kind == "encoder-decoder":
        return translation_scores(checkpoint, read_pairs(data), beam=beam, progress=progress)
    if config.n_classes:
        return _classifier_scores(checkpoint, data)
    texts = [(text,) for text in read_texts(data)]
    _require(texts, data)
    if config.kind == "decoder-only":
        return _perplexity(checkpoint, texts)
    objective = OBJECTIVES["masked-token"](checkpoint.model)
    examples = _encoded(checkpoint, texts, "masked-token")
    accuracy, n_masked = masked_accuracy(objective, examples, _BATCH_TOKENS)
    return {"masked_accuracy": accuracy, "masked_tokens": n_masked, "sentences": len(examples)}


def translation_scores(
    checkpoint: Checkpoint, pairs: Sequence[tuple[str, str]], *, beam: int = 4, progress: Progress = iter
) -> dict:
    """Translate every source once and score against all its translations. ``beam`` 1 is greedy."""
    _require(pairs, "the data")
    sources, references = group_references(pairs)
    strategy = Beam(beam) if beam > 1 else Greedy()
    hypotheses = [decode(checkpoint, source, strategy).text for source in progress(sources)]
    return {**corpus_scores(hypotheses, references), "sentences": len(sources), "beam": beam}


def _perplexity(checkpoint: Checkpoint, texts: Sequence[tuple[str]]) -> dict:
    """exp(Σ −log p(token) / number of words): tokens include ``</s>``, words are what white space separates."""
    examples = _encoded(checkpoint, texts, "next-token")
    n_tokens = sum(len(ids) - 1 for (ids,) in examples)
    n_words = sum(len(text.split()) for (text,) in texts)
    loss = dev_loss(OBJECTIVES["next-token"](checkpoint.model), examples, _BATCH_TOKENS)
    return {
        "perplexity_per_word": math.exp(loss * n_tokens / n_words),
        "perplexity_per_token": math.exp(loss),
        "sentences": len(texts),
    }


def _classifier_scores(checkpoint: Checkpoint, data: str | Path) -> dict:
    rows = [(text, int(label)) for text, label in read_pairs(data)]
    _require(rows, data)
    examples = _encoded(checkpoint, rows, "classification")
    accuracy = dev_accuracy(OBJECTIVES["classification"](checkpoint.model), examples, _BATCH_TOKENS)
    return {"accuracy": accuracy, "sentences": len(rows)}


def _encoded(checkpoint: Checkpoint, texts: Sequence[tuple], task: str) -> list[tuple]:
    """Encode, and refuse what does not fit rather than score less than was asked for."""
    examples = OBJECTIVES[task].encode(checkpoint.tokenizer, texts)
    limit = checkpoint.config.max_length
    if too_long := [text[0] for text, example in zip(texts, examples, strict=True) if len(example[0]) > limit]:
        raise InputError(
            f"{len(too_long)} texts are longer than the {limit} tokens this model reads: {too_long[0][:60]}…"
        )
    return examples


def _require(examples: Sequence, data: object) -> None:
    if not examples:
        raise InputError(f"There is nothing to score in {data}: it has no line with text.")
