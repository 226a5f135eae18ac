"""One head in seven steps: for each a sentence, the formula with its shapes, and one figure."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from charts.canvas.attention_maps import KEY_TITLE, row_title
from charts.canvas.value_map import value_map
from charts.figures.bars import Bars, Panel, Points, small_multiples
from charts.figures.heat_maps import heat_map
from charts.toolkit import style
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import number
from charts.toolkit.words import say
from transformer.attention_maps.attention_arithmetic import QueryArithmetic, masked_cells, query_arithmetic
from transformer.attention_maps.attention_path import AttentionPath, output_sum
from transformer.layers.norms import norm_kind
from ui.page.page import Page
from ui.shell import choice
from ui.show.drawings import show_map
from ui.show.figures import show_figure
from ui.show.score_formula import score_formula, signed, tex_number
from ui.words.texts import Marked, listed
from views.attention.attention_sections import Shown, cell_opener, head_path, place

STEP = "attention_step"
_CHOOSES = 0.9  # a row with at least this largest weight selects one token rather than mixing several
_KEYS = 6  # with a colour of their own in the sum of values
_PRODUCTS = 3  # terms of one channel's sum that are written out
_MAX_ROWS, _SCROLLED = 30, 640  # longer texts scroll, in a window of this many pixels
_HEIGHT, _HEIGHT_IN_LESSON = 420, 290  # of the maps, in pixels on a projector; sentence and formula stay visible above


def steps(p: Page, shown: Shown) -> None:
    """Draw the bar of steps, kept in the address, and the chosen step."""
    draw = (_projections, _products, _scaled, _masked, _softmax, _mix, _output)
    names = [str(number + 1) for number in range(len(draw))]
    with st.container(key="attention path"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            here = names.index(p.option("step", names, key=STEP, wrap=True))
            last = here == len(names) - 1
            st.button(p.text["next"], key="attention next", disabled=last, on_click=choice.put, args=(STEP, here + 2))
        draw[here](p, shown, head_path(p))


def _row(p: Page, shown: Shown) -> Marked:
    """Return the token that the row reads, quoted, and the one it predicts if maps name that."""
    name = "row_predicts" if shown.predicts else "row_reads"
    return p.md(name, read=shown.view.query.labels[shown.row], predicted=shown.labels[shown.row])


def _beside(text: str, formula: str) -> None:
    """Write a step's sentence and, beside it, its formula, so that the map stays visible."""
    said, written = st.columns([3, 2], vertical_alignment="center")
    said.markdown(text)
    written.latex(formula)


def _matrix(letter: str, rows: int, columns: int) -> str:
    return rf"\underset{{{rows} \times {columns}}}{{{letter}}}"


def _projections(p: Page, shown: Shown, path: AttentionPath) -> None:
    attention, view, d_model = p.checkpoint.model.get_submodule(path.view.name), path.view, p.checkpoint.config.d_model
    rule = path.rule
    p.say("step_1" if attention.query_projection.bias is not None else "step_1_unbiased", d_head=path.d_head)
    if rule.heads_a_key > 1:
        p.say("step_1_grouped", heads=rule.heads_a_key)
    if rule.normalized:
        p.say("step_1_query_norm")
    if view.kind == "cross":
        p.say("step_1_cross")
    source = r"X" if view.kind == "self" else r"X_{\text{encoder}}"
    drawn = (  # each vector is of the token read, whatever the rows of the map above are named after
        ("query", "Q", "X", path.query, view.query),
        ("key", "K", source, path.key, view.key),
        ("value", "V", source, path.value, view.key),
    )
    is_long = max(len(path.query), len(path.key)) > _MAX_ROWS
    with (
        st.container(height=_SCROLLED if is_long else "content", key="attention projections"),
        st.grid(3, min_column_width=280),
    ):
        for name, letter, stream, values, tokens in drawn:
            product = rf"{_matrix(stream, len(values), d_model)}\;\;{_matrix(f'W_{letter}', d_model, path.d_head)}"
            if getattr(attention, f"{name}_projection").bias is not None:
                product += f" + b_{letter}"
            if rule.normalized and name != "value":
                product = rf"\text{{RMSNorm}}\big({product}\big)"
            with st.container():
                p.formula(f"{_matrix(letter, len(values), path.d_head)} = {product}")
                figure = value_map(  # on the canvas, because the page opens with this step and Plotly is 5 MB
                    values, row_labels=tokens.labels, column_labels=[str(channel) for channel in range(path.d_head)],
                    row_title=p.text["token_axis"], column_title=p.text["channel"], scale="diverging",
                    title=p.text[f"title_{name}"], value_name=p.text[f"title_{name}"],
                    phrase=("", f" · {p.text['channel']} "),
                )  # fmt: skip
                show_map(figure, key=f"attention {name}")
    _query_channel(p, shown)


def _query_channel(p: Page, shown: Shown) -> None:
    """Write what X is in this model, and one channel of the focused token's query as x W_Q + b."""
    found = p.calc(
        query_arithmetic, p.trace, *place(p), head=shown.head, row=shown.row, name="channel",
        shows=(".value", ".recorded"),
    )  # fmt: skip
    norm = p.checkpoint.config.norm
    kind = norm_kind(p.checkpoint, found.source.removesuffix(".output")) if norm == "pre" else ""
    p.say(f"step_1_x_{norm}", source=found.source, norm=kind)
    name = "step_1_channel" if found.bias is not None else "step_1_channel_unbiased"
    st.markdown(
        p.md(name, row=_row(p, shown), channel=str(found.channel), width=len(found.x)), help=p.md("step_1_channel_help")
    )
    st.latex(channel_equations(found))
    name = "step_1_normalized" if found.normalized else "step_1_rotated" if found.rotated else "step_1_check"
    said = p.md(name, recorded=number(f"{found.recorded:.6g}"), row=shown.row)
    st.caption(said if found.factor == 1 else f"{said} {p.md('arithmetic_factor', factor=found.factor)}")


def channel_equations(found: QueryArithmetic) -> str:
    """Return the sum of one channel as LaTeX with this token's numbers."""
    pairs = [
        rf"({tex_number(x, digits=4)})({tex_number(w, digits=4)})"
        for x, w in zip(found.x[:_PRODUCTS], found.weights[:_PRODUCTS], strict=True)
    ]
    channel = found.channel
    named, number = (rf" + b_{{{channel}}}", f" {signed(found.bias)}") if found.bias is not None else ("", "")
    return (
        rf"\begin{{aligned}} q_{{{channel}}} &= \textstyle\sum_{{i=0}}^{{{len(found.x) - 1}}} "
        rf"x_i\, W_{{Q\,i,{channel}}}{named} \\[4pt] "
        rf"&= {' + '.join(pairs)} + \dots{number} \\[4pt] "
        rf"&= \mathbf{{{tex_number(found.value)}}} \end{{aligned}}"
    )


def _products(p: Page, shown: Shown, path: AttentionPath) -> None:
    (rows, columns), d_head = path.products.shape, path.d_head
    q, k = _matrix("Q", rows, d_head), _matrix(r"K^\top", d_head, columns)
    product = _matrix(r"Q K^\top", rows, columns)
    _beside(p.md("step_2"), rf"{q}\;{k} = {product}")
    _draw_cells(p, shown, path.products, "products", name="q·k")


def _scaled(p: Page, shown: Shown, path: AttentionPath) -> None:
    rule, without = path.rule, float(path.weights_without_scaling(shown.row).max())
    largest = float(path.weights[shown.row].max())
    name = "step_3" if rule.radicand == path.d_head else "step_3_scale" if rule.is_scaled else "step_3_unscaled"
    said = [
        p.md(
            name, d_head=path.d_head, root=path.d_head**0.5, scale=rule.scale, row=_row(p, shown), without=without,
            largest=largest,
        )
    ]  # fmt: skip
    if without >= _CHOOSES > largest:
        said.append(p.md("step_3_chooses"))
    if path.bias is not None:
        said.append(p.md("step_3_bias"))
    if rule.cap is not None:
        said.append(p.md("step_3_cap", cap=rule.cap))
    added = " + B" if rule.added else ""
    named, numbers = (score_formula(rule, r"Q K^\top", root=root, added=added) for root in ("d_k", ""))
    _beside(" ".join(said), _matrix("S", *path.products.shape) + " = " + " = ".join(dict.fromkeys((named, numbers))))
    _draw_cells(p, shown, path.scores, "scaled", name="score")


def _masked(p: Page, shown: Shown, path: AttentionPath) -> None:
    counts = {name: int(cells.sum()) for name, cells in masked_cells(path.view, path.rule).items() if cells.any()}
    reasons = listed(p.md(f"masked.{name}", count=n, window=path.rule.window) for name, n in counts.items())
    said = p.md("step_4", masked=sum(counts.values()), cells=path.view.allowed.size, reasons=reasons)
    if not counts:
        said = p.md("step_4_nothing" if p.checkpoint.special.pad is not None else "step_4_never")
    _beside(said, r"S'_{ij} = \begin{cases} S_{ij} & j \text{ allowed for } i \\ -\infty & \text{else} \end{cases}")
    _draw_cells(p, shown, path.scores, "masked", name="score", allowed=path.view.allowed)


def _softmax(p: Page, shown: Shown, path: AttentionPath) -> None:
    p.say("step_5", row=_row(p, shown))
    allowed = int(path.view.allowed[shown.row].sum())
    p.formula(
        r"\alpha_{ij} = \frac{e^{S'_{ij}}}{\sum_{j'} e^{S'_{ij'}}}",
        "step_5_shapes", allowed=allowed, keys=len(path.key), row=shown.row,
    )  # fmt: skip
    query = style.escape(path.view.query.labels[shown.row])
    along = Axis(say("attention.key_axis", query=query, head=path.head), path.view.key.displays)
    panels = softmax_panels(path.view.scores[path.head, shown.row], path.view.weights[path.head, shown.row],
                            path.view.allowed[shown.row])  # fmt: skip
    show_figure(small_multiples(panels, along=along, gap=44), name="softmax-of-one-row")


def softmax_panels(scores: np.ndarray, weights: np.ndarray, allowed: np.ndarray) -> list[Panel]:
    """Return the panels of a row's softmax: scores, those that the mask leaves, exponentials, weights.

    If no key is masked, the second panel would repeat the first and is left out. As in the model, the largest score is
    subtracted before the exponential: this changes no weight, and the largest exponential is 1.
    """
    left, masked = np.where(allowed, scores, np.nan), ~allowed
    powers = np.exp(left - np.nanmax(left)) if allowed.any() else left
    span = (min(0.0, float(scores.min())), max(0.0, float(scores.max())))
    space = 0.06 * (span[1] - span[0] or 1.0)
    limits = (span[0] - space * (span[0] < 0), span[1] + space)
    hides = say("attention.mask_hides", n=masked.sum(), keys=len(masked))
    total = style.three_digits(float(np.nansum(powers)))
    found = [
        (say("attention.scores_before_mask"), "score", scores, limits, None),
        (hides, "score", left, limits, masked),
    ]
    if allowed.all():
        found = [(say("attention.scores_unmasked"), "score", scores, limits, None)]
    found += [  # with space for the numbers above the bars
        (say("attention.powers", sum=total), "power", powers, (0, 1.2), masked),
        (say("attention.weights"), "weight", np.where(allowed, weights, np.nan), (0, 1.2), masked),
    ]
    at = say("token_position", token="%{x}", place="%{x:d}")
    return [
        Panel(
            [Bars(values, style.lines(at, say(f"names.{what}")), signed=what == "score",
                  texts=() if what == "score" else None)],
            say(f"names.{what}"), name, ends, hatched, height=90 if what == "weight" else 72,
        )
        for name, what, values, ends, hatched in found
    ]  # fmt: skip


def _mix(p: Page, shown: Shown, path: AttentionPath) -> None:
    p.say("step_6", row=_row(p, shown))
    (rows, columns), d_head = path.products.shape, path.d_head
    head = rf"\text{{head}}_{{{path.head}}}"
    p.formula(rf"{_matrix('A', rows, columns)}\;\;{_matrix('V', columns, d_head)} = {_matrix(head, rows, d_head)}")
    along = Axis(say("names.value_channel", n=d_head))
    drawn = mix_of_values(path.weights[shown.row], path.value, path.view.key.labels)
    panel = Panel(drawn, say("names.weight_times_value"), height=330)
    show_figure(small_multiples([panel], along=along, stacked=True), name="weights-times-values")


def mix_of_values(weights: np.ndarray, values: np.ndarray, labels: Sequence[str]) -> list[Bars | Points]:
    """Return the longest products weight × value, the sum of all others, and the whole sum."""
    products = weights[:, None] * values
    order = np.argsort(-np.linalg.norm(products, axis=1), kind="stable")
    rows = [
        (f"{style.escape(labels[key])} × {style.three_digits(float(weights[key]))}", products[key])
        for key in sorted(order[:_KEYS])
    ]
    named = [(*row, style.category_colour(place)) for place, row in enumerate(rows)]
    if len(rest := order[_KEYS:]):
        named.append((say("names.other_tokens", n=len(rest)), products[rest].sum(axis=0), style.MASKED))
    channel = say("names.channel", channel="%{x}")
    return [
        *(Bars(its, style.lines(channel, name), name, colour, texts=()) for name, its, colour in named),
        Points(
            products.sum(axis=0), channel, say("names.head_output"), "white", symbol="diamond", size=9, edge="black"
        ),
    ]


def _output(p: Page, shown: Shown, path: AttentionPath) -> None:
    found = p.calc(output_sum, p.trace, *place(p), row=shown.row, name="parts", shows=(".error",))
    lengths = {
        "length": float(np.linalg.norm(found.contributions[path.head])),
        "total": float(np.linalg.norm(found.output)),
    }
    name = "step_7" if found.bias is not None else "step_7_unbiased"
    d_model = p.checkpoint.config.d_model
    p.say(name, d_head=path.d_head, d_model=d_model, row=_row(p, shown), head=str(path.head), **lengths)
    head, matrix = _matrix(r"\text{head}_h", len(path.query), path.d_head), _matrix("W_{O,h}", path.d_head, d_model)
    p.formula(rf"\text{{output}} = \sum_h {head}\;{matrix}" + (" + b_O" if found.bias is not None else ""))
    rows = {say("names.numbered_head", head=number): row for number, row in enumerate(found.contributions)}
    rows |= {} if found.bias is None else {say("names.bias_b_o"): found.bias}
    rows[say("names.sum_output")] = found.output
    figure = heat_map(
        np.stack(list(rows.values())),
        rows=Axis(say("part_sum"), list(rows)),
        columns=Axis(say("stream_dimension", n=d_model)),
        hover=say("attention.place_dimension", place="%{y}", dimension="%{x}"),
        value=say("written"),
        gap=2,
        frames=[(path.head, None)],
        end=(len(rows) - 1, ""),
    )
    show_figure(figure, name="heads-add-up")


def _draw_cells(
    p: Page, shown: Shown, values: np.ndarray, step: str, *, name: str, allowed: np.ndarray | None = None
) -> None:
    figure = value_map(
        values, row_labels=shown.labels, column_labels=shown.view.key.labels, column_title=KEY_TITLE,
        row_title=row_title(shifted=shown.predicts), scale="diverging", allowed=allowed, selected=shown.cell,
        chosen_row=shown.row, title=f"{name} · {say('names.numbered_head', head=shown.head)}", value_name=name,
        phrase=("", " meets "), height=_HEIGHT_IN_LESSON if p.focus.lesson else _HEIGHT,
    )  # fmt: skip
    show_map(figure, key=f"attention step {step}", on_click=cell_opener(shown.key))
