"""Scores of a checkpoint on a file: BLEU, perplexity, masked words, accuracy, with baselines."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from transformer.config import PictureConfig
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
    SentencePair,
    group_references,
    holds_sentence_pairs,
    read_pairs,
    read_sentence_pairs,
    read_texts,
)
from transformer.training.objectives import OBJECTIVES
from transformer.training.text_tasks import LABELS, TEXT_TASKS, task_name, text_examples
from transformer.training.validation import dev_accuracy, dev_loss, greedy_texts, next_sentence_accuracy

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
        return _next_sentence_scores(checkpoint, data, train)
    prefix = _prefix(checkpoint, task)
    if prefix and TEXT_TASKS[prefix].measure == "exact":
        _refuse_lowercase(checkpoint, lowercase)
        scores = _text_task_scores(checkpoint, prefix, data, train)
    elif kind == "encoder-decoder":
        if train is not None:
            raise InputError(f"{checkpoint.name} translates: no baseline of it needs a training file")
        pairs = read_pairs(data)
        if prefix:
            pairs = text_examples(prefix, pairs)
        scores = translation_scores(checkpoint, pairs, beam=beam, lowercase=lowercase, progress=progress)
    else:
        _refuse_lowercase(checkpoint, lowercase)
        if checkpoint.config.n_classes:
            scores = _classifier_scores(checkpoint, data, train)
        elif kind == "decoder-only":
            scores = _perplexities(checkpoint, _texts(data))
        else:
            scores = _masked_word_scores(checkpoint, _texts(data), train)
    if train is not None:
        what = "pictures" if isinstance(checkpoint.config, PictureConfig) else "sentences"
        scores[f"{what}_also_in_train"] = len({*_texts(train)} & {*read_texts(data)})
    return {"task": task, **scores} if task else scores


def _prefix(checkpoint: Checkpoint, task: str | None) -> str:
    """Return the prefix of every sentence of ``task``; "" for a model of one task."""
    prefixes = {task_name(prefix): prefix for prefix in checkpoint.config.task_prefixes if prefix in TEXT_TASKS}
    if (task or prefixes) and task not in prefixes:
        tasks = ", ".join(map(repr, prefixes)) or "(none: leave it out)"
        raise InputError(f"{checkpoint.name} cannot be scored with the task {task!r}; its tasks are {tasks}")
    return prefixes[task] if task else ""


def _refuse_lowercase(checkpoint: Checkpoint, lowercase: bool) -> None:
    if lowercase:
        raise InputError(
            f"{checkpoint.name} is {checkpoint.config.kind}: only translations can be scored without regard to case"
        )


def _text_task_scores(checkpoint: Checkpoint, prefix: str, data: str | Path, train: str | Path | None) -> dict:
    def examples(path: str | Path) -> list[tuple[str, str]]:
        labelled = TEXT_TASKS[prefix].corpus == "sst2"
        return text_examples(
            prefix, _read_labelled(path, len(LABELS)) if labelled else [(text,) for text in _texts(path)]
        )

    pairs = examples(data)
    _require(pairs, data)
    _encode_all(checkpoint, pairs, "text-to-text")  # refuses texts that are too long
    answers = greedy_texts(checkpoint.model, checkpoint.tokenizer, [source for source, _ in pairs])
    scores = {"accuracy": share([answer == right for answer, (_, right) in zip(answers, pairs, strict=True)])}
    if train is not None:
        usual = Counter(answer for _, answer in examples(train)).most_common(1)[0][0]
        scores["most_frequent_answer_accuracy"] = share([right == usual for _, right in pairs])
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
    _require(pairs, "the data")
    sources, references = group_references(pairs)
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


def _next_sentence_scores(checkpoint: Checkpoint, data: str | Path, train: str | Path | None) -> dict:
    def read(path: str | Path) -> list[SentencePair]:
        pairs = read_sentence_pairs(path)
        _require(pairs, path)
        return pairs

    rows = read(data)
    examples = _encode_all(checkpoint, rows, "masked-token-next-sentence")
    scores = {"next_sentence_accuracy": next_sentence_accuracy(checkpoint.model, examples, _BATCH_TOKENS)}
    if train is not None:
        known = read(train)
        scores["majority_accuracy"] = majority_accuracy([pair.label for pair in known], [pair.label for pair in rows])
        scores["word_overlap_accuracy"] = word_overlap_accuracy(known, rows)
    scores["pairs"] = len(rows)
    if train is not None:
        scores["pairs_also_in_train"] = len({*known} & {*rows})
    return scores


def _classifier_scores(checkpoint: Checkpoint, data: str | Path, train: str | Path | None) -> dict:
    rows = _read_labelled(data, checkpoint.config.n_classes)
    pictures = isinstance(checkpoint.config, PictureConfig)
    task = "picture-classification" if pictures else "classification"
    examples = _encode_all(checkpoint, rows, task)
    scores = {"accuracy": dev_accuracy(OBJECTIVES[task](checkpoint.model), examples, _BATCH_TOKENS)}
    if pictures:
        if train is not None:
            known = _read_labelled(train, checkpoint.config.n_classes)
            scores["nearest_picture_accuracy"] = nearest_picture_accuracy(checkpoint.tokenizer, known, rows)
        return {**scores, "pictures": len(rows)}
    if train is not None:
        scores["bag_of_words_accuracy"] = bag_of_words_accuracy(
            _read_labelled(train, checkpoint.config.n_classes), rows
        )
    return {**scores, "sentences": len(rows)}


def _texts(path: str | Path) -> list[str]:
    texts = read_texts(path)
    _require(texts, path)
    return texts


def _read_labelled(path: str | Path, n_classes: int) -> list[tuple[str, int]]:
    rows = read_pairs(path)
    _require(rows, path)
    if wrong := [label for _, label in rows if label.strip() not in {str(index) for index in range(n_classes)}]:
        raise InputError(f"{path}: a text has the class {wrong[0]!r}; this model's are numbered 0 to {n_classes - 1}")
    return [(text, int(label)) for text, label in rows]


def _encode_all(checkpoint: Checkpoint, texts: Sequence[tuple], task: str) -> list[tuple]:
    """Encode the texts, and refuse a file with texts that are too long rather than score only a part."""
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
