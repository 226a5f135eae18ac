"""Pairs of sentences A and B, half of which follow each other (Devlin et al. 2019, §3.1, Task 2).

"50% of the time B is the actual next sentence that follows A (labeled as IsNext), and 50% of the time it is a random
sentence from the corpus (labeled as NotNext)", where a sentence "can be an arbitrary span of contiguous text". There
are two corpora of them:

- tinyshakespeare: A and B are consecutive lines of one speech; a wrong B is of the same play.
- Tatoeba: an English text is cut into A and B, between two sentences if it has several, otherwise between two words.

A wrong B is the second part of another pair. So both classes have the same parts A and the same parts B, and neither
part alone reveals the class.
"""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from transformer.config import NEXT_SENTENCE

_ENDS = {"train": 0.90, "dev": 0.95, "test": 1.0}  # shares of each play, in the order of its lines
# The file does not say where a play begins, so here is the first line that is spoken in each.
_FIRST_LINES = (
    "Before we proceed any further, hear me speak.",  # Coriolanus
    "Now is the winter of our discontent",  # Richard III
    "Old John of Gaunt, time-honour'd Lancaster,",  # Richard II
    "Gregory, o' my word, we'll not carry coals.",  # Romeo and Juliet
    "I wonder how the king escaped our hands.",  # Henry VI, Part 3
    "If you shall chance, Camillo, to visit Bohemia, on",  # The Winter's Tale
    "Escalus.",  # Measure for Measure
    "I'll pheeze you, in faith.",  # The Taming of the Shrew
    "Boatswain!",  # The Tempest
)


_FEWEST_WORDS = 3  # smallest number of words in a part
_SENTENCE_END = re.compile(r"(?<=[a-z]{3}[.!?]) (?=[A-Z])")


def cut_texts(texts: Sequence[str]) -> list[str]:
    """Return a row of each class for every text that has enough words: A, B and the class, tab-separated.

    The same texts give the same rows.
    """
    chance = random.Random(1)
    pairs = [pair for text in texts if (pair := _cut(text, chance)) is not None]
    return list(_both_classes(pairs, chance))


def _cut(text: str, chance: random.Random) -> tuple[str, str] | None:
    """Split a text after its first sentence or, if it has only one, between two words inside it."""
    if len(sentences := _SENTENCE_END.split(text, maxsplit=1)) == 2:
        return sentences[0], sentences[1]
    words = text.split()
    if len(words) < 2 * _FEWEST_WORDS:
        return None
    cut = chance.randint(_FEWEST_WORDS, len(words) - _FEWEST_WORDS)
    return " ".join(words[:cut]), " ".join(words[cut:])


def consecutive_lines(path: str | Path) -> dict[str, list[str]]:
    """Return the rows of ``train.tsv``, ``dev.tsv`` and ``test.tsv``: A, B and the class, tab-separated.

    The first 90 % of the pairs of each play are for training, the next 5 % for development, the last 5 % for the test.
    The same file gives the same rows.

    Args:
        path: ``input.txt`` of tinyshakespeare: speeches with a blank line between them, the speaker on the first line.
    """
    rows: dict[str, list[str]] = {split: [] for split in _ENDS}
    chance = random.Random(1)
    for play in _plays(_speeches(Path(path).read_text(encoding="utf-8"))):
        pairs = [pair for speech in play for pair in zip(speech, speech[1:], strict=False)]
        start = 0
        for split, end in _ENDS.items():
            own, start = pairs[start : round(end * len(pairs))], round(end * len(pairs))
            rows[split] += _both_classes(own, chance)
    return rows


def _speeches(text: str) -> Iterator[list[str]]:
    """Yield the lines of each speech, without its speaker."""
    for block in text.split("\n\n"):
        _speaker, *lines = block.strip("\n").split("\n")
        if lines:
            yield lines


def _plays(speeches: Iterator[list[str]]) -> list[list[list[str]]]:
    """Group speeches by play; what comes before the first known line is a play, too."""
    plays: list[list[list[str]]] = [[]]
    openings = list(_FIRST_LINES)
    for speech in speeches:
        if openings and speech[0] == openings[0]:
            del openings[0]
            plays.append([])
        plays[-1].append(speech)
    return [play for play in plays if play]


def _both_classes(pairs: Sequence[tuple[str, str]], chance: random.Random) -> Iterator[str]:
    """Yield a row of each class for every pair."""
    follows, other = (NEXT_SENTENCE.index(name) for name in ("IsNext", "NotNext"))
    seconds = [second for _, second in pairs]
    for first, second in pairs:
        yield f"{first}\t{second}\t{follows}"
        wrong = [line for line in chance.sample(seconds, min(4, len(seconds))) if line != second]
        if wrong:
            yield f"{first}\t{wrong[0]}\t{other}"
