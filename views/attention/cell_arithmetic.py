"""The arithmetic of one attention weight, with the live numbers: formula, check, channels, row, Python."""

from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import number
from transformer.attention_maps.attention_arithmetic import CellArithmetic, cell_arithmetic, query_input, why_masked
from transformer.layers.positional_encodings import rotary_of
from transformer.runs.attention_view import AttentionView
from ui.shell import choice
from ui.shell.navigation import go_to
from ui.shell.page import Page
from ui.show.figures import show_figure, show_snippet, show_table
from ui.show.score_formula import score_formula, signed, tex_number
from ui.words.model_terms import rotary_words
from ui.words.texts import as_plain
from views.attention.attention_row_figures import dot_product
from views.attention.cell_writers import writers

_STYLE = Path(__file__).with_suffix(".css")
_SHOWN = 2  # products that are written out on the first line


def explain_cell(p: Page, view: AttentionView, cell: CellArithmetic, *, key: int, row_label: str) -> None:
    """From q and k to the weight of the cell (focused token, ``key``) of the focused head."""
    text = p.text
    st.html(_STYLE)
    named = "arithmetic" if row_label == view.query.labels[p.focus.token] else "arithmetic_predicted"
    st.markdown(f"**{text[named].format(row=as_plain(row_label), column=as_plain(view.key.labels[key]))}**")
    st.latex(equations(cell))
    if not cell.is_allowed:
        st.markdown(masked_sentence(p, view, cell, key))
    check = text["arithmetic_check"].format(
        ours=f"**{number(f'{cell.weight:.9g}')}**",
        recorded=f"**{number(f'{cell.recorded:.9g}')}**",
        difference=number(f"{cell.difference:.2g}"),
    )
    st.markdown(f":small[{check}]")


def more_about_cell(p: Page, view: AttentionView, cell: CellArithmetic, *, key: int) -> None:
    """The products channel by channel, the whole row of the softmax, and Python that gives the same number."""
    focus, text = p.focus, p.text
    if p.checkpoint.config.positions == "rotary" and focus.kind == "self":
        attention = p.checkpoint.model.get_submodule(view.name)
        st.caption(rotary_words(text, "arithmetic_rotary", rotary_of(attention).attention_factor))
    if p.checkpoint.config.positions == "disentangled" and cell.bias is not None:
        st.caption(text["arithmetic_disentangled"])
    names = {"row": view.query.labels[focus.token], "column": view.key.labels[key]}
    if not p.reads_pictures and st.button(
        text["cell_heads"].format(**names), icon=":material/search:", key="cell heads"
    ):
        for name, value in {"heads_section": "finder", "heads_from": focus.token, "heads_to": key}.items():
            choice.put(name, value, page="heads")
        go_to("heads")
    with st.expander(text["channels"], icon=":material/bar_chart:"):
        figure = dot_product(
            cell.query,
            key=cell.key,
            query_token=view.query.labels[focus.token],
            key_token=view.key.labels[key],
            bias=cell.bias,
            score=None if cell.rule.is_of_the_paper else cell.score,
        )
        show_figure(figure, name="query-key-products")
    with st.expander(text["whole_row"], icon=":material/table_rows:"):
        show_table(row_table(p, view, cell), name="softmax-row")
    with st.expander(text["writers"], icon=":material/edit_note:"):
        writers(p, view, key=key)
    show_snippet("cell arithmetic", snippet(p, cell, key=key))


def arithmetic_of(p: Page, *, key: int) -> CellArithmetic:
    """Of the cell (focused token, ``key``) of the focused head."""
    focus = p.focus
    return cell_arithmetic(p.trace, focus.stack, focus.layer, focus.kind, head=focus.head, query=focus.token, key=key)


def equations(cell: CellArithmetic) -> str:
    """The four lines from the products to the weight, as LaTeX with this cell's numbers (no text of the user in it)."""
    pairs = [
        rf"({tex_number(q, digits=3)})({tex_number(k, digits=3)})" for q, k in zip(cell.query, cell.key, strict=True)
    ]
    first, last = " + ".join(pairs[:_SHOWN]), "".join(f" + {pair}" for pair in pairs[_SHOWN:][-1:])
    dots = r" + \dots" if len(pairs) > _SHOWN + 1 else ""
    rule, product = cell.rule, tex_number(cell.dot_product)
    named = score_formula(rule, r"q \cdot k", root="d_k", added="" if cell.bias is None else " + b")
    numbers = score_formula(rule, product, added="" if cell.bias is None else f" {signed(cell.bias)}")
    lines = [
        rf"q \cdot k &= {first}",
        rf"&\quad {dots}{last}",
        rf"&= {tex_number(cell.dot_product)}",
        rf"s &= {named} = {numbers}" + (f" = {tex_number(cell.score)}" if numbers != product else ""),
    ]
    if cell.is_allowed:
        lines += [
            rf"s_{{\max}} &= {tex_number(cell.largest)}",
            rf"Z &= \textstyle\sum_j e^{{s_j - s_{{\max}}}} = {tex_number(cell.denominator)}",
            rf"\alpha &= \frac{{e^{{s - s_{{\max}}}}}}{{Z}}"
            rf" = \frac{{{tex_number(cell.power)}}}{{{tex_number(cell.denominator)}}}",
            rf"&= \mathbf{{{tex_number(cell.weight)}}}",
        ]
    else:
        lines.append(r"\alpha &= \mathbf{0} \qquad (s \to -\infty,\; e^{-\infty} = 0)")
    return r"\begin{aligned}" + r" \\[4pt] ".join(lines) + r"\end{aligned}"


def masked_sentence(p: Page, view: AttentionView, cell: CellArithmetic, key: int) -> str:
    if not cell.allowed.any():
        return p.text["arithmetic_all_masked"]
    reason = why_masked(view, cell.rule, query=p.focus.token, key=key)
    return p.text["arithmetic_masked"].format(reason=p.text[f"reason_{reason}"].format(window=cell.rule.window))


def row_table(p: Page, view: AttentionView, cell: CellArithmetic) -> pd.DataFrame:
    """The softmax of the row, key by key."""
    return pd.DataFrame(
        {
            p.text["column_position"]: np.arange(len(view.key)),
            p.text["column_token"]: view.key.labels,
            p.text["column_allowed"]: cell.allowed,
            p.text["column_score"]: cell.scores,
            p.text["column_power"]: cell.powers,
            p.text["column_weight"]: cell.weights,
        }
    )


def snippet(p: Page, cell: CellArithmetic, *, key: int) -> str:
    """Python that derives this cell's weight from x, W_Q and the keys, with the library alone."""
    focus = p.focus
    name = f"{focus.stack}.layers.{focus.layer}.{focus.kind}_attention"
    rule = cell.rule
    biased = p.checkpoint.model.get_submodule(name).query_projection.bias is not None
    scaled = " / np.sqrt(len(query))" if rule.radicand == rule.d_head else " * attention.scale"
    after = "".join(f'scores = scores + trace["{added}"].values[head, row]\n' for added in rule.added)
    if rule.cap is not None:
        after += "scores = attention.score_cap * np.tanh(scores / attention.score_cap)\n"
    heads = "torch.tensor(derived).view(1, 1, 1, -1)"
    turned = ""
    if rule.normalized:
        turned = f"derived = attention.query_norm({heads}.float()).flatten().numpy()\n"
    if p.checkpoint.config.positions == "rotary":
        # Where waves depend on the length of the text, one row does not tell it.
        whole = ', len(trace[f"{name}.key"].values[head])' if p.checkpoint.config.switch_lengths else ""
        turned += f"derived = attention.{'rotary' if whole else 'rotate'}({heads}, row{whole}).flatten().numpy()"
        turned += "  # by position\n"
    return (
        f"import numpy as np\n{'import torch' if turned else ''}{chr(10) if turned else ''}{p.preamble}\n"
        f'name = "{name}"\n'
        f"head, row, column = {focus.head}, {focus.token}, {key}\n"
        "attention = checkpoint.model.get_submodule(name)\n"
        "own = slice(head * attention.d_head, (head + 1) * attention.d_head)  # this head's part of W_Q"
        f"{' and b_Q' if biased else ''}\n"
        "W_Q = attention.query_projection.weight.detach().numpy()[own].T.astype(np.float64)  # [model, channel]\n"
        + ("b_Q = attention.query_projection.bias.detach().numpy()[own].astype(np.float64)\n" if biased else "")
        + f'x = trace["{query_input(p.trace, focus.stack, focus.layer, focus.kind)}"].values[row].astype(np.float64)\n'
        f"derived = x @ W_Q{' + b_Q' if biased else ''}\n"
        f"{turned}"
        'query = trace[f"{name}.query"].values[head, row].astype(np.float64)\n'
        "assert np.allclose(derived, query, atol=1e-4)  # the model calculates in float32\n"
        'keys = trace[f"{name}.key"].values[head].astype(np.float64)\n'
        'allowed = trace[f"{name}.allowed"].values[row]\n\n'
        f"scores = keys @ query{scaled if rule.is_scaled else ''}\n"
        f"{after}"
        "powers = np.where(allowed, np.exp(scores - scores.max(where=allowed, initial=-np.inf)), 0.0)\n"
        "print(powers[column] / powers.sum())\n"
        'print(trace[f"{name}.weights"].values[head, row, column])  # what the model recorded\n'
    )
