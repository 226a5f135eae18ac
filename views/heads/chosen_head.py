"""The selected head below the maps: its function, its layer's formula, and the Python code."""

import math

import pandas as pd
import streamlit as st

from transformer.heads.annotated_words import alignment_tallies, syntactic_tallies
from transformer.heads.head_roles import choose_role, corpus_roles, head_roles, sentence_roles, summarise
from transformer.heads.induction import induction_test
from transformer.heads.weight_patterns import place_shares, positional_tallies
from transformer.text.sentence_files import SHIPPED
from ui.page.page import Page
from ui.shell.navigation import go_to
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.words.texts import PageText
from views.heads.corpus import Corpus
from views.heads.head_card import open_card
from views.heads.heads_view_model import HeadsViewModel
from views.heads.role_words import chosen_text, concatenation, corpus_counts, definitions, role_counts


def show_chosen_head(p: Page, heads: HeadsViewModel) -> None:
    """Describe the head's function in a sentence, with links to the Attention page and the head's card."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(chosen_text(heads, p.text, brief=True), width="content")
        if st.button(p.text["open"], icon=":material/visibility:"):
            go_to("attention")
        if not p.reads_pictures:
            st.button(p.text["card_open"], icon=":material/balance:", on_click=open_card)


def show_counts_and_formula(p: Page, heads: HeadsViewModel, corpus: Corpus | None) -> None:
    """Draw collapsed tables: heads by role, this head here and over many sentences, the formula."""
    text, many, view = p.text, heads.speaks_of_many, heads.views[0]
    with st.expander(text["more"], icon=":material/expand_more:", key="heads more", expanded=many):
        st.markdown(chosen_text(heads, text))
        if many:
            counts = corpus_counts(corpus.roles, heads.roles_over_many, text, p.checkpoint, name=corpus.name)
        else:
            counts = role_counts(heads.roles_here, text)
        st.markdown(counts)
        if heads.chosen_over_many:
            show_table(comparison_table(heads, text, name=corpus.name), name="head-here-and-over-all")
        latex, caption = concatenation(text, p.checkpoint.model.get_submodule(view.name), n_rows=len(view.query))
        show_formula(latex, caption=caption)


def comparison_table(heads: HeadsViewModel, text: PageText, *, name: str) -> pd.DataFrame:
    """List the head's measures in this sentence and over the sentences ``name``, one row each."""
    here, over = heads.chosen_here, heads.chosen_over_many
    rows = [
        (text["here"], here, math.nan),
        (text["over"].format(count=over.n_sentences, name=name), over, over.consistency),
    ]
    names = text["measure_name"]
    measured = [measure for measure in ("entropy", "confidence", "sinks", "induction") if measure in over.scores]
    return pd.DataFrame(
        [
            {
                text["column_where"]: where,
                text["column_role"]: text["role"][found.role],
                text["column_score"]: found.score,
                text["column_share"]: share,
                **{names[measure]: found.scores.get(measure, math.nan) for measure in measured},
            }
            for where, found, share in rows
        ]
    )


def show_definitions_and_code(p: Page, heads: HeadsViewModel, corpus: Corpus | None) -> None:
    """Show definitions of roles with sources, code for the head, and the functions that find roles."""
    with st.expander(p.text["definitions"], icon=":material/menu_book:"):
        st.markdown(definitions(p.text))
    many = heads.speaks_of_many
    show_snippet("heads", snippet(p, corpus if many else None))
    tests = (corpus_roles, summarise, induction_test, positional_tallies, syntactic_tallies, alignment_tallies)
    show_source(sentence_roles, head_roles, choose_role, place_shares, *(tests if many else ()))


def snippet(p: Page, corpus: Corpus | None) -> str:
    """Roles of the focused head in this sentence, or over the sentences of ``corpus``."""
    focus = p.focus
    if corpus is None:
        return (
            f"{p.preamble}\nfrom transformer.heads.head_roles import sentence_roles\n\n"
            f'view = trace.attention("{focus.stack}", layer={focus.layer}, kind="{focus.kind}")\n'
            f"role = sentence_roles(view)[{focus.head}]\nprint(role.role, role.score)\nprint(role.scores)\n"
        )
    return (
        "import transformer\nfrom transformer.heads.head_roles import corpus_roles\n"
        "from transformer.text.sentence_files import read_sentences\n\n"
        f"{p.load_line}"
        f"sentences = {_sentences(corpus)}\n"
        f"found = corpus_roles(checkpoint, sentences)\n"
        f'head = found.head("{focus.stack}", "{focus.kind}", layer={focus.layer}, head={focus.head})\n'
        "print(head.role, head.consistency, head.n_sentences)\nprint(head.shares)\nprint(head.scores)\n"
    )


def _sentences(corpus: Corpus) -> str:
    if not corpus.sentences:
        return f"read_sentences({corpus.name!r})  # the file that they came from"
    if corpus.name == SHIPPED.name:
        return f"read_sentences()[:{len(corpus.sentences)}]  # those that ship with it"
    return "[\n" + "".join(f"    {sentence!r},\n" for sentence in corpus.sentences) + "]"
