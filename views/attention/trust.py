"""Faithfulness of the map: attribution of the output, and the effect of removing one edge."""

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import number
from charts.toolkit.style import signed, three_digits
from charts.toolkit.words import say
from transformer.attention_maps.rollout import attention_rollout
from transformer.attribution.attention_trust import (
    Aligned,
    InputAttributions,
    compare_with_attention,
    compare_without_attention,
    input_attributions,
    n_passes,
)
from transformer.attribution.input_attribution import gradient_times_input, integrated_gradients
from transformer.attribution.leave_one_out import remove_each
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.predictions.quantity import QUANTITIES, Quantity, quantity_of
from transformer.runs.attention_view import AttentionView
from ui.compute.jobs import jobs
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option, one_of
from ui.show.figures import show_figure, show_formula, show_snippet, show_source, show_table
from ui.words.model_terms import embedding_scale
from ui.words.texts import as_plain, common, page_texts
from views.attention.attention_view_model import AttentionViewModel
from views.attention.trust_figure import MAX_NUMBERS, NAMES, ROOM, aligned_measures

_BASELINES = ("mean", "pad", "zero")
_STEPS = (16, 32, 64, 128)
_LARGE_ERROR = 0.05  # as a share of the total change
_FIGURE = "attention-and-answer"


def trust(p: Page, shown: AttentionViewModel) -> None:
    """Draw the choice of the output and the method's settings, all measures token by token, and the check."""
    st.markdown(p.text["trust_intro"])
    view = shown.view
    row = _answer_row(p, view)
    if row is None:
        st.info(p.text["trust_nothing"], icon=":material/info:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        of = chosen_option(p.text, "trust_of", QUANTITIES, key="trust_of", help=p.text["trust_of_help"])
        starts_help = p.text["trust_start_help"]
        baseline = chosen_option(p.text, "trust_baseline", _baselines(p), key="trust_baseline", help=starts_help)
        steps = choice.buttons(p.text["trust_steps"], _STEPS, default=64, key="trust_steps")
    quantity = quantity_of(p.trace, row=row, of=of)
    found = _found(p, quantity, baseline, steps)
    if found is None:
        return
    aligned = compare_with_attention(p.trace, view, found, head=p.focus.head, query=p.focus.token)
    st.markdown(_in_words(p, view, aligned, quantity))
    _draw(p, aligned, quantity, name=_FIGURE)
    if len(quantity.read) > 1:
        other = "encoder" if aligned.tokens is not p.trace.source else "decoder"
        st.markdown(p.text[f"trust_other_{other}"].format(answer=as_plain(quantity.display)))
        _draw(p, compare_without_attention(found, other), quantity, name=f"{_FIGURE}-other")
    _completeness(p, found, quantity)
    st.markdown(p.text["trust_caution"])
    show_formula(p.text["trust_formula"], caption=_shapes(p, quantity, found))
    _snippet(p, found, row=row)
    show_source(attention_rollout, gradient_times_input, integrated_gradients, remove_each)


def _baselines(p: Page) -> tuple[str, ...]:
    """Return the baselines that this model has: GPT-2 has no padding token."""
    return tuple(name for name in _BASELINES if name != "pad" or p.checkpoint.special.pad is not None)


def _answer_row(p: Page, view: AttentionView) -> int | None:
    """Return the row of the logits: in a decoder the focused one, else the blank that was chosen."""
    if view.stack == "decoder":
        return p.focus.token
    question = prediction_rows(p.trace)
    if p.checkpoint.config.n_classes or not question.rows:
        return question.rows[0] if question.rows else None
    name = p.trace.prediction.labels.__getitem__
    own = view.stack == question.logits.partition(".")[0] and p.focus.token in question.rows
    first = question.rows.index(p.focus.token) if own else 0
    owner = (p.checkpoint.fingerprint, p.trace.prediction.ids, question.rows, p.focus.token)
    words = [text["trust_answer_at"] for text in page_texts(p.text.name)]
    called = {row: [said.format(word=name(row), position=row) for said in words] for row in question.rows}
    return one_of(
        p.text["trust_answer"],
        called,
        question.rows[first],
        key="trust_answer",
        owner=owner,
        in_list=True,
        help=p.text["trust_answer_help"],
        width=320,
    )


def _found(p: Page, quantity: Quantity, baseline: str, steps: int) -> InputAttributions | None:
    """Compute the attributions; ``None`` if the reader has stopped it: 256 tokens take half a minute."""
    checkpoint = p.checkpoint
    return jobs.result(
        p.run,
        ("attributions", quantity.row, quantity.id, quantity.of, baseline, steps),
        lambda _: input_attributions(checkpoint, quantity, baseline=baseline, n_steps=steps),
        doing=common("wait.trust"),
        passes=n_passes(quantity, n_steps=steps),
    )


def _in_words(p: Page, view: AttentionView, aligned: Aligned, quantity: Quantity) -> str:
    """Name the key of largest weight and the token that the output depends on most."""
    labels = [as_plain(aligned.tokens.labels[place]) for place in aligned.positions]
    looked, missed = aligned["head"].values, aligned["leave_one_out"].values
    if not labels or np.isnan(missed).all():
        return p.text["trust_words_alone"]
    most = int(np.nanargmax(np.abs(missed)))
    agreement = aligned["head"].agreement
    answer, predicts = as_plain(quantity.display), view.stack == "decoder"
    word = answer if predicts else as_plain(view.query.labels[p.focus.token])
    return p.text["trust_words"].format(
        row=p.text["trust_row_predicts" if predicts else "trust_row"].format(word=word),  # as in the map above
        looked=labels[int(np.argmax(looked))],
        share=three_digits(float(looked.max())),
        answer=answer,
        missed=labels[most],
        change=signed(-float(missed[most])),
        unit=p.text[f"trust_unit_{quantity.of}"],
        agreement=number(f"{agreement:.2f}") if np.isfinite(agreement) else "–",
    )


def _draw(p: Page, aligned: Aligned, quantity: Quantity, *, name: str) -> None:
    if not aligned.positions:
        return
    room = ROOM * len(aligned.positions) if len(aligned.positions) <= MAX_NUMBERS else 0
    names = {**NAMES, "head": p.text["trust_head"].format(head=p.focus.head)}
    show_figure(
        aligned_measures(
            aligned,
            answer=say("attention.quoted_token", token=quantity.display),
            unit=p.text[f"trust_unit_{quantity.of}"],
            names=names,
        ),
        name=name,
        caption=p.text["trust_caption"] if name == _FIGURE else "",
        alt=p.text["trust_alt"],
        room=max(room, 250) + 220,
    )


def _completeness(p: Page, found: InputAttributions, quantity: Quantity) -> None:
    text, whole = p.text, found.integrated
    st.markdown(
        text["complete"].format(
            total=signed(whole.total),
            value=signed(whole.value),
            start=signed(whole.baseline_value),
            difference=signed(whole.difference),
            error=signed(whole.error),
            steps=whole.n_steps,
            slope=signed(found.gradient.total),
        )
    )
    moved = sum(float(np.abs(part).sum()) for part in (whole.source, whole.target) if part is not None)
    if abs(whole.error) > _LARGE_ERROR * max(moved, 1e-12):
        st.warning(text["complete_large"], icon=":material/warning:")
    if not choice.toggle(text["compare_baselines"], key="trust baselines"):
        return
    rows = []
    for baseline in _baselines(p):
        every = _found(p, quantity, baseline, whole.n_steps)
        if every is None:
            return
        tokens = [
            (value, stack, place) for stack in quantity.read for place, value in enumerate(_integrated(every, stack))
        ]
        _, stack, place = max(tokens, key=lambda token: abs(token[0]))
        rows.append(
            {
                text["column_baseline"]: text[f"trust_baseline_{baseline}"],
                text["column_start"]: every.integrated.baseline_value,
                text["column_difference"]: every.integrated.difference,
                text["column_total"]: every.integrated.total,
                text["column_error"]: every.integrated.error,
                text["column_strongest"]: quantity.read[stack].labels[place],
            }
        )
    show_table(pd.DataFrame(rows), name="baselines", caption=text["compare_caption"])


def _integrated(found: InputAttributions, stack: str) -> np.ndarray:
    return found.rows(stack)["integrated_gradients"]


def _shapes(p: Page, quantity: Quantity, found: InputAttributions) -> str:
    tokens = " + ".join(str(len(read)) for read in quantity.read.values())
    table = p.checkpoint.model.get_submodule(next(iter(quantity.read))).embedding
    return p.text["trust_shapes"].format(
        tokens=tokens,
        width=next(table.table.parameters()).shape[-1],
        scale=embedding_scale(table, p.checkpoint.config.d_model),
        steps=found.integrated.n_steps,
        answer=as_plain(quantity.display),
    )


def _snippet(p: Page, found: InputAttributions, *, row: int) -> None:
    focus, whole = p.focus, found.integrated
    show_snippet(
        "trust",
        f"{p.preamble}\n"
        "from views.attention.trust_figure import aligned_measures\n"
        "from transformer.attribution.attention_trust import compare_with_attention, input_attributions\n"
        "from transformer.predictions.quantity import quantity_of\n\n"
        f'quantity = quantity_of(trace, row={row}, of="{whole.quantity.of}")\n'
        f'found = input_attributions(checkpoint, quantity, baseline="{whole.baseline}", n_steps={whole.n_steps})\n'
        f'view = trace.attention("{focus.stack}", layer={focus.layer}, kind="{focus.kind}")\n'
        f"rows = compare_with_attention(trace, view, found, head={focus.head}, query={focus.token})\n"
        f"print(found.integrated.total, found.integrated.difference)  # {whole.total:.6g} {whole.difference:.6g}\n"
        "for measure in rows.measures:\n"
        "    print(measure.name, measure.agreement, measure.values)\n"
        "figure = aligned_measures(rows)  # figure.show() draws it\n",
    )
