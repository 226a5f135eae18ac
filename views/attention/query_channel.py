"""Where a query comes from: one of its numbers derived from x and W_Q, with the live numbers."""

import streamlit as st

from charts.toolkit.numbers import number
from transformer.attention_maps.attention_arithmetic import QueryArithmetic, query_arithmetic
from transformer.attention_maps.attention_path import AttentionPath
from transformer.layers.norms import norm_kind
from ui.shell.page import Page
from ui.show.score_formula import signed, tex_number
from ui.words.model_terms import rotary_words
from ui.words.texts import as_plain

_SHOWN = 3  # products that are written out


def query_channel(p: Page, path: AttentionPath, row_label: str) -> None:
    """What X is in this model, and one channel of the focused token's query as x W_Q + b."""
    focus, text = p.focus, p.text
    found = query_arithmetic(p.trace, focus.stack, focus.layer, focus.kind, head=path.head, row=focus.token)
    norm = p.checkpoint.config.norm
    kind = norm_kind(p.checkpoint, found.source.removesuffix(".output")) if norm == "pre" else ""
    st.markdown(text[f"step_1_x_{norm}"].format(source=found.source, norm=kind))
    channel = text["step_1_channel" if found.bias is not None else "step_1_channel_unbiased"]
    st.markdown(
        channel.format(row=as_plain(row_label), channel=found.channel, width=len(found.x)),
        help=text["step_1_channel_help"],
    )
    st.latex(equations(found))
    template = "step_1_normalized" if found.normalized else "step_1_rotated" if found.rotated else "step_1_check"
    recorded = number(f"{found.recorded:.6g}")
    st.caption(rotary_words(text, template, found.factor, recorded=recorded, row=focus.token))


def equations(found: QueryArithmetic) -> str:
    """The sum as LaTeX with this token's numbers."""
    pairs = [
        rf"({tex_number(x, digits=4)})({tex_number(w, digits=4)})"
        for x, w in zip(found.x[:_SHOWN], found.weights[:_SHOWN], strict=True)
    ]
    channel = found.channel
    named, number = (rf" + b_{{{channel}}}", f" {signed(found.bias)}") if found.bias is not None else ("", "")
    return (
        rf"\begin{{aligned}} q_{{{channel}}} &= \textstyle\sum_{{i=0}}^{{{len(found.x) - 1}}} "
        rf"x_i\, W_{{Q\,i,{channel}}}{named} \\[4pt] "
        rf"&= {' + '.join(pairs)} + \dots{number} = \mathbf{{{tex_number(found.value)}}} \end{{aligned}}"
    )
