"""Hand-made heads get the role that they were made for, and heads without one get none.

A head with a fixed offset scores 1 for it, one without a preference scores chance; plain loops give the same.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.transformer.heads.attention import WORDS as TEXT
from tests.transformer.heads.attention import made, pointing
from transformer.heads.head_roles import choose_role, head_roles
from transformer.heads.role_measures import ROLES
from transformer.heads.weight_patterns import (
    LEAST_SHARE,
    OFFSETS,
    Count,
    Measure,
    add_counts,
    counted_rows,
    diagonal_band,
    least_share,
    monotonicity,
    place_counts,
    positional_counts,
    positional_measures,
    profile,
    sentence_counts,
    shape_counts,
)
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence

WORDS = ("<s>", "·the", "·cat", "·and", "·the", "·dog", "·run", ".", "</s>")


def sequence(words: tuple[str, ...]) -> TokenSequence:
    special = {"<s>": "start", "</s>": "end", "<pad>": "pad", "<mask>": "mask"}
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return TokenSequence(
        tuple(
            Token(i, ids[word], word.replace("·", " "), word, word in special, special.get(word, ""))
            for i, word in enumerate(words)
        )
    )


def view(
    weights: np.ndarray,
    *,
    query: tuple[str, ...] = WORDS,
    key: tuple[str, ...] | None = None,
    kind: str = "self",
    allowed: np.ndarray | None = None,
) -> AttentionView:
    """Return a layer with the given heads, [head, query, key], normalised over allowed keys."""
    key = query if key is None else key
    if allowed is None:
        allowed = np.ones((len(query), len(key)), dtype=bool)
    weights = np.asarray(weights, dtype=np.float64) * allowed
    return AttentionView(
        name="encoder.layers.0.self_attention",
        stack="decoder" if kind == "cross" else "encoder",
        layer=0,
        kind=kind,
        weights=weights / weights.sum(axis=-1, keepdims=True),
        allowed=allowed,
        scores=np.zeros(weights.shape),
        query=sequence(query),
        key=sequence(key),
    )


def looks_at(columns: list[int], n_keys: int, *, share: float = 0.9) -> np.ndarray:
    """Return [query, key] in which each row gives ``share`` to one column, the rest evenly to others."""
    weights = np.full((len(columns), n_keys), (1 - share) / (n_keys - 1))
    weights[np.arange(len(columns)), columns] = share
    return weights


N = len(WORDS)
MADE_BY_HAND = {
    "previous": [max(0, i - 1) for i in range(N)],
    "next": [min(N - 1, i + 1) for i in range(N)],
    "same": list(range(N)),
    "sink": [N - 1] * N,
    "punctuation": [7] * N,
}


@pytest.mark.parametrize("role", MADE_BY_HAND)
def test_a_head_made_for_a_place_gets_that_role(role: str) -> None:
    found = head_roles(view(looks_at(MADE_BY_HAND[role], N)[None]))[0]
    assert found.role == role
    assert found.score == pytest.approx(0.9, abs=0.02)


def test_a_head_that_copies_the_previous_token_has_share_one() -> None:
    weights = np.zeros((1, N, N))
    weights[0, np.arange(1, N), np.arange(N - 1)] = 1.0
    weights[0, 0, 0] = 1.0
    found = head_roles(view(weights))[0]
    assert (found.role, found.score) == ("previous", 1.0)
    assert found.scores["next"] == 0.0
    assert found.scores["distance"] == pytest.approx((N - 1) / N)  # the first row attends to itself, distance 0
    assert found.scores["entropy"] == 0.0


def test_a_first_token_that_is_a_word_is_first_and_one_that_is_special_is_a_sink() -> None:
    words = ("·go", "·home", "·to", "·the", "·cat")
    assert head_roles(view(looks_at([0] * 5, 5)[None], query=words))[0].role == "first"
    assert head_roles(view(looks_at([0] * N, N)[None]))[0].role == "sink"


def test_a_head_on_the_blank_is_at_no_sink() -> None:
    words = ("<s>", "·they", "·washed", "<mask>", "·hands", "</s>")
    on_blank = view(looks_at([3] * 6, 6)[None], query=words)
    found = head_roles(on_blank)[0]
    assert found.role == "none"
    assert found.scores["sink"] == found.scores["sinks"] == pytest.approx(2 * 0.1 / 5)
    assert found.scores["confidence"] == pytest.approx(0.9), "it is confident about the blank"
    assert on_blank.sinks.tolist() == [True, False, False, False, False, True]


def test_a_head_that_looks_for_the_same_word_elsewhere() -> None:
    words = ("·a", "·b", "·c", "·a", "·b", "·c")
    found = head_roles(view(looks_at([3, 4, 5, 0, 1, 2], 6)[None], query=words))[0]
    assert found.role == "repeated"


def test_even_attention_is_broad_and_its_entropy_is_the_largest() -> None:
    found = head_roles(view(np.ones((1, N, N))))[0]
    assert found.role == "broad"
    assert found.score == pytest.approx(1.0)
    assert found.scores["entropy"] == pytest.approx(math.log2(N))


def test_a_head_without_a_clear_role_says_so() -> None:
    columns = [4, 7, 0, 2, 8, 1, 5, 3, 6]  # sharp, but to no kind of position with a name
    found = head_roles(view(looks_at(columns, N)[None]))[0]
    assert found.role == "none"
    assert math.isnan(found.score)


def test_what_cannot_be_looked_at_has_no_score() -> None:
    causal = np.tril(np.ones((N, N), dtype=bool))
    counts = sentence_counts(view(looks_at(MADE_BY_HAND["previous"], N)[None], allowed=causal))
    assert np.isnan(counts["next"].shares).all()
    assert counts["previous"].shares[0, 0] > LEAST_SHARE


def test_rows_without_a_choice_and_rows_of_padding_do_not_count() -> None:
    causal = np.tril(np.ones((N, N), dtype=bool))
    assert counted_rows(view(np.ones((1, N, N)), allowed=causal)).tolist() == [False] + [True] * (N - 1)
    words = (*WORDS[:5], "<pad>", "<pad>")
    allowed = np.ones((7, 7), dtype=bool)
    allowed[:, 5:] = False
    padded = view(np.ones((1, 7, 7)), query=words, allowed=allowed)
    assert counted_rows(padded).tolist() == [True] * 5 + [False] * 2
    # The rows of padding change no number.
    other = np.ones((1, 7, 7))
    other[0, 5:, 0] = 99.0
    others = sentence_counts(view(other, query=words, allowed=allowed))
    for name, found in sentence_counts(padded).items():
        np.testing.assert_array_equal(found.shares, others[name].shares)


def test_a_sentence_too_short_to_tell_gives_no_role() -> None:
    found = head_roles(view(looks_at([0, 0], 2)[None], query=("·go", "</s>")))[0]
    assert found.role == "none"
    assert all(math.isnan(value) for value in found.scores.values())


def test_a_share_that_chance_explains_is_no_role() -> None:
    words = ("·a", "!", "!", "!", "!", "!")  # five sixths of all tokens are punctuation
    sharp = looks_at([1, 2, 1, 5, 3, 4], 6)[None]
    scores = head_roles(view(sharp, query=words))[0]
    assert scores.scores["punctuation"] > LEAST_SHARE
    assert scores.role != "punctuation"


def test_cross_attention_along_the_diagonal() -> None:
    query, key = ("<s>", "·le", "·chat", "·dort"), ("·the", "·cat", "·now", "·is", "·asleep", ".", "</s>")
    found = head_roles(view(looks_at([0, 2, 4, 6], 7)[None], query=query, key=key, kind="cross"))[0]
    assert found.role == "diagonal"
    assert found.scores["monotone"] == pytest.approx(1.0)
    assert math.isnan(found.scores["distance"])
    assert "previous" not in found.scores


def test_cross_attention_that_moves_forward_off_the_line_is_monotone() -> None:
    query = ("<s>", "·le", "·chat", "·dort", "·ici", "·ce")
    key = tuple(f"·w{i}" for i in range(12))
    found = head_roles(view(looks_at([0, 0, 0, 1, 1, 2], 12)[None], query=query, key=key, kind="cross"))[0]
    assert found.scores["first"] < LEAST_SHARE
    assert found.role == "monotone"


def test_padding_is_no_part_of_the_diagonal() -> None:
    query, key = ("<s>", "·le", "·chat"), ("·the", "·cat", "</s>", "<pad>", "<pad>", "<pad>", "<pad>")
    allowed = np.ones((3, 7), dtype=bool)
    allowed[:, 3:] = False
    found = head_roles(view(looks_at([0, 1, 2], 7)[None], query=query, key=key, kind="cross", allowed=allowed))[0]
    assert found.scores["diagonal"] > 0.95


def test_monotonicity_is_kendalls_tau_b() -> None:
    forward, backward, still = [0, 1, 2, 3], [3, 2, 1, 0], [2, 2, 2, 2]
    weights = np.stack([looks_at(columns, 4) for columns in (forward, backward, still, [0, 2, 1, 3], [0, 0, 1, 1])])
    found = monotonicity(weights)
    # (5 − 1) / 6, and with ties (4 − 0) / √(6 · 4)
    np.testing.assert_allclose(found, [1.0, -1.0, 0.0, 4 / 6, 4 / math.sqrt(24)])


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


@pytest.mark.parametrize("offset", [-5, -1, 1, 2])
def test_a_head_of_one_offset_scores_one(offset: int) -> None:
    view = made(pointing([min(LENGTH - 1, max(0, i + offset)) for i in range(LENGTH)], LENGTH), TEXT)
    measures, where = positional_measures(positional_counts(view), 0)
    assert measures["offset"].score == 1.0 and where["offset"] == offset and measures["offset"].reached
    assert measures["same"].score == 0.0 and measures["window"].score == 1.0
    assert measures["offset"].chance == pytest.approx(1 / LENGTH)
    shares = profile(positional_counts(view), 0)
    assert shares[offset] == pytest.approx(0.9 + 0.1 / LENGTH) and max(shares, key=shares.get) == offset


def test_the_token_itself_is_no_offset() -> None:
    measures, _ = positional_measures(positional_counts(made(pointing(list(range(LENGTH)), LENGTH), TEXT)), 0)
    assert measures["same"].score == 1.0 and measures["same"].reached
    assert measures["offset"].score == 0.0 and not measures["offset"].reached


def test_the_last_three_tokens_are_a_window_and_no_offset() -> None:
    columns = [max(0, i - i % 3) for i in range(LENGTH)]
    measures, where = positional_measures(positional_counts(made(pointing(columns, LENGTH), TEXT, causal=True)), 0)
    assert measures["window"].score == 1.0 and where["window"] == -2 and measures["window"].reached
    assert not measures["offset"].reached and not measures["same"].reached


def test_random_attention_is_at_chance() -> None:
    view = made(np.random.default_rng(0).random((200, LENGTH, LENGTH)), TEXT)
    counts = positional_counts(view)
    for name, places in (("offset", (-3, 0, 2)), ("window", (-2, 1))):
        for place in places:
            at = OFFSETS.index(place)
            assert counts[name].shares[:, at].mean() == pytest.approx(counts[name].chances[at], abs=0.01)
    assert not any(positional_measures(counts, head)[0]["offset"].reached for head in range(200))


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
            weights = [sum(view.weights[head, i, i + offset] for i in rows) for head in (0, 1)]
            np.testing.assert_allclose(counts["profile"].total[:, place], weights)
            assert counts["offset"].chance[place] == pytest.approx(sum(1 / (i + 1 if causal else 7) for i in rows))


def test_sentences_add_up_and_a_far_offset_of_few_rows_does_not_count() -> None:
    short = made(pointing([0] * 6, 6), [f" w{n}" for n in range(6)])  # attends mainly to its first token
    counts = positional_counts(short)
    assert counts["offset"].shares[0, OFFSETS.index(-5)] == 1.0  # only one row has this offset
    measures, where = positional_measures(counts, 0)
    assert where["offset"] > -5 and measures["offset"].score < 0.5
    twice = add_counts(counts, counts)
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
