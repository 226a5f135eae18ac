"""A word split by longest match (WordPiece) or by the best path (Unigram), piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from charts.toolkit import style
from charts.toolkit.numbers import number
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _

if TYPE_CHECKING:
    from transformer.text.best_path import Candidate, Place
    from transformer.text.longest_match import MatchStep

_ROW = 34  # pixels of a row of boxes
_MAX_ROWS = 26

Box = tuple[float, float, int, str, str]  # start, width, row, text, hover


def longest_matches(steps: Sequence[MatchStep], *, word: str, n_steps: int | None = None) -> go.Figure:
    """Draw WordPiece from top to bottom: each step takes the longest entry that begins there.

    ``steps``: the result of ``match_steps``. The remaining letters are pale; hovering over them shows the longer pieces
    that were tried.
    ``n_steps`` reserves space for that many steps, so that the figure does not move while a reader steps through it.
    """
    taken: list[Box] = []
    before: list[Box] = []
    rest: list[Box] = []
    for row, step in enumerate(steps):
        before += [
            (earlier.start, earlier.end - earlier.start, row, style.escape(earlier.found), "")
            for earlier in steps[:row]
            if earlier.found
        ]
        tried = _("no entries: {pieces}", pieces=style.escape(", ".join(step.tried[:8]))) if step.tried else ""
        if step.found:
            taken.append((step.start, step.end - step.start, row, style.escape(step.found), tried))
        if step.end < len(word):
            left = style.escape(word[step.end :])
            rest.append((step.end, len(word) - step.end, row, left, tried if not step.found else ""))
    figure = Sheet()
    _add_boxes(figure, before, name=_("matched earlier"), colour=style.PALE, ink="#000000")
    _add_boxes(figure, taken, name=_("the longest entry that begins here"), colour=style.CHOSEN, ink="#FFFFFF")
    _add_boxes(figure, rest, name=_("not split yet"), colour=style.GRID, ink=style.NEUTRAL)
    labels = [
        _("step {step} ({tried} longer entries tried)", step=place, tried=len(step.tried))
        for place, step in enumerate(steps, start=1)
    ]
    labels += [""] * max(0, (n_steps or 0) - len(steps))
    return _finished(figure, word, labels, title=_("step"))


def candidate_pieces(
    places: Sequence[Place],
    *,
    word: str,
    path: Sequence[Candidate],
    display: Callable[[str], str] = str,
) -> go.Figure:
    """Draw Unigram: all entries that match part of the word, and the ``path`` with the largest sum.

    ``places``: the result of ``path_steps``, from the left up to the current position. Hovering over a box shows the
    score of its piece and the best sum with which it can be reached. ``display`` makes a piece readable.
    """
    on_path = {(candidate.start, candidate.start + len(candidate.piece)) for candidate in path}
    best: list[Box] = [_box(candidate, 0, display) for candidate in path]
    others: list[Box] = []
    full: list[int] = []  # for every row below the path: the end of its last box
    found = [candidate for place in places for candidate in place.candidates]
    for candidate in sorted(found, key=lambda candidate: (candidate.start, len(candidate.piece))):
        end = candidate.start + len(candidate.piece)
        if (candidate.start, end) in on_path:
            continue
        row = next((row for row, last in enumerate(full) if last <= candidate.start), len(full))
        if row < _MAX_ROWS:
            full[row : row + 1] = [end]
            others.append(_box(candidate, row + 1, display))
    figure = Sheet()
    _add_boxes(figure, others, name=_("other matching entries"), colour=style.PALE, ink="#000000")
    _add_boxes(figure, best, name=_("the best path up to here"), colour=style.CHOSEN, ink="#FFFFFF")
    labels = [_("the best path"), *[_("other entries") if not row else "" for row in range(len(full))]]
    return _finished(figure, word, labels, title=_("pieces"))


def _box(candidate: Candidate, row: int, display: Callable[[str], str]) -> Box:
    what = _(
        "score {score}, best sum {total}",
        score=f"<b>{number(f'{candidate.score:.2f}')}</b>",
        total=f"<b>{number(f'{candidate.total:.2f}')}</b>",
    )
    return candidate.start, len(candidate.piece), row, style.escape(display(candidate.piece)), what


def _add_boxes(figure: Sheet, boxes: list[Box], *, name: str, colour: str, ink: str) -> None:
    if not boxes:
        return
    figure.bar(
        base=[start + 0.04 for start, *_rest in boxes],
        x=[width - 0.08 for _start, width, *_rest in boxes],
        y=[row for _start, _width, row, *_rest in boxes],
        orientation="h",
        name=name,
        marker={"color": colour, "line": {"width": 0}, "cornerradius": 4},
        text=[text for *_rest, text, _what in boxes],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        textfont={"size": style.TITLE_SIZE, "color": ink},
        customdata=[style.lines(*filter(None, (name, what))) for *_rest, what in boxes],
        hovertemplate=style.hover("%{text}", "%{customdata}"),
    )


def _finished(figure: Sheet, word: str, labels: list[str], *, title: str) -> go.Figure:
    style.finish(figure, height=_ROW * max(2, len(labels)) + 90, top=40)
    figure.update_layout(barmode="overlay", bargap=0.18)
    figure.update_xaxes(
        title_text=_("the {n} characters of the word", n=len(word)),
        range=[0, max(1, len(word))],
        showgrid=False,
        showticklabels=False,
        zeroline=False,
    )
    figure.update_yaxes(**style.label_rows(labels, title=title))
    return figure.drawn()
