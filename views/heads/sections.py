"""The sections below the maps of the Heads page: tables, the card of a head, the search by two tokens."""

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from transformer.heads.annotated_words import aligned_pairs, annotated_sentences
from transformer.heads.head_roles import CorpusRole
from transformer.heads.role_measures import MEASURES, ROLES, HeadMeasures
from ui.page.page import Page
from ui.shell.choice import chosen_section
from ui.shell.guidance.way import lead_to
from ui.show.figures import show_table
from ui.words.texts import PageText
from views.heads.finder import finder
from views.heads.head_card import CARD, card
from views.heads.heads_view_model import HeadsViewModel, Role
from views.heads.role_words import measure_name

_IN_TABLE = ("entropy", "confidence", "sinks", "distance", "induction", "previous_random")  # next to the roles


def show_section(p: Page, heads: HeadsViewModel) -> None:
    """Let the reader choose a section, and draw that one."""
    offered = sections(heads, of_sentences=not p.reads_pictures)
    section = chosen_section(p.text, offered, key="heads_section", owner=offered)
    with st.container(key=CARD):
        _draw(p, section, heads)
    lead_to(CARD)


def sections(heads: HeadsViewModel, *, of_sentences: bool) -> tuple[str, ...]:
    """Return the sections of the model; vision models have no lists of sentences."""
    return ("table", *(("card", "finder") if of_sentences else ()), *(("tests",) if heads.heads.has_tests else ()))


def _draw(p: Page, section: str, heads: HeadsViewModel) -> None:
    text, roles = p.text, heads.heads.roles
    if section == "table":
        _table(heads, text)
    elif section == "card":
        card(p, heads.location, heads.roles_over_many)
    elif section == "finder":
        finder(p, heads)
    else:
        caption = text["tests_caption"].format(annotated=len(annotated_sentences()), pairs=len(aligned_pairs()))
        show_table(measure_table(roles, text), name="head-tests", caption=caption)


def _table(heads: HeadsViewModel, text: PageText) -> None:
    many = heads.speaks_of_many
    table = role_table(heads.heads.roles, text)
    if many:
        table.insert(4, text["column_share"], [head.consistency for head in heads.roles_over_many])
    show_table(table, name="heads", caption=text["table_caption_corpus" if many else "table_caption"])


def role_table(roles: Sequence[Role], text: PageText) -> pd.DataFrame:
    """List the heads: location, role, all measures."""
    named = measures(roles, text)
    return pd.DataFrame(
        [
            {
                text["column_layer"]: head.layer,
                text["column_head"]: head.head,
                text["column_role"]: text["role"][head.role],
                text["column_score"]: head.score,
                **{called: head.scores.get(name, math.nan) for name, called in named.items()},
            }
            for head in roles
        ]
    )


def measures(roles: Sequence[Role], text: PageText) -> dict[str, str]:
    """Return the measures that exist for at least one of the heads: name → label."""
    names = {**{role: text["role"][role] for role in ROLES}, **text["measure_name"]}
    known = {name for head in roles for name, score in head.scores.items() if not math.isnan(score)}
    return {name: names[name] for name in (*_IN_TABLE, *ROLES) if name in known}


def measure_table(heads: Sequence[CorpusRole], text: PageText) -> pd.DataFrame:
    """List the heads: strongest test with score, chance and threshold, then the score of every test."""
    names = [name for name in MEASURES if any(name in head.measured.measures for head in heads)]
    rates = [name for name in ("aligned_next", "aligned_read") if any(name in h.measured.error_rates for h in heads)]
    columns = {name: _column(name, text) for name in {*names, *rates}}
    rows = []
    for head in heads:
        measured = head.measured
        strongest = measured.measures.get(measured.strongest)
        rows.append(
            {
                text["column_layer"]: head.layer,
                text["column_head"]: head.head,
                text["column_test"]: measure_name(measured.strongest, measured, text) if strongest else "",
                text["column_test_score"]: strongest.score if strongest else None,
                text["column_chance"]: strongest.chance if strongest else None,
                text["column_least"]: strongest.least if strongest else None,
                **{columns[name]: _score(measured, name) for name in names},
                **{f"AER: {columns[name]}": measured.error_rates.get(name) for name in rates},
            }
        )
    return pd.DataFrame(rows)


def _column(name: str, text: PageText) -> str:
    """Return the name of a test without the offset of a head."""
    return text["test"][name].replace("{where}", "").replace("{end}", "").replace("  ", " ").strip()


def _score(measured: HeadMeasures, name: str) -> float | None:
    return measured.measures[name].score if name in measured.measures else None
