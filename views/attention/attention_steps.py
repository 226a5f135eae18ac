"""One head in seven steps: for each a sentence, the formula with its shapes, and one figure."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.attention_maps import KEY_TITLE, row_title
from charts.canvas.value_map import value_map
from charts.toolkit.numbers import number
from charts.toolkit.style import three_digits
from charts.toolkit.words import say
from transformer.attention import MultiHeadAttention
from transformer.attention_maps.attention_arithmetic import QueryArithmetic, ScoreRule, query_arithmetic
from transformer.attention_maps.attention_path import AttentionPath, output_sum
from transformer.layers.norms import norm_kind
from transformer.runs.attention_view import AttentionView
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import one_of
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_formula
from ui.show.score_formula import score_formula, signed, tex_number
from ui.words.model_terms import rotary_words
from ui.words.texts import as_plain, page_texts
from views.attention.attention_controls import cell_opener
from views.attention.attention_row_figures import head_contributions, score_pipeline, value_mix
from views.attention.attention_view_model import AttentionViewModel

STEP = "attention_step"
_CHOOSES = 0.9  # a row with at least this largest weight selects one token rather than mixing several
_PRODUCTS = 3  # terms of one channel's sum that are written out
_MAX_ROWS, _SCROLLED = 30, 640  # longer texts scroll, in a window of this many pixels

# height of the maps in pixels on a projector; sentence and formula stay visible above
_HEIGHT, _HEIGHT_IN_LESSON = 420, 290


def stepper(p: Page, rule: ScoreRule) -> int:
    """Draw the bar of steps, kept in the address; return the step, 1 … 7."""
    texts = page_texts("attention")
    steps = range(1, len(p.text["steps"]) + 1)
    names = {step: [*(text["steps"][step - 1] for text in texts), f"steps.{step}"] for step in steps}
    own = [text["step_3_own"] for text in texts]  # if the model does more than divide by √dₖ
    names[3] = names[3] + own if rule.is_of_the_paper else own + names[3]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        here = one_of(p.text["step"], names, key=STEP, wrap=True)
        for name, to, icon in (
            ("back", here - 1, ":material/arrow_back:"),
            ("next", here + 1, ":material/arrow_forward:"),
        ):
            st.button(
                p.text[name],
                icon=icon,
                key=f"attention {name}",
                disabled=to not in steps,
                on_click=_go,
                args=(to,),
            )
    return here


def _go(step: int) -> None:
    choice.put(STEP, step)


def draw_step(p: Page, shown: AttentionViewModel, step: int) -> None:
    """Draw one step."""
    draw = (_projections, _products, _scaled, _masked, _softmax, _mix, _output)[step - 1]
    draw(p, shown)


def _projections(p: Page, shown: AttentionViewModel) -> None:
    path = shown.path
    config = p.checkpoint.config
    attention, rule = _module(p, path), path.rule
    biased = attention.query_projection.bias is not None
    st.markdown(p.text["step_1" if biased else "step_1_unbiased"].format(d_head=path.d_head))
    if rule.heads_a_key > 1:
        st.markdown(p.text["step_1_grouped"].format(heads=rule.heads_a_key))
    if rule.normalized:
        st.markdown(p.text["step_1_query_norm"])
    if path.view.kind == "cross":
        st.markdown(p.text["step_1_cross"])
    source = r"X" if path.view.kind == "self" else r"X_{\text{encoder}}"
    keys = path.view.key
    drawn = (  # each vector is of the token read, whatever the rows of the map above are named after
        ("query", "Q", "X", path.query, path.view.query),
        ("key", "K", source, path.key, keys),
        ("value", "V", source, path.value, keys),
    )
    longest = max(len(path.query), len(path.key))
    with (
        st.container(height=_SCROLLED if longest > _MAX_ROWS else "content", key="attention projections"),
        st.grid(3, min_column_width=280),
    ):
        for name, letter, stream, values, tokens in drawn:
            with st.container():
                product = (
                    rf"\underset{{{len(values)} \times {config.d_model}}}{{{stream}}}\;\;"
                    rf"\underset{{{config.d_model} \times {path.d_head}}}{{W_{letter}}}"
                )
                if getattr(attention, f"{name}_projection").bias is not None:
                    product += f" + b_{letter}"
                if rule.normalized and name != "value":
                    product = rf"\text{{RMSNorm}}\big({product}\big)"
                show_formula(rf"\underset{{{len(values)} \times {path.d_head}}}{{{letter}}} = {product}")
                show_map(
                    value_map(  # on the canvas, because the page opens with this step and Plotly is 5 MB
                        values,
                        row_labels=tokens.labels,
                        column_labels=[str(channel) for channel in range(path.d_head)],
                        row_title=p.text["token_axis"],
                        column_title=p.text["channel"],
                        scale="diverging",
                        title=p.text[f"title_{name}"],
                        value_name=p.text[f"title_{name}"],
                        phrase=("", f" · {p.text['channel']} "),
                    ),
                    key=f"attention {name}",
                )
    _query_channel(p, shown)


def _row_name(p: Page, shown: AttentionViewModel) -> str:
    """Return the token that the row reads, quoted, and the one it predicts if maps name that."""
    if shown.predicted is None:
        return p.text["row_reads"].format(read=as_plain(shown.read_label))
    return p.text["row_predicts"].format(read=as_plain(shown.read_label), predicted=as_plain(shown.predicted))


def _said_and_formula() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return containers for a step's sentence and, next to it, its formula, so that the map stays visible."""
    said, formula = st.columns([3, 2], vertical_alignment="center")
    return said, formula


def _module(p: Page, path: AttentionPath) -> MultiHeadAttention:
    return p.checkpoint.model.get_submodule(path.view.name)


def _products(p: Page, shown: AttentionViewModel) -> None:
    path = shown.path
    n_queries, n_keys = path.products.shape
    said, formula = _said_and_formula()
    said.markdown(p.text["step_2"])
    with formula:
        show_formula(
            rf"\underset{{{n_queries} \times {path.d_head}}}{{Q}}\;"
            rf"\underset{{{path.d_head} \times {n_keys}}}{{K^\top}} = "
            rf"\underset{{{n_queries} \times {n_keys}}}{{Q K^\top}}"
        )
    _cells(p, shown, path.products, name="q·k", step="products")


def _scaled(p: Page, shown: AttentionViewModel) -> None:
    path = shown.path
    row = shown.row
    without, scaled = float(path.weights_without_scaling(row).max()), float(path.weights[row].max())
    rule = path.rule
    name = "step_3" if rule.radicand == path.d_head else "step_3_scale" if rule.is_scaled else "step_3_unscaled"
    sentence = p.text[name].format(
        d_head=path.d_head,
        root=three_digits(path.d_head**0.5),
        scale=three_digits(rule.scale),
        row=_row_name(p, shown),
        without=three_digits(without),
        **{"with": three_digits(scaled)},
    )
    said, formula = _said_and_formula()
    said.markdown(sentence + (p.text["step_3_chooses"] if without >= _CHOOSES > scaled else ""))
    added = " + B" if rule.added else ""
    if path.bias is not None:
        said.markdown(p.text["step_3_bias"])
    if rule.cap is not None:
        said.markdown(p.text["step_3_cap"].format(cap=three_digits(rule.cap)))
    n_queries, n_keys = path.products.shape
    named, numbers = (score_formula(rule, r"Q K^\top", root=root, added=added) for root in ("d_k", ""))
    with formula:
        show_formula(rf"\underset{{{n_queries} \times {n_keys}}}{{S}} = " + " = ".join(dict.fromkeys((named, numbers))))
    _cells(p, shown, path.scores, name="score", step="scaled")


def _masked(p: Page, shown: AttentionViewModel) -> None:
    path = shown.path
    window = path.rule.window
    counts = mask_counts(path.view, window=window)
    said, formula = _said_and_formula()
    if masked := sum(counts.values()):
        reasons = ", ".join(
            p.text[f"step_4_{name}"].format(count=count, window=window) for name, count in counts.items() if count
        )
        said.markdown(p.text["step_4"].format(masked=masked, cells=path.view.allowed.size, reasons=reasons))
    else:
        said.markdown(p.text["step_4_nothing" if p.checkpoint.special.pad is not None else "step_4_never"])
    with formula:
        show_formula(r"S'_{ij} = \begin{cases} S_{ij} & j \text{ allowed for } i \\ -\infty & \text{else} \end{cases}")
    _cells(p, shown, path.scores, name="score", step="masked", allowed=path.view.allowed)


def _softmax(p: Page, shown: AttentionViewModel) -> None:
    path = shown.path
    row = shown.row
    st.markdown(p.text["step_5"].format(row=_row_name(p, shown)))
    n_allowed = int(path.view.allowed[row].sum())
    show_formula(
        r"\alpha_{ij} = \frac{e^{S'_{ij}}}{\sum_{j'} e^{S'_{ij'}}}",
        caption=p.text["step_5_shapes"].format(allowed=n_allowed, keys=len(path.key), row=row),
    )
    show_figure(score_pipeline(path.view, head=path.head, row=row), name="softmax-of-one-row")


def _mix(p: Page, shown: AttentionViewModel) -> None:
    path = shown.path
    row = shown.row
    st.markdown(p.text["step_6"].format(row=_row_name(p, shown)))
    n_queries, n_keys = path.products.shape
    show_formula(
        rf"\underset{{{n_queries} \times {n_keys}}}{{A}}\;\;\underset{{{n_keys} \times {path.d_head}}}{{V}} = "
        rf"\underset{{{n_queries} \times {path.d_head}}}{{\text{{head}}_{{{path.head}}}}}"
    )
    show_figure(value_mix(path.weights[row], values=path.value, tokens=path.view.key), name="weights-times-values")


def _output(p: Page, shown: AttentionViewModel) -> None:
    path = shown.path
    row, focus, config = shown.row, p.focus, p.checkpoint.config
    parts = output_sum(p.trace, focus.stack, focus.layer, focus.kind, row=row)
    st.markdown(
        p.text["step_7" if parts.bias is not None else "step_7_unbiased"].format(
            d_head=path.d_head,
            d_model=config.d_model,
            row=_row_name(p, shown),
            head=path.head,
            length=three_digits(float(np.linalg.norm(parts.contributions[path.head]))),
            total=three_digits(float(np.linalg.norm(parts.output))),
        )
    )
    show_formula(
        rf"\text{{output}} = \sum_h \underset{{{len(path.query)} \times {path.d_head}}}{{\text{{head}}_h}}\;"
        rf"\underset{{{path.d_head} \times {config.d_model}}}{{W_{{O,h}}}}"
        + (" + b_O" if parts.bias is not None else "")
    )
    figure = head_contributions(parts.contributions, bias=parts.bias, output=parts.output, head=path.head)
    show_figure(figure, name="heads-add-up")


def mask_counts(view: AttentionView, *, window: int | None = None) -> dict[str, int]:
    """Count masked cells by reason; causal comes first. ``window`` is that of this layer, if any."""
    n_queries, n_keys = view.allowed.shape
    ahead = np.zeros_like(view.allowed)
    if view.kind == "self" and view.stack == "decoder":
        ahead = np.arange(n_keys)[None, :] > np.arange(n_queries)[:, None]
    padding = np.array([token.is_padding for token in view.key], dtype=bool)[None, :]
    masked = ~view.allowed
    counts = {"causal": int((masked & ahead).sum()), "padding": int((masked & ~ahead & padding).sum())}
    rest = masked & ~ahead & ~padding
    if window is not None:
        behind = np.arange(n_queries)[:, None] - np.arange(n_keys)[None, :] >= window
        counts["window"], rest = int((rest & behind).sum()), rest & ~behind
    return {**counts, "other": int(rest.sum())}


def _cells(
    p: Page,
    shown: AttentionViewModel,
    values: np.ndarray,
    *,
    name: str,
    step: str,
    allowed: np.ndarray | None = None,
) -> None:
    view = shown.view
    show_map(
        value_map(
            values,
            row_labels=shown.row_labels,
            column_labels=view.key.labels,
            row_title=row_title(shifted=shown.names_predictions),
            column_title=KEY_TITLE,
            scale="diverging",
            allowed=allowed,
            selected=shown.cell,
            chosen_row=shown.row,
            title=f"{name} · {say('names.numbered_head', head=shown.location.head)}",
            value_name=name,
            phrase=("", " meets "),
            height=_HEIGHT_IN_LESSON if p.focus.lesson else _HEIGHT,
        ),
        key=f"attention step {step}",
        on_click=cell_opener(shown.choices.key),
    )


def _query_channel(p: Page, shown: AttentionViewModel) -> None:
    """Write what X is in this model, and one channel of the focused token's query as x W_Q + b."""
    text, row = p.text, shown.row
    found = query_arithmetic(p.trace, *shown.place, head=shown.location.head, row=row)
    norm = p.checkpoint.config.norm
    kind = norm_kind(p.checkpoint, found.source.removesuffix(".output")) if norm == "pre" else ""
    st.markdown(text[f"step_1_x_{norm}"].format(source=found.source, norm=kind))
    channel = text["step_1_channel" if found.bias is not None else "step_1_channel_unbiased"]
    st.markdown(
        channel.format(row=_row_name(p, shown), channel=found.channel, width=len(found.x)),
        help=text["step_1_channel_help"],
    )
    st.latex(channel_equations(found))
    template = "step_1_normalized" if found.normalized else "step_1_rotated" if found.rotated else "step_1_check"
    recorded = number(f"{found.recorded:.6g}")
    st.caption(rotary_words(text, template, found.factor, recorded=recorded, row=row))


def channel_equations(found: QueryArithmetic) -> str:
    """Return the sum as LaTeX with this token's numbers."""
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
