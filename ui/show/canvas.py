"""Drawings of the canvas on a page: one head, all heads, lines between tokens, or a text being written.

A picture is a Streamlit component (``streamlit.components.v2``) fed with the bytes of a ``CanvasFigure``; the script
that draws it comes to the browser once, by ``bring_canvas``. Hovering, zooming, switching heads, the table and the
exports all happen in the browser; only a click comes back to Python, for one run of the script, as the function's
return value.
"""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from charts.canvas.attention_overview import heads_of
from charts.canvas.choices import AnyHead, Cell, HeadChoice, MaskStroke
from charts.canvas.figure import CanvasFigure
from charts.canvas.module import carrier, packed_module, picture
from ui.words.catalogues import browser_words
from ui.words.texts import language

# Registered once, when this module is first imported.
_PICTURE = st.components.v2.component("glassformer_canvas", js=picture())
_CARRIER = st.components.v2.component("glassformer_canvas_script", js=carrier())


def bring_canvas() -> None:
    """Once on every page that may have a picture. Streamlit sends the bytes once, and from then on only their name.

    They are some 38 KB, as much as a dozen pictures.
    """
    _CARRIER(key="canvas script", data=packed_module())


def show_map(figure: CanvasFigure, *, key: str, clickable: bool = True) -> Cell | None:
    """One map (``attention_map``, ``value_map``). Returns the cell that was clicked as ``Cell(query=row, key=column)``,
    in the run that the click causes, else ``None``; where the page does nothing with it, say ``clickable=False``."""
    clicked = _mount(figure if clickable else figure.with_metadata(still=True), key=key, event="click")
    return _cell(_whole_numbers(clicked, ("query", "key")), figure)


def show_mask_editor(figure: CanvasFigure, *, key: str) -> MaskStroke | None:
    """``mask_editor``. Returns the stroke in the run that its end causes, else ``None``; applying it to the mask is the
    caller's part."""
    return read_stroke(_mount(figure, key=key, event="edit"), figure)


def show_grid(figure: CanvasFigure, *, key: str) -> HeadChoice | None:
    """All heads of all layers (``attention_grid``). Returns the head that was clicked, else ``None``."""
    choice = _whole_numbers(_mount(figure, key=key, event="click"), ("layer", "head"))
    shown = {(tile["layer"], tile["head"]) for tile in figure.metadata["tiles"]}
    return HeadChoice(*choice) if choice in shown else None


def show_overview(figure: CanvasFigure, *, key: str) -> AnyHead | None:
    """``attention_overview``. Returns the head that was clicked, else ``None``."""
    value = _mount(figure, key=key, event="click")
    choice = _whole_numbers(value, ("layer", "head"))
    place = choice and AnyHead(value.get("stack"), value.get("attention"), *choice)
    return place if place in heads_of(figure) else None


def show_lines(figure: CanvasFigure, *, key: str) -> int | None:
    """``attention_lines``. Returns the index of the token that was clicked, else ``None``; in cross-attention only
    query tokens can be clicked."""
    token = _whole_numbers(_mount(figure, key=key, event="click"), ("token",))
    return token[0] if token and token[0] < len(figure.metadata["rows"]) else None


def show_steps(figure: CanvasFigure, *, key: str, on_step: Callable[[], None]) -> None:
    """``written_steps``, all steps in the browser.

    When the reader rests at another step, the script runs, after ``on_step`` with its number in
    ``st.session_state[key].step``.
    """
    _PICTURE(key=key, data=spoken(figure).packed(), on_step_change=on_step)


def _mount(figure: CanvasFigure, *, key: str, event: str) -> object:
    """What the browser says about ``event`` ("click", "edit"), in the run that the event causes."""
    return _PICTURE(key=key, data=spoken(figure).packed(), **{f"on_{event}_change": _nothing}).get(event)


def _nothing() -> None:
    """Streamlit reports an event only if it has a callback; the returned value is all that is needed."""


def spoken(figure: CanvasFigure) -> CanvasFigure:
    """With the captions that the browser writes by itself, where the language is not English."""
    words = browser_words()
    return figure.with_metadata(words=words, language=language()) if words else figure


def _cell(numbers: tuple[int, ...] | None, figure: CanvasFigure) -> Cell | None:
    rows, columns = len(figure.metadata["rows"]), len(figure.metadata["columns"])
    return Cell(*numbers) if numbers and numbers[0] < rows and numbers[1] < columns else None


def read_stroke(value: object, figure: CanvasFigure) -> MaskStroke | None:
    """A stroke as the browser sends it: {"cells": [query, key, query, key, …], "allowed": bool}."""
    if not isinstance(value, Mapping) or not isinstance(value.get("allowed"), bool):
        return None
    numbers = value.get("cells")
    if not isinstance(numbers, (list, tuple)) or len(numbers) % 2:
        return None
    pairs = ({"query": q, "key": k} for q, k in zip(*[iter(numbers)] * 2, strict=True))
    cells = (_cell(_whole_numbers(pair, ("query", "key")), figure) for pair in pairs)
    painted = tuple(cell for cell in cells if cell)
    return MaskStroke(painted, value["allowed"]) if painted else None


def _whole_numbers(value: object, names: Sequence[str]) -> tuple[int, ...] | None:
    """The named numbers of an event. The browser may send anything, also a click on a picture that is gone."""
    if not isinstance(value, Mapping):
        return None
    numbers = tuple(value.get(name) for name in names)
    fine = all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers)
    return numbers if fine else None
