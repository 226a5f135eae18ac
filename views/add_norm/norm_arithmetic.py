"""LayerNorm of one token with its live numbers: a table, the two formulas, and the snippet that gives them back."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import in_tex, number
from transformer.layers.norms import NormSteps, norm_kind, norm_steps
from ui.shell import choice
from ui.shell.page import Page
from ui.show.figures import show_figure, show_formula, show_snippet, show_table
from ui.words.texts import as_plain
from views.add_norm import norm_figures

_ROWS = 8
_EXACT = "%.9g"  # enough digits to give back any float32


def norm_arithmetic(p: Page, name: str) -> None:
    """Everything about one token's way through the LayerNorm ``name``."""
    token = p.trace.tokens(p.focus.stack)[p.focus.token]
    steps = norm_steps(p.trace, name, p.focus.token)
    width = len(steps.x)
    last_first = max(0, width - _ROWS)
    first = choice.number(
        p.text["first_dimension"], 0, last_first, 0, key="first dimension", owner=width, step=_ROWS, width=220
    )
    rms = "_rms" if steps.mean is None else ""
    mean = "" if steps.mean is None else _tex(steps.mean)
    show_formula(
        p.text[f"arithmetic_numbers{rms}"].format(
            width=width, mean=mean, std=_tex(steps.std), denominator=_tex(steps.denominator)
        )
    )
    show_formula(_one_dimension(p, steps, int(first)))
    columns = steps.columns(int(first), _ROWS)
    show_table(
        pd.DataFrame(columns),
        name="layer-norm-steps",
        caption=p.text["arithmetic_caption"].format(
            first=first, last=first + len(columns["x"]) - 1, width=width, token=as_plain(token.display)
        ),
        column_config={
            column: st.column_config.NumberColumn(format=_EXACT) for column in columns if column != "dimension"
        },
    )
    st.markdown(p.text["arithmetic_check"].format(width=width, deviation=number(f"{steps.largest_deviation:.2g}")))
    if not rms:
        st.markdown(
            p.text["textbook"].format(
                difference=number(f"{steps.textbook_difference:.2g}"),
                epsilon=number(f"{steps.epsilon:g}"),
                root=number(f"{steps.epsilon**0.5:.2g}"),
                std=number(f"{steps.std:.3g}"),
            )
        )
    show_snippet("norm arithmetic", _snippet(p, name, steps, int(first)))
    show_figure(
        norm_figures.position_distribution(
            steps.x,
            after=steps.output,
            token=token.display,
            after_name=p.text["after_output"],
            norm=norm_kind(p.checkpoint, name),
        ),
        name="one-token-before-and-after",
        caption=p.text[f"distribution_caption{rms}"].format(width=width, token=as_plain(token.display)),
        alt=p.text["distribution_alt"].format(norm=norm_kind(p.checkpoint, name)),
    )


def _one_dimension(p: Page, steps: NormSteps, dimension: int) -> str:
    own = {"bias": _tex(steps.bias[dimension]), "mean": _tex(steps.mean)} if steps.bias is not None else {}
    return p.text["arithmetic_line" if own else "arithmetic_line_rms"].format(
        **own,
        dimension=dimension,
        gain=_tex(steps.gain[dimension]),
        x=_tex(steps.x[dimension]),
        denominator=_tex(steps.denominator),
        output=f"\\mathbf{{{in_tex(number(f'{steps.output[dimension]:.6g}'))}}}",
    )


def _tex(value: float) -> str:
    """Six significant digits; a negative number in parentheses, so that it can stand behind any sign."""
    text = in_tex(number(f"{float(value):.6g}"))
    return f"({text})" if value < 0 else text


def _snippet(p: Page, name: str, steps: NormSteps, dimension: int) -> str:
    return (
        f"{p.preamble}\n"
        f'name, position, dimension = "{name}", {p.focus.token}, {dimension}\n'
        'x = trace.values(f"{name}.input")[position]\n'
        "norm = checkpoint.model.get_submodule(name)\n"
        + (
            "y = norm.weight.detach().numpy() * x / ((x * x).mean() + norm.epsilon) ** 0.5\n"
            if steps.bias is None
            else "gain, bias = norm.weight.detach().numpy(), norm.bias.detach().numpy()\n"
            "y = gain * (x - x.mean()) / (x.var() + norm.epsilon) ** 0.5 + bias\n"
        )
        + f"print(y[dimension])  # {steps.output[dimension]:.7g}\n"
        'print(abs(y - trace.values(f"{name}.output")[position]).max())  # rounding only\n'
    )
