"""Attention drawn on a canvas in the browser: one head, all heads, lines between tokens, or a text being written.

A picture is a Streamlit component (``streamlit.components.v2``) fed with the bytes of
``charts.canvas.attention_payload``; the script that draws it comes to the browser once, by ``bring_canvas``. Hovering,
zooming, switching heads, the table and the exports all happen in the browser; only a click comes back to Python, for
one run of the script, as the function's return value.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import streamlit as st

from charts.canvas.attention_payload import (
    Cell,
    HeadChoice,
    attention_grid_payload,
    attention_lines_payload,
    attention_map_payload,
)
from charts.canvas.mask_payload import MaskStroke, mask_editor_payload
from charts.canvas.module import carrier, packed_module, picture
from charts.canvas.value_map_payload import value_map_payload
from charts.toolkit.payload_bytes import with_metadata
from transformer.runs.attention_view import AttentionView
from ui.words.catalogues import browser_words
from ui.words.texts import language

__all__ = [
    "Cell",
    "HeadChoice",
    "MaskStroke",
    "attention_grid",
    "attention_lines",
    "attention_map",
    "bring_canvas",
    "mask_editor",
    "value_map",
    "written_steps",
]

# Registered once, when this module is first imported.
_PICTURE = st.components.v2.component("glassformer_canvas", js=picture())
_CARRIER = st.components.v2.component("glassformer_canvas_script", js=carrier())


def bring_canvas() -> None:
    """Once on every page that may have a picture. Streamlit sends the bytes once, and from then on only their name.

    They are some 34 KB, as much as a dozen pictures.
    """
    _CARRIER(key="canvas script", data=packed_module())


def _mount(payload: bytes, *, key: str, event: str, **more: object) -> object:
    """What the browser says about ``event`` ("click", "edit"), in the run that the event causes; ``more``: metadata."""
    return _PICTURE(key=key, data=_spoken(payload, **more), **{f"on_{event}_change": _nothing}).get(event)


def _mount_map(payload: bytes, *, key: str, clickable: bool, shape: tuple[int, ...]) -> Cell | None:
    more = {} if clickable else {"still": True}
    return _clicked_cell(_mount(payload, key=key, event="click", **more), shape)


def _nothing() -> None:
    """Streamlit reports an event only if it has a callback; the returned value is all that is needed."""


def attention_map(
    view: AttentionView,
    *,
    head: int,
    key: str,
    shifted_labels: Sequence[str] | None = None,
    selected: tuple[int, int] | None = None,
    stretch: bool = False,
    height: int | None = None,
    chosen_row: int | None = None,
    clickable: bool = True,
) -> Cell | None:
    """One head as a heatmap: rows are the tokens that look, columns the tokens that are looked at.

    The scale is fixed to 0…1 unless ``stretch`` ends it at the largest weight (the legend says so).
    ``shifted_labels`` names the rows after the tokens being predicted. ``selected`` is outlined, the label of
    ``chosen_row`` marked. ``height`` limits the picture, in pixels. Returns the cell that was clicked, in the run that
    the click causes, else ``None``; where the page does nothing with it, say ``clickable=False``.

    Raises ``ValueError`` for a head, cell or labels that do not fit the view.
    """
    payload = attention_map_payload(
        view,
        head=head,
        shifted_labels=shifted_labels,
        selected=selected,
        stretch=stretch,
        height=height,
        chosen_row=chosen_row,
    )
    return _mount_map(payload, key=key, clickable=clickable, shape=view.weights.shape[1:])


def value_map(
    values: np.ndarray,
    *,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    key: str,
    row_title: str,
    column_title: str,
    scale: str,
    allowed: np.ndarray | None = None,
    selected: tuple[int, int] | None = None,
    limit: float | None = None,
    title: str = "values",
    value_name: str = "value",
    phrase: tuple[str, str] = ("", " × "),
    height: int | None = None,
    chosen_row: int | None = None,
    breaks: Sequence[int] = (),
    crossed: Sequence[tuple[int, int]] = (),
    masked_text: str = "",
    clickable: bool = True,
) -> Cell | None:
    """Any matrix [row, column] as a heatmap: scores, queries, differences.

    ``scale`` is "sequential" (0 … limit) or "diverging" (−limit … +limit); ``limit`` is the largest absolute value if
    not given. Cells that are not ``allowed`` are hatched, the label of ``chosen_row`` is marked. ``value_name`` says in
    legend and tooltip what the numbers are; ``phrase`` holds the words before the row's label and between both labels
    in the tooltip. ``breaks``: rows before which another block begins. ``crossed``: cells (row, column) that are struck
    out. ``masked_text``: what cells that are not ``allowed`` mean, if not a mask.
    Returns the cell that was clicked as ``Cell(query=row, key=column)``, else ``None``; ``clickable=False`` where the
    page does nothing with it.
    """
    payload = value_map_payload(
        values,
        row_labels=row_labels,
        column_labels=column_labels,
        row_title=row_title,
        column_title=column_title,
        scale=scale,
        allowed=allowed,
        selected=selected,
        limit=limit,
        title=title,
        value_name=value_name,
        phrase=phrase,
        height=height,
        chosen_row=chosen_row,
        extra={
            "breaks": [int(row) for row in breaks],
            "crossed": [[int(row), int(column)] for row, column in crossed],
            "masked_text": masked_text or None,
        },
    )
    return _mount_map(payload, key=key, clickable=clickable, shape=np.shape(values))


def mask_editor(
    view: AttentionView, *, head: int, key: str, own: np.ndarray, height: int | None = None
) -> MaskStroke | None:
    """One head as a heatmap whose mask is painted on with the mouse: a click or a drag blocks or allows cells.

    ``view`` holds the mask as it is now, ``own`` [query, key] the model's; cells in which they differ are framed.
    Returns the stroke in the run that its end causes, else ``None``; applying it to the mask is the caller's part.
    """
    payload = mask_editor_payload(view, head=head, own=own, height=height)
    return read_stroke(_mount(payload, key=key, event="edit"), view.weights.shape[1:])


def attention_grid(
    views: Sequence[AttentionView],
    *,
    key: str,
    selected: tuple[int, int] | None = None,
    captions: Mapping[tuple[int, int], str] | None = None,
    order: Sequence[tuple[int, int]] | None = None,
    stretch: bool = False,
) -> HeadChoice | None:
    """All heads of all layers on one screen, one view per layer; the one under the pointer is shown large.

    ``selected`` is (layer, head), outlined. ``captions`` stand under the tiles. ``order`` is a list of (layer, head)
    that replaces the table of layers × heads by tiles in that order. ``stretch`` ends the scale of every map at its own
    largest weight. Returns the head that was clicked, else ``None``.
    """
    payload = attention_grid_payload(views, selected=selected, captions=captions, order=order, stretch=stretch)
    choice = _whole_numbers(_mount(payload, key=key, event="click"), ("layer", "head"))
    heads = {view.layer: view.n_heads for view in views}
    return HeadChoice(*choice) if choice and choice[1] < heads.get(choice[0], 0) else None


def attention_lines(
    view: AttentionView, *, key: str, heads: Sequence[int] | None = None, selected_token: int | None = None
) -> int | None:
    """Two columns of tokens with a line for every weight, coloured by head.

    ``heads`` are switched on at first (``None``: all); the reader switches them in the browser. Only the edges of
    ``selected_token`` (a query token) are drawn while nothing is hovered. Returns the index of the token that was
    clicked, else ``None``; in cross-attention only query tokens can be clicked.
    """
    payload = attention_lines_payload(view, heads=heads, selected_token=selected_token)
    token = _whole_numbers(_mount(payload, key=key, event="click"), ("token",))
    return token[0] if token and token[0] < len(view.query) else None


def written_steps(payload: bytes, *, key: str, on_step: Callable[[], None]) -> None:
    """A text being written (``charts.canvas.steps_payload``), all its steps in the browser.

    When the reader rests at another step, the script runs, after ``on_step`` with its number in
    ``st.session_state[key].step``.
    """
    _PICTURE(key=key, data=_spoken(payload), on_step_change=on_step)


def _spoken(payload: bytes, **more: object) -> bytes:
    """With the captions that the browser writes by itself, where the language is not English, and ``more`` metadata."""
    if words := browser_words():
        more = {**more, "words": words, "language": language()}
    return with_metadata(payload, more) if more else payload


def _clicked_cell(value: object, shape: tuple[int, ...]) -> Cell | None:
    cell = _whole_numbers(value, ("query", "key"))
    return Cell(*cell) if cell and cell[0] < shape[0] and cell[1] < shape[1] else None


def read_stroke(value: object, shape: tuple[int, ...]) -> MaskStroke | None:
    """A stroke as the browser sends it: {"cells": [query, key, query, key, …], "allowed": bool}."""
    if not isinstance(value, Mapping) or not isinstance(value.get("allowed"), bool):
        return None
    numbers = value.get("cells")
    if not isinstance(numbers, (list, tuple)) or len(numbers) % 2:
        return None
    pairs = [
        _whole_numbers({"query": q, "key": k}, ("query", "key")) for q, k in zip(*[iter(numbers)] * 2, strict=True)
    ]
    cells = tuple(Cell(*pair) for pair in pairs if pair and pair[0] < shape[0] and pair[1] < shape[1])
    return MaskStroke(cells, value["allowed"]) if cells else None


def _whole_numbers(value: object, names: Sequence[str]) -> tuple[int, ...] | None:
    """The named numbers of an event. The browser may send anything, also a click on a picture that is gone."""
    if not isinstance(value, Mapping):
        return None
    numbers = tuple(value.get(name) for name in names)
    fine = all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers)
    return numbers if fine else None
