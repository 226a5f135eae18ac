"""Canvas figures on a page: one head, all heads, lines between tokens, or a generated text.

A figure is a Streamlit component (``streamlit.components.v2``) with the bytes of a ``CanvasFigure``; its script is sent
to the browser once, by ``ui.shell.frame.bring_canvas``. Hovering, zooming, switching heads, the table and the exports
all happen in the browser; only a click is sent to Python. It is passed to ``on_click`` in Streamlit's callback, so that
its changes (``ui.shell.focus.change``, the session's state) are made before the page runs, once. The session keeps
``on_click``: it holds names and few numbers (``ui.shell.fragments``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

import streamlit as st

from charts.canvas.attention_overview import heads_of
from charts.canvas.choices import AnyHead, HeadChoice
from charts.canvas.figure import CanvasFigure
from charts.canvas.module import picture_script
from ui.shell.actions import (
    Action,
    OpenPage,
    PaintMask,
    SelectCell,
    SelectHead,
    SelectLocation,
    SelectStep,
    SelectToken,
)
from ui.shell.events import heard, one_of, whole_number, whole_numbers
from ui.shell.reducer import Meaning, send
from ui.words.figure_texts import browser_words
from ui.words.texts import language

_PICTURE = st.components.v2.component("glassformer_canvas", js=picture_script())


def show_map(figure: CanvasFigure, *, key: str, means: Meaning | None = None) -> None:
    """Show one map (``attention_map``, ``value_map``).

    A click sends ``SelectCell``; without ``means`` no cell can be clicked.
    """
    read = partial(read_cell, shape=_shape(figure))
    _mount(figure if means else figure.with_metadata(still=True), "click", read, means, key=key)


def show_mask_editor(figure: CanvasFigure, *, key: str, means: Meaning) -> None:
    """Show a ``mask_editor``; the end of a stroke sends ``PaintMask``."""
    _mount(figure, "edit", partial(read_stroke, shape=_shape(figure)), means, key=key)


def show_grid(figure: CanvasFigure, *, key: str, means: Meaning | None = None) -> None:
    """Show all heads of all layers (``attention_grid``); a click sends ``SelectHead``."""
    shown = frozenset(HeadChoice(tile["layer"], tile["head"]) for tile in figure.metadata["tiles"])
    _mount(figure, "click", partial(read_head, shown=shown), means, key=key)


def show_overview(figure: CanvasFigure, *, key: str, means: Meaning | None = None) -> None:
    """Show an ``attention_overview``; a click sends ``SelectHead``."""
    _mount(figure, "click", partial(read_any_head, shown=frozenset(heads_of(figure))), means, key=key)


def show_lines(figure: CanvasFigure, *, key: str, means: Meaning | None = None) -> None:
    """Show ``attention_lines``; a click on a token (of the queries) sends ``SelectToken``."""
    _mount(figure, "click", partial(read_token, count=len(figure.metadata["rows"])), means, key=key)


def show_steps(figure: CanvasFigure, *, key: str, means: Meaning) -> None:
    """Show ``written_steps``, all in the browser; stopping at another step sends ``SelectStep``."""
    _mount(figure, "step", read_step, means, key=key)


def show_living_picture(figure: CanvasFigure, *, key: str, on_inside: Callable[[tuple[str, int]], None]) -> None:
    """Show a ``living_picture_canvas``.

    It sends ``SelectLocation`` when the reader stops, and ``OpenPage`` for a link. ``on_inside`` is called with an
    unfolded layer whose numbers are missing.
    """
    shown = LivingPicturePlaces.of_figure(figure)
    hear = {
        "on_place_change": partial(_send_event, key, "place", partial(read_location, shown=shown), None),
        "on_inside_change": partial(_ask, key, partial(read_layer, shown=shown), on_inside),
        "on_page_change": partial(_send_event, key, "page", partial(read_link, shown=shown), None),
    }
    _PICTURE(key=key, data=add_captions(figure).packed(), **hear)


def _mount(
    figure: CanvasFigure, event: str, read: Callable[[object], Action | None], means: Meaning | None, *, key: str
) -> None:
    """Mount a figure, and send the action that ``read`` finds in ``event`` ("click", "edit")."""
    on_event = partial(_send_event, key, event, read, means)
    _PICTURE(key=key, data=add_captions(figure).packed(), **{f"on_{event}_change": on_event})


def _send_event(key: str, event: str, read: Callable[[object], Action | None], means: Meaning | None) -> None:
    if (action := read(heard(key, event))) is not None and (means or not isinstance(action, SelectCell)):
        send(action, means)


def _ask(key: str, read: Callable[[object], tuple[str, int] | None], tell: Callable[[tuple[str, int]], None]) -> None:
    if (layer := read(heard(key, "inside"))) is not None:
        tell(layer)


def add_captions(figure: CanvasFigure) -> CanvasFigure:
    """Return the figure with translated captions of the browser, if the language is not English."""
    words = browser_words()
    return figure.with_metadata(words=words, language=language()) if words else figure


def _shape(figure: CanvasFigure) -> tuple[int, int]:
    return len(figure.metadata["rows"]), len(figure.metadata["columns"])


def read_cell(value: object, shape: tuple[int, int]) -> SelectCell | None:
    """Validate a click from the browser, {"query": row, "key": column}, on a map of this shape."""
    numbers = whole_numbers(value, ("query", "key"))
    return SelectCell(*numbers) if numbers and numbers[0] < shape[0] and numbers[1] < shape[1] else None


def read_stroke(value: object, shape: tuple[int, int]) -> PaintMask | None:
    """Validate a stroke from the browser: {"cells": [query, key, query, key, …], "allowed": bool}."""
    if not isinstance(value, Mapping) or not isinstance(value.get("allowed"), bool):
        return None
    numbers = value.get("cells")
    if not isinstance(numbers, (list, tuple)) or len(numbers) % 2:
        return None
    pairs = ({"query": q, "key": k} for q, k in zip(*[iter(numbers)] * 2, strict=True))
    cells = (read_cell(pair, shape) for pair in pairs)
    painted = tuple(cell for cell in cells if cell)
    return PaintMask(painted, value["allowed"]) if painted else None


def read_head(value: object, shown: Collection[HeadChoice]) -> SelectHead | None:
    """Validate {"layer": …, "head": …} from a grid of these heads."""
    numbers = whole_numbers(value, ("layer", "head"))
    return SelectHead(*numbers) if numbers and HeadChoice(*numbers) in shown else None


def read_any_head(value: object, shown: Collection[AnyHead]) -> SelectHead | None:
    """Validate {"stack": …, "attention": …, "layer": …, "head": …} from a figure of these heads."""
    numbers = whole_numbers(value, ("layer", "head"))
    named = numbers and tuple(value.get(name) for name in ("stack", "attention"))
    if not named or not all(isinstance(name, str) for name in named):
        return None
    stack, kind = named
    return SelectHead(*numbers, stack=stack, kind=kind) if AnyHead(stack, kind, *numbers) in shown else None


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


def read_location(value: object, shown: LivingPicturePlaces) -> SelectLocation | None:
    """Validate {"stack": …, "kind": …, "layer": …, "head": …, "token": …} of a ``living_picture_canvas``."""
    numbers = whole_numbers(value, ("layer", "head", "token"))
    stack = numbers and one_of(value.get("stack"), shown.layers)
    kind = stack and one_of(value.get("kind"), [kind for of, kind in shown.heads if of == stack])
    if not kind or numbers[0] >= shown.layers[stack] or numbers[2] >= shown.tokens[stack]:
        return None
    if numbers[1] >= shown.heads[stack, kind]:
        return None
    return SelectLocation(stack, kind, *numbers)


def read_link(value: object, shown: LivingPicturePlaces) -> OpenPage | None:
    """Validate {"page": …} and a location of a ``living_picture_canvas``."""
    location = read_location(value, shown)
    page = location and one_of(value.get("page"), shown.pages)
    return OpenPage(page, location) if page else None


def read_layer(value: object, shown: LivingPicturePlaces) -> tuple[str, int] | None:
    """Validate {"stack": …, "layer": …} of a ``living_picture_canvas``."""
    numbers = whole_numbers(value, ("layer",))
    stack = numbers and one_of(value.get("stack"), shown.layers)
    return (stack, numbers[0]) if stack and numbers[0] < shown.layers[stack] else None


def read_token(value: object, count: int) -> SelectToken | None:
    """Validate {"token": …} in a figure of ``count`` tokens."""
    numbers = whole_numbers(value, ("token",))
    return SelectToken(*numbers) if numbers and numbers[0] < count else None


def read_step(value: object) -> SelectStep | None:
    """Validate the number of a step."""
    step = whole_number(value)
    return None if step is None else SelectStep(step)
