"""Figures, tables, formulas and code, shown in the same way on every page, with exports."""

import inspect
import pickle
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.altair_numbers import localize_numbers
from charts.toolkit.figure_table import figure_table
from charts.toolkit.numbers import number, signs, whole
from charts.toolkit.words import localize
from ui.compute.loading import REPOSITORY
from ui.compute.store import FIGURE, store
from ui.shell.focus import is_presenting
from ui.shell.fragments import fragment
from ui.show.exports import as_csv, exports, figure_kind
from ui.words.texts import common

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

Row = TypeVar("Row")
ARITHMETIC = "%.6g"  # six significant digits, as in ``ui.show.score_formula``
# A bar that is always there, and a fade at an edge behind which there is more (its animation runs with the scrolling).
_SCROLLS = (
    "overflow-x: auto; scrollbar-width: thin; animation: gf-more-right linear both;"
    " animation-timeline: scroll(self inline);"
)
_MORE = (
    "@keyframes gf-more-right { from { mask: linear-gradient(to left, transparent, black 48px); }"
    " to { mask: linear-gradient(to left, black, black 48px); } }"
)
_MAX_STYLED = 20_000  # cells; a larger table keeps the browser's notation
_MARKS = re.compile(r":color\[\]\{\}|[*_`$\\]")  # markup of Markdown, and what ``as_plain`` adds


def show_figure(
    figure: Any,
    *,
    name: str,
    caption: str = "",
    alt: str = "",
    room: int = 0,
    about: float = 0,
    narrow: Any = None,
) -> None:
    """Show a Plotly or Altair figure over the full width, with its numbers and exports.

    Args:
        figure: The figure.
        name: Name of the exported files, hyphenated and unique on its page.
        caption: Markdown below the figure.
        alt: Description for readers who cannot see it; by default its caption.
        room: Pixels that its text needs; in a narrower window the figure scrolls sideways.
        about: Horizontal position, 0…1, of what the page describes; a narrower window first scrolls there.
        narrow: A Plotly figure of its most important part, which a phone shows in its place; table and exports are
            those of the whole figure.
    """
    kind, alt = figure_kind(figure), alt or _MARKS.sub("", caption)
    if kind == "altair":
        figure = localize_numbers(figure)
    with st.container(key=f"figure {name}", gap="xsmall"):
        if room:
            _scroll_sideways(name, room, about, only_here=narrow is not None)
        if kind == "plotly":
            st.plotly_chart(
                figure,
                key=f"chart {name}",
                alt=alt or None,
                config={"displaylogo": False, "toImageButtonOptions": {"format": "png", "filename": name, "scale": 2}},
            )
            if narrow is not None:
                st.plotly_chart(narrow, key=f"chart {name} narrow", alt=alt or None, config={"displayModeBar": False})
        else:
            st.altair_chart(figure, key=f"chart {name}", alt=alt or None)
        _below(_keep(figure), kind=kind, name=name, caption=caption)


@dataclass(frozen=True)
class _Kept:
    """A figure in the store; ``n_bytes`` is its size there."""

    figure: Any
    n_bytes: int


def _scroll_sideways(name: str, room: int, about: float, *, only_here: bool = False) -> None:
    """Add the style of one figure beside it, since it may be in a fragment (``ui.shell.fragments``).

    With ``only_here``, a phone shows another figure in its place.
    """
    chart, own = f".st-key-chart-{name}", f".st-key-figure-{name} > [data-testid='stElementContainer']"
    swap = (
        f"@media (max-width: 40rem) {{ {chart} {{ display: none; }} }}"
        f" @media (min-width: 40.01rem) {{ {chart}-narrow {{ display: none; }} }}"
    )
    st.html(
        f"<i></i><style>{swap if only_here else ''} {_MORE} {chart} {{ {_SCROLLS} --about: {about:.2f}; }}"
        f"{own}:has(> .stHtml > style) {{ display: none; }}"
        f"{chart} [data-testid='stFullScreenFrame'] {{ min-width: {room}px; }}</style>"
    )


def _keep(figure: Any) -> str:
    """Keep a figure in the store, and return the name by which it is found there."""
    # a digest names the figure and its size is counted; the figure itself is kept
    packed = pickle.dumps(figure, protocol=5)
    digest = blake2b(packed, digest_size=16).hexdigest()
    store.get(digest, FIGURE, lambda: _Kept(figure, len(packed)))
    return digest


@fragment
def _below(digest: str, *, kind: str, name: str, caption: str) -> None:
    """Draw the caption and, under "…", table and exports, as a fragment that creates them only on demand."""
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        if caption:
            st.caption(caption)
        more = {"help": common("show.more"), "key": f"more of {name}", "on_change": "rerun"}
        with st.popover("…", type="tertiary", **more) as menu:
            as_table = st.toggle(common("show.table"), key=f"as table {name}")
            if menu.open:
                exports(_kept(digest), kind=kind, name=name)
    if as_table:
        show_table(figure_table(_kept(digest)), name=f"of-{name}", height=320)


def _kept(digest: str) -> Any:
    """Return the figure of that name; if the store has dropped it, the page runs again and keeps it."""
    kept: _Kept | None = store.known(digest, FIGURE)
    if kept is None:
        st.rerun()
    return kept.figure


def show_table(
    table: pd.DataFrame,
    *,
    name: str,
    caption: str = "",
    height: int | str = "auto",
    arithmetic: bool = False,
    **options: Any,
) -> Any:
    """Show a table over the full width: three significant digits on the screen, full precision in its CSV.

    Args:
        table: The table; its headings are English or texts of the page, and are localized.
        name: As in ``show_figure``.
        caption: Markdown below the table.
        height: Height in pixels, or "auto".
        arithmetic: Whether columns are computed from each other, so that each number has six digits of its own, as in
            formulas: with the decimals of the column, −0.000109 × 16 would read −0.0001 × 16 = −0.0017.
        options: Passed to ``st.dataframe`` (``column_config``, ``on_select``, …), whose result is returned.
    """
    headings = {column: localize(column) for column in table if isinstance(column, str)}
    configured = {headings.get(column, column): how for column, how in options.get("column_config", {}).items()}
    table = table.rename(columns=headings)
    digits = {
        column: ARITHMETIC if arithmetic else digits_of(table[column])
        for column in table.select_dtypes("floating").columns
    }
    numbers = {column: st.column_config.NumberColumn(format=form) for column, form in digits.items()}
    shown = table
    if signs() != (".", ",") and table.size <= _MAX_STYLED:
        shown, numbers = _in_signs_of_reader(table, digits), {}
    options["column_config"] = {**numbers, **configured}
    options.setdefault("placeholder", "")  # Streamlit would write "None" in empty cells
    with st.container(key=f"table {name}", gap="xsmall"):
        result = st.dataframe(shown, key=f"data {name}", hide_index=True, height=height, **options)
        with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
            if caption:
                st.caption(caption)
            st.download_button(
                common("show.csv"),
                data=lambda: as_csv(table),
                file_name=f"{name}.csv",
                mime="text/csv",
                type="tertiary",
                icon=":material/download:",
                key=f"csv {name}",
                on_click="ignore",
            )
    return result


def chosen_row(name: str, rows: Sequence[Row]) -> Row | None:
    """Return which of ``rows`` is chosen in the table ``name``, for its ``on_select`` callback."""
    chosen = st.session_state[f"data {name}"].selection.rows
    return rows[chosen[0]] if chosen and chosen[0] < len(rows) else None


def _in_signs_of_reader(table: pd.DataFrame, digits: Mapping[str, str]) -> "Styler":
    """Return the table with numbers in the reader's notation; it is still sorted by the numbers."""
    ways = {column: partial(_format_number, form) for column, form in digits.items()}
    ways |= dict.fromkeys(table.select_dtypes("integer").columns, whole)
    return table.style.format(ways, na_rep="")


def _format_number(digits: str, value: float) -> str:
    return number(digits % value)


def digits_of(column: pd.Series) -> str:
    """Return the number format of a column: equal decimals, unless small numbers would then be 0."""
    sizes = column.abs()
    sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
    if sizes.empty or sizes.max() >= 1e6:
        return "%.3g"
    decimals = 3 if 0.1 <= sizes.max() <= 1 else max(0, 2 - int(np.floor(np.log10(sizes.max()))))
    return f"%.{decimals}f" if sizes.min() >= 0.5 * 10.0**-decimals and decimals < 6 else "%.3g"


def show_formula(latex: str, *, caption: str = "") -> None:
    """Show a formula in LaTeX; ``caption`` states its shapes for this sentence."""
    st.latex(latex)
    if caption:
        st.caption(caption, text_alignment="center")


@dataclass(frozen=True)
class Source:
    """Location and text of a piece of code."""

    code: str
    file: str
    line: int


# Python 3.11's parser, which finds the source of a class, raises SystemError if two threads use it at once.
_one_at_a_time = Lock()


def source_of(thing: Callable | type) -> Source:
    """Return the source of a function, class or method as installed, with its path in the repository."""
    with _one_at_a_time:
        return _source_of(thing)


@lru_cache(maxsize=256)
def _source_of(thing: Callable | type) -> Source:
    thing = inspect.unwrap(thing)
    lines, line = inspect.getsourcelines(thing)
    path = Path(inspect.getsourcefile(thing)).resolve()
    shown = path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else Path(path.name)
    return Source(code=textwrap.dedent("".join(lines)).strip(), file=shown.as_posix(), line=max(1, line))


@fragment
def show_code(name: str, code: Callable[[], str], *things: Callable | type) -> None:
    """Show, in one collapsible part, Python that computes the page's numbers, and the source of its calls.

    The code is sent to the browser on demand, since highlighting it takes a second, and not during a presentation.
    ``name`` is unique on the page.
    """
    if is_presenting():
        return
    with st.expander(common("show.code"), icon=":material/terminal:", key=f"code {name}", on_change="rerun") as fold:
        if fold.open:
            st.code("\n\n\n".join((code(), *map(_with_place, things))), language="python")


def _with_place(thing: Callable | type) -> str:
    source = source_of(thing)
    return f"# {source.file}, line {source.line}\n{source.code}"
