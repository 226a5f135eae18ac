"""The sections below the maps of the Heads page: tables, one number of all heads, a layer's rows."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from transformer.heads.annotated_words import aligned_pairs, annotated_sentences
from transformer.heads.head_roles import CorpusRole
from transformer.heads.role_measures import MEASURES, ROLES, HeadMeasures
from ui.shell.choice import chosen_option, chosen_section
from ui.shell.guidance.way import lead_to
from ui.shell.page import Page
from ui.show.figures import show_figure, show_table
from ui.words.texts import PageText
from views.heads.finder import finder
from views.heads.head_card import CARD, card
from views.heads.head_figures import entropy_strip, head_profiles, head_scores
from views.heads.heads_view_model import HeadsViewModel, Role, place_of
from views.heads.pattern import pattern
from views.heads.role_words import captions, measure_name
from views.heads.scatter import scatter

_IN_TABLE = ("entropy", "confidence", "sinks", "distance", "induction", "previous_random")  # next to the roles
_ON_THE_MAP = ("consistency", "confidence", "sinks", "broad", "induction")  # measures that lie in 0…1


def show_section(p: Page, heads: HeadsViewModel) -> None:
    """Let the reader choose a section, and draw that one."""
    offered = sections(heads, of_sentences=p.reads_sentences)
    section = chosen_section(p.text, offered, key="heads_section", owner=offered)
    with st.container(key=CARD):
        _draw(p, section, heads)
    lead_to(CARD)


def sections(heads: HeadsViewModel, *, of_sentences: bool) -> tuple[str, ...]:
    """Return the sections of the model; vision models have no lists of sentences."""
    measured = ("tests", "profile") if heads.heads.has_tests else ()
    return ("table", *(("card", "finder") if of_sentences else ()), "pattern", *measured, "map", "scatter", "rows")


def _draw(p: Page, section: str, heads: HeadsViewModel) -> None:
    text, roles = p.text, heads.heads.roles
    if section == "table":
        _table(heads, text)
    elif section == "card":
        card(p, heads.location, heads.roles_over_many)
    elif section == "finder":
        finder(p, heads)
    elif section == "pattern":
        pattern(p, heads)
    elif section == "tests":
        caption = text["tests_caption"].format(annotated=len(annotated_sentences()), pairs=len(aligned_pairs()))
        show_table(measure_table(roles, text), name="head-tests", caption=caption)
    elif section == "profile":
        _profiles(heads, text)
    elif section == "map":
        _measure_map(heads, text)
    elif section == "scatter":
        scatter(heads, text)
    else:
        layer = heads.location.layer
        caption = text["rows_caption"].format(layer=layer)
        strip = entropy_strip(heads.views[layer])
        show_figure(strip, name="entropy-of-rows", caption=caption, alt=text["rows_alt"])


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


def _profiles(heads: HeadsViewModel, text: PageText) -> None:
    roles = heads.roles_over_many
    curves = {place_of(head): head.measured.profile for head in roles}
    if not all(curves.values()):
        st.info(text["profile_cross"], icon=":material/info:")
        return
    distances = sorted({distance for curve in curves.values() for distance in curve})
    show_figure(
        head_profiles(
            curves,
            names=captions(heads.heads, text),
            clear=list(map(place_of, heads.heads.clear)),
            chosen=heads.place,
        ),
        name="weight-by-distance",
        caption=text["profile_caption"].format(
            least=distances[0], most=distances[-1], name=text["over_sentences"].format(count=roles[0].n_sentences)
        ),
        alt=text["profile_alt"],
    )


def _measure_map(heads: HeadsViewModel, text: PageText) -> None:
    roles = heads.heads.roles
    known = {name: _values(roles, name) for name in _ON_THE_MAP}
    known = {name: values for name, values in known.items() if np.isfinite(values).all()}
    if not known:
        st.info(text["map_nothing"], icon=":material/info:")
        return
    name = chosen_option(text, "measure", list(known), key="heads_measure", owner=tuple(known))
    words: list[list[str]] = [[] for _ in heads.views]
    for head in roles:
        steady = isinstance(head, CorpusRole) and name == "consistency"
        words[head.layer].append(text["role_short"][head.most_frequent if steady else head.role])
    show_figure(
        head_scores(
            known[name].reshape(len(words), -1), name=text["measure_name"][name], roles=words, chosen=heads.place
        ),
        name="head-measures",
        caption=text["map_caption"],
        alt=text["map_alt"],
    )


def _values(roles: Sequence[Role], name: str) -> np.ndarray:
    if name == "consistency":
        return np.array([getattr(head, "consistency", math.nan) for head in roles])
    return np.array([head.scores.get(name, math.nan) for head in roles])
