"""The sections of By hand: the sheet in the browser, and the printed one with blanks."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from charts.canvas.module import by_hand_script
from charts.documents.document_parts import Blanks, NumberSheet, Paragraph, SheetNumber, SheetTable
from charts.toolkit.numbers import number
from transformer.attention import MultiHeadAttention, attention_scores, attention_weights
from transformer.embedding import Embedding, vocabulary_projection
from transformer.feed_forward import FeedForward
from transformer.layer_norm import LayerNorm
from transformer.positions import LearnedEncoding
from transformer.predictions.answer_probabilities import softmax
from transformer.residual import residual_connection
from transformer.toy.by_hand import SheetChoices, load_sheet, numbers_of, vocabulary
from ui.page.page import Page, guard
from ui.shell import choice
from ui.shell.events import heard, one_of
from ui.shell.fragments import fragment
from ui.shell.navigation import go_to, pages
from ui.show.exports import document_of
from ui.show.figures import source_of
from ui.words.texts import PageText, language, use_language

STYLE = Path(__file__).with_name("page.css")
_KEY = "by hand"
_SENT = "by hand: sent by the sheet"
# Names of the choices in the address.
_CHOICES = {"words": "hand_words", "heads": "hand_heads", "cells": "hand_cells"}
_STEP = "hand_step"  # the step that is shown, from 1, or "sheet" for the whole sheet
_KNOWN_STEP = re.compile(r"[1-9]\d?|sheet", re.ASCII)
_TEXTS = "sheet_"  # prefix of the names of the sheet's texts
_CHANNELS = ("1", "2", "3", "4")

_component = st.components.v2.component("glassformer_by_hand", js=by_hand_script())


class Step(NamedTuple):
    """Where a table of the sheet is computed, and the page that shows the same numbers of a trained model.

    ``line`` is the text of the line in ``thing``, or the part of it that is shown.
    """

    thing: Callable | type
    line: str
    page: str


# One step per table, as in charts/canvas/source/by_hand/blocks.js (`step` or `of`).
STEPS: Mapping[str, Step] = {
    "onehot": Step(Embedding.forward, "self.table(ids)", "tokens"),
    "E": Step(Embedding.__init__, "self.table = table", "embeddings"),
    "token": Step(Embedding.forward, "self.table(ids) * self.scale", "embeddings"),
    "P": Step(LearnedEncoding.forward, "self.table[None, start : start + n_positions]", "positions"),
    "x": Step(Embedding.forward, "embedded + self.position(", "positions"),
    "WQ": Step(MultiHeadAttention.__init__, "self.query_projection = nn.Linear(", "heads"),
    "WK": Step(MultiHeadAttention.__init__, "self.key_projection = nn.Linear(", "heads"),
    "WV": Step(MultiHeadAttention.__init__, "self.value_projection = nn.Linear(", "heads"),
    "WO": Step(MultiHeadAttention.__init__, "self.output_projection = nn.Linear(", "heads"),
    "W1": Step(FeedForward.__init__, "self.input_projection = nn.Linear(", "feed_forward"),
    "W2": Step(FeedForward.__init__, "self.output_projection = nn.Linear(", "feed_forward"),
    "Q": Step(MultiHeadAttention.queries, "self.query_projection(query_input)", "attention"),
    "K": Step(MultiHeadAttention.keys_and_values, "self.key_projection(key_input)", "attention"),
    "V": Step(MultiHeadAttention.keys_and_values, "self.value_projection(key_input)", "attention"),
    "products": Step(attention_scores, "query @ key.transpose(-2, -1)", "attention"),
    "scores": Step(attention_weights, "torch.where(allowed, scores, lowest)", "masks"),
    "weights": Step(attention_weights, "torch.softmax(", "attention"),
    "context": Step(MultiHeadAttention.attend, "weights @ value", "attention"),
    "out": Step(MultiHeadAttention.project_output, "self.output_projection(", "attention"),
    "sum1": Step(residual_connection, "norm(stream + dropout(sublayer(stream)))", "add_norm"),
    "mean1": Step(LayerNorm.steps, "std = self.std(", "add_norm"),
    "g1": Step(LayerNorm.__init__, "self.weight = ", "add_norm"),
    "norm1": Step(LayerNorm.steps, "normalized * self.weight + self.bias", "add_norm"),
    "pre": Step(FeedForward.forward, "self.input_projection(x)", "feed_forward"),
    "hidden": Step(FeedForward.forward, "self.activation(", "feed_forward"),
    "ff": Step(FeedForward.forward, "self.output_projection(", "feed_forward"),
    "sum2": Step(residual_connection, "norm(stream + dropout(sublayer(stream)))", "add_norm"),
    "mean2": Step(LayerNorm.steps, "std = self.std(", "add_norm"),
    "g2": Step(LayerNorm.__init__, "self.weight = ", "add_norm"),
    "norm2": Step(LayerNorm.steps, "normalized * self.weight + self.bias", "add_norm"),
    "logits": Step(vocabulary_projection, "projection.weight = table.weight", "decoding"),
    "probabilities": Step(softmax, "powers / powers.sum(", "decoding"),
}


# ---- the sheet in the browser ----------------------------------------------------------------------------------------


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
        "vocabulary": list(vocabulary(language())),
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
    for below, line in enumerate(source.code.splitlines()):
        if step.line in line:
            return source.file, source.line + below, line.partition("  #")[0].strip()
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


# ---- the printed sheet -----------------------------------------------------------------------------------------------


def offer_paper(p: Page, choices: SheetChoices) -> None:
    """Draw the button that downloads the sheet for printing."""
    with st.container(key="by hand print", width="content"):
        st.download_button(
            p.text["print"],
            data=partial(_file, choices, p.text, language()),
            file_name="by-hand.html",
            mime="text/html",
            icon=":material/print:",
            help=p.text["print_help"],
            key="by hand sheet",
            on_click="ignore",
        )


def _file(choices: SheetChoices, text: PageText, language: str) -> bytes:
    with use_language(language):  # the file is generated outside the session's run
        return paper(choices, text=text).encode()


def paper(choices: SheetChoices, *, text: PageText) -> str:
    """Write the sheet as one file."""
    return document_of(text["paper_title"], [_sheet(choices, text=text)], kicker="Glassformer")


def _sheet(choices: SheetChoices, *, text: PageText) -> NumberSheet:
    known = vocabulary(language())
    words = [known[word] for word in choices.words]
    above = [
        Paragraph(f"**{text['paper_title']}**"),
        Blanks((text["paper_name"], text["paper_date"])),
        Paragraph(text["paper_task"].format(text=" ".join(words), last=words[-1])),
        Paragraph(f"{text['paper_bias']} {text['paper_masked']}", "hint"),
    ]
    return NumberSheet(above, _strips(choices, words, known), [Blanks((text["paper_answer"],))])


def _strips(choices: SheetChoices, words: Sequence[str], known: Sequence[str]) -> list[list[SheetTable]]:
    """Lay the tables out as six strips, from the embedding to the probabilities."""
    numbers, n_heads, last = numbers_of(choices), choices.n_heads, len(words) - 1

    def given(name: str, heading: str, rows: Sequence[str], columns: Sequence[str] = _CHANNELS) -> SheetTable:
        cells = [[SheetNumber(_written(value, exact=True), "given") for value in row] for row in numbers[name]]
        return SheetTable(heading, columns, list(zip(rows, cells, strict=False)))

    def weight(name: str, bias: str, heading: str) -> SheetTable:
        table = given(name, heading, _CHANNELS)
        return SheetTable(heading, table.columns, [*table.rows, *given(bias, "", ("b",)).rows])

    def result(names: Sequence[str] | str, heading: str, columns: Sequence[str] = _CHANNELS, *, causal=False):
        names = (names,) if isinstance(names, str) else names
        values = np.hstack([numbers[name] for name in names])
        rows = []
        for r, row in enumerate(values):
            kind = "blank" if r == last else ""
            cells = [
                SheetNumber("", "masked") if causal and c > r else SheetNumber(_written(value), kind)
                for c, value in enumerate(row)
            ]
            rows.append((words[r], cells))
        return SheetTable(heading, columns, rows)

    def heads(name: str, heading: str, *, causal: bool) -> list[SheetTable]:
        named = heading if n_heads == 1 else heading + " ({head})"
        return [result(f"{name}{head}", named.format(head=head + 1), words, causal=causal) for head in range(n_heads)]

    def norm(place: int, heading: str) -> list[SheetTable]:
        scale = [*given(f"g{place}", "", ("γ",)).rows, *given(f"c{place}", "", ("β",)).rows]
        return [
            result((f"mean{place}", f"std{place}"), "μ, σ", ("μ", "σ")),
            SheetTable("γ, β", _CHANNELS, scale),
            result(f"norm{place}", heading),
        ]

    projections = [
        table
        for name in "QKV"
        for table in (weight(f"W{name}", f"b{name}", f"W_{name}"), result(name, f"{name} = x·W_{name} + b"))
    ]
    return [
        [given("E", "E", known), given("P", "P", words), result("x", "x = 2·E[w] + P")],
        projections,
        [
            *heads("products", "Q·Kᵀ", causal=False),
            *heads("scores", "Q·Kᵀ / √2" if n_heads == 2 else "Q·Kᵀ / √4", causal=True),
            *heads("weights", "α = softmax", causal=True),
            result("context", "C = α·V"),
        ],
        [
            weight("WO", "bO", "W_O"),
            result("out", "A = C·W_O + b"),
            result("sum1", "x + A"),
            *norm(1, "y = LayerNorm(x + A)"),
        ],
        [
            weight("W1", "b1", "W_1"),
            result("pre", "y·W_1 + b"),
            result("hidden", "H = max(0, ·)"),
            weight("W2", "b2", "W_2"),
            result("ff", "F = H·W_2 + b"),
        ],
        [
            result("sum2", "y + F"),
            *norm(2, "z = LayerNorm(y + F)"),
            result("logits", "z·Eᵀ", known),
            result("probabilities", "softmax", known),
        ],
    ]


def _written(value: float, *, exact: bool = False) -> str:
    """Return a number as on the screen: results have two decimals, weights one unless they need two."""
    if exact:
        return number(f"{value:.1f}" if round(value, 1) == round(value, 2) else f"{value:.2f}")
    rounded = round(float(value), 2) + 0.0
    return number(f"{rounded:.2f}")
