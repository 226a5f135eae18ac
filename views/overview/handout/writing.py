"""Parts of all steps of the handout: a section with its page's texts, numbers, and maps of vectors."""

from collections.abc import Callable, Sequence

import numpy as np

from charts.canvas.value_map import value_map
from charts.documents.document_parts import Drawing, Part, Section
from charts.toolkit.numbers import number
from transformer.runs.traces import Trace
from ui.shell.selectors import text_for, traits_of
from ui.words.texts import page_text

WIDTH = 32  # dimensions drawn; more would not fit on a phone


def section(page: str, trace: Trace, parts: Sequence[Part], *, look_for: Sequence[int] = ()) -> Section:
    """Return a step with the title and question of its page.

    ``look_for`` selects those of the page's three sentences that are also true on paper (others are about controls).
    """
    text = text_for(page_text(page), trace.checkpoint.config)
    sentences = text.look_for_of(traits_of(trace.checkpoint.config))
    return Section(page, text.title, text.question, tuple(parts), tuple(sentences[place] for place in look_for))


def handout_text() -> dict[str, str]:
    """Return the handout's own texts."""
    return page_text("overview")["handout"]


def named(name: str, value: str) -> str:
    """Return "sum: 3", with a colon as in the reader's language."""
    return handout_text()["named"].format(name=name, value=value)


def written(value: float) -> str:
    """Format with six significant digits, because with three, sums and quotients would not add up."""
    return number(f"{float(value):.6g}")


def factor(value: float) -> str:
    """Format the same way, so that it can follow any sign."""
    return f"({written(value)})" if value < 0 else written(value)


def vectors(
    values: np.ndarray,
    rows: Sequence[str],
    *,
    title: str,
    lines: Callable[[int, int], Sequence[str]] | None = None,
    column: str = "",
    columns: Sequence[object] | None = None,
) -> Drawing:
    """Return a map of the first dimensions of vectors; ``lines(row, column)`` is a clicked cell's text."""
    text = handout_text()
    shown = values[:, :WIDTH]
    if shown.shape[1] < values.shape[1]:
        title += f" · {text['first'].format(shown=shown.shape[1], width=values.shape[1])}"
    column = column or text["dimension"]
    figure = value_map(
        shown,
        row_labels=rows,
        column_labels=[str(name) for name in (range(shown.shape[1]) if columns is None else columns[:WIDTH])],
        row_title=text["token"],
        column_title=column,
        title=title,
        value_name=text["value"],
        phrase=("", f" · {column} "),
    )
    return Drawing(figure, every_cell(shown.shape, lines) if lines else ())


def every_cell(shape: tuple[int, int], lines: Callable[[int, int], Sequence[str]]) -> list[list[list[str]]]:
    """Return ``lines`` of all cells, [row][column]."""
    return [[list(lines(row, column)) for column in range(shape[1])] for row in range(shape[0])]
