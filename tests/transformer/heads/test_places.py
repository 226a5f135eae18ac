"""Heads made by hand must get the role they were made for; heads without one must say so."""

from __future__ import annotations

import math

import numpy as np
import pytest

from transformer.heads.head_jobs import ROLES
from transformer.heads.places import LEAST_SHARE, diagonal_band, place_shares
from transformer.heads.sentence_roles import choose_role, head_roles
from transformer.heads.shapes import monotonicity
from transformer.heads.tally import counted_rows
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import Token, TokenSequence

WORDS = ("<s>", "·the", "·cat", "·and", "·the", "·dog", "·run", ".", "</s>")


def sequence(words: tuple[str, ...]) -> TokenSequence:
    special = {"<s>", "</s>", "<pad>"}
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    return TokenSequence(
        tuple(
            Token(i, ids[word], word.replace("·", " "), word, word in special, "pad" if word == "<pad>" else "")
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
    """A layer with the given heads, [head, query, key]; rows are made to sum to 1 over what is allowed."""
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
    """[query, key]: each row gives ``share`` to one column and the rest evenly to the others."""
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
    assert found.scores["distance"] == pytest.approx((N - 1) / N)  # the first row looks at itself, distance 0
    assert found.scores["entropy"] == 0.0


def test_a_first_token_that_is_a_word_is_first_and_one_that_is_special_is_a_sink() -> None:
    words = ("·go", "·home", "·to", "·the", "·cat")
    assert head_roles(view(looks_at([0] * 5, 5)[None], query=words))[0].role == "first"
    assert head_roles(view(looks_at([0] * N, N)[None]))[0].role == "sink"


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
    columns = [4, 7, 0, 2, 8, 1, 5, 3, 6]  # sharp, but at no place that has a name
    found = head_roles(view(looks_at(columns, N)[None]))[0]
    assert found.role == "none"
    assert math.isnan(found.score)


def test_what_cannot_be_looked_at_has_no_score() -> None:
    causal = np.tril(np.ones((N, N), dtype=bool))
    shares, _ = place_shares(view(looks_at(MADE_BY_HAND["previous"], N)[None], allowed=causal))
    assert np.isnan(shares["next"]).all()
    assert shares["previous"][0] > LEAST_SHARE


def test_rows_without_a_choice_and_rows_of_padding_do_not_count() -> None:
    causal = np.tril(np.ones((N, N), dtype=bool))
    assert counted_rows(view(np.ones((1, N, N)), allowed=causal)).tolist() == [False] + [True] * (N - 1)
    words = (*WORDS[:5], "<pad>", "<pad>")
    allowed = np.ones((7, 7), dtype=bool)
    allowed[:, 5:] = False
    padded = view(np.ones((1, 7, 7)), query=words, allowed=allowed)
    assert counted_rows(padded).tolist() == [True] * 5 + [False] * 2
    # What the padding rows do changes no number.
    other = np.ones((1, 7, 7))
    other[0, 5:, 0] = 99.0
    for name, values in place_shares(padded)[0].items():
        np.testing.assert_array_equal(values, place_shares(view(other, query=words, allowed=allowed))[0][name])


def test_a_sentence_too_short_to_tell_gives_no_role() -> None:
    found = head_roles(view(looks_at([0, 0], 2)[None], query=("·go", "</s>")))[0]
    assert found.role == "none"
    assert all(math.isnan(value) for value in found.scores.values())


def test_a_share_that_chance_explains_is_no_role() -> None:
    words = ("·a", "!", "!", "!", "!", "!")  # five sixths of everything are punctuation
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
