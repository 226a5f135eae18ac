"""The printed sheet: with blanks or with solutions, and with different numbers for every student."""

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
from ui.shell.page import Page
from ui.show.documents import document_of
from ui.words import texts
from views.by_hand.by_hand_view_model import ByHandViewModel, Cell, SheetChoices

MOST = 40  # sheets in one file
CHANGES = 8  # weights that differ between two students
CAT, DOG = 1, 2  # ids
_VARIED = ("WQ", "WK", "WV", "WO", "W1", "W2")
_CHANNELS = ("1", "2", "3", "4")


def offer_papers(p: Page, choices: SheetChoices) -> None:
    """Draw the menu that makes the sheets."""
    with (
        st.container(key="by hand print", width="content"),
        st.popover(p.text["print"], icon=":material/print:", key="by hand papers"),
    ):
        st.caption(p.text["print_text"])
        with st.container(horizontal=True):
            seed = st.number_input(p.text["print_seed"], 1, 9999, 1, key="by hand seed", width=140)
            count = st.number_input(p.text["print_count"], 1, MOST, 1, key="by hand count", width=140)
        language = texts.language()
        for kind, icon in (("sheet", ":material/edit_note:"), ("key", ":material/key:")):
            made = partial(_file, choices, range(int(seed), int(seed + count)), kind == "key", p.text, language)
            st.download_button(
                p.text[f"print_{kind}"],
                data=made,
                file_name=f"by-hand-{kind}-{int(seed)}.html",
                mime="text/html",
                icon=icon,
                key=f"by hand {kind}",
                on_click="ignore",
            )


def _file(choices: SheetChoices, seeds: Sequence[int], solved: bool, text: texts.PageText, language: str) -> bytes:
    with texts.use_language(language):  # the file is generated outside the session's run
        return papers(choices, seeds, solved=solved, text=text).encode()


def papers(choices: SheetChoices, seeds: Sequence[int], *, solved: bool, text: texts.PageText) -> str:
    """Write one file with a sheet for each seed; ``solved`` fills in the blanks."""
    sheets: list[Part] = [_sheet(varied(choices, seed), seed, solved=solved, text=text) for seed in seeds]
    return document_of(None, text["paper_title"], sheets, kicker="Glassformer", kind="paper")


def varied(choices: SheetChoices, seed: int) -> SheetChoices:
    """Return varied choices: eight weights change by up to 0.3, and cat and dog may be swapped."""
    random = np.random.default_rng(seed)
    swap = {CAT: DOG, DOG: CAT} if random.random() < 0.5 else {}
    sheet = ByHandViewModel(choices).sheet
    cells: dict[Cell, float] = dict(choices.cells)
    places = [(name, r, c) for name in _VARIED for r, c in zip(*np.nonzero(sheet.parameters[name]), strict=True)]
    for place in random.permutation(len(places))[:CHANGES]:
        name, row, column = places[place]
        moved = sheet.parameters[name][row, column] + random.choice((-0.3, -0.2, -0.1, 0.1, 0.2, 0.3))
        cells[name, int(row), int(column)] = round(float(moved), 2)
    return SheetChoices(tuple(swap.get(word, word) for word in choices.words), choices.n_heads, cells)


def _sheet(choices: SheetChoices, seed: int, *, solved: bool, text: texts.PageText) -> NumberSheet:
    view_model = ByHandViewModel(choices)
    vocabulary = view_model.vocabulary(texts.language())
    words = [vocabulary[word] for word in choices.words]
    kicker = text["paper_kicker_key" if solved else "paper_kicker"].format(seed=seed)
    above: list[Part] = [Paragraph(f"**{text['paper_title']}** · {kicker}")]
    if not solved:
        above.append(Blanks((text["paper_name"], text["paper_date"])))
    above.append(Paragraph(text["paper_task"].format(text=" ".join(words), last=words[-1])))
    above.append(Paragraph(f"{text['paper_bias']} {text['paper_masked']}", "hint"))
    answer = (
        [Paragraph(f"**{text['paper_answer']}: {view_model.next_word(texts.language())}**")]
        if solved
        else [Blanks((text["paper_answer"],))]
    )
    return NumberSheet(above, _strips(view_model, words, vocabulary, solved=solved), answer)


def _strips(
    view_model: ByHandViewModel, words: Sequence[str], vocabulary: Sequence[str], *, solved: bool
) -> list[list[SheetTable]]:
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
            kind = ("answer" if solved else "blank") if r == last else ""
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
