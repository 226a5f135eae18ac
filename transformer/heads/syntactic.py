"""Syntactic heads: from a word, the head looks at the word that it depends on, or that depends on it.

Voita et al. 2019 (§5.2): the share of the arcs of a relation in which the largest weight of the one word's row falls on
the other one. A head is syntactic if that is at least 10 % (here: percentage points) more than a head would have that
always looks at one fixed offset, the best one for this relation. The same is asked beyond evenly spread attention: a
word of many pieces sums up more of it, and nouns have more pieces than articles. As there, special tokens are left out
of the largest weight; as in Clark et al. 2019 (§4.1), the pieces of a word are put together (sum over the tokens
looked at, mean over the tokens that look). Arcs that the mask forbids do not count: a decoder never looks from a
determiner to its noun. Chance: 1 over the number of words that the row may look at. The arcs: ``annotations``.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from transformer.attention_maps.whole_words import word_spans, word_weights
from transformer.heads.annotations import AnnotatedSentence
from transformer.heads.tally import Tallies, Tally, evenly
from transformer.runs.attention_view import AttentionView

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
    """(the word that looks, the word to find), without those that a causal mask forbids."""
    relation, from_dependent = DIRECTIONS[name]
    arcs = sentence.arcs.get(relation, ())
    directed = [(one, other) if from_dependent else (other, one) for one, other in arcs]
    return [(looks, found) for looks, found in directed if not causal or found < looks]


def syntactic_tallies(view: AttentionView, sentence: AnnotatedSentence, *, causal: bool) -> dict[str, Tally]:
    """Self-attention over one annotated sentence, by the names of ``DIRECTIONS``; nothing where its words are not found
    among the tokens (an alphabet that the model lacks, or a decoder that reads something else)."""
    spans = word_spans(view.key, sentence.words) if view.kind == "self" else None
    if spans is None:
        return {}
    best = word_weights(view.weights, spans, spans).argmax(axis=-1)  # [head, word]
    longest = word_weights(evenly(view)[None], spans, spans)[0].argmax(axis=-1)  # [word]
    tallies = {}
    for name in DIRECTIONS:
        if arcs := directed_arcs(sentence, name, causal=causal):
            looks, found = np.array(arcs).T
            choice = looks + 1 if causal else np.full(len(arcs), len(spans))
            hits = (best[:, looks] == found).sum(axis=1).astype(float)
            tallies[name] = Tally.of(hits, (1 / choice).sum(), len(arcs))
            hits = np.array([float((longest[looks] == found).sum())])
            tallies[f"{name}_longest"] = Tally.of(hits, 0.0, len(arcs))
    return tallies


def best_offset_share(sentences: Sequence[AnnotatedSentence], name: str, *, causal: bool) -> float:
    """The share of the arcs that the best fixed offset between words finds: what Voita et al. compare with."""
    offsets = Counter(b - a for sentence in sentences for a, b in directed_arcs(sentence, name, causal=causal))
    return max(offsets.values(), default=0) / max(1, offsets.total())


def least_of_arcs(tallies: Tallies, name: str, *, best_offset: float) -> float:
    """The threshold: what the best fixed offset finds, or evenly spread attention, and ``LEAST_ABOVE_OFFSET`` more."""
    return max(best_offset, float(tallies[f"{name}_longest"].shares[0, 0])) + LEAST_ABOVE_OFFSET
