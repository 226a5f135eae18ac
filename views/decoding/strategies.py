"""Greedy choice, sampling and beam search side by side on the same sentence."""

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.toolkit.style import three_digits
from transformer import Beam, Decoding, Greedy, Sample
from transformer.predictions.decoding_steps import token_log_probabilities
from transformer.runs.decoding_strategies import Strategy, length_penalty
from transformer.text.message import N_
from ui.shell import choice
from ui.shell.fragments import fragment
from ui.shell.page import Page, guard
from ui.show.figures import show_figure, show_snippet, show_table
from ui.words.texts import as_plain, slider_format
from views.decoding import generation, running_log_probability_figure
from views.decoding.word_differences import marked

NAMES = ("greedy", "sampling", "beam")


def choose_beam(p: Page) -> Beam:
    """Width and length penalty, the same ones for the comparison and the tree."""
    with st.container(horizontal=True):
        width = choice.slider(p.text["width"], 1, 5, 4, 1, key="beam_width", help=p.text["width_help"])
        exponent = choice.slider(
            p.text["penalty"], 0.0, 2.0, 0.6, 0.1, slider_format(), key="length_penalty", help=p.text["penalty_help"]
        )
    return Beam(int(width), length_penalty=float(exponent))


@fragment
def strategies(p: Page) -> None:
    """Three texts with their log-probabilities; words that greedy choice does not have are marked."""
    with guard():
        chosen = _choose(p, _side_by_side())
        written = {name: generation.written(p, strategy) for name, strategy in chosen.items()}
        exponent = chosen["beam"].length_penalty
        # A row of its own, so that the texts stand on one line whatever there is to set above them.
        for column, name in zip(_side_by_side(), NAMES, strict=True):
            with column, st.container(border=True, key=f"text {name}"):
                st.caption(p.text[f"strategy_{name}"])  # for whoever has scrolled past the headings, as a lesson does
                _text(p, name, written, exponent)
        st.caption(p.text["strategies_marks"] + (f" {p.text['forced']}" if generation.given(p) else ""))
        st.markdown(_verdict(p, written))
        if ignored := p.checkpoint.framing.ignored:
            st.caption(p.text["ignored"].format(settings=", ".join(f"`{setting}`" for setting in ignored)))
        names = {name: p.text[f"strategy_{name}"] for name in NAMES}
        show_figure(
            running_log_probability_figure.running_log_probability(
                {names[name]: token_log_probabilities(each) for name, each in written.items()},
                tokens={names[name]: each.tokens.displays for name, each in written.items()},
            ),
            name="running-log-probability",
            caption=p.text["running_caption"],
            alt=p.text["running_alt"],
        )
        show_table(_table(written, names, exponent), name="strategies", caption=p.text["strategies_table"])
        beam = written["beam"]
        generation.show_score(p, beam.log_probability, len(beam.tokens), exponent)
        _snippet(p, chosen, written)


def _side_by_side() -> list[DeltaGenerator]:
    """One place for each strategy, below one another in a narrow window: buttons keep their words."""
    grid = st.grid(len(NAMES), min_column_width=180, gap="medium")
    return [grid.container() for _ in NAMES]


def _choose(p: Page, columns: list[DeltaGenerator]) -> dict[str, Strategy]:
    with columns[0]:
        st.markdown(f"**{p.text['strategy_greedy']}**")
        st.caption(p.text["greedy_is"])
    with columns[1]:
        st.markdown(f"**{p.text['strategy_sampling']}**")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            seed = choice.number(p.text["seed"], 0, 999_999, 0, key="seed", width=130)
            st.button(p.text["draw_again"], icon=":material/casino:", key="draw again", on_click=_draw_again)
            settings = st.popover(p.text["sampling_settings"], icon=":material/tune:")
        with settings:
            reshaping = generation.choose_reshaping(p)
    with columns[2]:
        st.markdown(f"**{p.text['strategy_beam']}**")
        beam = choose_beam(p)
    return {"greedy": Greedy(), "sampling": Sample(**reshaping, seed=int(seed)), "beam": beam}


def _draw_again() -> None:
    choice.put("seed", (int(choice.value("seed", "0")) + 1) % 1_000_000)


def _text(p: Page, name: str, written: dict[str, Decoding], exponent: float) -> None:
    """One text with its numbers."""
    decoding, greedy = written[name], written["greedy"]
    if name == "greedy":
        st.markdown(f"##### {as_plain(decoding.text) or '–'}")
    else:
        st.markdown(f"##### {marked(greedy.text, decoding.text) or '–'}")
        if decoding.tokens.ids == greedy.tokens.ids:
            st.caption(p.text["same_as_greedy"])
    total, count = decoding.log_probability, len(decoding.tokens)
    st.markdown(
        p.text["numbers"].format(
            sum=three_digits(total),
            each=three_digits(total / count),
            count=count,
            score=three_digits(total / length_penalty(count, exponent)),
        )
    )
    if not decoding.finished:
        st.caption(p.text["unfinished"].format(count=count))


def _verdict(p: Page, written: dict[str, Decoding]) -> str:
    """Whether the beam found something likelier than greedy choice, and by what factor."""
    gain = written["beam"].log_probability - written["greedy"].log_probability
    if written["beam"].tokens.ids == written["greedy"].tokens.ids:
        return p.text["verdict_same"]
    key = "verdict_likelier" if gain >= 0 else "verdict_less_likely"
    return p.text[key].format(factor=three_digits(float(np.exp(min(abs(gain), 700.0)))))


def _table(written: dict[str, Decoding], names: dict[str, str], exponent: float) -> pd.DataFrame:
    rows = []
    for name, decoding in written.items():
        total, count = decoding.log_probability, len(decoding.tokens)
        penalty = length_penalty(count, exponent)
        rows.append(
            {
                N_("strategy"): names[name],
                N_("text"): decoding.text,
                N_("tokens"): count,
                N_("Σ log p"): total,
                N_("log p per token"): total / count,
                N_("length penalty"): penalty,
                N_("score"): total / penalty,
                N_("finished"): decoding.finished,
            }
        )
    return pd.DataFrame(rows)


def _snippet(p: Page, chosen: dict[str, Strategy], written: dict[str, Decoding]) -> None:
    lines = [
        f"decoding = transformer.decode(checkpoint, {generation.arguments_of(p, strategy)})\n"
        f"print(repr(decoding.text), decoding.log_probability)  # {written[name].log_probability:.7g}\n"
        for name, strategy in chosen.items()
    ]
    show_snippet("strategies", f"import transformer\n\n{p.load_line}{''.join(lines)}")
