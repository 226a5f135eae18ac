"""All heads as points: two measures are the axes, a click follows a head, and the heads that do alike are named."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from charts.toolkit.numbers import percent
from transformer.heads.head_roles import CorpusRole, HeadRole
from transformer.heads.head_similarity import most_alike, most_alike_maps
from transformer.heads.role_measures import PLACES
from transformer.runs.attention_view import AttentionView
from ui.shell import choice, page_state
from ui.shell.actions import SelectHead, SetChoice
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.reducer import send
from ui.show.figures import show_figure
from ui.words.texts import PageText
from views.heads.scatter_figure import head_scatter

BRUSHED = "heads_brushed"  # the heads in the frame that was drawn around points, as "layer.head"
Roles = Sequence[HeadRole | CorpusRole]
_NAME = "heads-as-points"


def scatter(p: Page, roles: Roles, views: Sequence[AttentionView]) -> None:
    """The section below the maps; ``views``: of this sentence, one of each layer."""
    text, focus = p.text, p.focus
    names = _known(roles)
    if len(names) < 2:
        st.info(text["map_nothing"], icon=":material/info:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        across, up = (
            _axis(p, key, names, first) for key, first in zip(("across", "up"), _first_axes(roles, names), strict=True)
        )
    chosen = next(place for place, head in enumerate(roles) if (head.layer, head.head) == (focus.layer, focus.head))
    labels = [f"{head.layer}.{head.head}" for head in roles]
    show_figure(
        head_scatter(
            [head.scores[across] for head in roles],
            up=[head.scores[up] for head in roles],
            labels=labels,
            layers=[head.layer for head in roles],
            roles=[text["role"][head.role] for head in roles],
            axes=(measured(text, across), measured(text, up)),
            chosen=chosen,
        ),
        name=_NAME,
        caption=text["scatter_caption"],
        alt=text["scatter_alt"],
        on_select=partial(_follow, p, roles),
    )
    if alike := most_alike([head.scores for head in roles], chosen):
        st.markdown(text["scatter_alike"].format(head=labels[chosen], alike=", ".join(labels[one] for one in alike)))
    if near := most_alike_maps(views, focus.layer, focus.head):
        maps = ", ".join(f"{layer}.{head} ({percent(share)})" for layer, head, share in near)
        st.markdown(text["scatter_alike_maps"].format(head=labels[chosen], alike=maps))


def measured(text: PageText, name: str) -> str:
    """What an axis says: the share that goes to a place, or the measure's own name."""
    if name in PLACES:
        return text["scatter_share"].format(place=text["role"][name])
    return text["measure_name"].get(name) or text["role"][name]


def _known(roles: Roles) -> list[str]:
    """The measures that every head has a number for."""
    return [name for name in roles[0].scores if all(np.isfinite(head.scores.get(name, np.nan)) for head in roles)]


def _first_axes(roles: Roles, names: list[str]) -> tuple[str, str]:
    """How spread out a head is, against the place in which the heads differ most."""
    up = "broad" if "broad" in names else names[-1]
    places = [name for name in names if name in PLACES] or [name for name in names if name != up]
    return max(places, key=lambda name: np.std([head.scores[name] for head in roles])), up


def _axis(p: Page, which: str, names: list[str], first: str) -> str:
    key = f"heads_{which}"
    return chosen_option(p.text, which, names, key=key, owner=tuple(names), first=first, in_list=True, words=measured)


def brushed(p: Page) -> tuple[tuple[int, int], ...]:
    """(layer, head) of those that the maps are to show; empty: all of them."""
    page_state.belongs_to(BRUSHED, (p.checkpoint.fingerprint, p.focus.stack, p.focus.kind))
    heads = np.ndindex(p.trace.n_layers(p.focus.stack), p.checkpoint.config.heads_in(p.focus.stack))
    asked = choice.values(BRUSHED)
    return tuple(head for head in heads if "{}.{}".format(*head) in asked) if asked else ()


def brush_note(p: Page) -> None:
    """How many heads are in the frame, and a way back to all."""
    if heads := brushed(p):
        with st.container(horizontal=True, vertical_alignment="center"):
            named = ", ".join(f"{layer}.{head}" for layer, head in heads)
            st.markdown(p.text["scatter_brushed"].format(count=len(heads), heads=named), width="content")
            st.button(p.text["scatter_all"], icon=":material/undo:", key="heads all again", on_click=_show_all)


def _show_all() -> None:
    choice.put(BRUSHED)


def _follow(p: Page, roles: Roles) -> None:
    """In a callback: all pages look at the head whose point was clicked; a frame around points chooses what the grid
    shows."""
    chosen = st.session_state[f"chart {_NAME}"].selection
    heads = [roles[point["point_index"]] for point in chosen.points if point["point_index"] < len(roles)]
    if not heads:
        return
    if chosen.box or chosen.lasso:
        places = sorted((head.layer, head.head) for head in heads)
        send(SetChoice(BRUSHED, tuple(f"{layer}.{head}" for layer, head in places)))
    else:
        send(SelectHead(heads[0].layer, heads[0].head))
