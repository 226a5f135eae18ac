"""One cell of the map: its arithmetic, and the effect of removing it."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts.figures.bars import Bars, Panel, small_multiples
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import number
from charts.toolkit.style import escape, symmetric_limit, three_digits
from charts.toolkit.style import lines as in_lines
from charts.toolkit.words import say
from transformer.attention_maps.attention_arithmetic import CellArithmetic, masked_cells
from transformer.interventions.experiment import experiment
from transformer.layers.positional_encodings import rotary_of
from transformer.runs.edit_specs import EditSpec, edits_from
from ui.page.page import Page
from ui.shell import choice
from ui.shell.navigation import go_to
from ui.show.figures import show_figure
from ui.show.score_formula import score_formula, tex_number
from ui.show.score_formula import signed as tex_signed
from ui.words.texts import plain_word
from views.attention.attention_sections import KEY, Shown, head_path

_SMALL = 0.0005  # smallest change of log p that is shown; below it the factor is 1.00


def worked_out(p: Page, shown: Shown) -> CellArithmetic:
    """Return the arithmetic of the open cell."""
    where = {"query": shown.row, "key": shown.key}
    return p.calc(head_path(p).cell, **where, name="cell", shows=(".weight", ".recorded"))


def arithmetic(p: Page, shown: Shown) -> None:
    """Draw the computation from q and k to the weight of the open cell."""
    cell, view = worked_out(p, shown), shown.view
    labels = {
        "row": shown.labels[shown.row],
        "read": view.query.labels[shown.row],
        "column": view.key.labels[shown.key],
    }
    labels = {name: plain_word(label) for name, label in labels.items()}
    p.say("arithmetic_predicted" if shown.predicts else "arithmetic", **labels)
    if shown.predicts:
        p.say("arithmetic_query", small=True, **labels)
    st.latex(equations(cell))
    if not cell.allowed.any():
        p.say("arithmetic_all_masked")
    elif not cell.is_allowed:
        reason = next(name for name, cells in masked_cells(view, cell.rule).items() if cells[shown.row, shown.key])
        p.say("arithmetic_masked", reason=p.md(f"reason.{reason}", window=cell.rule.window))
    ours, recorded = (number(f"{value:.9g}") for value in (cell.weight, cell.recorded))
    p.say("arithmetic_check", ours=ours, recorded=recorded, difference=number(f"{cell.difference:.2g}"))
    st.button(p.text["arithmetic_close"], icon=":material/close:", on_click=choice.put, args=(KEY,))


def equations(cell: CellArithmetic) -> str:
    """Return the lines from the products to the weight as LaTeX, without any user text.

    Of the products, the first and the last are written out: two do not fit beside the map on a small laptop.
    """
    channels = list(zip(cell.query, cell.key, strict=True))
    pairs = [rf"({tex_number(q, digits=3)})({tex_number(k, digits=3)})" for q, k in (channels[0], channels[-1])]
    rest = (r" + \dots" if len(channels) > 2 else "") + (f" + {pairs[1]}" if len(channels) > 1 else "")
    rule, product = cell.rule, tex_number(cell.dot_product)
    named = score_formula(rule, r"q \cdot k", root="d_k", added="" if cell.bias is None else " + b")
    numbers = score_formula(rule, product, added="" if cell.bias is None else f" {tex_signed(cell.bias)}")
    lines = [
        rf"q \cdot k &= {pairs[0]}",
        rf"&\quad {rest}",
        rf"&= {product}",
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


def more_about_cell(p: Page, shown: Shown) -> None:
    """Draw what removing the edge changes and, when a reader opens them, the channels and the whole row."""
    cell, view, (row, key) = worked_out(p, shown), shown.view, shown.cell
    _edge_effect(p, shown, cell)
    if p.checkpoint.config.positions == "rotary" and view.kind == "self":
        p.say("arithmetic_rotary", small=True)
        factor = rotary_of(p.checkpoint.model.get_submodule(view.name)).attention_factor
        if factor != 1:
            p.say("arithmetic_factor", small=True, factor=factor)
    read, column = view.query.labels[row], view.key.labels[key]
    if not view.key.patches and st.button(p.md("cell_heads", row=read, column=column), key="cell heads"):
        for name, value in {"heads_section": "table", "heads_from": row, "heads_to": key}.items():
            choice.put(name, value, page="heads")
        go_to("heads")
    channels = choice.collapsible(p.text["channels"], key="cell_channels", icon=":material/bar_chart:")
    if channels.open:
        with channels:
            show_figure(draw_products(cell, read, column), name="query-key-products")
    whole = choice.collapsible(p.text["whole_row"], key="cell_whole_row", icon=":material/table_rows:")
    if whole.open:
        values = (view.key.labels, cell.allowed.tolist(), cell.scores.tolist(), cell.powers.tolist())
        with whole:
            p.table(
                [
                    {"position": at, "token": token, "allowed": seen, "score": score, "power": power, "weight": weight}
                    for at, (token, seen, score, power, weight) in enumerate(
                        zip(*values, cell.weights.tolist(), strict=True)
                    )
                ],
                name="softmax-row",
            )  # fmt: skip


def _edge_effect(p: Page, shown: Shown, cell: CellArithmetic) -> None:
    """Say how removing the edge of the open cell changes the output."""
    if not cell.is_allowed:
        p.say("edge_masked")
        return
    focus, (row, key) = p.focus, shown.cell
    edge = EditSpec.parse(f"edge:{focus.stack}.{focus.layer}.{focus.kind}.{focus.head}={row}-{key}")
    edits = p.calc(edits_from, p.checkpoint, (str(edge),), name="edge")
    effect = p.calc(experiment, p.trace, edits, name="without_edge", shows=(".change",))
    asked = effect.asked
    if asked.predicts_nothing or not asked.ids:
        p.say("edge_nothing")
        return
    name = "edge" if abs(effect.change) >= _SMALL else "edge_small"
    p.say(name, weight=cell.recorded, factor=effect.factor, change=effect.change)
    if focus.stack == "decoder" and row in asked.rows:
        step = asked.rows.index(row)
        before, after = (float(np.exp(run[step])) for run in (effect.before, effect.after))
        p.say("edge_word", word=asked.displays[step], before=before, after=after)
    p.say("edge_note", small=True)


def draw_products(cell: CellArithmetic, query: str, key: str) -> go.Figure:
    """Draw both vectors by channel, their products, the sum, and the score."""
    products, score = cell.query * cell.key, cell.score
    total = float(products.sum(dtype=np.float64))
    key_of_sum, numbers = "attention.own_score", {}
    if cell.rule.is_of_the_paper:
        key_of_sum = "attention.score" if cell.bias is None else "attention.score_with_bias"
        numbers = {} if cell.bias is None else {"bias": three_digits(cell.bias)}
        score = total / np.sqrt(len(products)) + (cell.bias or 0.0)
    numbers |= {"sum": three_digits(total), "n": len(products), "score": three_digits(float(score))}
    limit = 1.08 * symmetric_limit(cell.query, cell.key)
    panels = [
        Panel([Bars(values, in_lines(channel, letter), signed=True, texts=())], letter, name, limits, height=height)
        for channel in (say("names.channel", channel="%{x}"),)
        for values, letter, name, limits, height in (
            (cell.query, "q", say("attention.query_of", token=escape(query)), (-limit, limit), 100),
            (cell.key, "k", say("attention.key_of", token=escape(key)), (-limit, limit), 100),
            (products, "q × k", say(key_of_sum, **numbers), None, 130),
        )
    ]
    return small_multiples(panels, along=Axis(say("attention.key_channel", n=len(products))))
