"""Drawings of the canvas on a page: one head, all heads, lines between tokens, or a text being written.

A picture is a Streamlit component (``streamlit.components.v2``) fed with the bytes of a ``CanvasFigure``; the script
that draws it comes to the browser once, by ``ui.shell.frame.bring_canvas``. Hovering, zooming, switching heads, the
table and the exports all happen in the browser; only a click comes back to Python. It is told to ``on_click`` in
Streamlit's callback: what that changes (``ui.shell.focus.change``, the session's state) is there before the page runs,
once. The session keeps ``on_click``: it holds names and few numbers (``ui.shell.fragments``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import streamlit as st

from charts.canvas.attention_overview import heads_of
from charts.canvas.choices import AnyHead, Cell, HeadChoice, MaskStroke
from charts.canvas.figure import CanvasFigure
from charts.canvas.module import picture
from ui.shell.events import heard, one_of, whole_numbers
from ui.words.catalogues import browser_words
from ui.words.texts import language

Choice = TypeVar("Choice")

_PICTURE = st.components.v2.component("glassformer_canvas", js=picture())


def show_map(figure: CanvasFigure, *, key: str, on_click: Callable[[Cell], None] | None = None) -> None:
    """One map (``attention_map``, ``value_map``). A click on a cell is told to ``on_click`` as ``Cell(query=row,
    key=column)``; without it no cell can be clicked."""
    read = partial(read_cell, shape=_shape(figure))
    _mount(figure if on_click else figure.with_metadata(still=True), "click", read, on_click or _nothing, key=key)


def show_mask_editor(figure: CanvasFigure, *, key: str, on_edit: Callable[[MaskStroke], None]) -> None:
    """``mask_editor``. The end of a stroke is told to ``on_edit``, which applies it to the mask."""
    _mount(figure, "edit", partial(read_stroke, shape=_shape(figure)), on_edit, key=key)


def show_grid(figure: CanvasFigure, *, key: str, on_click: Callable[[HeadChoice], None]) -> None:
    """All heads of all layers (``attention_grid``). A click on a head is told to ``on_click``."""
    shown = frozenset(HeadChoice(tile["layer"], tile["head"]) for tile in figure.metadata["tiles"])
    _mount(figure, "click", partial(read_head, shown=shown), on_click, key=key)


def show_overview(figure: CanvasFigure, *, key: str, on_click: Callable[[AnyHead], None]) -> None:
    """``attention_overview``. A click on a head is told to ``on_click``."""
    _mount(figure, "click", partial(read_any_head, shown=frozenset(heads_of(figure))), on_click, key=key)


def show_lines(figure: CanvasFigure, *, key: str, on_click: Callable[[int], None]) -> None:
    """``attention_lines``. The index of a token that is clicked is told to ``on_click``; in cross-attention only query
    tokens can be clicked."""
    _mount(figure, "click", partial(read_token, count=len(figure.metadata["rows"])), on_click, key=key)


def show_steps(figure: CanvasFigure, *, key: str, on_step: Callable[[], None]) -> None:
    """``written_steps``, all steps in the browser.

    When the reader rests at another step, the script runs, after ``on_step`` with its number in
    ``st.session_state[key].step``.
    """
    _PICTURE(key=key, data=spoken(figure).packed(), on_step_change=on_step)


def show_flow(
    figure: CanvasFigure,
    *,
    key: str,
    on_place: Callable[[Mapping[str, object]], None],
    on_inside: Callable[[tuple[str, int]], None],
    on_page: Callable[[str, Mapping[str, object]], None],
) -> None:
    """``sentence_flow_picture``. Where the reader rests is told to ``on_place`` as parts of a ``Focus``, a layer that
    is unfolded and whose numbers were not sent to ``on_inside``, a link that is followed to ``on_page`` with the place.
    """
    shown = FlowPlaces.of_figure(figure)
    hear = {
        "on_place_change": partial(_told, key, "place", partial(read_place, shown=shown), on_place),
        "on_inside_change": partial(_told, key, "inside", partial(read_layer, shown=shown), on_inside),
        "on_page_change": partial(_told, key, "page", partial(read_link, shown=shown), lambda link: on_page(*link)),
    }
    _PICTURE(key=key, data=spoken(figure).packed(), **hear)


def _mount(
    figure: CanvasFigure,
    event: str,
    read: Callable[[object], Choice | None],
    tell: Callable[[Choice], None],
    *,
    key: str,
) -> None:
    """What the browser says about ``event`` ("click", "edit") is told, where ``read`` finds a choice in it."""
    callback = partial(_told, key, event, read, tell)
    _PICTURE(key=key, data=spoken(figure).packed(), **{f"on_{event}_change": callback})


def _told(key: str, event: str, read: Callable[[object], Choice | None], tell: Callable[[Choice], None]) -> None:
    said = heard(key, event)
    if (choice := read(said)) is not None:
        tell(choice)


def _nothing(_choice: object) -> None:
    """For a picture that cannot be clicked."""


def spoken(figure: CanvasFigure) -> CanvasFigure:
    """With the captions that the browser writes by itself, where the language is not English."""
    words = browser_words()
    return figure.with_metadata(words=words, language=language()) if words else figure


def _shape(figure: CanvasFigure) -> tuple[int, int]:
    return len(figure.metadata["rows"]), len(figure.metadata["columns"])


def read_cell(value: object, shape: tuple[int, int]) -> Cell | None:
    """A click as the browser sends it, {"query": row, "key": column}, on a map of that many rows and columns."""
    numbers = whole_numbers(value, ("query", "key"))
    return Cell(*numbers) if numbers and numbers[0] < shape[0] and numbers[1] < shape[1] else None


def read_stroke(value: object, shape: tuple[int, int]) -> MaskStroke | None:
    """A stroke as the browser sends it: {"cells": [query, key, query, key, …], "allowed": bool}."""
    if not isinstance(value, Mapping) or not isinstance(value.get("allowed"), bool):
        return None
    numbers = value.get("cells")
    if not isinstance(numbers, (list, tuple)) or len(numbers) % 2:
        return None
    pairs = ({"query": q, "key": k} for q, k in zip(*[iter(numbers)] * 2, strict=True))
    cells = (read_cell(pair, shape) for pair in pairs)
    painted = tuple(cell for cell in cells if cell)
    return MaskStroke(painted, value["allowed"]) if painted else None


def read_head(value: object, shown: Collection[HeadChoice]) -> HeadChoice | None:
    """{"layer": …, "head": …}, of a grid that shows these heads."""
    numbers = whole_numbers(value, ("layer", "head"))
    choice = numbers and HeadChoice(*numbers)
    return choice if choice in shown else None


def read_any_head(value: object, shown: Collection[AnyHead]) -> AnyHead | None:
    """{"stack": …, "attention": …, "layer": …, "head": …}, of a picture that shows these heads."""
    numbers = whole_numbers(value, ("layer", "head"))
    named = numbers and tuple(value.get(name) for name in ("stack", "attention"))
    if not named or not all(isinstance(name, str) for name in named):
        return None
    choice = AnyHead(*named, *numbers)
    return choice if choice in shown else None


@dataclass(frozen=True)
class FlowPlaces:
    """Counts by which a choice in a ``sentence_flow_picture`` is checked: its callbacks keep them, not its arrays."""

    layers: Mapping[str, int]  # by stack, like the tokens
    tokens: Mapping[str, int]
    heads: Mapping[tuple[str, str], int]  # by stack and kind of attention
    pages: frozenset[str]

    @classmethod
    def of_figure(cls, figure: CanvasFigure) -> FlowPlaces:
        """Return the counts of a ``sentence_flow_picture``."""
        stacks = {stack["name"]: stack for stack in figure.metadata["stacks"]}
        kinds = [(one["stack"], one["kind"]) for one in figure.metadata["attentions"]]
        return cls(
            layers={name: stack["layers"] for name, stack in stacks.items()},
            tokens={name: len(stack["tokens"]) for name, stack in stacks.items()},
            heads={(stack, kind): figure.arrays[f"{stack}.{kind}.weights"].shape[1] for stack, kind in kinds},
            pages=frozenset(figure.metadata["links"].values()),
        )


def read_place(value: object, shown: FlowPlaces) -> dict[str, object] | None:
    """{"stack": …, "kind": …, "layer": …, "head": …, "token": …}, of a ``sentence_flow_picture``."""
    numbers = whole_numbers(value, ("layer", "head", "token"))
    stack = numbers and one_of(value.get("stack"), shown.layers)
    kind = stack and one_of(value.get("kind"), [kind for of, kind in shown.heads if of == stack])
    if not kind or numbers[0] >= shown.layers[stack] or numbers[2] >= shown.tokens[stack]:
        return None
    if numbers[1] >= shown.heads[stack, kind]:
        return None
    return {"stack": stack, "kind": kind, **dict(zip(("layer", "head", "token"), numbers, strict=True))}


def read_link(value: object, shown: FlowPlaces) -> tuple[str, dict[str, object]] | None:
    """{"page": …} and a place, of a ``sentence_flow_picture``."""
    place = read_place(value, shown)
    page = place and one_of(value.get("page"), shown.pages)
    return (page, place) if page else None


def read_layer(value: object, shown: FlowPlaces) -> tuple[str, int] | None:
    """{"stack": …, "layer": …}, of a ``sentence_flow_picture``."""
    numbers = whole_numbers(value, ("layer",))
    stack = numbers and one_of(value.get("stack"), shown.layers)
    return (stack, numbers[0]) if stack and numbers[0] < shown.layers[stack] else None


def read_token(value: object, count: int) -> int | None:
    """{"token": …}, one of ``count``."""
    numbers = whole_numbers(value, ("token",))
    return numbers[0] if numbers and numbers[0] < count else None
