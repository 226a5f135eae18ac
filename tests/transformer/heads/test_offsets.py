"""A head made for one offset scores 1 there, one without a preference scores chance; plain loops say the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transformer.heads.attention import WORDS, made, pointing
from transformer.heads.offsets import OFFSETS, positional_measures, positional_tallies, profile
from transformer.heads.places import least_share, place_tallies
from transformer.heads.shapes import shape_tallies
from transformer.heads.tally import Measure, Tally, added

N = len(WORDS)


def place_measure(tally: Tally) -> Measure:
    return tally.measure(0, least_share(float(tally.chances[0])))


@pytest.mark.parametrize("offset", [-5, -1, 1, 2])
def test_a_head_of_one_offset_scores_one(offset: int) -> None:
    view = made(pointing([min(N - 1, max(0, i + offset)) for i in range(N)], N), WORDS)
    measures, where = positional_measures(positional_tallies(view), 0)
    assert measures["offset"].score == 1.0 and where["offset"] == offset and measures["offset"].reached
    assert measures["same"].score == 0.0 and measures["window"].score == 1.0
    assert measures["offset"].chance == pytest.approx(1 / N)
    shares = profile(positional_tallies(view), 0)
    assert shares[offset] == pytest.approx(0.9 + 0.1 / N) and max(shares, key=shares.get) == offset


def test_the_token_itself_is_no_offset() -> None:
    measures, _ = positional_measures(positional_tallies(made(pointing(list(range(N)), N), WORDS)), 0)
    assert measures["same"].score == 1.0 and measures["same"].reached
    assert measures["offset"].score == 0.0 and not measures["offset"].reached


def test_the_last_three_tokens_are_a_window_and_no_offset() -> None:
    columns = [max(0, i - i % 3) for i in range(N)]
    measures, where = positional_measures(positional_tallies(made(pointing(columns, N), WORDS, causal=True)), 0)
    assert measures["window"].score == 1.0 and where["window"] == -2 and measures["window"].reached
    assert not measures["offset"].reached and not measures["same"].reached


def test_random_attention_is_at_chance() -> None:
    view = made(np.random.default_rng(0).random((200, N, N)), WORDS)
    tallies = positional_tallies(view)
    for name, places in (("offset", (-3, 0, 2)), ("window", (-2, 1))):
        for place in places:
            at = OFFSETS.index(place)
            assert tallies[name].shares[:, at].mean() == pytest.approx(tallies[name].chances[at], abs=0.01)
    assert not any(positional_measures(tallies, head)[0]["offset"].reached for head in range(200))


def test_the_rows_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(1)
    words = ["<s>", " a", " b", " c", " d", " e", "</s>"]
    for causal in (False, True):
        view = made(rng.random((2, 7, 7)), words, causal=causal)
        tallies = positional_tallies(view)
        for place, offset in enumerate(OFFSETS):
            rows = [i for i in range(1, 6) if 1 <= i + offset <= 5 and (not causal or offset <= 0)]
            assert tallies["offset"].rows[place] == len(rows)
            hits = [sum(view.weights[head, i].argmax() == i + offset for i in rows) for head in (0, 1)]
            assert tallies["offset"].total[:, place].tolist() == hits
            weights = [sum(view.weights[head, i, i + offset] for i in rows) for head in (0, 1)]
            np.testing.assert_allclose(tallies["profile"].total[:, place], weights)
            assert tallies["offset"].chance[place] == pytest.approx(sum(1 / (i + 1 if causal else 7) for i in rows))


def test_sentences_add_up_and_a_far_offset_of_few_rows_does_not_count() -> None:
    short = made(pointing([0] * 6, 6), [f" w{n}" for n in range(6)])  # rests on its first token
    tallies = positional_tallies(short)
    assert tallies["offset"].shares[0, OFFSETS.index(-5)] == 1.0  # one row has it
    measures, where = positional_measures(tallies, 0)
    assert where["offset"] > -5 and measures["offset"].score < 0.5
    twice = added(tallies, tallies)
    assert (twice["offset"].rows == 2 * tallies["offset"].rows).all()
    assert np.array_equal(twice["offset"].shares, tallies["offset"].shares, equal_nan=True)


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
        tallies = place_tallies(made(pointing(columns, n), words))
        assert place_measure(tallies[name]).reached, name
        assert place_measure(tallies[name]).score > 0.85
        others = [other for other in made_for if other != name]
        assert not any(place_measure(tallies[other]).reached for other in others), name
    even = place_tallies(made(np.ones((1, n, n)), words))
    for name in ("sink", "delimiter", "repeated"):
        assert place_measure(even[name]).score == pytest.approx(place_measure(even[name]).chance)
    assert place_measure(even["sink"]).chance == pytest.approx(3 / n)


def test_the_first_position_is_a_sink_only_where_nothing_looks_ahead() -> None:
    words = [f" w{n}" for n in range(24)]
    for causal in (False, True):
        tallies = place_tallies(made(pointing([0] * 24, 24), words, causal=causal))
        assert place_measure(tallies["sink"]).reached == causal


def test_the_diagonal_and_forward_movement_of_cross_attention() -> None:
    source, target = [f" s{n}" for n in range(24)], [f" t{n}" for n in range(24)]
    along = made(pointing(list(range(24)), 24), target, source)
    assert place_measure(place_tallies(along)["diagonal"]).reached
    assert shape_tallies(along)["monotone"].shares[0, 0] == 1.0
    back = made(pointing(list(range(23, -1, -1)), 24), target, source)
    assert shape_tallies(back)["monotone"].shares[0, 0] == -1.0
    assert shape_tallies(made(np.ones((1, 24, 24)), target))["broad"].shares[0, 0] == pytest.approx(1)
