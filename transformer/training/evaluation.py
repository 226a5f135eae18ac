"""Scores of a checkpoint on a file: BLEU, perplexity, masked words, accuracy, with baselines."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.runs.decoding import decode
from transformer.runs.decoding_strategies import Beam, Greedy
from transformer.scores.baselines import (
    bag_of_words_accuracy,
    majority_accuracy,
    nearest_picture_accuracy,
    share,
    unigram_accuracies,
    word_overlap_accuracy,
)
from transformer.scores.bleu_and_chrf import corpus_scores
from transformer.scores.masked_words import hide_words, recovered_words
from transformer.training.corpora import (
    group_references,
    holds_sentence_pairs,
    read_labelled,
    read_pairs,
    read_sentence_pairs,
    read_texts,
)
from transformer.training.objectives import OBJECTIVES
from transformer.training.text_tasks import LABELS, TEXT_TASKS, task_name, text_examples
from transformer.training.validation import dev_accuracy, dev_loss, greedy_texts

Progress = Callable[[Iterable], Iterable]
_BATCH_TOKENS = 2_000


def evaluate(
    checkpoint: Checkpoint,
    data: str | Path,
    *,
    train: str | Path | None = None,
    task: str | None = None,
    beam: int = 4,
    lowercase: bool = False,
    progress: Progress = iter,
) -> dict:
    """Score ``checkpoint`` on a file in the layout of its kind of corpus; the result is reproducible.

    - encoder-decoder: ``bleu``, ``chrf`` (all translations of a source are references); ``lowercase`` ignores case
    - for several tasks, ``task`` ("fill") alone: the same for a translation, otherwise ``accuracy``, the share of
      greedy outputs that are exactly right
    - decoder-only: ``perplexity_per_word``
    - masked-token: ``masked_accuracy``, the share of whole words that are predicted when 15 % of each sentence's words
      are masked (``masked_words``), and ``masked_accuracy_letters``, the same without punctuation marks
    - masked-token with a next-sentence head, and a file of sentence pairs: ``next_sentence_accuracy``
    - classifier: ``accuracy``

    With ``train``, the training file in the same layout, baselines fitted to that file alone are added:
    ``unigram_accuracy`` and ``unigram_accuracy_letters`` for masked words; ``majority_accuracy`` and
    ``word_overlap_accuracy`` for pairs; ``bag_of_words_accuracy``, for images ``nearest_picture_accuracy``;
    ``most_frequent_answer_accuracy``; and ``sentences_also_in_train`` (``pictures_also_in_train``), which should be 0.

    Raises:
        InputError: If the file has no examples, or an option does not apply to this kind of checkpoint.
    """
    kind = checkpoint.config.kind
    if checkpoint.config.predicts_next_sentence and holds_sentence_pairs(data):
        return _class_scores(checkpoint, data, train, pairs=True)
    prefix = _prefix(checkpoint, task)
    exact = bool(prefix) and TEXT_TASKS[prefix].measure == "exact"
    translates = kind == "encoder-decoder" and not exact
    if lowercase and not translates:
        raise InputError(f"{checkpoint.name} is {kind}: only translations can be scored without regard to case")
    if train is not None and translates:
        raise InputError(f"{checkpoint.name} translates: no baseline of it needs a training file")
    if checkpoint.config.n_classes:
        return _class_scores(checkpoint, data, train)
    if exact:
        scores = _text_task_scores(checkpoint, prefix, data, train)
    elif translates:
        pairs = read_pairs(data)
        pairs = text_examples(prefix, pairs) if prefix else pairs
        scores = translation_scores(checkpoint, pairs, beam=beam, lowercase=lowercase, progress=progress)
    elif kind == "decoder-only":
        scores = _perplexities(checkpoint, _texts(data))
    else:
        scores = _masked_word_scores(checkpoint, _texts(data), train)
    if train is not None:
        scores["sentences_also_in_train"] = len({*_texts(train)} & {*read_texts(data)})
    return {"task": task, **scores} if task else scores


def _prefix(checkpoint: Checkpoint, task: str | None) -> str:
    """Return the prefix of every sentence of ``task``; "" for a model of one task."""
    prefixes = {task_name(prefix): prefix for prefix in checkpoint.config.task_prefixes if prefix in TEXT_TASKS}
    if (task or prefixes) and task not in prefixes:
        tasks = ", ".join(map(repr, prefixes)) or "(none: leave it out)"
        raise InputError(f"{checkpoint.name} cannot be scored with the task {task!r}; its tasks are {tasks}")
    return prefixes[task] if task else ""


def _text_task_scores(checkpoint: Checkpoint, prefix: str, data: str | Path, train: str | Path | None) -> dict:
    def examples(path: str | Path) -> list[tuple[str, str]]:
        labelled = TEXT_TASKS[prefix].corpus == "sst2"
        rows = read_labelled(path, len(LABELS)) if labelled else [(text,) for text in read_texts(path)]
        return _filled(text_examples(prefix, rows), path)

    pairs = examples(data)
    _encode_all(checkpoint, pairs, "text-to-text")  # refuses texts that are too long
    answers = greedy_texts(checkpoint.model, checkpoint.tokenizer, [source for source, _ in pairs])
    scores = {"accuracy": share([answer == right for answer, (_, right) in zip(answers, pairs, strict=True)])}
    if train is not None:
        scores["most_frequent_answer_accuracy"] = majority_accuracy(examples(train), pairs)
    return {**scores, "sentences": len(pairs)}


def translation_scores(
    checkpoint: Checkpoint,
    pairs: Sequence[tuple[str, str]],
    *,
    beam: int = 4,
    lowercase: bool = False,
    progress: Progress = iter,
) -> dict:
    """Translate every source once and score against all its translations; ``beam`` 1 is greedy."""
    sources, references = group_references(_filled(pairs, "the data"))
    strategy = Beam(beam) if beam > 1 else Greedy()
    hypotheses = [decode(checkpoint, source, strategy).text for source in progress(sources)]
    return {**corpus_scores(hypotheses, references, lowercase=lowercase), "sentences": len(sources), "beam": beam}


def _perplexities(checkpoint: Checkpoint, texts: Sequence[str]) -> dict:
    """Return exp(Σ −log p(token) / number of words).

    Tokens include ``</s>``; words are separated by white space.
    """
    examples = _encode_all(checkpoint, [(text,) for text in texts], "next-token")
    n_tokens = sum(len(ids) - 1 for (ids,) in examples)
    n_words = sum(len(text.split()) for text in texts)
    loss = dev_loss(OBJECTIVES["next-token"](checkpoint.model), examples, _BATCH_TOKENS)
    return {
        "perplexity_per_word": math.exp(loss * n_tokens / n_words),
        "perplexity_per_token": math.exp(loss),
        "sentences": len(texts),
    }


def _masked_word_scores(checkpoint: Checkpoint, texts: Sequence[str], train: str | Path | None) -> dict:
    examples = [ids for (ids,) in _encode_all(checkpoint, [(text,) for text in texts], "masked-token")]
    hidden = hide_words(checkpoint.tokenizer, examples)
    right = recovered_words(checkpoint.model, examples, hidden, _BATCH_TOKENS)
    with_letters = [found for found, word in zip(right, hidden, strict=True) if word.has_letters]
    scores = {"masked_accuracy": share(right), "masked_accuracy_letters": share(with_letters)}
    if train is not None:
        scores |= unigram_accuracies(checkpoint.tokenizer, _texts(train), hidden)
    counts = {"masked_words": len(hidden), "masked_words_letters": len(with_letters)}
    return {**scores, **counts, "sentences": len(texts)}


def _class_scores(checkpoint: Checkpoint, data: str | Path, train: str | Path | None, *, pairs: bool = False) -> dict:
    """Score the classes of texts, of images, or of ``pairs`` of sentences."""
    config, name = checkpoint.config, "accuracy"
    baselines: dict[str, Callable]
    if pairs:
        what, task, name = "pairs", "masked-token-next-sentence", "next_sentence_accuracy"
        baselines = {"majority_accuracy": majority_accuracy, "word_overlap_accuracy": word_overlap_accuracy}
    elif config.reads_images:
        what, task = "pictures", "picture-classification"
        baselines = {"nearest_picture_accuracy": partial(nearest_picture_accuracy, checkpoint.tokenizer)}
    else:
        what, task, baselines = "sentences", "classification", {"bag_of_words_accuracy": bag_of_words_accuracy}

    def read(path: str | Path) -> list:
        return _filled(read_sentence_pairs(path) if pairs else read_labelled(path, config.n_classes), path)

    rows, known = read(data), [] if train is None else read(train)
    examples = _encode_all(checkpoint, rows, task)
    scores = {name: dev_accuracy(OBJECTIVES[task](checkpoint.model), examples, _BATCH_TOKENS)}
    scores |= {each: baseline(known, rows) for each, baseline in baselines.items() if known} | {what: len(rows)}
    if known:
        length = 3 if pairs else 1  # a pair with its class, or a text alone
        scores[f"{what}_also_in_train"] = len({row[:length] for row in known} & {row[:length] for row in rows})
    return scores


def _encode_all(checkpoint: Checkpoint, texts: Sequence[tuple], task: str) -> list[tuple]:
    """Encode the texts, and refuse a file with texts that are too long rather than score only a part."""
    examples = OBJECTIVES[task].encode(checkpoint.tokenizer, texts)
    limit = checkpoint.config.max_length
    if too_long := [text[0] for text, example in zip(texts, examples, strict=True) if len(example[0]) > limit]:
        raise InputError(
            f"{len(too_long)} texts are longer than the {limit} tokens this model reads: {too_long[0][:60]}…"
        )
    return examples


def _texts(path: str | Path) -> list[str]:
    return _filled(read_texts(path), path)


def _filled(examples: list, data: object) -> list:
    """Return the examples of ``data``, of which there must be some."""
    if not examples:
        raise InputError(f"There is nothing to score in {data}: it has no line with text.")
    return examples
