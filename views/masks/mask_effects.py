"""The effects of the mask: notes, the difference of attention, the padding experiment, the code."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, LOOKS_AT, PREDICTING, row_title
from charts.canvas.value_map import value_map
from charts.toolkit.style import signed, three_digits
from transformer.attention import attention_weights
from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.interventions.experiment import PADS, padding_drift
from transformer.masks import combined_mask
from transformer.runs import mask_edits
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.lab.effects import show_consequence
from ui.lab.experiments import experiment_with
from ui.page.page import Page
from ui.shell import choice
from ui.show.drawings import show_map
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.show.score_formula import score_formula
from ui.words.texts import as_plain, token_name
from views.masks.masks_view_model import MasksViewModel


def say_effect(p: Page, shown: MasksViewModel) -> None:
    """Say what the model predicts under the mask, as the first sentence of the page."""
    if shown.found.changed is shown.found.original:
        return
    everywhere, layer = shown.choices.everywhere, shown.location.layer
    if word := shown.blocked_word:
        of_stack = p.text[f"of_{shown.blocked_for}"] if shown.blocked_for else ""
        named = {"of_stack": of_stack, "word": token_name(word), "layer": layer}
        cause = p.text["blocked_all" if everywhere else "blocked_layer"].format(**named)
    else:
        cause = p.text["masked_all" if everywhere else "masked_layer"].format(layer=layer)
    with st.container(gap="xsmall", key="mask effect"):
        show_consequence(p, shown.found, cause)


def notes(p: Page, shown: MasksViewModel) -> None:
    """Write notes about this mask: empty rows, no padding to hide, decoding that differs from reading."""
    text, preset = p.text, shown.choices.preset
    if shown.empty_rows:
        rows = [text["nothing_left_row"].format(token=token_name(token.display)) for token in shown.empty_rows[:4]]
        if len(shown.empty_rows) > 4:
            rows.append(text["nothing_left_more"].format(count=len(shown.empty_rows) - 4))
        st.info(text["nothing_left"].format(rows=", ".join(rows)), icon=":material/block:")
    if preset == "no_padding" and not p.focus.pads:
        never = p.checkpoint.special.pad is None
        st.caption(":material/info: " + text["never_pads" if never else "no_pads"])
    if preset == "no_causal":
        st.caption(":material/info: " + text["ahead"])
    if shown.choices.cells:
        st.caption(text["drawn"].format(count=len(shown.choices.cells)))


def difference(p: Page, shown: MasksViewModel) -> None:
    """Draw the weights of the head with the mask − without it, on the same tokens."""
    own, predicted = shown.own, shown.predicted_labels
    if not shown.difference.any():
        st.caption(p.text["difference_none"])
        return
    show_map(
        value_map(
            shown.difference,
            row_labels=predicted or own.query.labels,
            column_labels=own.key.labels,
            row_title=row_title(shifted=predicted is not None),
            column_title=KEY_TITLE,
            scale="diverging",
            title=p.text["difference_title"].format(layer=own.layer, head=shown.location.head),
            value_name=p.text["difference_value"],
            phrase=(PREDICTING if predicted else "", LOOKS_AT),
            height=520,
        ),
        key="mask difference",
    )
    st.caption(p.text["difference_caption"])


def padding_sandbox(p: Page) -> None:
    """Draw the sentence followed by padding, with the mask and without it, side by side, as numbers."""
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


def formula_and_code(p: Page, shown: MasksViewModel) -> None:
    """Show the formula of masked attention, the page as code, and its source code."""
    text, (stack, kind, layer, _head) = p.text, shown.location
    specs, found = shown.choices.specs(shown.own), shown.found
    rule = score_rule(p.checkpoint, stack, layer, kind)
    score = score_formula(rule, r"q_i \cdot k_j", added=" + b_{ij}" if rule.added and not rule.is_of_the_paper else "")
    if rule.window is not None:
        st.caption(text["window"].format(window=rule.window))
    rows, columns = shown.now.allowed.shape
    show_formula(
        text["formula"].replace("%SCORE%", score),
        caption=text["formula_caption"].format(
            rows=rows, columns=columns, blocked=shown.n_blocked, cells=rows * columns
        ),
    )
    show_snippet(
        "masks",
        f"{p.preamble}\nfrom transformer.interventions.experiment import experiment\n\n"
        f"edits = transformer.edits_from(checkpoint, {list(specs)!r})\n"
        "found = experiment(trace, edits)\n"
        f"print(found.change, found.mean_kl)  # {found.change:.6g} {found.mean_kl:.6g}\n"
        f'print(found.changed.attention("{stack}", {layer}, "{kind}").allowed.astype(int))\n'
        "print(found.answer_after.text)\n",
    )
    show_source(
        attention_weights,
        combined_mask,
        mask_edits.no_causal_mask,
        mask_edits.no_padding_mask,
        mask_edits.sliding_window,
    )
