"""Figures of a word's logit: a sum of parts, and contributions compared with effects of removal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say


def attribution_waterfall(values: Any, *, labels: Sequence[str], total: float, n_others: int, of: str) -> go.Figure:
    """Draw a waterfall: each bar begins where the one above it ends, and the last row is their sum.

    Args:
        values: Contributions of the parts that are drawn, in the order of the forward pass, [part].
        labels: Their names.
        total: The sum of all parts.
        n_others: The number of parts that are not drawn; one bar holds their sum.
        of: The token of the logit.
    """
    drawn = as_array(values, name="values", axes=("part",))
    require_same_length("labels", labels, expected=len(drawn), of="parts")
    steps, names = [float(value) for value in drawn], list(labels)
    if n_others:
        steps.append(total - sum(steps))
        names.append(say("lens.other_parts", count=n_others))
    ends = np.cumsum(steps)
    figure = Sheet()
    bars = parts.bar_rows(np.array(steps), hover="%{y}", colours=parts.signed_colours(np.array(steps)))
    figure.add_trace({**bars, "base": [0.0, *ends[:-1].tolist()], "hovertemplate": _hover(steps)})
    sums = parts.bar_rows(np.array([total]), hover=say("lens.sum_of_all"), colours=style.BAR)
    figure.add_trace({**sums, "y": [len(steps)]})
    style.finish(figure, height=24 * (len(steps) + 1) + 60, top=6)
    figure.update_xaxes(
        title_text=say("lens.word_logit", word=style.escape(of)), range=parts.bar_range(ends, share=0.2)
    )
    rows = style.label_rows([*names, say("lens.equals_logit")], title=say("names.part"))
    figure.update_yaxes(**{**rows, "tickfont_size": style.TICK_SIZE})
    return figure.drawn()


def measured_effects(
    added: Any, *, zero: Any, mean: Any, labels: Sequence[str], of: str, patched: Any = None
) -> go.Figure:
    """Draw three or four bars per part: its contribution to a logit, and what the logit loses without it.

    A removed part is replaced with 0 or with its mean. The fourth bar, if there is a second sentence, replaces it with
    its output there (``patched``, [part]). ``added``, ``zero``, ``mean`` are [part], of which the last may be NaN;
    ``labels`` are their names; ``of`` is the token of the logit.
    """
    sizes = {"part": len(labels)}
    arrays = {
        say("lens.added_everything_else_held_fixed"): as_array(added, name="added", axes=("part",), sizes=sizes),
        say("lens.lost_without"): as_array(zero, name="zero", axes=("part",), sizes=sizes),
        say("lens.lost_with_mean"): as_array(mean, name="mean", axes=("part",), sizes=sizes),
    }
    if patched is not None:
        name = say("lens.lost_with_second")
        arrays[name] = as_array(patched, name="patched", axes=("part",), sizes=sizes)
    figure = Sheet()
    colours = (style.MASKED, style.CHOSEN, style.BAR, style.CATEGORICAL[2])
    for (name, values), colour in zip(arrays.items(), colours, strict=False):
        if not np.isfinite(values).any():
            continue
        bars = parts.bar_rows(values, hover=style.lines("%{y}", name), colours=colour)
        figure.add_trace({**bars, "name": name, "showlegend": True, "text": None})
    style.finish(figure, height=30 * len(labels) + 100, top=48)
    figure.update_layout(barmode="group", bargap=0.3)
    figure.update_xaxes(title_text=say("lens.word_logit", word=style.escape(of)))
    figure.update_yaxes(**style.label_rows(labels, title=say("names.part")))
    return figure.drawn()


def _hover(steps: Sequence[float]) -> list[str]:
    """Return each part's own number; Plotly's x of a bar with a base is its end."""
    return [style.hover("%{y}", f"<b>{style.three_digits(step)}</b>") for step in steps]
