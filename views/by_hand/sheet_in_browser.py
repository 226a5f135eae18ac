"""The sheet in the browser: the data that it receives and returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from charts.canvas.module import by_hand_script
from transformer.toy.by_hand import load_sheet
from ui.page.page import Page, guard
from ui.shell import choice
from ui.shell.events import heard, one_of
from ui.shell.fragments import fragment
from ui.shell.navigation import go_to, pages
from ui.show.figures import source_of
from ui.words.texts import PageText, language
from views.by_hand.by_hand_view_model import STEPS, ByHandViewModel, SheetChoices, Step
from views.by_hand.papers import offer_paper

STYLE = Path(__file__).with_name("page.css")
_KEY = "by hand"
_SENT = "by hand: sent by the sheet"
# Names of the choices in the address.
_CHOICES = {"words": "hand_words", "heads": "hand_heads", "cells": "hand_cells"}
_STEP = "hand_step"  # the step that is shown, from 1, or "sheet" for the whole sheet
_KNOWN_STEP = re.compile(r"[1-9]\d?|sheet", re.ASCII)
_TEXTS = "sheet_"  # prefix of the names of the sheet's texts

_component = st.components.v2.component("glassformer_by_hand", js=by_hand_script())


def chosen() -> SheetChoices:
    """Return the reader's changes that exist on the sheet."""
    return SheetChoices.from_texts(**{name: choice.value(key) for name, key in _CHOICES.items()})


@fragment
def draw_sheet(p: Page) -> None:
    """Draw the sheet and the button that prints it; changes are kept in the URL."""
    with guard():
        choices = chosen()
        texts = choices.to_texts() | {"step": _known(choice.value(_STEP))}
        data = sheet_data(p.text, texts, pages={name: page.title for name, page in pages().items()})
        _component(
            key=_KEY,
            data=data | {"brought": st.session_state.get(_SENT, texts) != texts},
            on_state_change=_keep,
            on_opened_change=_open,
        )
        offer_paper(p, choices)


def sheet_data(text: PageText, texts: Mapping[str, str], *, pages: Mapping[str, str]) -> dict[str, Any]:
    """Return what the component draws: see ``charts/canvas/source/by_hand/sheet.js``.

    Args:
        text: Texts of the page.
        texts: The reader's changes, as URL parameters.
        pages: Titles of the pages by name, which the tables link to.
    """
    sheet = load_sheet()
    return {
        "parameters": {name: numbers.tolist() for name, numbers in sheet.parameters.items()},
        "opening": list(sheet.text),
        "vocabulary": list(
            ByHandViewModel(SheetChoices.from_texts(**{name: texts[name] for name in _CHOICES})).vocabulary(language())
        ),
        "language": language(),
        "state": dict(texts),
        "texts": {key.removeprefix(_TEXTS): text[key] for key in text if key.startswith(_TEXTS)},
        "steps": {name: _described(step, text, pages) for name, step in STEPS.items()},
    }


def _described(step: Step, text: PageText, pages: Mapping[str, str]) -> dict[str, Any]:
    file, line, code = line_of(step)
    link = text["in_trained"].format(page=pages[step.page]) if step.page in pages else ""
    return {"code": code, "file": file, "line": line, "page": step.page, "link": link}


def line_of(step: Step) -> tuple[str, int, str]:
    """Return file, number and text of the line that computes a table.

    Raises:
        ValueError: If the code has no such line.
    """
    source = source_of(step.thing)
    for number, line in enumerate(source.code.splitlines()):
        if step.line in line:
            return source.file, source.line + number, line.partition("  #")[0].strip()
    raise ValueError(f"{step.thing.__qualname__} in {source.file} has no line with {step.line!r}")


def _keep() -> None:
    """Check and store the changes that the sheet sends."""
    sent = heard(_KEY, "state")
    if not isinstance(sent, Mapping):
        return
    found = {name: value if isinstance(value := sent.get(name), str) else "" for name in _CHOICES}
    step = sent.get("step")
    texts = SheetChoices.from_texts(**found).to_texts() | {"step": _known(step if isinstance(step, str) else "")}
    for name, key in {**_CHOICES, "step": _STEP}.items():
        choice.put(key, *([texts[name]] if texts[name] else []))
    st.session_state[_SENT] = texts


def _known(step: str) -> str:
    return step if _KNOWN_STEP.fullmatch(step) else ""


def _open() -> None:
    """Open the page with the same numbers of a trained model."""
    if name := one_of(heard(_KEY, "opened"), {step.page for step in STEPS.values()}):
        go_to(name)
