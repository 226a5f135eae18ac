"""Greedy decoding, sampling and beam search side by side on the same sentence."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.toolkit.style import three_digits
from ui.page.page import Page, guard
from ui.shell import choice
from ui.shell.fragments import fragment
from ui.show.figures import show_figure, show_snippet, show_table
from ui.words.texts import as_plain
from views.decoding import decoding_figures
from views.decoding.decoding_parts import (
    choose_beam,
    choose_reshaping,
    choose_seed,
    location_of,
    marked,
    show_score,
    written,
)
from views.decoding.decoding_view_model import ComparedTexts, DecodingChoices

NAMES = ("greedy", "sampling", "beam")


@fragment
def strategies(p: Page) -> None:
    """Draw three texts with their log-probabilities; words that the greedy text lacks are marked."""
    with guard():
        choices = _choose(p, _side_by_side())
        texts = {name: written(p, strategy) for name, strategy in choices.compared.items()}
        shown = ComparedTexts(p.run, location_of(p), choices, texts)
        # A separate row, so that the texts are aligned whatever controls are above them.
        for column, name in zip(_side_by_side(), NAMES, strict=True):
            with column, st.container(border=True, key=f"text {name}"):
                st.caption(p.text[f"strategy_{name}"])  # repeated for readers who have scrolled past the headings
                _show_text(p, shown, name)
        st.caption(p.text["strategies_marks"] + (f" {p.text['forced']}" if shown.given else ""))
        found, factor = shown.verdict
        st.markdown(p.text[f"verdict_{found}"].format(factor=three_digits(factor)))
        if ignored := shown.checkpoint.framing.ignored:
            st.caption(p.text["ignored"].format(settings=", ".join(f"`{setting}`" for setting in ignored)))
        names = {name: p.text[f"strategy_{name}"] for name in NAMES}
        show_figure(
            decoding_figures.running_log_probability(
                {names[name]: values for name, values in shown.log_probabilities.items()},
                tokens={names[name]: text.tokens.displays for name, text in texts.items()},
            ),
            name="running-log-probability",
            caption=p.text["running_caption"],
            alt=p.text["running_alt"],
        )
        show_table(_table(shown, names), name="strategies", caption=p.text["strategies_table"])
        show_score(p, shown, shown.numbers["beam"])
        _show_snippet(p, shown)


def _side_by_side() -> list[DeltaGenerator]:
    """Return one container per strategy; narrow windows stack them, so that the button labels still fit."""
    grid = st.grid(len(NAMES), min_column_width=180, gap="medium")
    return [grid.container() for _ in NAMES]


def _choose(p: Page, columns: list[DeltaGenerator]) -> DecodingChoices:
    with columns[0]:
        st.markdown(f"**{p.text['strategy_greedy']}**")
        st.caption(p.text["greedy_is"])
    with columns[1]:
        st.markdown(f"**{p.text['strategy_sampling']}**")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            seed = choose_seed(p, width=130)
            st.button(p.text["draw_again"], icon=":material/casino:", key="draw again", on_click=_draw_again)
            settings = st.popover(p.text["sampling_settings"], icon=":material/tune:")
        with settings:
            reshaping = choose_reshaping(p)
    with columns[2]:
        st.markdown(f"**{p.text['strategy_beam']}**")
        beam = choose_beam(p)
    return DecodingChoices(seed=seed, **reshaping, **beam)


def _draw_again() -> None:
    choice.put("seed", (int(choice.value("seed", "0")) + 1) % 1_000_000)


def _show_text(p: Page, shown: ComparedTexts, name: str) -> None:
    """Draw one text with its numbers."""
    text, numbers = shown.texts[name], shown.numbers[name]
    if name == "greedy":
        st.markdown(f"##### {as_plain(text.text) or '–'}")
    else:
        st.markdown(f"##### {marked(shown.texts['greedy'].text, text.text) or '–'}")
        if shown.is_greedy(name):
            st.caption(p.text["same_as_greedy"])
    st.markdown(
        p.text["numbers"].format(
            sum=three_digits(numbers.total),
            each=three_digits(numbers.each),
            count=numbers.count,
            score=three_digits(numbers.score),
        )
    )
    if not text.finished:
        st.caption(p.text["unfinished"].format(count=numbers.count))


def _table(shown: ComparedTexts, names: dict[str, str]) -> pd.DataFrame:
    rows = []
    for name, text in shown.texts.items():
        numbers = shown.numbers[name]
        rows.append(
            {
                "strategy": names[name],
                "text": text.text,
                "tokens": numbers.count,
                "Σ log p": numbers.total,
                "log p per token": numbers.each,
                "length penalty": numbers.penalty,
                "score": numbers.score,
                "finished": text.finished,
            }
        )
    return pd.DataFrame(rows)


def _show_snippet(p: Page, shown: ComparedTexts) -> None:
    lines = [
        f"decoding = transformer.decode(checkpoint, {shown.arguments_of(strategy)})\n"
        f"print(repr(decoding.text), decoding.log_probability)  # {shown.numbers[name].total:.7g}\n"
        for name, strategy in shown.choices.compared.items()
    ]
    show_snippet("strategies", f"import transformer\n\n{p.load_line}{''.join(lines)}")
