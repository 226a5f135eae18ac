"""Interactive figures in a notebook: hover, zoom, switch heads and export offline, without a server.

    view = trace.attention("decoder", layer=2, kind="cross")
    view  # all heads small, the one under the pointer large
    attention_map(view, head=3)  # one head, exact to the last digit
    attention_lines(view).save("lines.html")

A figure is shown if it is the last value of a cell. So is a view, once this module has been imported; if the program is
installed, ``glassformer.notebook`` provides the same functions and a view needs no import.
"""

import math

from charts.canvas.attention_maps import attention_grid, attention_lines, attention_map, attention_overview
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
    """Draw all heads of one layer as small maps, with the one under the pointer large; a click keeps it."""
    return attention_grid([view], per_line=math.ceil(math.sqrt(view.n_heads)))


AttentionView.register_drawing(lambda view: attention_heads(view)._repr_html_())
