"""Text-to-text tasks (Raffel et al. 2020, §2.4): a prefix before the sentence, a text as target."""

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.training.corpora import Corpus, load_corpus

LABELS = ("negative", "positive")  # targets for the classes 0 and 1
BLANK = "___"
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_FEWEST_WORDS = 3  # a blank in "Go." could be anything
_SEED = 1


@dataclass(frozen=True)
class TextTask:
    """One text-to-text task.

    Attributes:
        corpus: Name for ``load_corpus``.
        pair: Returns (sentence without prefix, target) for one row and the number of a draw, or ``None`` if the row is
            unusable.
        measure: "bleu", or "exact", the share of outputs that are exactly right.
    """

    corpus: str
    measure: str
    pair: Callable[[tuple, int], tuple[str, str] | None]


def translation(row: tuple, draw: int) -> tuple[str, str]:
    """Return source and translation."""
    return row[0], row[1]


def opinion(row: tuple, draw: int) -> tuple[str, str]:
    """Return the text and its label as a word."""
    return row[0], LABELS[int(row[1])]


def one_blank(row: tuple, draw: int) -> tuple[str, str] | None:
    """Replace one word of the text by ``___``, and return it as the target.

    T5 masks several spans of three tokens on average (Raffel et al. 2020, §3.1.4); a single word can be scored. The
    same text and ``draw`` give the same blank.
    """
    words = list(_WORD.finditer(row[0]))
    if len(words) < _FEWEST_WORDS:
        return None
    word = random.Random(f"{draw} {row[0]}").choice(words)
    return row[0][: word.start()] + BLANK + row[0][word.end() :], word[0]


TEXT_TASKS = {
    "translate English to French: ": TextTask("tatoeba-en-fr", "bleu", translation),
    "translate English to German: ": TextTask("multi30k-en-de", "bleu", translation),
    "sentiment: ": TextTask("sst2", "exact", opinion),
    "fill: ": TextTask("tatoeba-en + multi30k-en-de", "exact", one_blank),
}


def load_text_tasks(prefixes: Sequence[str], directory: str | Path, *, temperature: float) -> Corpus:
    """Load the examples (prefix + sentence, target) of the tasks with these prefixes, by ``mixed_counts``.

    A task's examples are repeated as often as its count requires, with another blank each time; the last time a random
    sample of them is used. ``dev`` has each example once.
    """
    corpora = {prefix: load_corpus(TEXT_TASKS[prefix].corpus, directory) for prefix in prefixes}
    counts = mixed_counts([len(corpus.train) for corpus in corpora.values()], temperature)
    generator = random.Random(_SEED)
    train: list[tuple] = []
    for (prefix, corpus), count in zip(corpora.items(), counts, strict=True):
        n_whole, rest = divmod(count, len(corpus.train))
        for draw in range(n_whole):
            train += text_examples(prefix, corpus.train, draw)
        train += text_examples(prefix, generator.sample(corpus.train, rest), n_whole)
    dev = [example for prefix, corpus in corpora.items() for example in text_examples(prefix, corpus.dev)]
    digest = hashlib.sha256("".join(corpus.digest for corpus in corpora.values()).encode()).hexdigest()
    return Corpus(train, dev, digest)


def task_name(prefix: str) -> str:
    """Return the name of a prefix: ``"fill: "`` → ``"fill"``."""
    return prefix.removesuffix(": ")


def text_examples(prefix: str, rows: Sequence[tuple], draw: int = 0) -> list[tuple[str, str]]:
    """Return (prefix + sentence, target) of the rows that are usable for the task."""
    pairs = [TEXT_TASKS[prefix].pair(row, draw) for row in rows]
    return [(prefix + pair[0], pair[1]) for pair in pairs if pair]


def mixed_counts(sizes: Sequence[int], temperature: float) -> list[int]:
    """Return the number of examples per task by temperature-scaled mixing (Raffel et al. 2020, §3.5.2).

    Task m has the share e_m^(1/T) / Σ e_n^(1/T), where e is its size. T = 1 takes every example once; the higher T, the
    more equal the shares. The largest task's examples are taken once: n_m = e_max (e_m / e_max)^(1/T).
    """
    largest = max(sizes)
    return [round(largest * (size / largest) ** (1 / temperature)) for size in sizes]
