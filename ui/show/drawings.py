"""Canvas figures on a page: one head, all heads, lines between tokens, or a generated text.

A figure is a Streamlit component (``streamlit.components.v2``) with the bytes of a ``CanvasFigure``; its script is sent
to the browser once, by ``ui.shell.frame.bring_canvas``. Hovering, zooming, switching heads, the table and the exports
all happen in the browser; only a click is sent to Python. It is checked against what the figure shows, then passed to
``on_click`` in a callback, which sets the state (``focus.select``, ``choice.put``) before the page runs, once.
The session keeps ``on_click``: it holds names and few numbers (``ui.shell.fragments``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from charts.canvas.figure import CanvasFigure
from charts.canvas.module import loader_script
from ui.shell.events import heard, one_of, whole_number, whole_numbers
from ui.shell.focus import select
from ui.shell.navigation import go_to
from ui.shell.strip import choose_token
from ui.words.texts import browser_words, language

Location = Mapping[str, Any]  # the parts of a focus: stack, kind, layer, head, token
_PICTURE = st.components.v2.component("glassformer_canvas", js=loader_script())


class Cell(NamedTuple):
    """A cell of a map by row and column; on an attention map, by query and key."""

    query: int
    key: int


class Stroke(NamedTuple):
    """Cells painted in one movement, and whether they are allowed or blocked."""

    cells: tuple[Cell, ...]
    allowed: bool


def _ignore(_cell: Cell) -> None:
    """Do nothing."""


def _select(location: Location) -> None:
    select(**location)


def show_map(figure: CanvasFigure, *, key: str, on_click: Callable[[Cell], None] | None = None) -> None:
    """Show one map (``attention_map``, ``value_map``); without ``on_click`` no cell can be clicked."""
    figure = figure if on_click else figure.with_metadata(still=True)
    _mount(figure, "click", partial(read_cell, shape=_shape(figure)), on_click or _ignore, key=key)


def show_mask_editor(figure: CanvasFigure, *, key: str, on_paint: Callable[[Stroke], None]) -> None:
    """Show a ``mask_editor``."""
    _mount(figure, "edit", partial(read_stroke, shape=_shape(figure)), on_paint, key=key)


def show_grid(figure: CanvasFigure, *, key: str) -> None:
    """Show all heads of all layers (``attention_grid``); a click selects a head on all pages."""
    shown = frozenset((tile["layer"], tile["head"]) for tile in figure.metadata["tiles"])
    _mount(figure, "click", partial(read_head, shown=shown), _select, key=key)


def show_lines(figure: CanvasFigure, *, key: str) -> None:
    """Show ``attention_lines``; a click selects a token (of the queries) on all pages."""
    _mount(figure, "click", partial(read_token, count=len(figure.metadata["rows"])), choose_token, key=key)


def show_steps(figure: CanvasFigure, *, key: str, on_stop: Callable[[int], None]) -> None:
    """Show ``written_steps``; ``on_stop`` is called when the reader stops at another step."""
    _mount(figure, "step", whole_number, on_stop, key=key)


def show_living_picture(figure: CanvasFigure, *, key: str, on_inside: Callable[[tuple[str, int]], None]) -> None:
    """Show a ``living_picture_canvas``.

    It selects the location where the reader stops, and opens the page of a link. ``on_inside`` is called with an
    unfolded layer whose numbers are missing.
    """
    shown = LivingPicturePlaces.of_figure(figure)
    hear = {
        "on_place_change": partial(_hear, key, "place", partial(read_location, shown=shown), _select),
        "on_inside_change": partial(_hear, key, "inside", partial(read_layer, shown=shown), on_inside),
        "on_page_change": partial(_hear, key, "page", partial(read_link, shown=shown), _open),
    }
    _PICTURE(key=key, data=add_captions(figure).packed(), **hear)


def _mount(
    figure: CanvasFigure, event: str, read: Callable[[object], Any], on_event: Callable[[Any], None], *, key: str
) -> None:
    """Mount a figure, and call ``on_event`` with what ``read`` finds in ``event`` ("click", "edit")."""
    hear = {f"on_{event}_change": partial(_hear, key, event, read, on_event)}
    _PICTURE(key=key, data=add_captions(figure).packed(), **hear)


def _hear(key: str, event: str, read: Callable[[object], Any], on_event: Callable[[Any], None]) -> None:
    if (found := read(heard(key, event))) is not None:
        on_event(found)


def _open(link: tuple[str, Location]) -> None:
    go_to(link[0], **link[1])


def add_captions(figure: CanvasFigure) -> CanvasFigure:
    """Return the figure with translated captions of the browser, if the language is not English."""
    words = browser_words()
    return figure.with_metadata(words=words, language=language()) if words else figure


def _shape(figure: CanvasFigure) -> tuple[int, int]:
    return len(figure.metadata["rows"]), len(figure.metadata["columns"])


def read_cell(value: object, shape: tuple[int, int]) -> Cell | None:
    """Validate a click from the browser, {"query": row, "key": column}, on a map of this shape."""
    numbers = whole_numbers(value, ("query", "key"))
    return Cell(*numbers) if numbers and numbers[0] < shape[0] and numbers[1] < shape[1] else None


def read_stroke(value: object, shape: tuple[int, int]) -> Stroke | None:
    """Validate a stroke from the browser: {"cells": [query, key, query, key, …], "allowed": bool}."""
    if not isinstance(value, Mapping) or not isinstance(value.get("allowed"), bool):
        return None
    numbers = value.get("cells")
    if not isinstance(numbers, (list, tuple)) or len(numbers) % 2:
        return None
    pairs = ({"query": q, "key": k} for q, k in zip(*[iter(numbers)] * 2, strict=True))
    cells = (read_cell(pair, shape) for pair in pairs)
    painted = tuple(cell for cell in cells if cell)
    return Stroke(painted, value["allowed"]) if painted else None


def read_head(value: object, shown: Collection[tuple[int, int]]) -> Location | None:
    """Validate {"layer": …, "head": …} from a grid of these heads."""
    numbers = whole_numbers(value, ("layer", "head"))
    return {"layer": numbers[0], "head": numbers[1]} if numbers in shown else None


@dataclass(frozen=True)
class LivingPicturePlaces:
    """Counts that validate choices in a ``living_picture_canvas``; callbacks keep them, not its arrays."""

    layers: Mapping[str, int]  # by stack, like the tokens
    tokens: Mapping[str, int]
    heads: Mapping[tuple[str, str], int]  # by stack and kind of attention
    pages: frozenset[str]

    @classmethod
    def of_figure(cls, figure: CanvasFigure) -> LivingPicturePlaces:
        """Return the counts of a ``living_picture_canvas``."""
        stacks = {stack["name"]: stack for stack in figure.metadata["stacks"]}
        kinds = [(one["stack"], one["kind"]) for one in figure.metadata["attentions"]]
        return cls(
            layers={name: stack["layers"] for name, stack in stacks.items()},
            tokens={name: len(stack["tokens"]) for name, stack in stacks.items()},
            heads={(stack, kind): figure.arrays[f"{stack}.{kind}.weights"].shape[1] for stack, kind in kinds},
            pages=frozenset(figure.metadata["links"].values()),
        )


def read_location(value: object, shown: LivingPicturePlaces) -> Location | None:
    """Validate {"stack": …, "kind": …, "layer": …, "head": …, "token": …} of a ``living_picture_canvas``."""
    numbers = whole_numbers(value, ("layer", "head", "token"))
    stack = numbers and one_of(value.get("stack"), shown.layers)
    kind = stack and one_of(value.get("kind"), [kind for of, kind in shown.heads if of == stack])
    if not kind or numbers[0] >= shown.layers[stack] or numbers[2] >= shown.tokens[stack]:
        return None
    if numbers[1] >= shown.heads[stack, kind]:
        return None
    return {"stack": stack, "kind": kind, **dict(zip(("layer", "head", "token"), numbers, strict=True))}


def read_link(value: object, shown: LivingPicturePlaces) -> tuple[str, Location] | None:
    """Validate {"page": …} and a location of a ``living_picture_canvas``."""
    location = read_location(value, shown)
    page = location and one_of(value.get("page"), shown.pages)
    return (page, location) if page else None


def read_layer(value: object, shown: LivingPicturePlaces) -> tuple[str, int] | None:
    """Validate {"stack": …, "layer": …} of a ``living_picture_canvas``."""
    numbers = whole_numbers(value, ("layer",))
    stack = numbers and one_of(value.get("stack"), shown.layers)
    return (stack, numbers[0]) if stack and numbers[0] < shown.layers[stack] else None


def read_token(value: object, count: int) -> int | None:
    """Validate {"token": …} in a figure of ``count`` tokens."""
    numbers = whole_numbers(value, ("token",))
    return numbers[0] if numbers and numbers[0] < count else None
