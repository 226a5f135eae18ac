"""Colours, numbers and axes; a figure as a plain dictionary equals Plotly's own."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from charts.toolkit import numbers, shades, sheet, style
from charts.toolkit.sheet import Sheet, bar, place_side_by_side, scatter, stack_panels, stacked_height
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


def test_sequential_scale_is_perceptually_even_and_holds_no_grey_that_could_be_a_masked_cell():
    points = np.array([_oklab(colour) for colour in style.SEQUENTIAL])
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert np.all(np.diff(points[:, 0]) > 0.03), "every step must be clearly lighter"
    assert steps.max() / steps.min() < 1.2
    assert min(np.hypot(*point[1:]) for point in points) > 0.05


@pytest.mark.parametrize(("scale", "outward"), [(style.DIVERGING, -1), (style.DIVERGING_ON_DARK, 1)])
def test_diverging_scales_are_symmetric_around_their_ground(scale, outward):
    """On a dark page zero is the background, and both arms grow lighter instead of darker."""
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]["dark"]
    points = np.array([_oklab(colour) for colour in scale])
    middle = len(points) // 2
    if outward < 0:
        assert np.hypot(*points[middle][1:]) < 0.01, "neutral"
    else:
        assert scale[middle] == theme["backgroundColor"].lower()
    np.testing.assert_allclose(points[:middle, 0], points[:middle:-1, 0], atol=0.03)
    assert np.all(outward * np.diff(points[middle:, 0]) > (0.04 if outward > 0 else 0))
    assert np.all(points[:middle, 2] < 0) and np.all(points[middle + 1 :, 2] > 0), "blue, then orange"


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


def test_token_axis_keeps_a_repeated_word_twice_and_escapes_it(tokens):
    axis = style.label_axis(tokens.displays, title="token")
    assert axis["tickvals"] == [0, 1, 2, 3, 4, 5, 6]
    assert axis["ticktext"][0] == "&lt;s&gt;"
    assert axis["ticktext"][1] == axis["ticktext"][6] == "·the"
    assert axis["autotickangles"][0] == 0
    assert style.label_rows(tokens.displays, title="token")["range"] == [6.5, -0.5]


def test_ink_is_white_on_dark_and_black_on_bright():
    assert shades.ink(0.0, colours=style.SEQUENTIAL) == "#FFFFFF"
    assert shades.ink(1.0, colours=style.SEQUENTIAL) == "#000000"
    assert shades.ink(0.5, colours=style.DIVERGING) == "#000000"
    assert shades.ink(0.0, colours=style.DIVERGING) == shades.ink(1.0, colours=style.DIVERGING) == "#FFFFFF"


# ---- figures as plain dictionaries -----------------------------------------------------------------------------------

STACKED = (
    stack_panels(["a", "", "c"], heights=[100, 50, 150], gap=30),
    {"rows": 3, "shared_xaxes": True, "row_heights": [100, 50, 150], "vertical_spacing": 30 / 360},
    ("yaxis", "xaxis", ["x3", "x3", None]),
)
BESIDE = (
    place_side_by_side(["a", "", "c"], widths=[1, 2, 1], spacing=0.05),
    {"cols": 3, "shared_yaxes": True, "column_widths": [1, 2, 1], "horizontal_spacing": 0.05},
    ("xaxis", "yaxis", [None, "y", "y"]),
)


@pytest.mark.parametrize(("sheet_", "grid", "axes"), [STACKED, BESIDE])
def test_panels_lie_where_plotly_would_put_them(sheet_, grid, axes):
    ours, theirs, (own, shared, matches) = sheet_.drawn(), make_subplots(**grid), axes
    for number in ("", "2", "3"):
        assert ours.layout[own + number].domain == pytest.approx(theirs.layout[own + number].domain)
    assert [ours.layout[shared + number].matches for number in ("", "2", "3")] == matches
    named = [note.text for note in ours.layout.annotations]
    assert named == ["<b>a</b>", "<b>c</b>"], "a panel without a name has no annotation"
    assert stacked_height([100, 50, 150], gap=30, around=40) == 400


def test_traces_and_settings_go_to_their_panel():
    sheet = Sheet(bar(x=[1], y=[2]), n_rows=2)
    sheet.add_trace(scatter(x=[1], y=[2]), row=2)
    sheet.update_yaxes(title_text="both", title_font_size=9)
    sheet.update_yaxes(title_text="lower", row=2)
    sheet.add_hline(y=3, line={"width": 1}, row=2)
    figure = sheet.drawn()
    assert [(trace.xaxis, trace.yaxis) for trace in figure.data] == [("x", "y"), ("x2", "y2")]
    assert (figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text) == ("both", "lower")
    assert figure.layout.yaxis2.title.font.size == 9, "a later setting keeps its neighbours"
    assert (figure.layout.shapes[0].xref, figure.layout.shapes[0].yref) == ("x2 domain", "y2")


def test_a_misspelt_setting_is_refused():
    with pytest.raises(ValueError, match="colour"):
        Sheet(bar(x=[1], y=[2], marker={"colour": "red"})).drawn()


def test_a_figure_that_is_not_checked_is_the_same(monkeypatch):
    def drawn():
        figure = stack_panels(["a", ""], heights=[100, 50])
        figure.add_trace(bar(x=np.arange(3), y=np.float32([1, 2, 3]), marker={"color": "red"}))
        figure.add_trace(scatter(x=[1], y=[2], hovertemplate="%{y}"), row=2)
        figure.update_yaxes(title_text="both", tickvals=(0, 1), range=(0, 3))
        style.finish(figure, height=300)
        return json.loads(figure.drawn().to_json())

    checked = drawn()
    monkeypatch.setattr(sheet, "VALIDATE", False)
    assert drawn() == checked
    Sheet(bar(x=[1], y=[2], marker={"colour": "red"})).drawn()  # nothing validates the figure here
