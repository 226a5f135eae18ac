"""Colours, numbers and axes."""

from __future__ import annotations

import tomllib

import numpy as np
import plotly.graph_objects as go
import pytest

from charts.toolkit import numbers, shades, style
from tests.conftest import ROOT


def _oklab(colour: str) -> np.ndarray:
    """Return Björn Ottosson's OKLab of a #rrggbb colour: lightness, green–red, blue–yellow."""
    srgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    red, green, blue = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    long = np.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = np.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = np.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return np.array(
        [
            0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
            1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
            0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
        ]
    )


def test_sequential_scale_is_perceptually_even():
    points = np.array([_oklab(colour) for colour in style.SEQUENTIAL])
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert np.all(np.diff(points[:, 0]) > 0.03), "every step must be clearly lighter"
    assert steps.max() / steps.min() < 1.2


def test_sequential_scale_holds_no_grey_that_could_be_a_masked_cell():
    assert min(np.hypot(*_oklab(colour)[1:]) for colour in style.SEQUENTIAL) > 0.05


def test_diverging_scale_is_symmetric_around_a_neutral_middle():
    points = np.array([_oklab(colour) for colour in style.DIVERGING])
    middle = len(points) // 2
    assert np.hypot(*points[middle][1:]) < 0.01
    np.testing.assert_allclose(points[:middle, 0], points[:middle:-1, 0], atol=0.03)
    assert np.all(np.diff(points[: middle + 1, 0]) > 0)
    assert np.all(points[:middle, 2] < 0), "negative is blue"
    assert np.all(points[middle + 1 :, 2] > 0), "positive is orange"


def test_on_a_dark_page_zero_is_the_background_and_both_arms_grow_lighter() -> None:
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]["dark"]
    points = np.array([_oklab(colour) for colour in style.DIVERGING_ON_DARK])
    middle = len(points) // 2
    assert style.DIVERGING_ON_DARK[middle] == theme["backgroundColor"].lower()
    np.testing.assert_allclose(points[:middle, 0], points[:middle:-1, 0], atol=0.03)
    assert np.all(np.diff(points[middle:, 0]) > 0.04)
    assert np.all(points[:middle, 2] < 0) and np.all(points[middle + 1 :, 2] > 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123456, "0.0123"),
        (-12.3456, "−12.3"),
        (1234.5, "1,230"),
        (999.9, "1,000"),
        (0.0, "0"),
        (0.90004, "0.900"),
        (0.9, "0.9"),
        (7.9996, "8.00"),
        (8.0, "8"),
        (99.99, "100"),
        (1.234e-5, "1.23·10⁻⁵"),
        (-4.2e9, "−4.2·10⁹"),
        (5993, "5,993"),
        (float("nan"), "nan"),
    ],
)
def test_three_digits(value, text):
    assert style.three_digits(value) == text


@pytest.fixture
def in_french(monkeypatch):
    monkeypatch.setattr(numbers, "_language", lambda: "fr")


def test_numbers_have_the_signs_of_the_language(in_french):
    """In French, "6,000 entrées" would be read as six."""
    assert style.three_digits(6000) == numbers.whole(6000) == "6\u202f000"
    assert numbers.whole(6000, language="en") == "6,000"
    assert style.three_digits(0.5678) == "0,568" and style.three_digits(1234.5) == "1\u202f230"
    assert style.three_digits(9.85e-5) == "9,85·10⁻⁵"
    assert numbers.percent(0.435, decimals=1).replace("\u202f", "\xa0") == "43,5\xa0%"
    assert numbers.number("-1,234.5e-05") == "−1\u202f234,5·10⁻⁵" and numbers.latex_notation("−1") == "-1"
    assert (
        numbers.latex_notation("1\u202f230,5") == r"1\,230{,}5"
        and numbers.latex_notation("9,85·10⁻⁵") == r"9{,}85 \cdot 10^{-5}"
    )
    figure = go.Figure()
    style.finish(figure, height=100)
    assert figure.layout.separators == ",\u202f"


def test_percent_in_english_and_signs_of_an_unknown_language():
    assert numbers.percent(0.43) == "43%"
    assert numbers.whole(6000, language="xx-nothing") == "6,000"


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((0.601, 0.219, 0.0523), ["0.601", "0.219", "0.052"]),
        ((0.9, 0.96, 0.000012, 0.0), ["0.900", "0.960", "1.2·10⁻⁵", "0.000"]),
        ((1234.5, -12.34), ["1,234", "−12"]),
        ((12.34, 1.0), ["12.3", "1.0"]),
        ((1e-5, 2e-6), [style.three_digits(1e-5), style.three_digits(2e-6)]),
        ((), []),
    ],
)
def test_the_numbers_of_a_list_have_the_same_decimals(values, texts):
    assert style.three_digits_alike(values) == texts


def test_escape_leaves_nothing_that_plotly_would_interpret():
    assert style.escape("<s>") == "&lt;s&gt;"
    assert style.escape("$a$ %{x} & \n") == "&#36;a&#36; &#37;{x} &amp; ⏎"


def test_symmetric_limit():
    assert style.symmetric_limit(np.array([-3.0, 2.0]), np.array([1.0])) == 3.0
    assert style.symmetric_limit(np.zeros(3)) == 1.0
    assert style.symmetric_limit(np.array([np.nan, -0.5])) == 0.5


def test_token_axis_keeps_a_repeated_word_twice_and_escapes_it(tokens):
    axis = style.token_axis(tokens, title="token")
    assert axis["tickvals"] == [0, 1, 2, 3, 4, 5, 6]
    assert axis["ticktext"][0] == "&lt;s&gt;"
    assert axis["ticktext"][1] == axis["ticktext"][6] == "·the"
    assert axis["autotickangles"][0] == 0
    assert style.token_rows(tokens, title="token")["range"] == [6.5, -0.5]


def test_ink_is_white_on_dark_and_black_on_bright():
    assert shades.ink(0.0, colours=style.SEQUENTIAL) == "#FFFFFF"
    assert shades.ink(1.0, colours=style.SEQUENTIAL) == "#000000"
    assert shades.ink(0.5, colours=style.DIVERGING) == "#000000"
    assert shades.ink(0.0, colours=style.DIVERGING) == shades.ink(1.0, colours=style.DIVERGING) == "#FFFFFF"


def test_rows_height_grows_with_rows_and_stays_small_for_few():
    assert style.rows_height(1) < style.rows_height(10) < style.rows_height(100)
    assert style.rows_height(2) < 250
