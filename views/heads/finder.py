"""Which heads look from this token to that one? Two tokens are chosen, and all heads of all layers stand in line."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import percent
from transformer.heads.head_roles import CorpusRole, HeadRole
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence
from ui.shell.actions import SelectHead
from ui.shell.choice import one_of
from ui.shell.page import Page
from ui.shell.reducer import send
from ui.show.figures import show_snippet, show_table
from ui.words.texts import PageText, as_plain
from views.heads.measure_words import measure_name

_TABLE = "heads-between-two-tokens"
_CLICKED = 24  # more tokens than these stand in a list
_MUCH = 0.5  # of a row


def finder(p: Page, views: Sequence[AttentionView], roles: Sequence[HeadRole | CorpusRole]) -> None:
    """The section below the maps; ``views``: one of each layer."""
    text, first = p.text, views[0]
    choice = [place for place, keys in enumerate(first.allowed.sum(axis=1)) if keys > 1] or [0]
    query = _token(p, "from", first.query, p.focus.token if p.focus.token in choice else choice[-1])
    of_focused = views[p.focus.layer].weights[p.focus.head]
    key = _token(p, "to", first.key, int(of_focused[query].argmax()))
    names = {"query": as_plain(first.query.labels[query]), "key": as_plain(first.key.labels[key])}
    if not any(view.allowed[query, key] for view in views):
        st.info(text["finder_masked"].format(**names), icon=":material/info:")
        return
    found = ranked(views, query, key)
    much = sum(weight > _MUCH for _, weight in found)
    (layer, head), strongest = found[0]
    even = np.mean([view.allowed[query, key] / max(1, view.allowed[query].sum()) for view in views])
    st.markdown(
        text["finder_says"].format(
            much=much,
            heads=len(found),
            strongest=f"{layer}.{head}",
            weight=percent(strongest),
            even=percent(even),
            **names,
        )
    )
    doing = {(one.layer, one.head): _job(one, text) for one in roles}
    show_table(
        pd.DataFrame(
            [
                {
                    text["column_layer"]: layer,
                    text["column_head"]: head,
                    text["finder_weight"]: weight,
                    text["column_role"]: doing[layer, head],
                }
                for (layer, head), weight in found
            ]
        ),
        name=_TABLE,
        caption=text["finder_caption"],
        height=320,
        on_select=partial(_follow, [place for place, _ in found]),
        selection_mode="single-row",
    )
    show_snippet("heads between two tokens", _snippet(p, query, key))


def ranked(views: Sequence[AttentionView], query: int, key: int) -> list[tuple[tuple[int, int], float]]:
    """((layer, head), weight) of every head for one pair of tokens, the strongest first."""
    found = [
        ((view.layer, head), float(view.weights[head, query, key])) for view in views for head in range(view.n_heads)
    ]
    return sorted(found, key=lambda one: -one[1])


def _token(p: Page, which: str, tokens: TokenSequence, first: int) -> int:
    """One of ``tokens`` by a click, at first the one at ``first``."""
    key = f"heads_{which}"
    shown = {place: [label] for place, label in enumerate(tokens.labels)}
    more = {"in_list": True} if len(tokens) > _CLICKED else {"wrap": True}
    return one_of(
        p.text[f"finder_{which}"], shown, first, key=key, owner=(tokens.ids, p.focus.stack, p.focus.kind), **more
    )


def _job(head: HeadRole | CorpusRole, text: PageText) -> str:
    """What the head does besides: its strongest test, or its role."""
    if isinstance(head, CorpusRole) and head.measured.has_role:
        return measure_name(head.measured.strongest, head.measured, text)
    return text["role"][head.role]


def _follow(places: Sequence[tuple[int, int]]) -> None:
    """In a callback: all pages look at the head whose row was chosen."""
    rows = st.session_state[f"data {_TABLE}"].selection.rows
    if rows and rows[0] < len(places):
        send(SelectHead(*places[rows[0]]))


def _snippet(p: Page, query: int, key: int) -> str:
    stack, kind = p.focus.stack, p.focus.kind
    return (
        f"{p.preamble}\nfound = []\nfor layer in range(trace.n_layers({stack!r})):\n"
        f"    view = trace.attention({stack!r}, layer=layer, kind={kind!r})\n"
        f"    found += [(float(view.weights[head, {query}, {key}]), layer, head) for head in range(view.n_heads)]\n"
        "for weight, layer, head in sorted(found, reverse=True)[:10]:\n    print(layer, head, weight)\n"
    )
