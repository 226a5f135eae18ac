"""The drawings of the canvas in a notebook: hover, zoom, switch heads and export without a server, offline.

    view = trace.attention("decoder", layer=2, kind="cross")
    view  # all heads small, the one under the pointer large
    attention_map(view, head=3)  # one head, exact to the last digit
    attention_lines(view).save("lines.html")

What these functions return shows itself as the last value of a cell. So does a view, once this module is imported;
where the program is installed, ``glassformer.notebook`` gives the same functions and a view needs no import.
"""

import math

from charts.canvas.attention_maps import attention_grid, attention_lines, attention_map
from charts.canvas.attention_overview import attention_overview
from charts.canvas.figure import CanvasFigure
from charts.canvas.value_map import value_map
from transformer.runs.attention_view import AttentionView

__all__ = [
    "CanvasFigure",
    "attention_grid",
    "attention_heads",
    "attention_lines",
    "attention_map",
    "attention_overview",
    "value_map",
]


def attention_heads(view: AttentionView) -> CanvasFigure:
    """All heads of one layer as small maps in rows, the one under the pointer large beside them; a click keeps it."""
    return attention_grid([view], per_line=math.ceil(math.sqrt(view.n_heads)))


AttentionView.register_drawing(lambda view: attention_heads(view)._repr_html_())
