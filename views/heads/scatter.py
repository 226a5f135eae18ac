"""All heads as points of two measures; a click selects a head, a frame limits the maps."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from charts.toolkit.numbers import percent
from transformer.heads.role_measures import PLACES
from ui.shell.actions import SelectHead, SetChoice
from ui.shell.choice import chosen_option
from ui.shell.reducer import send
from ui.show.figures import show_figure
from ui.words.texts import PageText
from views.heads.head_figures import head_scatter
from views.heads.heads_controls import FRAMED
from views.heads.heads_view_model import HeadsViewModel, Place, place_of

_NAME = "heads-as-points"


def scatter(heads: HeadsViewModel, text: PageText) -> None:
    """Draw the section below the maps."""
    if len(heads.measures) < 2:
        st.info(text["map_nothing"], icon=":material/info:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        across, up = (
            _axis(which, heads.measures, first, text)
            for which, first in zip(("across", "up"), heads.first_axes, strict=True)
        )
    roles, places = heads.heads.roles, list(map(place_of, heads.heads.roles))
    show_figure(
        head_scatter(
            [head.scores[across] for head in roles],
            up=[head.scores[up] for head in roles],
            labels=list(map(_label, places)),
            layers=[head.layer for head in roles],
            roles=[text["role"][head.role] for head in roles],
            axes=(measured(text, across), measured(text, up)),
            chosen=places.index(heads.place),
        ),
        name=_NAME,
        caption=text["scatter_caption"],
        alt=text["scatter_alt"],
        on_select=partial(_follow, places),
    )
    head = _label(heads.place)
    if heads.alike:
        st.markdown(text["scatter_alike"].format(head=head, alike=", ".join(map(_label, heads.alike))))
    if near := heads.alike_in_map:
        maps = ", ".join(f"{_label((layer, other))} ({percent(share)})" for layer, other, share in near)
        st.markdown(text["scatter_alike_maps"].format(head=head, alike=maps))


def measured(text: PageText, name: str) -> str:
    """Return the name of an axis: the share of a kind of position, or the measure's own name."""
    if name in PLACES:
        return text["scatter_share"].format(place=text["role"][name])
    return text["measure_name"].get(name) or text["role"][name]


def _axis(which: str, names: Sequence[str], first: str, text: PageText) -> str:
    return chosen_option(
        text, which, names, key=f"heads_{which}", owner=tuple(names), first=first, in_list=True, words=measured
    )


def _label(place: Place) -> str:
    return "{}.{}".format(*place)


def _follow(places: Sequence[Place]) -> None:
    """Select the clicked head on all pages, or limit the maps to a frame of points (a callback)."""
    chosen = st.session_state[f"chart {_NAME}"].selection
    heads = [places[point["point_index"]] for point in chosen.points if point["point_index"] < len(places)]
    if not heads:
        return
    if chosen.box or chosen.lasso:
        send(SetChoice(FRAMED, tuple(map(_label, sorted(heads)))))
    else:
        send(SelectHead(*heads[0]))
