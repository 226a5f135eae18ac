"""Who wrote a word: its logit built up part by part, and what removing a part does beside what it added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from charts.toolkit import parts, style
from charts.toolkit.checks import as_array, require_same_length
from charts.toolkit.sheet import Sheet
from charts.toolkit.words import _


def attribution_waterfall(values: Any, *, labels: Sequence[str], total: float, n_others: int, of: str) -> go.Figure:
    """Each bar begins where the one above it ends; the last row is the logit that they come to.

    ``values``: [part], the parts that are drawn, in the order of the forward pass; ``labels``: their names; ``total``:
    the sum of all, of which the ``n_others`` that are not drawn add the rest in one bar; ``of``: whose logit it is.
    """
    drawn = as_array(values, name="values", axes=("part",))
    require_same_length("labels", labels, expected=len(drawn), of="parts")
    steps, names = [float(value) for value in drawn], list(labels)
    if n_others:
        steps.append(total - sum(steps))
        names.append(_("{count} other parts together", count=n_others))
    ends = np.cumsum(steps)
    figure = Sheet()
    bars = parts.bar_rows(np.array(steps), hover="%{y}", colours=parts.signed_colours(np.array(steps)))
    figure.add_trace({**bars, "base": [0.0, *ends[:-1].tolist()], "hovertemplate": _hover(steps)})
    sums = parts.bar_rows(np.array([total]), hover=_("the sum of all"), colours=style.BAR)
    figure.add_trace({**sums, "y": [len(steps)]})
    style.finish(figure, height=24 * (len(steps) + 1) + 60, top=6)
    figure.update_xaxes(title_text=_("logit of {word}", word=style.escape(of)), range=parts.room(ends))
    rows = style.label_rows([*names, _("= the logit")], title=_("part"))
    figure.update_yaxes(**{**rows, "tickfont_size": style.TICK_SIZE})
    return figure.drawn()


def _hover(steps: Sequence[float]) -> list[str]:
    """The part's own number: Plotly's x of a bar with a base is where it ends."""
    return [style.hover("%{y}", f"<b>{style.three_digits(step)}</b>") for step in steps]
