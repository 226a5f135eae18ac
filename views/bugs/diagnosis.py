"""After the guess: which bug it is, the right and the wrong line of code, and the check that finds it."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from transformer.faults import fault_checks, forward_faults
from transformer.faults.catalogue import HEALTHY, TRAINING
from transformer.faults.fault_checks import CHECKS, Finding
from transformer.faults.training_faults import train_and_save
from ui.shell.page import Page
from ui.show.figures import show_snippet, show_source, show_table
from views.bugs.bugs_view_model import WORD, CheckpointCase, Findings, TrainingCase
from views.bugs.game import ANSWER, findings

Case = CheckpointCase | TrainingCase
_SOURCES = {
    "scale": (fault_checks.scale, forward_faults.unscaled_scores),
    "positions": (fault_checks.positions, forward_faults.without_positions),
    "causal": (fault_checks.causal, train_and_save),
    "target": (fault_checks.target, train_and_save),
    "padding": (fault_checks.padding, forward_faults.without_padding_mask),
    "norm": (fault_checks.norm, forward_faults.other_norm_order),
    HEALTHY: tuple(CHECKS.values()),
}
_SCHEMES = {"rotary": "positions_rotary", "relative": "positions_relative", "alibi": "positions_relative"}


def answer(p: Page, case: Case, guess: str) -> None:
    """Say whether the guess is right, explain the bug, and show the code."""
    text, fault = p.text, case.diagnosis.fault
    right = guess == fault
    template = text["right" if right else "wrong"]
    with st.container(key=ANSWER):
        (st.success if right else st.info)(
            template.format(name=fault_name(p, fault), guess=fault_name(p, guess)),
            icon=":material/check:" if right else ":material/close:",
        )
        st.markdown(_explanation(p, case))
        if fault != HEALTHY:
            _code(p, fault)


def show_checks(p: Page, case: Case) -> None:
    """Show all checks with their numbers on this case, and the code that runs them."""
    text = p.text
    found, original = findings(p, case)
    st.markdown(f"#### {text['checks']}")
    st.markdown(_in_words(p, case, found, original))
    show_table(
        pd.DataFrame(
            {
                text["column_check"]: [text[f"check_{name}"] for name in CHECKS],
                text["healthy"]: [three_digits(one.value) if (one := original[name]) else "–" for name in CHECKS],
                text["this_case"]: [three_digits(one.value) if (one := found[name]) else "–" for name in CHECKS],
                text["column_fires"]: [_verdict(p, found[name]) for name in CHECKS],
            }
        ),
        name="checks",
        caption=text["checks_caption_training" if case.diagnosis.in_training else "checks_caption"],
    )
    show_snippet("bugs", snippet(p, case))
    show_source(*_SOURCES[case.diagnosis.fault])


def fault_name(p: Page, fault: str) -> str:
    """Return the name of a bug; for a misplaced norm, it depends on how the checkpoint was trained."""
    return p.text[f"full_{fault}"].format(**_orders(p))


def _orders(p: Page) -> dict[str, str]:
    trained = p.checkpoint.config.norm
    run = "post" if trained == "pre" else "pre"
    return {"trained": p.text[f"order_{trained}"], "run": p.text[f"order_{run}"]}


def _explanation(p: Page, case: Case) -> str:
    text, fault, config = p.text, case.diagnosis.fault, p.checkpoint.config
    if fault == HEALTHY:
        return text["why_healthy"]
    if fault == "norm":
        return text["why_norm"].format(**_orders(p), final=text[f"final_{config.norm}"])
    if fault == "positions":
        return f"{text['why_positions']} {text['why_positions_decoder'] if not config.has_encoder else ''}"
    return text[f"why_{fault}"].format(root=three_digits(config.d_head**0.5), width=config.d_head)


def _code(p: Page, fault: str) -> None:
    key = fault
    if fault == "positions":
        key = _SCHEMES.get(p.checkpoint.config.positions, fault)
    lines = (p.text[f"code_right_{key}"], p.text[f"code_wrong_{key}"])  # in the order of the figures
    if fault == "norm" and p.checkpoint.config.norm == "post":
        lines = lines[::-1]
    with st.grid(2, min_column_width=400):
        for name, line in zip(("code_right", "code_wrong"), lines, strict=True):
            with st.container(gap="xsmall"):
                st.markdown(p.text[name])
                st.code(line, language="python", wrap_lines=True)


def _in_words(p: Page, case: Case, found: Findings, original: Findings) -> str:
    """Describe the check of this bug with its numbers."""
    fault, text = case.diagnosis.fault, p.text
    if fault == HEALTHY:
        return text["told_healthy"]
    one, other = found[fault], original[fault]
    if one is None or other is None:
        return text["told_impossible"]
    numbers = {name: three_digits(value) for name, value in one.numbers.items()}
    numbers |= {f"healthy_{name}": three_digits(value) for name, value in other.numbers.items()}
    values = {"value": three_digits(one.value), "healthy_value": three_digits(other.value), **_orders(p)}
    if isinstance(case, TrainingCase):
        last = case.last
        values |= {"reported": three_digits(last.reported), "loss": three_digits(last.loss)}
        values |= {"writes": percent(last.writes), "steps": str(last.step)}
    if fault == "norm":
        values["sum"] = text[f"sum_{p.checkpoint.config.norm}"]
    if fault == "padding":
        before, after = case.outputs
        values["change"] = text["same" if before == after else "other"]
    return text[f"told_{fault}"].format(**values, **numbers)


def _verdict(p: Page, finding: Finding | None) -> str:
    return p.text["not_asked"] if finding is None else p.text["fires" if finding.fires else "passes"]


def snippet(p: Page, case: Case) -> str:
    """Return Python code that runs all checks on this case outside of the app."""
    fault = case.fault
    if case.diagnosis.in_training:
        begin = (
            "from transformer.faults.fault_checks import CHECKS\n"
            "from transformer.faults.checked_models import checked_model_in_training\n"
            "from transformer.faults.training_faults import trained_toy\n\n"
            f"toy = trained_toy({TRAINING.get(fault, HEALTHY)!r})\n"
            "print(toy.moments[-1])\n"
            f"checked = checked_model_in_training(toy.learner, {WORD!r})\n"
        )
    else:
        begin = (
            f"{p.preamble}\nfrom transformer.faults.fault_checks import CHECKS\n"
            "from transformer.faults.checked_models import checked_model\n\n"
            f"checked = checked_model(trace, {fault!r})\n"
        )
    return begin + "for name, check in CHECKS.items():\n    print(name, check(checked))\n"
