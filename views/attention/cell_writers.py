"""Why does this head look there? The score of a cell, split by what wrote its query and what wrote its key."""

from functools import partial

import streamlit as st

from charts.canvas.value_map import value_map
from charts.toolkit.style import signed, three_digits
from charts.toolkit.words import _, in_words
from transformer.attention_maps.score_sources import ScoreSources, score_sources
from transformer.layers.residual_stream import Part, in_a_sentence
from transformer.runs.attention_view import AttentionView
from ui.compute.store import store
from ui.shell import choice
from ui.shell.page import Page
from ui.show.drawings import show_map
from ui.show.figures import show_snippet
from ui.words.texts import as_plain

MOST = 6  # parts of each side with a row or column of their own
_HEIGHT = 330  # pixels


def writers(p: Page, view: AttentionView, *, key: int) -> None:
    """Sentence, table and Python for the cell (focused token, ``key``) of the focused head."""
    focus, text = p.focus, p.text
    against = _other_key(p, view, key)
    found = store.get(
        p.run,
        ("score sources", view.name, focus.head, focus.token, key, against),
        partial(
            score_sources, p.trace, focus.stack, focus.layer, focus.kind,
            head=focus.head, query=focus.token, key=key, against=against,
        ),
    )  # fmt: skip
    query_labels, key_labels = view.query.labels, view.key.labels
    st.markdown(
        in_a_sentence_of(
            p, found, query=query_labels[focus.token], key=key_labels[key],
            other=None if against is None else key_labels[against],
        )
    )  # fmt: skip
    rows, columns, values = found.table(MOST)
    show_map(
        value_map(
            values,
            row_labels=[_short(p, part) for part in rows],
            column_labels=[_short(p, part) for part in columns],
            row_title=text["writers_row"],
            column_title=text["writers_column_encoder" if focus.kind == "cross" else "writers_column"],
            title=text["writers_title"],
            value_name=text["writers_value"],
            height=_HEIGHT,
        ),
        key="score sources",
    )
    st.caption(" ".join(_notes(p, found)))
    show_snippet("score sources", _snippet(p, key=key, against=against))


def _other_key(p: Page, view: AttentionView, key: int) -> int | None:
    """The key that the score is compared with: one of this row's, the most looked at first."""
    weights, allowed = view.weights[p.focus.head, p.focus.token], view.allowed[p.focus.token]
    order = (-weights).argsort(kind="stable")
    others = {view.key.labels[place]: int(place) for place in order if allowed[place] and place != key}
    chosen = choice.select(
        p.text["writers_against"],
        list(others),
        key="score_against",
        owner=(view.name, p.focus.head, p.focus.token, key),
        placeholder=p.text["writers_against_placeholder"],
        help=p.text["writers_against_help"],
        width=280,
    )
    return others.get(chosen)


def in_a_sentence_of(p: Page, found: ScoreSources, *, query: str, key: str, other: str | None) -> str:
    """The sum, its largest product, and who brought most on either side."""
    first, second, value = found.strongest(1)[0]
    by_query, by_key = found.values.sum(axis=1), found.values.sum(axis=0)
    most_query, most_key = int(abs(by_query).argmax()), int(abs(by_key).argmax())
    named = {"query": as_plain(query), "key": as_plain(key)}
    if other is not None:
        named["other"] = as_plain(other)
    template = p.text["writers_says" if other is None else "writers_says_against"]
    return template.format(
        score=f"**{three_digits(found.score)}**",
        value=f"**{signed(value)}**",
        first=f"**{_who(first)}**",
        second=f"**{_who(second)}**",
        most_query=_who(found.query_parts[most_query]),
        query_sum=signed(float(by_query[most_query])),
        most_key=_who(found.key_parts[most_key]),
        key_sum=signed(float(by_key[most_key])),
        **named,
    )


def _who(part: Part) -> str:
    return as_plain(in_words(in_a_sentence(part.label)))


def _short(p: Page, part: Part | None) -> str:
    """As a slanted label has room for: "head 1.4" is head 4 of layer 1."""
    if part is None:
        return _("all others")
    if f"writers_{part.kind}" not in p.text:
        return in_words(part.label)
    return p.text[f"writers_{part.kind}"].format(layer=part.layer, head=part.head)


def _notes(p: Page, found: ScoreSources) -> list[str]:
    notes = [p.text["writers_caption"]]
    if found.added:
        notes.append(p.text["writers_added"].format(added=signed(found.added)))
    if found.cap is not None:
        notes.append(p.text["writers_cap"])
    return notes


def _snippet(p: Page, *, key: int, against: int | None) -> str:
    focus = p.focus
    place = f'"{focus.stack}", {focus.layer}, "{focus.kind}", head={focus.head}, query={focus.token}, key={key}'
    return (
        f"{p.preamble}\nfrom transformer.attention_maps.score_sources import score_sources\n\n"
        f"found = score_sources(trace, {place}{'' if against is None else f', against={against}'})\n"
        "print(found.total, found.score, found.deviation)\n"
        "for of_query, of_key, value in found.strongest(10):\n"
        "    print(of_query.label, of_key.label, value)\n"
    )
