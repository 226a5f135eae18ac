"""One cell of the map: its arithmetic and the effect of removing it."""

from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import number
from charts.toolkit.style import signed, three_digits
from transformer.attention_maps.attention_arithmetic import CellArithmetic, query_input
from transformer.layers.positional_encodings import rotary_of
from transformer.runs.edit_specs import EditSpec
from ui.lab.experiments import experiment_with
from ui.page.page import Page
from ui.shell import choice
from ui.shell.navigation import go_to
from ui.show.figures import show_figure, show_snippet, show_table
from ui.show.score_formula import score_formula, tex_number
from ui.show.score_formula import signed as tex_signed
from ui.words.model_terms import rotary_words
from ui.words.texts import PageText, as_plain, plain_word
from views.attention.attention_controls import close_cell
from views.attention.attention_row_figures import dot_product
from views.attention.attention_view_model import AttentionViewModel

_STYLE = Path(__file__).with_suffix(".css")
_SHOWN = 1  # products written out on the first line; two do not fit beside the map on a small laptop
_SMALL = 0.0005  # smallest change of log p that is shown; below it the factor is 1.00


def explain_cell(p: Page, shown: AttentionViewModel) -> None:
    """Draw the computation from q and k to the weight of the open cell."""
    text, view, cell, key = p.text, shown.view, shown.arithmetic, shown.choices.key
    st.html(_STYLE)
    template = text["arithmetic_predicted" if shown.names_predictions else "arithmetic"]
    labels = {"row": shown.row_label, "read": shown.read_label, "column": view.key.labels[key]}
    labels = {name: as_plain(plain_word(label)) for name, label in labels.items()}
    st.markdown(f"**{template.format(**labels)}**")
    if shown.names_predictions:
        st.caption(text["arithmetic_query"].format(**labels))
    st.latex(equations(cell))
    if not cell.is_allowed:
        st.markdown(masked_sentence(p.text, shown))
    check = text["arithmetic_check"].format(
        ours=f"**{number(f'{cell.weight:.9g}')}**",
        recorded=f"**{number(f'{cell.recorded:.9g}')}**",
        difference=number(f"{cell.difference:.2g}"),
    )
    st.markdown(f":small[{check}]")
    st.button(text["arithmetic_close"], icon=":material/close:", on_click=close_cell)


def more_about_cell(p: Page, shown: AttentionViewModel) -> None:
    """Draw the products per channel, the softmax, and the Python code.

    Collapsed parts are computed when a reader opens them.
    """
    text, cell, (row, key) = p.text, shown.arithmetic, shown.cell
    if p.checkpoint.config.positions == "rotary" and shown.view.kind == "self":
        attention = p.checkpoint.model.get_submodule(shown.view.name)
        st.caption(rotary_words(text, "arithmetic_rotary", rotary_of(attention).attention_factor))
    names = {"row": shown.read_label, "column": shown.view.key.labels[key]}
    if not p.reads_pictures and st.button(
        text["cell_heads"].format(**names), icon=":material/search:", key="cell heads"
    ):
        for name, value in {"heads_section": "table", "heads_from": row, "heads_to": key}.items():
            choice.put(name, value, page="heads")
        go_to("heads")
    for name, icon, draw in (
        ("channels", ":material/bar_chart:", _channels),
        ("whole_row", ":material/table_rows:", _whole_row),
    ):
        part = choice.collapsible(text[name], key=f"cell_{name}", icon=icon)
        if part.open:
            with part:
                draw(p, shown)
    show_snippet("cell arithmetic", snippet(p, cell, key=key))


def _channels(p: Page, shown: AttentionViewModel) -> None:
    cell = shown.arithmetic
    figure = dot_product(
        cell.query,
        key=cell.key,
        query_token=shown.read_label,
        key_token=shown.view.key.labels[cell.column],
        bias=cell.bias,
        score=None if cell.rule.is_of_the_paper else cell.score,
    )
    show_figure(figure, name="query-key-products")


def _whole_row(p: Page, shown: AttentionViewModel) -> None:
    """Draw the softmax of the row, key by key."""
    cell, text = shown.arithmetic, p.text
    table = {
        text["column_position"]: np.arange(len(shown.view.key)),
        text["column_token"]: shown.view.key.labels,
        text["column_allowed"]: cell.allowed,
        text["column_score"]: cell.scores,
        text["column_power"]: cell.powers,
        text["column_weight"]: cell.weights,
    }
    show_table(pd.DataFrame(table), name="softmax-row")


def equations(cell: CellArithmetic) -> str:
    """Return the four lines from the products to the weight as LaTeX, without any user text."""
    channels = list(zip(cell.query, cell.key, strict=True))
    shown = channels[:_SHOWN] + channels[_SHOWN:][-1:]
    pairs = [rf"({tex_number(q, digits=3)})({tex_number(k, digits=3)})" for q, k in shown]
    first, last = " + ".join(pairs[:_SHOWN]), "".join([f" + {pair}" for pair in pairs[_SHOWN:]])
    dots = r" + \dots" if len(channels) > _SHOWN + 1 else ""
    rule, product = cell.rule, tex_number(cell.dot_product)
    named = score_formula(rule, r"q \cdot k", root="d_k", added="" if cell.bias is None else " + b")
    numbers = score_formula(rule, product, added="" if cell.bias is None else f" {tex_signed(cell.bias)}")
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


def masked_sentence(text: PageText, shown: AttentionViewModel) -> str:
    """Return why the cell has no weight."""
    if not shown.arithmetic.allowed.any():
        return text["arithmetic_all_masked"]
    reason = text[f"reason_{shown.reason_masked}"].format(window=shown.path.rule.window)
    return text["arithmetic_masked"].format(reason=reason)


def snippet(p: Page, cell: CellArithmetic, *, key: int) -> str:
    """Return Python that derives this cell's weight from x, W_Q and the keys, with the library alone."""
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
        # If the frequencies depend on the length of the text, one row does not determine them.
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


def edge_effect(p: Page, shown: AttentionViewModel) -> None:
    """State how removing the edge of the chosen cell changes the output, in one sentence."""
    focus, text, (row, key) = p.focus, p.text, shown.cell
    if not shown.arithmetic.is_allowed:
        st.markdown(text["edge_masked"])
        return
    place = f"{focus.stack}.{focus.layer}.{focus.kind}.{focus.head}"
    effect = experiment_with(p.run, (str(EditSpec.parse(f"edge:{place}={row}-{key}")),))
    if effect.asked.predicts_nothing or not effect.asked.ids:
        st.markdown(text["edge_nothing"])
        return
    said = text["edge" if abs(effect.change) >= _SMALL else "edge_small"].format(
        weight=three_digits(shown.arithmetic.recorded), factor=three_digits(effect.factor), change=signed(effect.change)
    )
    if focus.stack == "decoder" and row in effect.asked.rows:
        step = effect.asked.rows.index(row)
        said += " " + text["edge_word"].format(
            word=as_plain(effect.asked.displays[step]),
            before=three_digits(float(np.exp(effect.before[step]))),
            after=three_digits(float(np.exp(effect.after[step]))),
        )
    st.markdown(f"{said}  \n:small[{text['edge_note']}]")
