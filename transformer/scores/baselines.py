"""Baselines for a checkpoint's scores: simple methods, fitted only to the training file."""

import re
from collections import Counter
from collections.abc import Sequence

import torch

from transformer.pictures.patch_numbers import levels_of
from transformer.pictures.patch_tokenizer import PatchTokenizer
from transformer.scores.masked_words import HiddenWord, has_letters, words_of
from transformer.text.tokenizer import Tokenizer

_FOLDS = 5
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_INVERSE_PENALTIES = (0.01, 0.03, 0.1, 0.3, 1, 3, 10)


def unigram_accuracies(
    tokenizer: Tokenizer, train: Sequence[str], hidden: Sequence[HiddenWord]
) -> dict[str, float | None]:
    """Return the accuracy of guessing the most frequent word in ``train`` with as many tokens.

    The guess depends only on the number of masked tokens and, for ``_letters``, on the word not being a punctuation
    mark. The first of several equally frequent words is used.
    """
    counts: Counter[tuple[int, ...]] = Counter()
    for ids in tokenizer.encode_many(train):
        counts.update(tuple(ids[start:end]) for start, end in words_of(tokenizer, ids))
    most_frequent: dict[int, tuple[int, ...]] = {}
    most_frequent_with_letters: dict[int, tuple[int, ...]] = {}
    for word, _ in counts.most_common():
        most_frequent.setdefault(len(word), word)
        if len(word) not in most_frequent_with_letters and has_letters(tokenizer, word):
            most_frequent_with_letters[len(word)] = word
    with_letters = [word for word in hidden if word.has_letters]
    return {
        "unigram_accuracy": share([most_frequent.get(len(word.answer)) == word.answer for word in hidden]),
        "unigram_accuracy_letters": share(
            [most_frequent_with_letters.get(len(word.answer)) == word.answer for word in with_letters]
        ),
    }


def bag_of_words_accuracy(train: Sequence[tuple[str, int]], rows: Sequence[tuple[str, int]]) -> float:
    """Return the accuracy on ``rows`` of logistic regression on word occurrence (Pang et al. 2002).

    Words are separated by white space, in lower case. Occurrence predicts better than counts (in cross-validation on
    sst2's training file, too). The strength of the L2 penalty is chosen by five-fold cross-validation on ``train``,
    with scikit-learn.

    Raises:
        ModuleNotFoundError: If scikit-learn is not installed.
        ValueError: If there are fewer than five training texts of a class.
    """
    try:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
    except ModuleNotFoundError as error:
        remedy = "pip install -r requirements-train.txt"
        raise ModuleNotFoundError(f"the bag of words needs scikit-learn: {remedy}", name="scikit-learn") from error
    fewest = min(Counter(label for _, label in train).values())
    if fewest < _FOLDS:
        raise ValueError(f"a class has {fewest} training texts; the bag of words needs {_FOLDS} of each")
    bag = make_pipeline(CountVectorizer(token_pattern=r"\S+", binary=True), LogisticRegression(max_iter=1000))
    search = GridSearchCV(bag, {"logisticregression__C": _INVERSE_PENALTIES}, cv=_FOLDS)
    search.fit(*_columns(train))
    return float(search.score(*_columns(rows)))


def majority_accuracy(train: Sequence[tuple], rows: Sequence[tuple]) -> float | None:
    """Return the share of ``rows`` whose last entry (class or text) is the most frequent in ``train``."""
    (most_frequent, _), *_ = Counter(row[-1] for row in train).most_common(1)
    return share([row[-1] == most_frequent for row in rows])


def word_overlap_accuracy(train: Sequence[tuple[str, str, int]], rows: Sequence[tuple[str, str, int]]) -> float | None:
    """Return the accuracy of calling a pair of sentences consecutive if they share many words.

    The measure is the number of distinct words in both sentences over that in either (Jaccard), in lower case and
    without punctuation; the threshold is the one that fits ``train`` best. Class 0 is "consecutive".
    """
    overlaps = sorted((_overlap(first, second), label) for first, second, label in train)
    consecutive = sum(label == 0 for _, label in overlaps)
    best, threshold, right = consecutive, -1.0, consecutive  # every pair is called consecutive
    for index, (overlap, label) in enumerate(overlaps):  # up to here, pairs are called not consecutive
        right += 1 if label else -1
        is_last = index + 1 == len(overlaps) or overlaps[index + 1][0] > overlap
        if is_last and right > best:
            best, threshold = right, overlap
    return share([(_overlap(first, second) <= threshold) == bool(label) for first, second, label in rows])


def _overlap(first: str, second: str) -> float:
    """Return the number of words in both sentences, divided by that of all their words."""
    one, other = (set(_WORD.findall(sentence.lower())) for sentence in (first, second))
    return len(one & other) / max(1, len(one | other))


def nearest_picture_accuracy(
    tokenizer: PatchTokenizer, train: Sequence[tuple[str, int]], rows: Sequence[tuple[str, int]]
) -> float:
    """Return the share of images in ``rows`` whose nearest image in ``train`` is of the same class.

    The distance is the Euclidean distance of pixels (Cover & Hart 1967); the first image wins ties.
    """
    known, asked = (
        levels_of(torch.tensor(tokenizer.encode_many([text for text, _ in part])), tokenizer.config).flatten(1).double()
        for part in (train, rows)
    )
    nearest = torch.cdist(asked, known).argmin(dim=1).tolist()
    return share([train[index][1] == label for index, (_, label) in zip(nearest, rows, strict=True)])


def share(right: Sequence[bool]) -> float | None:
    """Return the share of true values, from 0 to 1; ``None`` for an empty list."""
    return sum(right) / len(right) if right else None


def _columns(rows: Sequence[tuple[str, int]]) -> tuple[list[str], list[int]]:
    return [text for text, _ in rows], [label for _, label in rows]
