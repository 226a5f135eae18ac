"""The Masks page below its editor: empty rows, the difference of attention, the padding sandbox."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, PREDICTING, predicted_rows, row_title
from charts.canvas.value_map import value_map
from charts.toolkit.style import signed, three_digits
from transformer.interventions.experiment import PADS, padding_drift
from transformer.runs.attention_view import AttentionView
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.lab.experiments import experiment_with
from ui.shell import choice
from ui.shell.page import Page
from ui.show.drawings import show_map
from ui.show.figures import show_table
from ui.words.texts import as_plain
from views.masks.editor import Recipe


def notes(p: Page, recipe: Recipe, view: AttentionView) -> None:
    """What one should know about this mask: rows with nothing left, no pads to hide, writing against reading."""
    named = p.trace.prediction if view.kind == "cross" else view.query
    empty = [named[row].display for row in range(len(named)) if not view.allowed[row].any()]
    if empty:
        rows = [p.text["nothing_left_row"].format(token=as_plain(token)) for token in empty[:4]]
        if len(empty) > 4:
            rows.append(p.text["nothing_left_more"].format(count=len(empty) - 4))
        st.info(p.text["nothing_left"].format(rows=", ".join(rows)), icon=":material/block:")
    if recipe.preset == "no_padding" and not p.focus.pads:
        never = p.checkpoint.special.pad is None
        st.caption(":material/info: " + p.text["never_pads" if never else "no_pads"])
    if recipe.preset == "no_causal":
        st.caption(":material/info: " + p.text["ahead"])
    if recipe.cells:
        count = len({(query, key) for query, key, _ in recipe.cells})
        st.caption(p.text["drawn"].format(count=count))


def difference(p: Page, own: AttentionView, now: AttentionView) -> None:
    """Weights of the focused head with the mask − without it, on the same tokens."""
    head, predicted = p.focus.head, predicted_rows(p.trace, own.kind)
    change = now.weights[head] - own.weights[head]
    if not change.any():
        st.caption(p.text["difference_none"])
        return
    show_map(
        value_map(
            change,
            row_labels=predicted or own.query.labels,
            column_labels=own.key.labels,
            row_title=row_title(own, shifted=predicted is not None),
            column_title=KEY_TITLE,
            scale="diverging",
            title=p.text["difference_title"].format(layer=own.layer, head=head),
            value_name=p.text["difference_value"],
            phrase=(PREDICTING if predicted else "", LOOKS_AT),
            height=520,
        ),
        key="mask difference",
    )
    st.caption(p.text["difference_caption"])


def padding_sandbox(p: Page) -> None:
    """The sentence with padding behind it: with the mask and without it, side by side, as numbers."""
    text, config = p.text, p.checkpoint.config
    run = replace(p.run, source_pads=0)
    rows = store.get(run, "padding", lambda: padding_drift(load_trace(run)), wait="wait.padding")
    if not rows:
        st.caption(text["padding_too_long"])
        return
    lengths = [count for count in PADS if count in {row.pads for row in rows}]
    middle = lengths[len(lengths) // 2]
    chosen = choice.buttons(text["pads"], lengths, default=middle, key="sandbox pads", owner=tuple(lengths))
    st.markdown(text["padding_text"].format(pads=chosen))
    plain = experiment_with(replace(run, target=None)).answer_before
    for column, masked in zip(st.columns(2), (True, False), strict=True):
        row = next(row for row in rows if (row.pads, row.masked) == (chosen, masked))
        with column.container(border=True, gap="xsmall", key=f"padding {'masked' if masked else 'unmasked'}"):
            st.markdown(f"**{text['padding_masked' if masked else 'padding_unmasked']}**")
            st.metric(
                text["padding_logit"],
                three_digits(row.logits),
                text["padding_change"].format(change=signed(row.change)),
                delta_color="off",
                delta_arrow="off",
                help=text["padding_logit_help"],
            )
            st.markdown(f"##### {as_plain(' '.join(row.text.split())) or '–'}")
            if row.text == plain.text:
                st.caption(text["padding_same"])
    if not config.has_encoder:
        st.markdown(text["padding_decoder"])
    table = pd.DataFrame(
        {
            text["column_pads"]: [row.pads for row in rows],
            text["column_mask"]: [text["column_on" if row.masked else "column_off"] for row in rows],
            text["column_logits"]: [row.logits for row in rows],
            text["column_change"]: [row.change for row in rows],
            text["column_answer"]: [" ".join(row.text.split()) for row in rows],
        }
    )
    show_table(table, name="padding", caption=text["padding_caption"] if config.n_classes else "")
