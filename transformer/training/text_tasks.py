"""Text to text (Raffel et al. 2020, §2.4): a task is a prefix in front of the sentence, and every answer is a text."""

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.training.corpora import Corpus, load_corpus

LABELS = ("negative", "positive")  # what is written for the classes 0 and 1
BLANK = "___"
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_FEWEST_WORDS = 3  # a blank in "Go." could be anything
_SEED = 1


@dataclass(frozen=True)
class TextTask:
    """``corpus``: what ``load_corpus`` is asked for. ``pair``: (sentence without prefix, answer) of one row of it and
    of the number of a draw, or ``None`` where the row is of no use. ``measure``: "bleu", or "exact", the share of
    answers that are the right ones letter by letter."""

    corpus: str
    measure: str
    pair: Callable[[tuple, int], tuple[str, str] | None]


def translation(row: tuple, draw: int) -> tuple[str, str]:
    return row[0], row[1]


def opinion(row: tuple, draw: int) -> tuple[str, str]:
    return row[0], LABELS[int(row[1])]


def one_blank(row: tuple, draw: int) -> tuple[str, str] | None:
    """One word of the text stands as ``___``, and is the answer. T5 hides several spans of three tokens on average
    (Raffel et al. 2020, §3.1.4); a single word can be scored. The same text and ``draw`` give the same blank."""
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
    """The examples (prefix + sentence, answer) of the tasks with these prefixes, mixed by ``mixed_counts``.

    A task's examples come again as often as its count says, a blank in another place each time; the last time a
    sample of them that is drawn at random. ``dev`` has each example once.
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
    """``"fill: "`` → ``"fill"``"""
    return prefix.removesuffix(": ")


def text_examples(prefix: str, rows: Sequence[tuple], draw: int = 0) -> list[tuple[str, str]]:
    """(prefix + sentence, answer) of the rows that are of use to the task."""
    pairs = [TEXT_TASKS[prefix].pair(row, draw) for row in rows]
    return [(prefix + pair[0], pair[1]) for pair in pairs if pair]


def mixed_counts(sizes: Sequence[int], temperature: float) -> list[int]:
    """Temperature-scaled mixing (Raffel et al. 2020, §3.5.2): task m has the share e_m^(1/T) / Σ e_n^(1/T) of the
    examples, e its size. T = 1 takes every example once; the higher T, the nearer come the shares to equal ones.

    The largest task's examples are taken once: n_m = e_max (e_m / e_max)^(1/T).
    """
    largest = max(sizes)
    return [round(largest * (size / largest) ** (1 / temperature)) for size in sizes]
