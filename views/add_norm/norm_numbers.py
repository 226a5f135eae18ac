"""The numbers of one norm: mean and spread of every token, one token step by step, γ and β."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import latex_notation, number
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_figure, show_formula, show_snippet, show_table
from ui.words.texts import PageText, as_plain
from views.add_norm import norm_figures
from views.add_norm.add_norm_view_model import AddNormViewModel
from views.add_norm.residual_growth import explain_order

_ROWS = 8
_EXACT = "%.9g"  # enough digits to restore any float32


def statistics(p: Page, view_model: AddNormViewModel) -> None:
    """Draw mean and standard deviation of every token, before and after the norm."""
    text = p.text
    after = chosen_option(text, "after", ["normalized", "output"], key="norm after", label_visibility=labels())
    found, label = view_model.statistics(after), text[f"after_{after}"]
    show_figure(
        norm_figures.norm_statistics(
            found.mean_before,
            std_before=found.std_before,
            mean_after=found.mean_after,
            std_after=found.std_after,
            tokens=view_model.tokens,
            after=label,
        ),
        name="layer-norm-statistics",
        caption=text["statistics_caption"].format(width=view_model.shape[1], after=label),
        alt=text["statistics_alt"].format(norm=view_model.kind),
    )
    _formula(view_model, text)


def parameters(p: Page, view_model: AddNormViewModel) -> None:
    """Draw γ and β."""
    gain, bias, _ = view_model.parameters
    show_figure(
        norm_figures.gain_and_bias(gain, bias=bias),
        name="layer-norm-parameters",
        caption=p.text["parameters_caption" if bias is not None else "parameters_caption_rms"],
        alt=p.text["parameters_alt"].format(norm=view_model.kind),
    )
    _formula(view_model, p.text)


def arithmetic(p: Page, view_model: AddNormViewModel) -> None:
    """Compute the norm of the token in focus step by step: a table, two formulas, and Python code."""
    text, steps, token = p.text, view_model.steps, as_plain(view_model.focused.display)
    width, rms = len(steps.x), "_rms" if view_model.is_rms else ""
    last_first = max(0, width - _ROWS)
    first = int(
        choice.number(
            text["first_dimension"], 0, last_first, 0, key="first dimension", owner=width, step=_ROWS, width=220
        )
    )
    show_formula(
        text[f"arithmetic_numbers{rms}"].format(
            width=width,
            mean="" if rms else _tex(steps.mean),
            std=_tex(steps.std),
            denominator=_tex(steps.denominator),
        )
    )
    show_formula(_one_dimension(view_model, first, text))
    columns = steps.columns(first, _ROWS)
    show_table(
        pd.DataFrame(columns),
        name="layer-norm-steps",
        caption=text["arithmetic_caption"].format(
            first=first, last=first + len(columns["x"]) - 1, width=width, token=token
        ),
        column_config={
            column: st.column_config.NumberColumn(format=_EXACT) for column in columns if column != "dimension"
        },
    )
    st.markdown(text["arithmetic_check"].format(width=width, deviation=number(f"{steps.largest_deviation:.2g}")))
    if not rms:
        st.markdown(
            text["textbook"].format(
                difference=number(f"{steps.textbook_difference:.2g}"),
                epsilon=number(f"{steps.epsilon:g}"),
                root=number(f"{steps.epsilon**0.5:.2g}"),
                std=number(f"{steps.std:.3g}"),
            )
        )
    show_snippet("norm arithmetic", p.preamble + _snippet(view_model, first))
    show_figure(
        norm_figures.position_distribution(
            steps.x,
            after=steps.output,
            token=view_model.focused.display,
            after_name=text["after_output"],
            norm=view_model.kind,
        ),
        name="one-token-before-and-after",
        caption=text[f"distribution_caption{rms}"].format(width=width, token=token),
        alt=text["distribution_alt"].format(norm=view_model.kind),
    )
    _formula(view_model, text)


def _formula(view_model: AddNormViewModel, text: PageText) -> None:
    """Write where this norm is and what it computes, with the shapes of this sentence."""
    tokens, width = view_model.shape
    explain_order(view_model, text)
    sublayer = text.get(view_model.place.replace("_output_norm", "_norm"), "")
    show_formula(text[f"{view_model.formula}_formula"].format(sublayer=sublayer, norm=view_model.kind))
    rms, epsilon = "_rms" if view_model.is_rms else "", number(f"{view_model.parameters[2]:g}")
    caption = text[f"formula_caption{rms}"].format(tokens=tokens, width=width, epsilon=epsilon)
    show_formula(text[f"norm_formula{rms}"], caption=caption)


def _one_dimension(view_model: AddNormViewModel, dimension: int, text: PageText) -> str:
    steps = view_model.steps
    own = {"bias": _tex(steps.bias[dimension]), "mean": _tex(steps.mean)} if steps.bias is not None else {}
    return text["arithmetic_line" if own else "arithmetic_line_rms"].format(
        **own,
        dimension=dimension,
        gain=_tex(steps.gain[dimension]),
        x=_tex(steps.x[dimension]),
        denominator=_tex(steps.denominator),
        output=f"\\mathbf{{{latex_notation(number(f'{steps.output[dimension]:.6g}'))}}}",
    )


def _tex(value: float) -> str:
    """Format with six significant digits; a negative number in parentheses, to follow any sign."""
    text = latex_notation(number(f"{float(value):.6g}"))
    return f"({text})" if value < 0 else text


def _snippet(view_model: AddNormViewModel, dimension: int) -> str:
    steps = view_model.steps
    return (
        f'\nname, position, dimension = "{view_model.norm}", {view_model.token}, {dimension}\n'
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
