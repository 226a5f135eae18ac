"""Roles over many sentences in words and numbers, for the Heads page."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.style import three_digits
from transformer.files.checkpoints import Checkpoint
from transformer.heads.annotated_words import aligned_pairs, annotated_sentences
from transformer.heads.head_roles import CorpusRole, HeadRole
from transformer.heads.induction import LEAST_INDUCTION
from transformer.heads.role_measures import ROLES
from transformer.runs.attention_view import AttentionView
from transformer.runs.readings import task_before
from ui.lab.head_table import captions, clear_heads, role_table
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.show.figures import show_figure, show_table
from ui.words.texts import PageText, as_plain
from views.heads.corpus import Corpus
from views.heads.finder import finder
from views.heads.head_card import card
from views.heads.head_figures import entropy_strip, head_profiles, head_scores
from views.heads.measure_words import measure_captions, measure_counts, measure_table, measure_text
from views.heads.scatter import scatter

_ON_THE_MAP = ("consistency", "confidence", "sinks", "broad", "induction")  # measures that lie in 0…1
Roles = Sequence[HeadRole | CorpusRole]


def corpus_role_text(head: CorpusRole, text: PageText) -> str:
    """The strongest test of the literature; without those (an older file) "diagonal, in 54 % of 84 sentences", or no
    clear role and what it does most often, or what is nearest."""
    names = text["role"]
    if not head.n_sentences:
        return text["corpus_too_short"]
    if head.measured.strongest:
        return measure_text(head.measured, text)
    share = {"share": percent(head.consistency), "count": head.n_sentences}
    if head.role != "none":
        return text["corpus_role"].format(role=names[head.role], score=three_digits(head.score), **share)
    if head.leaning:
        share["share"] = percent(head.shares[head.leaning])
        return text["corpus_often"].format(role=names["none"], often=names[head.leaning], **share)
    if not head.nearest:
        return text["corpus_none_at_all"].format(role=names["none"], **share)
    nearest = {"nearest": names[head.nearest], "score": three_digits(head.scores[head.nearest])}
    return text["corpus_none"].format(role=names["none"], **share, **nearest)


def percent(share: float) -> str:
    return f"{three_digits(100 * share)} %"


def corpus_counts(corpus: Corpus, heads: Sequence[CorpusRole], text: PageText, checkpoint: Checkpoint) -> str:
    """How many heads have which role over how many sentences of which list, behind which task these were read, and what
    was found about induction."""
    roles = corpus.roles
    said = [measure_counts(corpus, heads, text) if has_measures(heads) else _role_counts(corpus, heads, text)]
    if task := task_before(checkpoint):
        said.append(text["corpus_task"].format(task=as_plain(task.strip())))
    if roles.n_skipped:
        said.append(text["corpus_skipped"].format(count=roles.n_skipped, limit=checkpoint.config.max_length))
    if (test := roles.induction) is not None:
        names = [text["induction_head"].format(layer=place.layer, head=place.head) for place in test.heads]
        strongest = test.strongest
        said.append(
            text["induction_found" if names else "induction_none"].format(
                heads=", ".join(names),
                layer=strongest.layer,
                head=strongest.head,
                score=three_digits(test.induction[strongest]),
                chance=three_digits(test.chance),
                least=three_digits(LEAST_INDUCTION),
            )
        )
    return " ".join(said)


def has_measures(heads: Sequence[HeadRole | CorpusRole]) -> bool:
    """Whether the tests of the literature were counted: not in one sentence, nor in an older file."""
    return any(isinstance(head, CorpusRole) and head.measured.measures for head in heads)


def _role_counts(corpus: Corpus, heads: Sequence[CorpusRole], text: PageText) -> str:
    found = Counter(head.role for head in heads)
    counts = [text["counts"].format(count=found[role], role=text["role"][role]) for role in ROLES if found[role]]
    return text["corpus_counted"].format(
        count=corpus.roles.n_sentences, name=as_plain(corpus.name), roles=", ".join(counts)
    )


def corpus_captions(heads: Sequence[CorpusRole], text: PageText) -> dict[tuple[int, int], str]:
    """The strongest test of every head; without tests as ``captions``, and an induction head says that it is one."""
    if has_measures(heads):
        return measure_captions(heads, text)
    short = captions(heads, text)
    for head in heads:
        if head.is_induction_head:
            short[head.layer, head.head] = text["induction_short"]
    return short


def clear_captions(roles: Roles) -> list[tuple[int, int]]:
    """(layer, head) of those that have what is written below them; the others are pale."""
    if not has_measures(roles):
        return clear_heads(roles)
    return [(head.layer, head.head) for head in roles if head.measured.has_role]


def sections(roles: Roles, *, of_sentences: bool) -> tuple[str, ...]:
    """What can be shown below the maps; lists of sentences are nothing for a model of pictures."""
    measured = ("tests", "profile") if has_measures(roles) else ()
    return ("table", *(("card", "finder") if of_sentences else ()), *measured, "map", "scatter", "rows")


def comparison_table(here: HeadRole, corpus: Corpus, head: CorpusRole, text: PageText) -> pd.DataFrame:
    """The focused head in this sentence and over all sentences of a list, one row each."""
    rows = [
        (text["here"], here, math.nan),
        (text["over"].format(count=head.n_sentences, name=corpus.name), head, head.consistency),
    ]
    names = text["measure_name"]
    measured = [name for name in ("entropy", "confidence", "sinks", "induction") if name in head.scores]
    return pd.DataFrame(
        [
            {
                text["column_where"]: where,
                text["column_role"]: text["role"][found.role],
                text["column_score"]: found.score,
                text["column_share"]: share,
                **{names[name]: found.scores.get(name, math.nan) for name in measured},
            }
            for where, found, share in rows
        ]
    )


def depth(p: Page, section: str, roles: Roles, views: Sequence[AttentionView], overall: Sequence[CorpusRole]) -> None:
    """The sections below the maps: all numbers as a table, one number as a picture, or the rows of one layer.
    ``overall``: the roles over many sentences, where they are known, whatever ``roles`` the page speaks of."""
    text = p.text
    over_corpus = isinstance(roles[0], CorpusRole)
    if section == "table":
        table = role_table(roles, text)
        if over_corpus:
            table.insert(4, text["column_share"], [head.consistency for head in roles])
        caption = text["table_caption_corpus" if over_corpus else "table_caption"]
        show_table(table, name="heads", caption=caption)
    elif section == "card":
        card(p, overall)
    elif section == "finder":
        finder(p, views, roles)
    elif section == "tests":
        caption = text["tests_caption"].format(annotated=len(annotated_sentences()), pairs=len(aligned_pairs()))
        show_table(measure_table(roles, text), name="head-tests", caption=caption)
    elif section == "profile":
        _profiles(p, roles)
    elif section == "map":
        _measure_map(p, roles)
    elif section == "scatter":
        scatter(p, roles, views)
    else:
        show_figure(
            entropy_strip(views[p.focus.layer]),
            name="entropy-of-rows",
            caption=text["rows_caption"].format(layer=p.focus.layer),
            alt=text["rows_alt"],
        )


def _profiles(p: Page, heads: Sequence[CorpusRole]) -> None:
    text, focus = p.text, p.focus
    curves = {(head.layer, head.head): head.measured.profile for head in heads}
    if not all(curves.values()):
        st.info(text["profile_cross"], icon=":material/info:")
        return
    distances = sorted({distance for curve in curves.values() for distance in curve})
    show_figure(
        head_profiles(
            curves,
            names=measure_captions(heads, text),
            clear=clear_captions(heads),
            chosen=(focus.layer, focus.head),
        ),
        name="weight-by-distance",
        caption=text["profile_caption"].format(
            least=distances[0], most=distances[-1], name=text["over_sentences"].format(count=heads[0].n_sentences)
        ),
        alt=text["profile_alt"],
    )


def _measure_map(p: Page, roles: Roles) -> None:
    text, focus = p.text, p.focus
    known = {name: _values(roles, name) for name in _ON_THE_MAP}
    known = {name: values for name, values in known.items() if np.isfinite(values).all()}
    if not known:
        st.info(text["map_nothing"], icon=":material/info:")
        return
    name = chosen_option(text, "measure", list(known), key="heads_measure", owner=tuple(known))
    n_layers = 1 + max(head.layer for head in roles)
    short = text["role_short"]
    doing = [
        head.most_frequent if isinstance(head, CorpusRole) and name == "consistency" else head.role for head in roles
    ]
    words = [
        [short[role] for role, head in zip(doing, roles, strict=True) if head.layer == layer]
        for layer in range(n_layers)
    ]
    show_figure(
        head_scores(
            known[name].reshape(n_layers, -1),
            name=text["measure_name"][name],
            roles=words,
            chosen=(focus.layer, focus.head),
        ),
        name="head-measures",
        caption=text["map_caption"],
        alt=text["map_alt"],
    )


def _values(roles: Roles, name: str) -> np.ndarray:
    if name == "consistency":
        return np.array([getattr(head, "consistency", math.nan) for head in roles])
    return np.array([head.scores.get(name, math.nan) for head in roles])
