"""The annotated sentences: every link fits its sentence, and a head that follows them is recognised."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from tests.transformer.heads.attention import made, pointing
from transformer.attention_maps.whole_words import word_spans, word_weights
from transformer.heads.annotated_words import (
    DIRECTIONS,
    RELATIONS,
    AlignedPair,
    AnnotatedSentence,
    aligned_pairs,
    alignment_counts,
    annotated_sentences,
    best_offset_share,
    best_rule_precision,
    directed_arcs,
    least_of_arcs,
    syntactic_counts,
)
from transformer.heads.weight_patterns import add_counts

DETERMINERS = {"the", "a", "an", "this", "that", "these", "those", "every", "each", "some", "any", "no"}
AUXILIARIES = {
    *("is", "are", "was", "were", "am", "been", "has", "have", "had", "do", "does", "did"),
    *("will", "would", "can", "could", "may", "might", "must", "should"),
}


def test_the_arcs_are_consistent() -> None:
    sentences = annotated_sentences()
    assert len(sentences) >= 150 and len({sentence.text for sentence in sentences}) == len(sentences)
    for sentence in sentences:
        words = [word.lower() for word in sentence.words]
        assert sentence.words[-1] in (".", "?") and sentence.words[0][0].isupper()
        for relation, arcs in sentence.arcs.items():
            assert relation in RELATIONS and arcs, sentence.text
            dependents = [dependent for dependent, _ in arcs]
            assert len(set(dependents)) == len(dependents), f"{sentence.text}: a word depends on one word only"
            for dependent, head in arcs:
                assert dependent != head and words[dependent].isalpha() and words[head].isalpha()
                if relation in ("det", "aux"):
                    assert dependent < head, f"{sentence.text}: {words[dependent]} stands before {words[head]}"
                    assert words[dependent] in (DETERMINERS if relation == "det" else AUXILIARIES), sentence.text
        determined = [head for _, head in sentence.arcs.get("det", ())]
        assert len(set(determined)) == len(determined), f"{sentence.text}: a noun has one determiner"
        for place, word in enumerate(words):
            if word in ("the", "a", "an", "every"):
                assert place in dict(sentence.arcs["det"]), f"{sentence.text}: {word} has no noun"
        verbs = {head for _, head in chain(sentence.arcs.get("nsubj", ()), sentence.arcs.get("aux", ()))}
        nouns = {head for _, head in chain(sentence.arcs.get("det", ()), sentence.arcs.get("amod", ()))}
        assert not verbs & nouns, sentence.text
        assert len(sentence.arcs.get("nsubj", ())) == 1, sentence.text


def test_the_alignments_are_consistent() -> None:
    pairs = aligned_pairs()
    assert len(pairs) >= 50 and len({pair.source for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.sure <= pair.possible
        linked = {target for _, target in pair.possible}
        unlinked = [word for index, word in enumerate(pair.target) if index not in linked]
        assert set(unlinked) <= {"-", "en", "y"}, f"{' '.join(pair.target)}: {unlinked} have no link"
        assert (len(pair.source) - 1, len(pair.target) - 1) in pair.sure, "the marks at the end"


def test_a_link_to_a_word_that_is_not_there_is_named(tmp_path) -> None:
    path = tmp_path / "arcs.txt"
    for arcs, problem in (
        ("det the>cat", "'the' is not one word"),
        ("det The>cat#2", "'cat#2' is not one word"),
        ("det The-cat", "'The-cat' is not a link"),
        ("subject cat>sat", "'subject'"),
    ):
        path.write_text(f"# a comment\nThe cat sat .\n{arcs}\n", encoding="utf-8")
        with pytest.raises(ValueError, match=problem):
            annotated_sentences.__wrapped__(path)
    path.write_text("The cat sat .\n", encoding="utf-8")
    with pytest.raises(ValueError, match="needs 2"):
        annotated_sentences.__wrapped__(path)


CAT = AnnotatedSentence(("The", "old", "cat", "sat", "."), {"det": ((0, 2),), "amod": ((1, 2),), "nsubj": ((2, 3),)})
PIECES = ["<s>", " The", " old", " c", "at", " sat", ".", "</s>"]


def test_words_are_found_among_their_pieces() -> None:
    spans = word_spans(made(np.ones((1, 8, 8)), PIECES).key, CAT.words)
    assert spans == ((1, 2), (2, 3), (3, 5), (5, 6), (6, 7))
    assert word_spans(made(np.ones((1, 8, 8)), PIECES).key, ("The", "dog")) is None
    weights = np.random.default_rng(0).random((2, 8, 8))
    merged = word_weights(weights, spans, spans)
    for head in range(2):
        for i, (q0, q1) in enumerate(spans):
            for j, (k0, k1) in enumerate(spans):
                loop = np.mean([sum(weights[head, q, k] for k in range(k0, k1)) for q in range(q0, q1)])
                assert merged[head, i, j] == pytest.approx(loop)


def test_a_head_that_follows_the_arcs_scores_one_and_special_tokens_are_left_out() -> None:
    weights = pointing([0, 3, 4, 5, 5, 3, 0, 0], 8, share=0.4)
    weights[0, :, 7] += 0.5  # most of the weight goes to </s>
    found = syntactic_counts(made(weights, PIECES), CAT, causal=False)
    for name in ("determiner_noun", "adjective_noun", "subject_verb", "verb_subject"):
        assert found[name].shares[0, 0] == 1.0 and found[name].chances[0] == pytest.approx(1 / 5)
    assert found["noun_determiner"].shares[0, 0] == 0.0 and "object_verb" not in found
    causal = syntactic_counts(made(weights, PIECES, causal=True), CAT, causal=True)
    assert {name for name in causal if "longest" not in name} == {"noun_determiner", "noun_adjective", "verb_subject"}
    # evenly spread attention scores as much, because cat has two tokens
    assert causal["verb_subject_longest"].shares[0, 0] == 1.0
    assert causal["verb_subject"].shares[0, 0] == 1.0 and causal["verb_subject"].chances[0] == pytest.approx(1 / 4)


def test_random_heads_are_at_chance_and_the_baseline_is_the_best_fixed_offset() -> None:
    rng = np.random.default_rng(3)
    counts: dict = {}
    for sentence in annotated_sentences():
        pieces = [f" {word}" for word in sentence.words]
        view = made(rng.random((4, len(pieces), len(pieces))), pieces)
        counts = add_counts(counts, syntactic_counts(view, sentence, causal=False))
    for name in DIRECTIONS:
        baseline = best_offset_share(annotated_sentences(), name, causal=False)
        measure = counts[name].measure(0, least_of_arcs(counts, name, best_offset=baseline))
        assert counts[name].shares.mean() == pytest.approx(measure.chance, abs=0.05) and not measure.reached
        arcs = [arc for sentence in annotated_sentences() for arc in directed_arcs(sentence, name, causal=False)]
        assert baseline == max(sum(b - a == d for a, b in arcs) for d in range(-9, 10)) / len(arcs)
        longest = float(counts[f"{name}_longest"].shares[0, 0])
        assert measure.least == pytest.approx(max(baseline, longest) + 0.1) and measure.least < 1


PAIR = AlignedPair(
    ("I", "see", "it"), ("je", "le", "vois"), frozenset({(0, 0), (2, 1), (1, 2)}), frozenset({(0, 0), (2, 1), (1, 2)})
)


def test_alignment_is_read_at_the_word_and_one_row_before() -> None:
    source, target = [" I", " see", " it"], ["<s>", " je", " le", " vois"]
    predicting = made(pointing([0, 2, 1, 0], 3), target, source)
    found = alignment_counts(predicting, PAIR)
    assert found["aligned_next"].shares[0, 0] == 1.0 and found["aligned_next_aer"].shares[0, 0] == 1.0  # AER 0
    assert found["aligned_read"].shares[0, 0] == 0.0
    reading = alignment_counts(made(pointing([1, 0, 2, 1], 3), target, source), PAIR)
    assert reading["aligned_read"].shares[0, 0] == 1.0 and reading["aligned_next"].shares[0, 0] < 1.0
    assert found["aligned_next"].chances[0] == pytest.approx(1 / 3)


def test_the_error_rate_is_that_of_och_and_ney() -> None:
    possible = AlignedPair(PAIR.source, PAIR.target, frozenset({(0, 0), (1, 2)}), PAIR.possible)
    source, target = [" I", " see", " it"], ["<s>", " je", " le", " vois"]
    for links, pair, rate in (
        ([0, 2, 1], PAIR, 0.0),
        ([0, 2, 1], possible, 1 - (2 + 3) / (3 + 2)),
        ([1, 1, 0], PAIR, 1.0),
        ([0, 0, 0], PAIR, 1 - (1 + 1) / (3 + 3)),
    ):
        found = alignment_counts(made(pointing([*links, 0], 3), target, source), pair)
        assert 1 - found["aligned_next_aer"].shares[0, 0] == pytest.approx(rate)
    # the best rule is one word to the left, where the first word stays
    assert best_rule_precision([PAIR]) == pytest.approx(2 / 3)
