"""The project's own sentences with what a person said about them: grammatical arcs, and which word translates which.

``sentences/arcs-en.txt`` and ``sentences/pairs-en-fr.txt`` say in their first lines how to read them. A word is named
by its form; one that occurs more than once carries its number, as in ``the#2``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "sentences"
ARCS, PAIRS = FOLDER / "arcs-en.txt", FOLDER / "pairs-en-fr.txt"
RELATIONS = ("det", "amod", "nsubj", "obj", "aux")


@dataclass(frozen=True)
class AnnotatedSentence:
    """``arcs``: relation → (dependent, head), as indices into ``words``."""

    words: tuple[str, ...]
    arcs: Mapping[str, tuple[tuple[int, int], ...]]

    @property
    def text(self) -> str:
        return joined(self.words)


@dataclass(frozen=True)
class AlignedPair:
    """A sentence and its translation. ``sure``, ``possible``: links (source word, target word); a sure link is also a
    possible one (Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", §5)."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


@cache
def annotated_sentences(path: Path = ARCS) -> tuple[AnnotatedSentence, ...]:
    """Raises ``ValueError``, with the line, for an annotation that does not fit its sentence."""
    found = []
    for words_line, arcs_line in _blocks(path, 2):
        words = tuple(words_line.split())
        arcs: dict[str, tuple[tuple[int, int], ...]] = {}
        for part in arcs_line.split("|"):
            relation, *pairs = part.split()
            if relation not in RELATIONS or relation in arcs:
                raise ValueError(f"{path.name}: {arcs_line!r} has {relation!r}; each of {RELATIONS} may stand once")
            arcs[relation] = tuple(_link(path, pair, ">", words, words) for pair in pairs)
        found.append(AnnotatedSentence(words, arcs))
    return tuple(found)


@cache
def aligned_pairs(path: Path = PAIRS) -> tuple[AlignedPair, ...]:
    """Raises ``ValueError``, with the line, for a link to a word that is not there."""
    found = []
    for source_line, target_line, links in _blocks(path, 3):
        source, target = tuple(source_line.split()), tuple(target_line.split())
        sure, possible = set(), set()
        for link in links.split():
            sign = "=" if "=" in link else "~"
            pair = _link(path, link, sign, source, target)
            possible.add(pair)
            if sign == "=":
                sure.add(pair)
        found.append(AlignedPair(source, target, frozenset(sure), frozenset(possible)))
    return tuple(found)


def joined(words: tuple[str, ...]) -> str:
    """The sentence as a person writes it: no space before a full stop or a comma, nor after an elided article."""
    text = ""
    for word in words:
        close = not text or word in (".", ",", "?", "!", "-") or text.endswith(("'", "-"))
        text += word if close else f" {word}"
    return text


def _blocks(path: Path, size: int) -> Iterator[list[str]]:
    """Groups of ``size`` lines; lines that are empty or begin with # are left out."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) % size:
        raise ValueError(f"{path.name} has {len(lines)} lines; every sentence needs {size}")
    for at in range(0, len(lines), size):
        yield lines[at : at + size]


def _link(path: Path, link: str, sign: str, ones: tuple[str, ...], others: tuple[str, ...]) -> tuple[int, int]:
    left, found, right = link.partition(sign)
    if not found:
        raise ValueError(f"{path.name}: {link!r} is not a link; write word{sign}word")
    return _word(path, left, ones), _word(path, right, others)


def _word(path: Path, name: str, words: tuple[str, ...]) -> int:
    form, numbered, number = name.partition("#")
    places = [index for index, word in enumerate(words) if word == form]
    if not numbered and len(places) == 1:
        return places[0]
    if numbered and number.isdigit() and len(places) > 1 and 1 <= int(number) <= len(places):
        return places[int(number) - 1]
    raise ValueError(
        f"{path.name}: {name!r} is not one word of {' '.join(words)!r}; a form that occurs more than once is numbered"
    )
