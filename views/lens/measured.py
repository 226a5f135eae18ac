"""Measured beside attributed: what the strongest parts added, what removing them does, and who answers."""

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import number
from charts.toolkit.style import signed
from charts.toolkit.words import in_words
from transformer.attribution.direct_logit_attribution import Attribution
from transformer.errors import InputError
from transformer.interventions.direct_effects import Removals, is_removable, removals
from transformer.layers.residual_stream import in_a_sentence
from ui.compute.jobs import jobs
from ui.lab.experiments import experiment_with
from ui.lab.second_sentence import second_sentence
from ui.shell.page import Page
from ui.show.figures import show_figure, show_source, show_table
from ui.words.catalogues import said
from ui.words.texts import as_plain, common
from views.lens.attribution_figures import measured_effects

MOST = 12  # parts that are removed
_ANSWERS = 3  # parts that are named for each


def measured(p: Page, found: Attribution, word: str) -> None:
    """The section: bars, the rank correlation, and where later parts made up for what was missing."""
    parts = [part for part in found.strongest(len(found.parts)) if is_removable(part)][:MOST]
    parts = [part for part in found.parts if part in parts]
    trace, pair = p.trace, None
    second = second_sentence(p, key="lens_second").strip()
    if second:
        try:
            pair = experiment_with(p.run, sentence=second, keep_answer=True)
        except InputError as error:  # the other ways need no second sentence
            st.warning(as_plain(said(error)), icon=":material/edit:")
    effects = jobs.result(
        p.run,
        ("removals", found.question, "" if pair is None else second),
        lambda report: removals(trace, found, parts, second=pair, progress=report),
        doing=common("wait.trust"),
    )
    if effects is None:
        return
    st.markdown(_in_words(p, effects))
    labels = [in_words(part.label) for part in effects.parts]
    show_figure(
        measured_effects(
            effects.added, zero=effects.zero, mean=effects.mean, patched=effects.patched, labels=labels, of=word
        ),
        name="added-and-measured",
        caption=p.text["measured_caption"] + (f" {p.text['measured_patched']}" if pair is not None else ""),
        alt=p.text["measured_alt"],
    )

    def patched(place: int) -> dict[str, float]:
        return {} if effects.patched is None else {p.text["measured_column_patched"]: effects.patched[place]}

    show_table(
        pd.DataFrame(
            [
                {
                    p.text["measured_column_part"]: label,
                    p.text["measured_column_added"]: effects.added[place],
                    p.text["measured_column_zero"]: effects.zero[place],
                    p.text["measured_column_mean"]: effects.mean[place],
                    **patched(place),
                    p.text["measured_column_answers"]: _answers(effects, place),
                }
                for place, label in enumerate(labels)
            ]
        ),
        name="removed-parts",
        caption=p.text["measured_table_caption"],
    )
    show_source(removals)


def _answers(effects: Removals, place: int) -> str:
    return ", ".join(f"{in_words(part.label)} {signed(change)}" for part, change in effects.answers(place)[:_ANSWERS])


def _answers_in_a_sentence(effects: Removals, place: int) -> str:
    answers = effects.answers(place)[:_ANSWERS]
    return ", ".join(f"{in_words(in_a_sentence(part.label))} ({signed(change)})" for part, change in answers)


def _in_words(p: Page, effects: Removals) -> str:
    """The rank correlation; and the part at which the two numbers are furthest apart, with who answered."""
    gap = effects.added - effects.zero  # what all other parts add more, without it
    place = int(np.argmax(np.abs(gap)))
    added, lost = effects.added[place], effects.zero[place]
    repaired = (abs(lost) < abs(added) and lost * added >= 0) or lost * added < 0
    said = p.text["measured_said"].format(
        count=len(effects.parts),
        agreement=number(f"{effects.agreement:.2f}") if np.isfinite(effects.agreement) else "–",
        part=as_plain(in_words(in_a_sentence(effects.parts[place].label))),
        added=signed(added),
        lost=signed(lost),
    )
    who = _answers_in_a_sentence(effects, place)
    key = "measured_norm" if not who else "measured_repaired" if repaired else "measured_built"
    return f"{said} {p.text[key].format(change=signed(gap[place]), who=as_plain(who))}"
