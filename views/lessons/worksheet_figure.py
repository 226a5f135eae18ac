"""The figure on a worksheet and its key: the canvas's own drawing of what the view is about, in a frame of its own."""

import logging
from collections.abc import Mapping

from charts.canvas.attention import attention_map
from charts.canvas.figure import CanvasFigure
from charts.canvas.value_map import value_map
from transformer import Trace
from ui.shell.focus import Focus, fit_model, fit_trace
from ui.shell.lessons import Lesson
from ui.shell.page import Page
from ui.show.canvas import spoken

_LOG = logging.getLogger(__name__)
_OF_VECTORS = {"overview": "sum", "tokens": "token", "embeddings": "token", "positions": "position", "add_norm": "sum"}
_WIDTH = 32  # dimensions drawn
MAPS = ("attention", "heads", "masks", "surgery")


def step_with_figure(lesson: Lesson) -> int:
    """The step, from 1, whose view stands on the paper: the first with a map of attention, else the first."""
    return next((number for number, step in enumerate(lesson.steps, 1) if step.page in MAPS), 1)


def framed_figure(page: str, focus: Focus, *, text: Mapping[str, str]) -> str:
    """The figure as HTML, "" where the view has none (no such checkpoint, a text that it cannot take)."""
    try:
        view = Page(page, focus)
        view.focus, _ = fit_model(focus, view.checkpoint.config)
        view.focus, _ = fit_trace(view.focus, view.trace)
        return spoken(figure_of(page, view.focus, view.trace, text=text))._repr_html_()
    except Exception:
        _LOG.exception("a worksheet goes without its figure")
        return ""


def figure_of(page: str, focus: Focus, trace: Trace, *, text: Mapping[str, str]) -> CanvasFigure:
    """For a page about vectors, those of the tokens; for every other, the map of the focused head."""
    name = f"{focus.stack}.embedding.{_OF_VECTORS.get(page, '')}"
    if page not in _OF_VECTORS or name not in trace:
        view = trace.attention(focus.stack, focus.layer, focus.kind)
        return attention_map(view, head=focus.head, chosen_row=min(focus.token, len(view.query) - 1))
    values = trace.values(name)[:, :_WIDTH]
    return value_map(
        values,
        row_labels=trace.tokens(focus.stack).labels,
        column_labels=[str(dimension) for dimension in range(values.shape[1])],
        row_title=text["figure_rows"],
        column_title=text["figure_columns"],
        title=text[f"figure_{_OF_VECTORS[page]}"].format(shown=values.shape[1], width=trace.values(name).shape[1]),
        value_name=text["figure_value"],
        phrase=("", f" · {text['figure_columns']} "),
    )
