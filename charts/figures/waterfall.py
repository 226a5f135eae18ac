"""A sum of signed parts as a waterfall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import say


def waterfall(values: Any, *, labels: Sequence[str], total: float, n_others: int, of: str) -> go.Figure:
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


def _hover(steps: Sequence[float]) -> list[str]:
    """Return each part's own number; Plotly's x of a bar with a base is its end."""
    return [style.hover("%{y}", f"<b>{style.three_digits(step)}</b>") for step in steps]
