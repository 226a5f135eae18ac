"""Sentence B of the Compare page: typed, or one of a pair that differs from sentence A in one thing."""

from functools import partial

import streamlit as st

from ui.lab.second_sentence import swapped
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.focus import start_of
from ui.shell.offers import offers
from ui.shell.page import Page
from ui.shell.presentation.presenter import labels, presenting
from ui.words.texts import PageText, model_sentences, other_pictures

_SECOND = "second"


def second_sentence(p: Page) -> tuple[str, dict[str, str] | None]:
    """Sentence B and the ready pair that both are; until a reader types one, it is the partner of sentence A, or that
    sentence with one word changed."""
    focus = p.focus
    task = start_of(focus.sentence, p.checkpoint.framing.starts)  # which a ready pair begins with, too
    found = _pictures(focus.sentence) if p.reads_pictures else pairs_to_compare(p.text, task)
    partners = {one: two for pair in found for one, two in _both_ways(pair["first"], pair["second"])}
    by_itself = partners.get(focus.sentence) or swapped(p) or focus.sentence
    pairs = {pair["label"]: pair for pair in found}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        second = choice.text(
            p.text["second"],
            by_itself,  # untouched, it follows sentence A
            key=_SECOND,
            help=p.text["second_help"],
            width=130 if p.reads_pictures else 290,
            label_visibility=labels(),
        )
        here = {focus.sentence, second}
        shown = next((label for label, pair in pairs.items() if {pair["first"], pair["second"]} == here), None)
        take = partial(_take, pairs)
        offers(p.text["pairs"], list(pairs), key="compare pair", chosen=shown, take=take, show_label=not presenting())
    return second, pairs[shown] if shown else None


def pairs_to_compare(text: PageText, task: str = "") -> tuple[dict[str, str], ...]:
    """The ready pairs: ``label``, ``shows``, and the sentences ``first`` and ``second``, behind the ``task``;
    ``in_french``: what a translation into French shows besides."""
    pairs = model_sentences()["pair"].items()
    return tuple({**text["pair"][name], **{place: task + one for place, one in pair.items()}} for name, pair in pairs)


def _pictures(sentence: str) -> tuple[dict[str, str], ...]:
    """Pairs of this picture and another one, by what the other shows."""
    return tuple(
        {"label": label, "shows": "", "first": sentence, "second": text} for label, text in other_pictures(sentence)
    )


def _both_ways(one: str, two: str) -> tuple[tuple[str, str], ...]:
    return (one, two), (two, one)


def _take(pairs: dict[str, dict[str, str]], label: str) -> None:
    pair = pairs[label]
    choice.put(_SECOND, pair["second"])
    shared_focus.change(sentence=pair["first"], target="")
