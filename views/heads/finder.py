"""Search for heads by a pair of tokens: heads listed by the weight of one in the other's row."""

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import percent
from transformer.heads.head_roles import CorpusRole
from transformer.text.tokens import TokenSequence
from ui.page.page import Page
from ui.shell.choice import one_of
from ui.shell.focus import select
from ui.show.figures import chosen_row, show_snippet, show_table
from ui.words.texts import PageText, as_plain
from views.heads.heads_view_model import HeadsViewModel, Place, Role, place_of
from views.heads.role_words import measure_name

_TABLE = "heads-between-two-tokens"
_CLICKED = 24  # more tokens than this are offered as a list
_MUCH = 0.5  # share of a row that counts as "more than half"


def finder(p: Page, heads: HeadsViewModel) -> None:
    """Draw the section below the maps."""
    text, first, location = p.text, heads.views[0], heads.location
    query = _token(p, "from", first.query, p.focus.token if p.focus.token in heads.queries else heads.queries[-1])
    key = _token(p, "to", first.key, heads.strongest_key(query))
    names = {"query": as_plain(first.query.labels[query]), "key": as_plain(first.key.labels[key])}
    if heads.is_masked(query, key):
        st.info(text["finder_masked"].format(**names), icon=":material/info:")
        return
    found = heads.between(query, key)
    (layer, head), strongest = found[0]
    st.markdown(
        text["finder_says"].format(
            much=sum(weight > _MUCH for _, weight in found),
            heads=len(found),
            strongest=f"{layer}.{head}",
            weight=percent(strongest),
            even=percent(heads.even_share(query, key)),
            **names,
        )
    )
    roles = {place_of(one): _role(one, text) for one in heads.heads.roles}
    show_table(
        pd.DataFrame(
            [
                {
                    text["column_layer"]: layer,
                    text["column_head"]: head,
                    text["finder_weight"]: weight,
                    text["column_role"]: roles[layer, head],
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
    show_snippet("heads between two tokens", _snippet(p, location.stack, location.kind, query, key))


def _token(p: Page, which: str, tokens: TokenSequence, first: int) -> int:
    """Choose one of ``tokens`` by a click, by default the one at ``first``."""
    key = f"heads_{which}"
    shown = {place: [label] for place, label in enumerate(tokens.labels)}
    more = {"in_list": True} if len(tokens) > _CLICKED else {"wrap": True}
    return one_of(
        p.text[f"finder_{which}"], shown, first, key=key, owner=(tokens.ids, p.focus.stack, p.focus.kind), **more
    )


def _role(head: Role, text: PageText) -> str:
    """Return the head's strongest test over many sentences, else its role."""
    if isinstance(head, CorpusRole) and head.measured.has_role:
        return measure_name(head.measured.strongest, head.measured, text)
    return text["role"][head.role]


def _follow(places: Sequence[Place]) -> None:
    """Select the head of the chosen row on all pages (a callback)."""
    if place := chosen_row(_TABLE, places):
        select(layer=place[0], head=place[1])


def _snippet(p: Page, stack: str, kind: str, query: int, key: int) -> str:
    return (
        f"{p.preamble}\nfound = []\nfor layer in range(trace.n_layers({stack!r})):\n"
        f"    view = trace.attention({stack!r}, layer=layer, kind={kind!r})\n"
        f"    found += [(float(view.weights[head, {query}, {key}]), layer, head) for head in range(view.n_heads)]\n"
        "for weight, layer, head in sorted(found, reverse=True)[:10]:\n    print(layer, head, weight)\n"
    )
