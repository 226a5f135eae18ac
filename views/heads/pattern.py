"""A painted pattern: an editor over the map of the selected head, and all heads ranked by it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import predicted_rows
from charts.canvas.pattern_editor import pattern_editor
from charts.toolkit.numbers import percent
from transformer.heads.painted_pattern import known_patterns, pattern_scores
from transformer.runs.painted_cells import cells_from_texts, cells_to_texts
from ui.shell import choice, page_state
from ui.shell.actions import Actions, PaintMask, SelectHead, SetChoice
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.reducer import State, send
from ui.show.drawings import show_mask_editor
from ui.show.figures import chosen_row, show_formula, show_snippet, show_source, show_table
from ui.words.texts import PageText
from views.heads.heads_view_model import HeadsViewModel, Place, place_of
from views.heads.painted_heads import BLANK, PaintedHeads

PATTERN, PAINTED = "heads_pattern", "heads_painted"
ON, OFF = "paint", "erase"
_TABLE = "heads-by-pattern"
_MUCH = 0.5  # of a row
_FORMULA = r"s = \frac{1}{|R|} \sum_{i \in R} \; \sum_{j \,:\, (i,j) \in P} \alpha_{ij}"


def pattern(p: Page, heads: HeadsViewModel) -> None:
    """Draw the section: the pattern, what it says of the heads, and all heads ranked."""
    text, view = p.text, heads.views[heads.location.layer]
    found, owner = _choose(p, heads)
    drawn = pattern_editor(
        view,
        head=heads.location.head,
        pattern=found.cells,
        shifted_labels=predicted_rows(heads.trace, heads.location.kind),
        height=400,
    )
    show_mask_editor(drawn, key="pattern editor", means=partial(paint, owner))
    st.caption(text["pattern_caption"])
    best = found.ranked[0]
    if math.isnan(best.score):
        st.info(text["pattern_none"], icon=":material/info:")
    else:
        st.markdown(
            text["pattern_says"].format(
                strongest=f"{best.layer}.{best.head}",
                score=percent(best.score),
                even=percent(best.chance),
                rows=best.rows,
                much=sum(one.score > _MUCH for one in found.ranked),
                heads=len(found.ranked),
            )
        )
        _table(heads, found, text)
    show_formula(_FORMULA, caption=text["pattern_formula"])
    show_snippet("heads by pattern", _python(p, heads, found))
    show_source(pattern_scores, known_patterns)


def _choose(p: Page, heads: HeadsViewModel) -> tuple[PaintedHeads, tuple[int]]:
    """Draw the choice of a ready pattern and a button that undoes strokes; return what they belong to."""
    ready = PaintedHeads(heads.views)
    known, view = list(ready.known), heads.views[0]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        start = chosen_option(
            p.text, "pattern", known, key=PATTERN, owner=tuple(known), in_list=True, words=_pattern_name, width=260
        )
        owner = (hash((view.query.ids, view.key.ids, view.stack, view.kind, start)),)
        page_state.belongs_to(PAINTED, owner)
        strokes = choice.values(PAINTED)
        st.button(
            p.text["pattern_reset"],
            icon=":material/undo:",
            key="pattern reset",
            disabled=not strokes,
            on_click=choice.put,
            args=(PAINTED,),
        )
    return replace(ready, start=start, painted=cells_from_texts(strokes, on=ON, off=OFF)), owner


def paint(owner: tuple[int], state: State, stroke: PaintMask) -> Actions:
    """Return the actions of a stroke: its cells are painted or erased."""
    before = cells_from_texts(state.values(PAINTED), on=ON, off=OFF)
    cells = {**before, **{(cell.query, cell.key): stroke.allowed for cell in stroke.cells}}
    return (SetChoice(PAINTED, cells_to_texts(cells, on=ON, off=OFF), owner=owner),)


def _pattern_name(text: PageText, name: str) -> str:
    return text["pattern_blank"] if name == BLANK else text["role"][name]


def _table(heads: HeadsViewModel, found: PaintedHeads, text: PageText) -> None:
    roles = {place_of(role): text["role"][role.role] for role in heads.roles_here}
    show_table(
        pd.DataFrame(
            [
                {
                    text["column_layer"]: one.layer,
                    text["column_head"]: one.head,
                    text["pattern_score"]: one.score,
                    text["pattern_even"]: one.chance,
                    text["column_role"]: roles[one.layer, one.head],
                }
                for one in found.ranked
            ]
        ),
        name=_TABLE,
        caption=text["pattern_table"],
        height=320,
        on_select=partial(_follow, [(one.layer, one.head) for one in found.ranked]),
        selection_mode="single-row",
    )


def _follow(places: Sequence[Place]) -> None:
    """Select the head of the chosen row on all pages (a callback)."""
    if place := chosen_row(_TABLE, places):
        send(SelectHead(*place))


def _python(p: Page, heads: HeadsViewModel, found: PaintedHeads) -> str:
    stack, kind = heads.location.stack, heads.location.kind
    blank = "np.zeros_like(views[0].allowed)"
    start = blank if found.start == BLANK else f"known_patterns(views)[{found.start!r}]"
    strokes = "".join(f"pattern[{query}, {key}] = {is_on}\n" for (query, key), is_on in found.painted.items())
    return (
        f"{p.preamble}\nimport numpy as np\n"
        "from transformer.heads.painted_pattern import known_patterns, pattern_scores\n\n"
        f"layers = range(trace.n_layers({stack!r}))\n"
        f"views = [trace.attention({stack!r}, layer=layer, kind={kind!r}) for layer in layers]\n"
        f"pattern = {start}\n{strokes}"
        "for one in pattern_scores(views, pattern)[:10]:\n    print(one.layer, one.head, one.score, one.chance)\n"
    )
