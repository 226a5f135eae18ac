"""Colours, fonts, sizes, number formats and axes of every figure.

Colours mean the same everywhere: weights and probabilities on ``SEQUENTIAL`` fixed from 0 to 1, signed values on
``DIVERGING`` centred on 0, categories in ``CATEGORICAL``, masked cells in ``MASKED`` (always hatched). Text and
background follow the page's theme; what a figure draws itself is a grey that is readable on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit.numbers import in_percent, number, signs, whole

if TYPE_CHECKING:
    from charts.toolkit.sheet import Sheet

# Equal steps in OKLab, lightness 0.22 … 0.94: dark = little, bright = much. It contains no grey, which would look like
# a masked cell.
SEQUENTIAL = (
    *("#1d0f3e", "#241857", "#282570", "#2a3881", "#2a4b90", "#195e9c", "#00719f", "#0083a1", "#0295a3"),
    *("#01a5a3", "#02b79f", "#04c696", "#46d485", "#7ede75", "#abe665", "#d6ec56", "#fdf14e"),
)
# On white paper: from nothing (nearly white) to much (dark), in equal steps of OKLab, which also works in grey.
PRINT = (
    *("#f5fbff", "#dbeefc", "#c2e0f8", "#a9d3f4", "#90c5f0", "#78b6eb", "#60a7e7", "#4698e2", "#3c89d3", "#377bc0"),
    *("#316cae", "#2b5e9c", "#24518a", "#1e4479", "#173768", "#112b57", "#0a1f47"),
)
# Equal steps in OKLab from blue (negative) over near-white (0) to orange-brown (positive), both arms equally long.
DIVERGING = (
    *("#163583", "#1e4da0", "#2766bd", "#307fdb", "#5499e2", "#7ab1e6", "#a0c7ea", "#c8ddee", "#f2f2f2"),
    *("#eed5c2", "#eab894", "#e59967", "#df7835", "#d05b00", "#b24600", "#943200", "#771f00"),
)
# The same hues over the dark page's background (0): a picture full of small numbers does not glare there.
DIVERGING_ON_DARK = (
    *("#c6e1ff", "#9ac6ff", "#6fa9f3", "#498cdf", "#296fc3", "#10549f", "#093c75", "#0e2849", "#12161d"),
    *("#392117", "#5f2e0f", "#843e09", "#a75518", "#c67138", "#df905f", "#f2b28c", "#fdd5bd"),
)
# Okabe & Ito's set for every kind of colour vision; grey instead of its black, which is invisible on a dark page.
CATEGORICAL = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8A8D93")

MASKED = "#8A8D93"
NEUTRAL = "#7A7D85"  # text, marks and lines that must be readable on white and on black
GRID = "rgba(128,128,128,0.25)"
QUIET = "rgba(128,128,128,0.45)"  # present but not the point
PALE = "#C9CBD0"  # boxes with black text on either background
BAR = CATEGORICAL[0]
CHOSEN = CATEGORICAL[5]  # the token, row or candidate that the page is about
POSITIVE = DIVERGING[13]
NEGATIVE = DIVERGING[3]

# Quoted, since a bare font name with a number is invalid CSS, and Plotly would then measure another font.
FONT = "'Source Sans 3', 'Source Sans Pro', 'Noto Sans', 'DejaVu Sans', sans-serif"
TEXT_SIZE = 14
TICK_SIZE = 13
TITLE_SIZE = 15
MAX_LABELS = 40  # written labels of one axis
MAX_ROWS = 64  # rows, each as high as a line of text
ABOVE_NAMES = 24  # pixels by which a colour bar is raised if a panel's name is below it

HATCH = {"shape": "/", "fgcolor": MASKED, "bgcolor": "rgba(128,128,128,0.12)", "size": 8, "solidity": 0.2}
EXACT = ".9~g"  # d3 format: nine significant digits, enough to restore any float32

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%": "&#37;", "\n": "⏎", "\r": "⏎"})


def lines(*texts: str) -> str:
    """Join texts as lines."""
    return "<br>".join(texts)


def hover(*texts: str) -> str:
    """Return a hover text, line by line, without the name of the trace."""
    return f"{lines(*texts)}<extra></extra>"


def exact(place: str) -> str:
    """Return a placeholder for Plotly's number ``place`` ("x", "y", "customdata"), bold, with all digits."""
    return f"<b>%{{{place}:{EXACT}}}</b>"


def escape(text: str) -> str:
    """Escape text so that Plotly shows exactly these characters.

    Plotly reads some HTML in every text (``<s>`` would strike out what follows), TeX between dollars and placeholders
    after a per cent sign. Tokens are typed by the user, so all of this is escaped.
    """
    return str(text).translate(_ESCAPES)


def shorten(text: str, longest: int) -> str:
    """Shorten a text to at most ``longest`` characters; a shortened one ends in …."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def three_digits(value: float) -> str:
    """Format a number with three significant digits in the reader's notation: 0.0123, 12.3, 1,230.

    Rounded numbers keep their final zeros, 0.90004 is 0.900; exact ones stay short: 0.9. Whole numbers are counts and
    stay exact: ``three_digits(5993) == "5,993"``.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return whole(value)
    value = float(value)
    if 1000 <= abs(rounded := float(f"{value:.3g}")) < 1e6:
        return number(f"{rounded:,.0f}")
    return number(f"{value:.3g}" if rounded == value else f"{value:#.3g}".removesuffix("."))


def percent_digits(share: float) -> str:
    """Format a share of 1 in percent with three significant digits: 44.6% in English, 44,6 % in French."""
    return in_percent(three_digits(100 * share))


def signed(value: float) -> str:
    """Format three significant digits with a minus sign, or with a plus for positive numbers."""
    return ("−" if value < 0 else "+" if value > 0 else "") + three_digits(abs(value))


def three_digits_alike(values: Iterable[float]) -> list[str]:
    """Format the numbers of a list with equal decimals, as many as the largest needs: 0.601, 0.052.

    A number that would be shown as 0 keeps its own three digits.
    """
    listed = [float(value) for value in values]
    largest = max((abs(value) for value in listed if np.isfinite(value)), default=0.0)
    if not 1e-4 <= largest < 1e6:
        return [three_digits(value) for value in listed]
    decimals = 3 if 0.1 <= largest <= 1 else max(0, 2 - int(np.floor(np.log10(largest))))
    return [
        number(f"{value:,.{decimals}f}") if value == 0 or abs(value) >= 0.5 * 10**-decimals else three_digits(value)
        for value in listed
    ]


def colour_scale(colours: tuple[str, ...]) -> list[list[Any]]:
    """Return evenly spaced colours in the format of a Plotly colour scale."""
    return [[index / (len(colours) - 1), colour] for index, colour in enumerate(colours)]


def symmetric_limit(*arrays: np.ndarray) -> float:
    """Return the largest absolute value, the limit of a symmetric scale; 1 if all values are 0."""
    finite = [np.abs(array[np.isfinite(array)]) for array in map(np.asarray, arrays)]
    limit = max((float(values.max()) for values in finite if values.size), default=0.0)
    return limit if limit > 0 else 1.0


def category_colour(index: int) -> str:
    """Return the colour of the index-th category; colours repeat after eight."""
    return CATEGORICAL[index % len(CATEGORICAL)]


@lru_cache(maxsize=1)
def template() -> dict[str, Any]:
    """Return the template of all figures: transparent paper, neutral greys that Streamlit overrides."""
    axis = {
        "gridcolor": GRID,
        "linecolor": QUIET,
        "zerolinecolor": QUIET,
        "ticks": "",  # Plotly would give heatmaps ticks, and then misplace the title of the axis
        "automargin": True,
        "showgrid": True,
    }
    return {
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": FONT, "color": NEUTRAL, "size": TEXT_SIZE},
            "colorway": list(CATEGORICAL),
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"align": "left", "font": {"size": TEXT_SIZE}, "namelength": -1},
        }
    }


def finish(figure: Sheet | go.Figure, *, height: float, top: int = 24) -> None:
    """Give a figure its template, its height in pixels and font sizes that are readable from afar.

    ``top`` is the space in pixels above the plot, for a legend, a colour bar or the titles of panels.
    """
    figure.update_layout(
        template=template(),
        height=round(height),
        margin={"l": 8, "r": 16, "t": top, "b": 8, "pad": 2},
        font_size=TEXT_SIZE,
        bargap=0.25,
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "font": {"size": TEXT_SIZE},
        },
    )
    if (written := "".join(signs())) != ".,":
        figure.update_layout(separators=written)
    axis = {"tickfont_size": TICK_SIZE, "title_font_size": TEXT_SIZE, "title_standoff": 10}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    figure.update_annotations(font_size=TEXT_SIZE)


def label_axis(labels: Sequence[str], *, title: str) -> dict[str, Any]:
    """Return settings of an axis with ``labels[k]`` at position k; equal labels remain separate.

    Labels are horizontal as long as they fit, then slanted, then vertical. Beyond ``MAX_LABELS`` only every second,
    third … is shown, and more after zooming in; hovering shows any label.
    """
    shared = {
        "title_text": title,
        "autotickangles": [0, -45, -90],
        "tickfont_size": TICK_SIZE,
        "showgrid": False,
        "zeroline": False,
        "range": [-0.5, len(labels) - 0.5],
    }
    texts = [escape(label) for label in labels]
    if len(labels) <= MAX_LABELS:
        return {**shared, "tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": texts}
    # Plotly would draw every tick of a list, which takes seconds for 256 of them. Of categories it draws as many as
    # fit; the indices are the categories, because texts may be equal, and the texts are their labels.
    places = [str(index) for index in range(len(labels))]
    return {
        **shared,
        "type": "category",
        "categoryorder": "array",
        "categoryarray": places,
        "labelalias": dict(zip(places, texts, strict=True)),
        "tickmode": "auto",
        "nticks": MAX_LABELS,
        "tickfont_size": TICK_SIZE - 2,
    }


def label_rows(labels: Sequence[str], *, title: str) -> dict[str, Any]:
    """Return ``label_axis`` for a vertical axis, with the first label at the top."""
    return {**label_axis(labels, title=title), "range": [len(labels) - 0.5, -0.5]}


def rows_height(n_rows: int, *, around: int = 130) -> int:
    """Return a figure's height in pixels: 15 to 30 pixels per row, plus ``around``.

    More than ``MAX_ROWS`` rows share the space of that many, and can be zoomed into.
    """
    row = min(30.0, max(15.0, 360 / max(1, n_rows)))
    return round(min(n_rows * row, MAX_ROWS * 15.0) + around)


def colour_bar(title: str, **more: Any) -> dict[str, Any]:
    """Return a colour bar at the top right, where no window width clips its title.

    If the panels have names, ``ypad=ABOVE_NAMES`` raises it above them.
    """
    return {
        "title": {"text": title, "side": "top", "font": {"size": TICK_SIZE}},
        "orientation": "h",
        "thickness": 10,
        "len": 0.45,
        "x": 1,
        "xanchor": "right",
        "y": 0.999,  # at exactly 1, Plotly 4 shifts the titles of the axes by half the bar's height
        "yanchor": "bottom",
        "ypad": 4,
        "xpad": 0,
        "outlinewidth": 0,
        "tickfont": {"size": TICK_SIZE - 1},
        "tickangle": 0,
        "nticks": 5,
        **more,
    }
