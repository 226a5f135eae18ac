"""What sections of pages compute for their figures and sentences."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from charts.toolkit import style
from tests.figures import causal_view, target  # noqa: F401
from transformer.predictions.answer_probabilities import Answer, AnswerPart
from views.add_norm.add_norm_sections import growth
from views.attention.one_cell import draw_products
from views.attention.steps import softmax_panels
from views.decoding.decoding_sections import candidate_bars
from views.overview.overview_sections import colour_blanks
from views.positions.positions_sections import _claim


def test_the_steps_of_a_row_leave_out_what_is_masked(causal_view) -> None:  # noqa: F811
    view = causal_view
    panels = softmax_panels(view.scores[1, 2], view.weights[1, 2], view.allowed[2])
    scores, left, powers, weights = (panel.series[0].values for panel in panels)
    np.testing.assert_array_equal(scores, view.scores[1, 2])
    np.testing.assert_allclose(powers[:3] / np.sum(powers[:3]), weights[:3], rtol=1e-5)
    assert all(np.isnan(values[3:]).all() for values in (left, powers, weights))
    assert len(softmax_panels(view.scores[0, 4], view.weights[0, 4], view.allowed[4])) == 3, "nothing is masked"
    hidden = softmax_panels(view.scores[0, 0], np.zeros(5), np.zeros(5, dtype=bool))
    assert np.isnan(hidden[2].series[0].values).all(), "a row without any key has no exponentials"


@pytest.mark.parametrize(
    ("is_of_the_paper", "bias", "score"), [(True, None, "1.5"), (True, 0.5, "2"), (False, None, "9")]
)
def test_products_add_up_to_the_score(is_of_the_paper: bool, bias: float | None, score: str) -> None:
    query, key = np.array([1.0, -2.0, 3.0, 0.5]), np.array([2.0, 1.0, 1.0, 0.0])
    rule = SimpleNamespace(is_of_the_paper=is_of_the_paper)
    figure = draw_products(SimpleNamespace(query=query, key=key, bias=bias, score=9.0, rule=rule), "a", "<s>")
    np.testing.assert_allclose(figure.data[2].y, [2, -2, 3, 0])
    assert figure.layout.annotations[1].text == "<b>k of &lt;s&gt;</b>"
    assert figure.layout.annotations[2].text.removesuffix("</b>").endswith(score)


def test_the_chosen_candidate_is_coloured_and_the_others_are_summed_up() -> None:
    rows = pd.DataFrame({"piece": ["a", "b"], "probability": [0.6, 0.3], "chosen": [False, True]})
    figure = candidate_bars(rows.assign(typed=[True, False]), across="p", chosen_name="chosen", rest=0.1)
    drawn = figure.data[0]
    assert list(drawn.marker.color) == [style.BAR, style.CHOSEN, style.MASKED]
    assert list(drawn.x) == pytest.approx([0.6, 0.3, 0.1]) and drawn.text[0] != "0.6" and drawn.text[1] == "0.3"
    assert [trace.name for trace in figure.data[1:]] == ["candidate", "chosen"]
    none = candidate_bars(rows.assign(chosen=False), across="p", chosen_name="chosen")
    assert len(none.data) == 1, "nothing to explain"


def test_growth_draws_one_token_last_but_for_the_mean() -> None:
    lengths = np.arange(6.0).reshape(3, 2)
    figure = growth(lengths, ["embedding", "0 <ff>", "1"], ["a", "b"], 0)
    other, chosen, mean = figure.data
    assert (other.line.color, chosen.name, chosen.line.color) == (style.QUIET, "a", style.CHOSEN)
    np.testing.assert_allclose((chosen.y, mean.y), (lengths[:, 0], lengths.mean(axis=1)))
    assert list(figure.layout.xaxis.ticktext)[1] == "0 &lt;ff&gt;"


SHOWS_KEYS = SimpleNamespace(md=lambda key, **values: key)


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [(0.781, 0.783, "equal"), (0.781, 0.7, "less"), (0.5, 0.6, "more"), (1e-9, 2e-9, "more"), (0.0, 0.0, "equal")],
)
def test_positions_calls_probabilities_within_five_percent_equal(before: float, after: float, how: str) -> None:
    answers = tuple(Answer("negative", (AnswerPart("negative", chance),)) for chance in (before, after))
    assert _claim(SHOWS_KEYS, answers, None, [1, 0]) == f"claim.order_same_{how}"
    assert _claim(SHOWS_KEYS, answers, (before, after), None) == f"claim.without_text_{how}"


@pytest.mark.parametrize(
    ("sentence", "tokens", "shown"),
    [
        ("On Sunday ___.", ["s"], "On Sunday:primary[**s**]."),
        ("The ___  cat ___ on it.", ["·old", "·sat"], "The :primary[**old**] cat :primary[**sat**] on it."),
        ("The ___ cat.", [], ""),
    ],
)
def test_only_a_token_that_begins_a_word_follows_a_space(sentence: str, tokens: list[str], shown: str) -> None:
    assert colour_blanks(sentence, tokens).replace("&#32;", " ").replace("\\", "") == shown
