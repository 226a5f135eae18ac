"""The sections of Add & Norm: one token's vector, the numbers of its norm, the residual stream."""

from collections.abc import Sequence
from dataclasses import astuple
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from charts.figures.bars import Bars, Panel, Points, small_multiples
from charts.figures.curves import Curve, curves
from charts.figures.distributions import distributions
from charts.figures.heat_maps import HeatMap, heat_maps
from charts.figures.vector_strips import ON_A_PHONE, READABLE, Strip, beyond, limit_of, vector_strips
from charts.toolkit import style
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import latex_notation, number
from charts.toolkit.words import localize, say
from transformer.layers import norms
from transformer.layers.residual_stream import additions, contributions, stream_lengths
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import labels
from ui.show.figures import show_figure
from ui.words.texts import common

ROOM = 640  # pixels that the numbers of a row need; in a narrower window the figure scrolls
ROWS = 8  # of the table of one token's numbers
_NUMBERED = 10  # tokens up to which the cells of updates show their numbers
EXACT = "%.9g"  # enough digits to restore any float32
FORMULAS = {  # where a norm is
    "pre": r"x_{\text{out}} = x + \text{SUBLAYER}\big(\text{NORM}(x)\big)",
    "post": r"x_{\text{out}} = \text{NORM}\big(x + \text{SUBLAYER}(x)\big)",
    "parallel": r"x_{\text{out}} = x + \text{ATTENTION}\big(\text{NORM}_1(x)\big)"
    r" + \text{FEED}\big(\text{NORM}_2(x)\big)",
    "sandwich": r"x_{\text{out}} = x + \text{NORM}_2\Big(\text{SUBLAYER}\big(\text{NORM}_1(x)\big)\Big)",
    "final_norm": r"x_{\text{out}} = \text{NORM}(x)",
    "vocabulary_projection_norm": r"\text{logits} = E\, \text{NORM}\big(f(W x + b)\big) + c",
    "embedding_norm": r"x_0 = \text{NORM}\big(E[\text{id}] + \dots\big)",
}
NORM = r"\text{LayerNorm}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta"
RMS_NORM = r"\text{RMSNorm}(x) = \gamma \odot \frac{x}{\sqrt{\tfrac{1}{d}\sum_i x_i^2 + \varepsilon}}"


def layer_of(p: Page) -> int:
    """Return the layer in focus, or the last one of a stack that has fewer."""
    return min(p.focus.layer, p.trace.n_layers(p.focus.stack) - 1)


def choose_norm(p: Page) -> str:
    """Draw the list of norms and return the name of the chosen one, which the whole page shows."""
    found = norms.norms_by_place(p.trace, p.focus.stack, layer_of(p))
    look = {"wrap": True, "label_visibility": labels()}
    return found[p.option("norm", list(found), key="norm", owner=tuple(found), **look)]


def of_kind(p: Page, norm: str, key: str) -> str:
    """Return the name of a text for this kind of norm: an RMSNorm subtracts no mean and has no β."""
    return f"{key}_rms" if norms.norm_kind(p.checkpoint, norm) == "RMSNorm" else key


def token_of(p: Page) -> str:
    """Return the label of the token in focus."""
    return p.trace.tokens(p.focus.stack)[p.focus.token].display


# ---- one vector -----------------------------------------------------------------------------------------------------


def one_vector(p: Page, norm: str) -> None:
    """Draw what happens to the vector of the token in focus, in the order of this model."""
    halves = p.calc(
        norms.add_and_norm, p.trace, p.focus.stack, layer_of(p), norm, p.focus.token, name="halves", shows=("",)
    )
    adds, rms = any(half.kind == "add" for half in halves), of_kind(p, norm, "") == "_rms"
    claim = "sandwich" if len(halves) == 3 else p.checkpoint.config.norm if adds else "alone"
    say_claim(p, norm, halves, claim)
    strips = strips_of(p, norm, halves, is_copied=claim in ("pre", "sandwich"))
    vectors = [strip.vector for strip in strips]
    width = len(vectors[0])
    caption = p.md(of_kind(p, norm, "strips_caption"), width=width)
    if count := beyond(vectors):
        caption += " " + p.md("strips_beyond", count=count, limit=limit_of(vectors))
    spread = p.words("strips_rms" if rms else "strips_std")
    draw = partial(vector_strips, strips, spread=spread, root_mean_square=rms)
    show_figure(
        draw(numbers=p.words("strips_numbers", few=min(READABLE, width)), all_of_it=p.words("strips_all", width=width)),
        name="one-vector",
        caption=caption,
        alt=p.words("strips_alt", token=token_of(p)),
        room=ROOM,
        narrow=draw(
            numbers=p.words("strips_numbers_narrow", few=min(ON_A_PHONE, width)),
            all_of_it=p.words("strips_all_narrow", width=width),
            few=ON_A_PHONE,
        ),
    )


def say_claim(p: Page, norm: str, halves: tuple[norms.Half, ...], claim: str) -> None:
    """Write what Add does to this token's vector here, and what Norm does.

    The spread is the standard deviation, or the root mean square of an RMSNorm, which is then 1.
    """
    half, rms = next(half for half in halves if half.kind == "norm"), of_kind(p, norm, "") == "_rms"
    x = half.vectors.get("x")
    if x is None:
        x = next(half.vectors["sum"] for half in halves if half.kind == "add")
    exact = x.astype(np.float64)
    spread = np.sqrt(np.square(exact).mean()) if rms else exact.std()
    one = 1 if rms else float(f"{half.vectors['normalized'].std():.3g}")
    p.say(
        of_kind(p, norm, f"claim_{claim}"), token=token_of(p), sublayer=sublayer_name(p, half.sublayer), std=spread,
        one=one,
    )  # fmt: skip


def strips_of(p: Page, norm: str, halves: tuple[norms.Half, ...], *, is_copied: bool) -> list[Strip]:
    """Return the vectors of the figure in the order of computation, each once.

    The normalised copy is shown before γ and β, and the update is normalised if a norm follows the sub-layer.
    ``is_copied`` says that the residual stream itself is not normalised.
    """
    found: dict[str, tuple[str, np.ndarray]] = {}
    for half in halves:
        for name, vector in half.vectors.items():
            if name != "scaled" and not ("written" in half.vectors and name == "normalized"):
                found.setdefault(name, (half.sublayer, vector))
    copy = of_kind(p, norm, "strip_copy")
    return [
        Strip(
            p.words(
                copy if is_copied and name == "normalized" else f"strip_{name}",
                token=token_of(p), sublayer=sublayer_name(p, sublayer),
            ),
            vector,
            normalized=name == "normalized",
            is_copy=is_copied and name == "normalized",
        )
        for name, (sublayer, vector) in found.items()
    ]  # fmt: skip


def sublayer_name(p: Page, sublayer: str) -> str:
    """Return the name of a sub-layer; "" for none."""
    return p.words(f"norm.{sublayer}_norm") if sublayer else ""


# ---- its numbers ----------------------------------------------------------------------------------------------------


def statistics(p: Page, norm: str) -> None:
    """Draw mean and standard deviation of every token, before and after the norm."""
    after = p.option("after", ("normalized", "output"), key="norm after", label_visibility=labels())
    found, label = p.calc(norms.norm_statistics, p.trace, norm, after=after, name="found"), p.words(f"after.{after}")
    panels = []
    spreads = (0, 1.1 * max(found.std_before.max(), found.std_after.max()))
    for name, before, now, limits in (
        (say("names.mean"), found.mean_before, found.mean_after, None),
        (say("add_norm.standard_deviation"), found.std_before, found.std_after, spreads),
    ):
        points = [
            Points(values, style.lines("%{x}", f"{name}, {state}"), state, colour, symbol)
            for values, state, colour, symbol in (
                (before, say("names.before"), style.CATEGORICAL[1], "circle-open"),
                (now, label, style.CATEGORICAL[0], "circle"),
            )
        ]
        panels.append(Panel(points, name, name, limits, joined=True, height=118))
    figure = small_multiples(panels, along=Axis(say("names.token"), p.trace.tokens(p.focus.stack).displays))
    caption = p.md("statistics_caption", width=p.checkpoint.config.d_model, after=label)
    alt = p.words("statistics_alt", norm=norms.norm_kind(p.checkpoint, norm))
    show_figure(figure, name="layer-norm-statistics", caption=caption, alt=alt)
    formula(p, norm)


def parameters(p: Page, norm: str) -> None:
    """Draw γ and β."""
    gain, bias, _ = p.calc(norms.norm_parameters, p.checkpoint, norm, name="gain_bias_epsilon")
    caption = p.md("parameters_caption_rms" if bias is None else "parameters_caption")
    alt = p.words("parameters_alt", norm=norms.norm_kind(p.checkpoint, norm))
    dimension = say("dimension", dimension="%{x}")
    panels = [
        Panel([Bars(values, style.lines(dimension, letter), signed=True, start=start, texts=())], letter, name,
              height=150)
        for letter, values, start, name in (
            ("γ", gain, 1.0, say("add_norm.gamma")), ("β", bias, 0.0, say("add_norm.beta"))
        )
        if values is not None
    ]  # fmt: skip
    figure = small_multiples(panels, along=Axis(say("dimension_axis", n=len(gain))))
    show_figure(figure, name="layer-norm-parameters", caption=caption, alt=alt)
    formula(p, norm)


def arithmetic(p: Page, norm: str) -> None:
    """Compute the norm of the token in focus step by step: two formulas, a table, and Python code."""
    steps = p.calc(norms.norm_steps, p.trace, norm, p.focus.token, name="steps")
    width, token, kind = len(steps.x), token_of(p), norms.norm_kind(p.checkpoint, norm)
    most = max(0, width - ROWS)
    more = {"key": "first dimension", "owner": width, "step": ROWS, "width": 220}
    first = int(choice.number(p.text["first_dimension"], 0, most, 0, **more))
    shows = (f".output[{first}]", ".largest_deviation")
    p.calc(norms.norm_steps, p.trace, norm, p.focus.token, name="steps", shows=shows)
    p.formula(whole_vector(steps))
    p.formula(one_dimension(steps, first))
    columns = steps.columns(first, ROWS)
    exact = st.column_config.NumberColumn(format=EXACT)
    last = first + len(columns["x"]) - 1
    p.table(
        columns, name="layer-norm-steps",
        caption=p.md("arithmetic_caption", first=first, last=last, width=width, token=token),
        column_config={column: exact for column in columns if column != "dimension"},
    )  # fmt: skip
    p.say("arithmetic_check", width=width, deviation=number(f"{steps.largest_deviation:.2g}"))
    if steps.bias is not None:
        p.say(
            "textbook", difference=number(f"{steps.textbook_difference:.2g}"), epsilon=number(f"{steps.epsilon:g}"),
            root=number(f"{steps.epsilon**0.5:.2g}"), std=steps.std,
        )  # fmt: skip
    panels = {
        say(
            name, token=style.escape(token), norm=kind, after=p.words("after.output"),
            mean=style.three_digits(float(values.mean())), std=style.three_digits(float(values.std())),
        ): values
        for name, values in (("add_norm.before_norm", steps.x), ("add_norm.after_norm", steps.output))
    }  # fmt: skip
    show_figure(
        distributions(panels, place=say("dimension", dimension="%{customdata}"), across=say("names.value")),
        name="one-token-before-and-after",
        caption=p.md(of_kind(p, norm, "distribution_caption"), width=width, token=token),
        alt=p.words("distribution_alt", norm=kind),
    )
    formula(p, norm)


def whole_vector(steps: norms.NormSteps) -> str:
    """Return mean, spread and denominator of a token's vector as LaTeX."""
    mean_of = rf"\tfrac{{1}}{{{len(steps.x)}}}\textstyle\sum_i"
    std, denominator = tex(steps.std), tex(steps.denominator)
    if steps.bias is None:
        rows = rf"\text{{RMS}} = \sqrt{{{mean_of} x_i^2}} = {std} \\ \sqrt{{\text{{RMS}}^2+ε}} = {denominator}"
    else:
        rows = rf"μ = {mean_of} x_i = {tex(steps.mean)} \\ σ = \sqrt{{{mean_of} (x_i-μ)^2}} = {std} \\ "
        rows += rf"\sqrt{{σ^2+ε}} = {denominator}"
    return rf"\begin{{gathered}} {rows} \end{{gathered}}"


def one_dimension(steps: norms.NormSteps, i: int) -> str:
    """Return the arithmetic of one dimension as LaTeX."""
    gain, x, below = tex(steps.gain[i]), tex(steps.x[i]), tex(steps.denominator)
    output = rf"\mathbf{{{latex_notation(number(f'{steps.output[i]:.6g}'))}}}"
    if steps.bias is None:
        line = rf"γ_{{{i}}} \cdot \frac{{x_{{{i}}}}}{{\sqrt{{\text{{RMS}}^2+ε}}}} \\ "
        line += rf"&= {gain} \cdot \frac{{{x}}}{{{below}}}"
    else:
        line = rf"γ_{{{i}}} \cdot \frac{{x_{{{i}}} - μ}}{{\sqrt{{σ^2+ε}}}} + β_{{{i}}} \\ "
        line += rf"&= {gain} \cdot \frac{{{x} - {tex(steps.mean)}}}{{{below}}} + {tex(steps.bias[i])}"
    return rf"\begin{{aligned}} y_{{{i}}} &= {line} \\ &= {output} \end{{aligned}}"


def tex(value: float) -> str:
    """Format with six significant digits; a negative number in parentheses, to follow any sign."""
    text = latex_notation(number(f"{float(value):.6g}"))
    return f"({text})" if value < 0 else text


def formula(p: Page, norm: str) -> None:
    """Write where this norm is and what it computes, with the shapes of this sentence."""
    place, kind, config = norms.place_of_norm(norm), norms.norm_kind(p.checkpoint, norm), p.checkpoint.config
    say_order(p)
    latex = FORMULAS.get(place) or FORMULAS[config.norm if config.block == "sequential" else config.block]
    words = {"ATTENTION": "self_attention_norm", "FEED": "feed_forward_norm"}
    if "SUBLAYER" in latex:
        words["SUBLAYER"] = place.replace("_output_norm", "_norm")
    for name, key in words.items():
        latex = latex.replace(name, p.words(f"norm.{key}"))
    p.formula(latex.replace("NORM", kind))
    (tokens, width), epsilon = p.trace[f"{norm}.input"].shape, norms.norm_parameters(p.checkpoint, norm)[2]
    caption = of_kind(p, norm, "formula_caption")
    written = RMS_NORM if kind == "RMSNorm" else NORM
    p.formula(written, caption, tokens=tokens, width=width, epsilon=number(f"{epsilon:g}"))


# ---- the residual stream --------------------------------------------------------------------------------------------


def say_order(p: Page) -> None:
    """State where the norms of this model are, and the order of its layers' updates if it is unusual."""
    p.say(p.checkpoint.config.norm)
    if (block := p.checkpoint.config.block) != "sequential":
        p.say(block)


def residual_stream(p: Page, _norm: str) -> None:
    """Draw the growth of the residual stream, and check the identity."""
    stack, token, order = p.focus.stack, p.focus.token, p.checkpoint.config.norm
    sums = p.calc(additions, p.trace, stack, token, name="sums", shows=("",))
    tokens = p.trace.tokens(stack)
    said = p.md(
        "identity", count=len(sums), stack=common(f"focus.{stack}"),
        numbers=len(sums) * len(tokens) * p.checkpoint.config.d_model,
        deviation=max(addition.largest_deviation for addition in sums),
    )  # fmt: skip
    say_order(p)
    st.markdown(f"{said} {p.md('identity_post')}" if order == "post" else said)
    steps, lengths = p.calc(stream_lengths, p.trace, stack, name="steps_and_lengths")
    show_figure(
        growth(lengths, list(map(localize, steps)), tokens.labels, token),
        name="residual-stream-growth",
        caption=p.md("growth_caption_post" if order == "post" else "growth_caption"),
        alt=p.words("growth_alt"),
    )
    columns = ("sub-layer", "‖in‖", "‖update‖", "‖in + update‖", "largest deviation")
    rows = [dict(zip(columns, (localize(addition.sublayer), *astuple(addition)[1:]), strict=True)) for addition in sums]
    p.table(rows, name="residual-identity", caption=p.md("identity_caption", token=token_of(p)))


def growth(lengths: np.ndarray, steps: Sequence[str], labels: Sequence[str], chosen: int) -> go.Figure:
    """Draw the length of every token's vector after each step, that of one token in colour, and the mean."""
    length, drawn = say("add_norm.length", length=style.exact("y")), []
    for index in [*(index for index in range(len(labels)) if index != chosen), chosen]:
        label, is_chosen = style.escape(labels[index]), index == chosen
        drawn.append(
            Curve(
                label if is_chosen else say("add_norm.each_other_token"), lengths[:, index],
                (f"{label} %{{x}}", length),
                colour=style.CHOSEN if is_chosen else style.QUIET, dash="solid", width=3 if is_chosen else 1.5,
                marker=6 * is_chosen,
            )
        )  # fmt: skip
    mean = say("add_norm.mean_all_tokens"), lengths.mean(axis=1), (say("add_norm.mean_at", place="%{x}"), length)
    drawn.append(Curve(*mean, colour=style.BAR, dash="dash", width=3, marker=6))
    across = say("add_norm.after_which_step")
    return curves(
        drawn, x=range(len(steps)), across=across, up=say("add_norm.vector_length"), height=440,
        xaxis=style.label_axis(steps, title=across), yaxis={"rangemode": "tozero"},
    )  # fmt: skip


def sublayer_updates(p: Page, _norm: str) -> None:
    """Draw size and cosine of every update for every token."""
    sublayers, ratio, cosine = p.calc(contributions, p.trace, p.focus.stack, name="updates")
    tokens = p.trace.tokens(p.focus.stack)
    at = "%{y}, %{x}"
    figure = heat_maps(
        [
            HeatMap(
                say("add_norm.relative_length"), ratio, style.lines(at, say("add_norm.update_ratio")), signed=False
            ),
            HeatMap(say("add_norm.direction_cosine"), cosine, style.lines(at, say("add_norm.cosine")), limit=1.0),
        ],
        rows=Axis(say("names.sub_layer"), list(map(localize, sublayers))),
        columns=Axis(say("names.token"), tokens.displays),
        row_height=28,
        numbers=_NUMBERED,
    )
    show_figure(figure, name="sublayer-updates", caption=p.md("updates_caption"), alt=p.words("updates_alt"))
