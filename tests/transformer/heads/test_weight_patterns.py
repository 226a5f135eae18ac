"""Hand-made heads get the role they were made for, and annotated sentences fit their words."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest

from tests.transformer.heads.attention import WORDS as TEXT
from tests.transformer.heads.attention import made, pointing
from transformer.attention_maps.whole_words import word_spans
from transformer.heads.annotated_words import (
    DIRECTIONS,
    RELATIONS,
    AlignedPair,
    AnnotatedSentence,
    aligned_pairs,
    alignment_counts,
    annotated_sentences,
    arc_threshold,
    best_offset_share,
    best_rule_precision,
    directed_arcs,
    syntactic_counts,
)
from transformer.heads.head_roles import ROLES, choose_role, head_roles
from transformer.heads.weight_patterns import (
    LEAST_SHARE,
    OFFSETS,
    Count,
    Measure,
    add_counts,
    counted_rows,
    diagonal_band,
    least_share,
    place_counts,
    positional_counts,
    positional_measures,
    shape_counts,
)

WORDS = ("<s>", " the", " cat", " and", " the", " dog", " run", ".", "</s>")


N = len(WORDS)
CAUSAL = np.tril(np.ones((N, N), dtype=bool))
# Role → column of each row, words of the query, words of the key (of cross-attention).
MADE_BY_HAND: dict[str, tuple] = {
    "previous": ([max(0, i - 1) for i in range(N)], WORDS),
    "next": ([min(N - 1, i + 1) for i in range(N)], WORDS),
    "same": (list(range(N)), WORDS),
    "sink": ([N - 1] * N, WORDS),
    "punctuation": ([7] * N, WORDS),
    "first": ([0] * 5, (" go", " home", " to", " the", " cat")),  # a first token that is special is a sink
    "repeated": ([3, 4, 5, 0, 1, 2], (" a", " b", " c") * 2),
    "none": ([4, 7, 0, 2, 8, 1, 5, 3, 6], WORDS),  # sharp, but to no kind of position with a name
    "diagonal": ([0, 2, 4, 6], ("<s>", " le", " chat", " dort"), (" the", " cat", " now", " is", " cold", ".", "</s>")),
    "monotone": ([0, 0, 0, 1, 1, 2], ("<s>", " le", " chat", " dort", " ici", " ce"), [f" w{i}" for i in range(12)]),
}


@pytest.mark.parametrize("role", MADE_BY_HAND)
def test_a_head_made_for_a_role_gets_that_role(role: str) -> None:
    columns, query, *key = MADE_BY_HAND[role]
    (found,) = head_roles(made(pointing(columns, len(key[0] if key else query)), query, *key))
    assert found.role == role
    if role == "none":
        assert math.isnan(found.score)
    else:
        # of 15 pairs of rows, 4 have one strongest key; the first token that attends to itself is not "first"
        assert found.score == pytest.approx(
            {"monotone": 11 / math.sqrt(11 * 15), "first": 0.9 * 4 / 5}.get(role, 0.9), abs=0.06
        )
    assert math.isnan(found.scores["distance"]) == ("previous" not in found.scores) == bool(key)


def test_scores_of_a_head_that_copies_and_of_one_without_a_preference() -> None:
    weights = np.zeros((1, N, N))
    weights[0, np.arange(1, N), np.arange(N - 1)] = weights[0, 0, 0] = 1.0
    (found,) = head_roles(made(weights, WORDS))
    assert (found.role, found.score, found.scores["next"], found.scores["entropy"]) == ("previous", 1.0, 0.0, 0.0)
    assert found.scores["distance"] == pytest.approx((N - 1) / N)  # the first row attends to itself, distance 0
    (found,) = head_roles(made(np.ones((1, N, N)), WORDS))
    assert (found.role, found.score) == ("broad", pytest.approx(1.0))
    assert found.scores["entropy"] == pytest.approx(math.log2(N))


def test_a_head_on_the_blank_is_at_no_sink() -> None:
    words = ("<s>", " they", " washed", "<mask>", " hands", "</s>")
    on_blank = made(pointing([3] * 6, 6), words)
    (found,) = head_roles(on_blank)
    assert found.role == "none"
    assert found.scores["sink"] == found.scores["sinks"] == pytest.approx(2 * 0.1 / 6)
    assert found.scores["confidence"] == pytest.approx(0.9 + 0.1 / 6), "it is confident about the blank"
    assert on_blank.sinks.tolist() == [True, False, False, False, False, True]


def test_rows_without_a_choice_and_rows_of_padding_do_not_count() -> None:
    causal = made(pointing(MADE_BY_HAND["previous"][0], N), WORDS, allowed=CAUSAL)
    assert counted_rows(causal).tolist() == [False] + [True] * (N - 1)
    (copies,) = head_roles(causal)
    assert math.isnan(copies.scores["next"]) and copies.scores["previous"] > LEAST_SHARE
    words = (*WORDS[:5], "<pad>", "<pad>")
    allowed = np.ones((7, 7), dtype=bool)
    allowed[:, 5:] = False
    other = np.ones((1, 7, 7))
    other[0, 5:, 0] = 99.0  # the rows of padding change no number
    padded, others = (made(weights, words, allowed=allowed) for weights in (np.ones((1, 7, 7)), other))
    assert counted_rows(padded).tolist() == [True] * 5 + [False] * 2
    assert head_roles(padded)[0].scores == pytest.approx(head_roles(others)[0].scores, nan_ok=True)
    (short,) = head_roles(made(pointing([0, 0], 2), (" go", "</s>")))
    assert short.role == "none" and all(math.isnan(value) for value in short.scores.values())


def test_a_share_that_chance_explains_is_no_role() -> None:
    words = (" a", "!", "!", "!", "!", "!")  # five sixths of all tokens are punctuation
    sharp = pointing([1, 2, 1, 5, 3, 4], 6)
    scores = head_roles(made(sharp, words))[0]
    assert scores.scores["punctuation"] > LEAST_SHARE
    assert scores.role != "punctuation"


def test_padding_is_no_part_of_the_diagonal() -> None:
    query, key = ("<s>", " le", " chat"), (" the", " cat", "</s>", "<pad>", "<pad>", "<pad>", "<pad>")
    allowed = np.ones((3, 7), dtype=bool)
    allowed[:, 3:] = False
    found = head_roles(made(pointing([0, 1, 2], 7), query, key, allowed=allowed))[0]
    assert found.scores["diagonal"] > 0.95


def test_the_band_reaches_from_the_first_pair_to_the_last() -> None:
    band = diagonal_band(3, 5)
    assert band.astype(int).tolist() == [[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 1, 1]]


def test_the_largest_share_wins_and_equal_shares_are_decided_in_order() -> None:
    base = {"broad": 0.1}
    assert choose_role({**base, "same": 0.6, "next": 0.7}, {"same": 0.1, "next": 0.1}) == "next"
    assert choose_role({**base, "sink": 0.6, "first": 0.6}, {"sink": 0.1, "first": 0.1}) == "sink"
    assert choose_role({**base, "same": LEAST_SHARE - 0.01}, {"same": 0.1}) == "none"
    assert set(MADE_BY_HAND) < set(ROLES)


LENGTH = len(TEXT)


def place_measure(count: Count) -> Measure:
    return count.measure(0, least_share(float(count.chances[0])))


@pytest.mark.parametrize("offset", [-5, -1, 0, 1, 2])
def test_a_head_of_one_offset_scores_one(offset: int) -> None:
    view = made(pointing([min(LENGTH - 1, max(0, i + offset)) for i in range(LENGTH)], LENGTH), TEXT)
    measures = positional_measures(positional_counts(view), 0)
    name, other = ("offset", "same") if offset else ("same", "offset")  # the token itself is no offset
    assert measures[name].score == 1.0 and measures[name].reached and not measures[other].score
    assert not offset or measures["offset"].offset == offset
    assert measures["window"].score == 1.0
    assert measures["offset"].chance == pytest.approx(1 / LENGTH)


def test_the_last_three_tokens_are_a_window_and_no_offset() -> None:
    columns = [max(0, i - i % 3) for i in range(LENGTH)]
    measures = positional_measures(positional_counts(made(pointing(columns, LENGTH), TEXT, causal=True)), 0)
    assert measures["window"].score == 1.0 and measures["window"].offset == -2 and measures["window"].reached
    assert not measures["offset"].reached and not measures["same"].reached


def test_the_rows_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(1)
    words = ["<s>", " a", " b", " c", " d", " e", "</s>"]
    for causal in (False, True):
        view = made(rng.random((2, 7, 7)), words, causal=causal)
        counts = positional_counts(view)
        for place, offset in enumerate(OFFSETS):
            rows = [i for i in range(1, 6) if 1 <= i + offset <= 5 and (not causal or offset <= 0)]
            assert counts["offset"].rows[place] == len(rows)
            hits = [sum(view.weights[head, i].argmax() == i + offset for i in rows) for head in (0, 1)]
            assert counts["offset"].total[:, place].tolist() == hits
            assert counts["offset"].chance[place] == pytest.approx(sum(1 / (i + 1 if causal else 7) for i in rows))


def test_sentences_add_up_and_a_far_offset_of_few_rows_does_not_count() -> None:
    short = made(pointing([0] * 6, 6), [f" w{n}" for n in range(6)])  # attends mainly to its first token
    counts = positional_counts(short)
    assert counts["offset"].shares[0, OFFSETS.index(-5)] == 1.0  # only one row has this offset
    measure = positional_measures(counts, 0)["offset"]
    assert measure.offset > -5 and measure.score < 0.5
    twice: dict[str, Count] = {}
    for _ in range(2):
        add_counts(twice, counts)
    assert (twice["offset"].rows == 2 * counts["offset"].rows).all()
    assert np.array_equal(twice["offset"].shares, counts["offset"].shares, equal_nan=True)


def test_places_are_the_ones_that_they_were_made_for() -> None:
    words = [" a", " b", ".", " a", " c", " b", ".", " zebra", " a", "</s>"] * 3
    n = len(words)
    made_for = {
        "sink": [words.index("</s>")] * n,
        "delimiter": [2] * n,
        "repeated": [next((j for j in range(n) if j != i and words[j] == words[i]), i) for i in range(n)],
        "rare": [words.index(" zebra")] * n,
    }
    for name, columns in made_for.items():
        counts = place_counts(made(pointing(columns, n), words))
        assert place_measure(counts[name]).reached, name
        assert place_measure(counts[name]).score > 0.85
        others = [other for other in made_for if other != name]
        assert not any(place_measure(counts[other]).reached for other in others), name
    even = place_counts(made(np.ones((1, n, n)), words))
    for name in ("sink", "delimiter", "repeated"):
        assert place_measure(even[name]).score == pytest.approx(place_measure(even[name]).chance)
    assert place_measure(even["sink"]).chance == pytest.approx(3 / n)


def test_the_first_position_is_a_sink_only_where_nothing_looks_ahead() -> None:
    words = [f" w{n}" for n in range(24)]
    for causal in (False, True):
        counts = place_counts(made(pointing([0] * 24, 24), words, causal=causal))
        assert place_measure(counts["sink"]).reached == causal


def test_the_diagonal_and_forward_movement_of_cross_attention() -> None:
    source, target = [f" s{n}" for n in range(24)], [f" t{n}" for n in range(24)]
    along = made(pointing(list(range(24)), 24), target, source)
    assert place_measure(place_counts(along)["diagonal"]).reached
    assert shape_counts(along)["monotone"].shares[0, 0] == 1.0
    back = made(pointing(list(range(23, -1, -1)), 24), target, source)
    assert shape_counts(back)["monotone"].shares[0, 0] == -1.0
    assert shape_counts(made(np.ones((1, 24, 24)), target))["broad"].shares[0, 0] == pytest.approx(1)


# ---- annotated words -------------------------------------------------------------------------------------------------

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
    counts: dict[str, Count] = {}
    for sentence in annotated_sentences():
        pieces = [f" {word}" for word in sentence.words]
        view = made(rng.random((4, len(pieces), len(pieces))), pieces)
        add_counts(counts, syntactic_counts(view, sentence, causal=False))
    for name in DIRECTIONS:
        baseline = best_offset_share(annotated_sentences(), name, causal=False)
        measure = counts[name].measure(0, arc_threshold(counts, name, best_offset=baseline))
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
    assert found["aligned_next"].shares[0, 0] == 1.0
    assert found["aligned_read"].shares[0, 0] == 0.0
    reading = alignment_counts(made(pointing([1, 0, 2, 1], 3), target, source), PAIR)
    assert reading["aligned_read"].shares[0, 0] == 1.0 and reading["aligned_next"].shares[0, 0] < 1.0
    assert found["aligned_next"].chances[0] == pytest.approx(1 / 3)


def test_only_words_with_a_sure_link_count_and_the_best_rule_is_the_fixed_one_that_finds_most() -> None:
    unsure = AlignedPair(PAIR.source, PAIR.target, frozenset({(0, 0), (1, 2)}), PAIR.possible)
    source, target = [" I", " see", " it"], ["<s>", " je", " le", " vois"]
    cases = (([0, 2, 1], PAIR, 3), ([0, 2, 1], unsure, 2), ([1, 1, 0], PAIR, 0), ([0, 0, 0], PAIR, 1))
    for links, pair, right in cases:
        found = alignment_counts(made(pointing([*links, 0], 3), target, source), pair)["aligned_next"]
        assert (found.total[0, 0], found.rows[0]) == (right, len(pair.sure))
    # the best rule is one word to the left, where the first word stays
    assert best_rule_precision([PAIR]) == pytest.approx(2 / 3)
