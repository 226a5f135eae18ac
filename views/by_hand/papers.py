"""The printed sheet, with blanks in the row of the last word."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from charts.documents.document_parts import (
    Blanks,
    NumberSheet,
    Paragraph,
    Part,
    SheetNumber,
    SheetTable,
)
from charts.toolkit.numbers import number
from ui.page.page import Page
from ui.show.documents import document_of
from ui.words import texts
from views.by_hand.by_hand_view_model import ByHandViewModel, SheetChoices

_CHANNELS = ("1", "2", "3", "4")


def offer_paper(p: Page, choices: SheetChoices) -> None:
    """Draw the button that downloads the sheet for printing."""
    with st.container(key="by hand print", width="content"):
        st.download_button(
            p.text["print"],
            data=partial(_file, choices, p.text, texts.language()),
            file_name="by-hand.html",
            mime="text/html",
            icon=":material/print:",
            help=p.text["print_help"],
            key="by hand sheet",
            on_click="ignore",
        )


def _file(choices: SheetChoices, text: texts.PageText, language: str) -> bytes:
    with texts.use_language(language):  # the file is generated outside the session's run
        return paper(choices, text=text).encode()


def paper(choices: SheetChoices, *, text: texts.PageText) -> str:
    """Write the sheet as one file."""
    return document_of(text["paper_title"], [_sheet(choices, text=text)], kicker="Glassformer")


def _sheet(choices: SheetChoices, *, text: texts.PageText) -> NumberSheet:
    view_model = ByHandViewModel(choices)
    vocabulary = view_model.vocabulary(texts.language())
    words = [vocabulary[word] for word in choices.words]
    above: list[Part] = [
        Paragraph(f"**{text['paper_title']}**"),
        Blanks((text["paper_name"], text["paper_date"])),
    ]
    above.append(Paragraph(text["paper_task"].format(text=" ".join(words), last=words[-1])))
    above.append(Paragraph(f"{text['paper_bias']} {text['paper_masked']}", "hint"))
    return NumberSheet(above, _strips(view_model, words, vocabulary), [Blanks((text["paper_answer"],))])


def _strips(view_model: ByHandViewModel, words: Sequence[str], vocabulary: Sequence[str]) -> list[list[SheetTable]]:
    """Lay the tables out as six strips, from the embedding to the probabilities."""
    numbers, n_heads = view_model.numbers, view_model.choices.n_heads
    last = len(words) - 1

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
        [given("E", "E", vocabulary), given("P", "P", words), result("x", "x = 2·E[w] + P")],
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
            result("logits", "z·Eᵀ", vocabulary),
            result("probabilities", "softmax", vocabulary),
        ],
    ]


def _written(value: float, *, exact: bool = False) -> str:
    """Return a number as on the screen: results have two decimals, weights one unless they need two."""
    if exact:
        return number(f"{value:.1f}" if round(value, 1) == round(value, 2) else f"{value:.2f}")
    rounded = round(float(value), 2) + 0.0
    return number(f"{rounded:.2f}")
