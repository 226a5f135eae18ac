"""After the guess: what was wrong, the line that is wrong beside the right one, and the check that finds it."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from transformer.faults.catalogue import HEALTHY, TRAINING, Diagnosis
from transformer.faults.fault_checks import CHECKS, Finding
from ui.shell.page import Page
from ui.show.figures import show_table
from views.bugs.game import ANSWER
from views.bugs.patient_runs import WORD, experiment_on, findings, pads_of, toy_of

_SCHEMES = {"rotary": "positions_rotary", "relative": "positions_relative"}


def answer(p: Page, diagnosis: Diagnosis, guess: str) -> None:
    """Whether the guess is right, why, and the code."""
    text, fault = p.text, diagnosis.fault
    right = guess == fault
    template = text["right" if right else "wrong"]
    with st.container(key=ANSWER):
        (st.success if right else st.info)(
            template.format(name=fault_name(p, fault), guess=fault_name(p, guess)),
            icon=":material/check:" if right else ":material/close:",
        )
        st.markdown(_explanation(p, diagnosis))
        if fault != HEALTHY:
            _code(p, fault)


def show_checks(p: Page, diagnosis: Diagnosis) -> None:
    """The checks with their numbers on this patient."""
    text = p.text
    found, healthy = findings(p, diagnosis)
    st.markdown(f"#### {text['checks']}")
    st.markdown(_told(p, diagnosis, found, healthy))
    show_table(
        pd.DataFrame(
            {
                text["column_check"]: [text[f"check_{name}"] for name in CHECKS],
                text["healthy"]: [three_digits(one.value) if (one := healthy[name]) else "–" for name in CHECKS],
                text["the_patient"]: [three_digits(one.value) if (one := found[name]) else "–" for name in CHECKS],
                text["column_fires"]: [_verdict(p, found[name]) for name in CHECKS],
            }
        ),
        name="checks",
        caption=text["checks_caption_training" if diagnosis.in_training else "checks_caption"],
    )


def fault_name(p: Page, fault: str) -> str:
    """ "post-norm weights run as pre-norm", or the other way round: by what the checkpoint was trained with."""
    return p.text[f"full_{fault}"].format(**_orders(p))


def _orders(p: Page) -> dict[str, str]:
    trained = p.checkpoint.config.norm
    run = "post" if trained == "pre" else "pre"
    return {"trained": p.text[f"order_{trained}"], "run": p.text[f"order_{run}"]}


def _explanation(p: Page, diagnosis: Diagnosis) -> str:
    text, fault, config = p.text, diagnosis.fault, p.checkpoint.config
    if fault == HEALTHY:
        return text["why_healthy"]
    if fault == "norm":
        return text["why_norm"].format(**_orders(p), final=text[f"final_{config.norm}"])
    if fault == "positions":
        return f"{text['why_positions']} {text['why_positions_decoder'] if not config.has_encoder else ''}"
    if fault == "padding":
        return text["why_padding"].format(pads=pads_of(p))
    return text[f"why_{fault}"].format(root=three_digits(config.d_head**0.5), width=config.d_head)


def _code(p: Page, fault: str) -> None:
    key = fault
    if fault == "positions":
        key = _SCHEMES.get(p.checkpoint.config.positions, fault)
    lines = (p.text[f"code_wrong_{key}"], p.text[f"code_right_{key}"])
    if fault == "norm" and p.checkpoint.config.norm == "post":
        lines = lines[::-1]
    with st.grid(2, min_column_width=400):
        for name, line in zip(("code_wrong", "code_right"), lines, strict=True):
            with st.container(gap="xsmall"):
                st.markdown(p.text[name])
                st.code(line, language="python", wrap_lines=True)


def _told(p: Page, diagnosis: Diagnosis, found: dict[str, Finding | None], healthy: dict[str, Finding | None]) -> str:
    """The check of this mistake in words, with its numbers."""
    fault, text = diagnosis.fault, p.text
    if fault == HEALTHY:
        return text["told_healthy"]
    one, other = found[fault], healthy[fault]
    if one is None or other is None:
        return text["told_impossible"]
    numbers = {name: three_digits(value) for name, value in one.numbers.items()}
    numbers |= {f"healthy_{name}": three_digits(value) for name, value in other.numbers.items()}
    values = {"value": three_digits(one.value), "healthy_value": three_digits(other.value), **_orders(p)}
    if diagnosis.in_training:
        last = toy_of(diagnosis).course[-1]
        values |= {"reported": three_digits(last.reported), "loss": three_digits(last.loss)}
        values |= {"writes": percent(last.writes), "steps": str(last.step)}
    if fault == "norm":
        values["sum"] = text[f"sum_{p.checkpoint.config.norm}"]
    if fault == "padding":
        run = experiment_on(p, fault)
        values["change"] = text["same" if run.answer_before.text == run.answer_after.text else "other"]
    return text[f"told_{fault}"].format(**values, **numbers)


def _verdict(p: Page, finding: Finding | None) -> str:
    return p.text["not_asked"] if finding is None else p.text["fires" if finding.fires else "passes"]


def snippet(p: Page, diagnosis: Diagnosis) -> str:
    """Python that runs all checks on this patient, outside of the app."""
    fault = "" if diagnosis.fault == HEALTHY else diagnosis.fault
    if diagnosis.in_training:
        begin = (
            "from transformer.faults.fault_checks import CHECKS\n"
            "from transformer.faults.patients import patient_in_training\n"
            "from transformer.faults.training_faults import trained_toy\n\n"
            f"toy = trained_toy({TRAINING.get(fault, HEALTHY)!r})\n"
            "print(toy.course[-1])\n"
            f"patient = patient_in_training(toy.learner, {WORD!r})\n"
        )
    else:
        begin = (
            f"{p.preamble}\nfrom transformer.faults.fault_checks import CHECKS\n"
            "from transformer.faults.patients import patient_of\n\n"
            f"patient = patient_of(trace, {fault!r})\n"
        )
    return begin + "for name, check in CHECKS.items():\n    print(name, check(patient))\n"
