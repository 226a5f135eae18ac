"""Cross-attention that aligns: a word of the translation looks at the word that it translates.

Over pairs that were aligned by hand (``annotations``), with the given translation read by the decoder. A target word is
linked with the source word that gets its largest weight (special tokens left out, the pieces of words put together).
The rows of a word are those of its tokens as they are *read* ("aligned_read"), or one row earlier, those that
*predict* them ("aligned_next"; Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine Translation",
read both ways).

    precision = share of the target words that have a sure link whose predicted link is a possible one
    AER       = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)      (Och & Ney 2003, §5; A predicted, S sure, P possible)

A head aligns if its precision is at least ten percentage points more than that of the best of a few fixed rules: an
offset between the words, or the straight line through both sentences and its neighbours. Voita et al. (2019) ask the
same of syntactic heads. Chance: the share of possible links among the source words.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from transformer.attention_maps.whole_words import word_spans, word_weights
from transformer.heads.annotations import AlignedPair
from transformer.heads.tally import Tally
from transformer.runs.attention_view import AttentionView

LEAST_ABOVE_RULE = 0.1
SHIFTS = {"aligned_next": 1, "aligned_read": 0}  # rows between the one that counts and the word's own
_OFFSETS = range(-3, 4)
Links = Sequence[int | np.integer]


def alignment_tallies(view: AttentionView, pair: AlignedPair) -> dict[str, Tally]:
    """Of one pair: "aligned_next" and "aligned_read", precision; each with "…_aer", whose share is 1 − AER. Nothing in
    self-attention."""
    if view.kind != "cross":
        return {}
    sources, targets = word_spans(view.key, pair.source), word_spans(view.query, pair.target)
    if sources is None or targets is None:
        return {}
    found = {}
    for name, shift in SHIFTS.items():
        rows = [(begin - shift, end - shift) for begin, end in targets]
        links = word_weights(view.weights, rows, sources).argmax(axis=-1)  # [head, target word]
        right, agreed, asked, both = np.array([_agreement(head, pair) for head in links.tolist()], dtype=float).T
        chance = sum(len(_possible(pair, word)) / len(pair.source) for word in _linked(pair))
        found[name] = Tally.of(right, chance, int(asked[0]))
        found[f"{name}_aer"] = Tally.of(agreed, 0.0, int(both[0]))
    return found


def best_rule_precision(pairs: Sequence[AlignedPair]) -> float:
    """The precision of the best fixed rule: offsets between −3 and 3, from the word's own place and from the straight
    line."""
    asked = sum(len(_linked(pair)) for pair in pairs)
    rights: dict[tuple[str, int], int] = {}
    for pair in pairs:
        for name, links in _rules(len(pair.source), len(pair.target)):
            rights[name] = rights.get(name, 0) + _agreement(links, pair)[0]
    return max(rights.values(), default=0) / max(1, asked)


def error_rate(links: Mapping[int, Sequence[Links]], pairs: Sequence[AlignedPair]) -> float:
    """AER of ``links[k]``, the source word of every target word of pair k (−1: none), over all these pairs."""
    agreed = both = 0
    for index, chosen in links.items():
        _, hits, _, count = _agreement(chosen, pairs[index])
        agreed, both = agreed + hits, both + count
    return 1 - agreed / both


def _agreement(links: Links, pair: AlignedPair) -> tuple[int, int, int, int]:
    """(right words, |A ∩ S| + |A ∩ P|, words with a sure link, |A| + |S|)."""
    chosen = {(int(source), target) for target, source in enumerate(links) if source >= 0}
    linked = _linked(pair)
    right = sum(target in linked for source, target in chosen & pair.possible)
    both = len(chosen & pair.sure) + len(chosen & pair.possible)
    return right, both, len(linked), len(chosen) + len(pair.sure)


def _linked(pair: AlignedPair) -> set[int]:
    return {target for _, target in pair.sure}


def _possible(pair: AlignedPair, target: int) -> list[int]:
    return [source for source, word in pair.possible if word == target]


def _rules(n_sources: int, n_targets: int) -> Iterator[tuple[tuple[str, int], list[int]]]:
    line = np.rint(np.linspace(0, n_sources - 1, n_targets)).astype(int)
    for name, start in (("offset", np.arange(n_targets)), ("line", line)):
        for offset in _OFFSETS:
            yield (name, offset), np.clip(start + offset, 0, n_sources - 1).tolist()
