"""Tests of the literature on annotated sentences: syntactic heads, and word alignment.

**The sentences** are this project's own. The first lines of ``sentences/arcs-en.txt`` (grammatical arcs) and
``sentences/pairs-en-fr.txt`` (which word translates which) explain their format. A word is named by its form; if it
occurs more than once, with its number, as in ``the#2``.

**Alignment**: a word of the translation attends to the word that it translates, over pairs aligned by hand, with the
given translation read by the decoder. A target word is linked to the source word with its largest weight (without
special tokens, with the tokens of words combined). The rows of a word are those of its tokens as they are *read*
("aligned_read"), or one row earlier, those that *predict* them ("aligned_next"; Chen et al. 2020, "Accurate Word
Alignment Induction from Neural Machine Translation", consider both).

    precision = share of the target words that have a sure link whose predicted link is a possible one

A head aligns if its precision is at least ten percentage points higher than that of the best of a few fixed rules: an
offset between the words, or the straight line through both sentences and its neighbours. Voita et al. (2019) require
the same of syntactic heads. Chance level: the share of possible links among the source words.

**Syntax**: from a word, the head attends to the word that it depends on, or that depends on it. Voita et al. 2019
(§5.2) count the share of the arcs of a relation in which the largest weight of the one word's row is on the other word.
A head is syntactic if that share is at least 10 % (here: percentage points) above that of a head that always attends to
one fixed offset, the best one for this relation. Here it must also be above evenly spread attention, since a word of
many tokens collects more of it, and nouns have more tokens than articles. As there, special tokens are left out of the
largest weight; as in Clark et al. 2019 (§4.1), the tokens of a word are combined (sum over the keys, mean over the
queries). Arcs that the mask forbids do not count: a decoder never attends from a determiner to its noun. Chance level:
1 over the number of words that the row may attend to.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from transformer.attention_maps.whole_words import word_spans, word_weights
from transformer.heads.weight_patterns import Count, Counts, even_attention
from transformer.runs.attention_view import AttentionView

FOLDER = Path(__file__).parent / "sentences"
ARCS, PAIRS = FOLDER / "arcs-en.txt", FOLDER / "pairs-en-fr.txt"
RELATIONS = ("det", "amod", "nsubj", "obj", "aux")


@dataclass(frozen=True)
class AnnotatedSentence:
    """A sentence with ``arcs``: relation → (dependent, head), as indices into ``words``."""

    words: tuple[str, ...]
    arcs: Mapping[str, tuple[tuple[int, int], ...]]

    @property
    def text(self) -> str:
        """The sentence as text."""
        return join_words(self.words)


@dataclass(frozen=True)
class AlignedPair:
    """A sentence and its translation.

    ``sure`` and ``possible`` are links (source word, target word); a sure link is also a possible one (Och & Ney 2003,
    "A Systematic Comparison of Various Statistical Alignment Models", §5).
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]

    @property
    def linked(self) -> set[int]:
        """The target words that have a sure link."""
        return {target for _, target in self.sure}

    def n_right(self, links: Sequence[int]) -> int:
        """Return how many linked target words have a possible link in ``links``, which has one per word."""
        return sum((links[target], target) in self.possible for target in self.linked)


@cache
def annotated_sentences(path: Path = ARCS) -> tuple[AnnotatedSentence, ...]:
    """Read the sentences with grammatical arcs.

    Raises:
        ValueError: If an annotation does not fit its sentence; the message quotes the line.
    """
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
    """Read the aligned pairs.

    Raises:
        ValueError: If a link names a missing word; the message quotes the line.
    """
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


def join_words(words: tuple[str, ...]) -> str:
    """Return the sentence as usually written: no space before full stops, commas, or after an elision."""
    text = ""
    for word in words:
        close = not text or word in (".", ",", "?", "!", "-") or text.endswith(("'", "-"))
        text += word if close else f" {word}"
    return text


def _blocks(path: Path, size: int) -> Iterator[list[str]]:
    """Yield groups of ``size`` lines, without lines that are empty or begin with #."""
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


LEAST_ABOVE_RULE = 0.1
SHIFTS = {"aligned_next": 1, "aligned_read": 0}  # rows between the one that counts and the word's own
_OFFSETS = range(-3, 4)


def alignment_counts(view: AttentionView, pair: AlignedPair) -> dict[str, Count]:
    """Count the aligned words of one pair by the names of ``SHIFTS``; self-attention gives no counts."""
    if view.kind != "cross":
        return {}
    sources, targets = word_spans(view.key, pair.source), word_spans(view.query, pair.target)
    if sources is None or targets is None:
        return {}
    found, linked = {}, pair.linked
    chance = sum(target in linked for _, target in pair.possible) / len(pair.source)
    for name, shift in SHIFTS.items():
        rows = [(begin - shift, end - shift) for begin, end in targets]
        links = word_weights(view.weights, rows, sources).argmax(axis=-1)  # [head, target word]
        right = np.array([pair.n_right(head) for head in links.tolist()], dtype=float)
        found[name] = Count.of(right, chance, len(linked))
    return found


def best_rule_precision(pairs: Sequence[AlignedPair]) -> float:
    """Return the precision of the best fixed rule.

    The rules are offsets from −3 to 3, from the word's own position and from the straight line.
    """
    rights: Counter[tuple[str, int]] = Counter()
    for pair in pairs:
        last, n_targets = len(pair.source) - 1, len(pair.target)
        line = np.rint(np.linspace(0, last, n_targets)).astype(int)
        for name, start in (("offset", np.arange(n_targets)), ("line", line)):
            for offset in _OFFSETS:
                rights[name, offset] += pair.n_right(np.clip(start + offset, 0, last).tolist())
    return max(rights.values(), default=0) / max(1, sum(len(pair.linked) for pair in pairs))


LEAST_ABOVE_OFFSET = 0.1  # Voita et al. 2019, §5.2
# Measure → (relation, whether the row is the dependent's).
DIRECTIONS = {
    "subject_verb": ("nsubj", True),
    "verb_subject": ("nsubj", False),
    "object_verb": ("obj", True),
    "verb_object": ("obj", False),
    "adjective_noun": ("amod", True),
    "noun_adjective": ("amod", False),
    "determiner_noun": ("det", True),
    "noun_determiner": ("det", False),
    "auxiliary_verb": ("aux", True),
    "verb_auxiliary": ("aux", False),
}


def directed_arcs(sentence: AnnotatedSentence, name: str, *, causal: bool) -> list[tuple[int, int]]:
    """Return (query word, word to find) per arc, without arcs that a causal mask forbids."""
    relation, from_dependent = DIRECTIONS[name]
    arcs = sentence.arcs.get(relation, ())
    directed = [(one, other) if from_dependent else (other, one) for one, other in arcs]
    return [(looks, found) for looks, found in directed if not causal or found < looks]


def syntactic_counts(view: AttentionView, sentence: AnnotatedSentence, *, causal: bool) -> dict[str, Count]:
    """Count syntactic arcs in self-attention over one annotated sentence, by ``DIRECTIONS``.

    The result is empty if the words are not found among the tokens (an alphabet that the model lacks, or a decoder that
    reads another text).
    """
    spans = word_spans(view.key, sentence.words) if view.kind == "self" else None
    if spans is None:
        return {}
    best = word_weights(view.weights, spans, spans).argmax(axis=-1)  # [head, word]
    longest = word_weights(even_attention(view)[None], spans, spans)[0].argmax(axis=-1)  # [word]
    counts = {}
    for name in DIRECTIONS:
        if arcs := directed_arcs(sentence, name, causal=causal):
            looks, found = np.array(arcs).T
            choice = looks + 1 if causal else np.full(len(arcs), len(spans))
            hits = (best[:, looks] == found).sum(axis=1).astype(float)
            counts[name] = Count.of(hits, (1 / choice).sum(), len(arcs))
            hits = np.array([float((longest[looks] == found).sum())])
            counts[f"{name}_longest"] = Count.of(hits, 0.0, len(arcs))
    return counts


def best_offset_share(sentences: Sequence[AnnotatedSentence], name: str, *, causal: bool) -> float:
    """Return the share of arcs that the best fixed offset finds, the baseline of Voita et al."""
    offsets = Counter(b - a for sentence in sentences for a, b in directed_arcs(sentence, name, causal=causal))
    return max(offsets.values(), default=0) / max(1, offsets.total())


def arc_threshold(counts: Counts, name: str, *, best_offset: float) -> float:
    """Return the threshold: ``LEAST_ABOVE_OFFSET`` above the best offset and above even attention."""
    return max(best_offset, float(counts[f"{name}_longest"].shares[0, 0])) + LEAST_ABOVE_OFFSET
