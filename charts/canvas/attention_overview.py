"""Every head of a model in one figure: all kinds of attention, all layers."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from charts.canvas.attention_maps import attention_grid, attention_name
from charts.canvas.figure import CanvasFigure
from charts.toolkit.words import say
from transformer.runs.attention_view import AttentionView


class AnyHead(NamedTuple):
    """One head of the whole model; ``attention`` is its kind, "self" or "cross"."""

    stack: str
    attention: str
    layer: int
    head: int


def attention_overview(
    groups: Sequence[Sequence[AttentionView]],
    *,
    selected: AnyHead | None = None,
    captions: Sequence[Mapping[tuple[int, int], str]] | None = None,
    clear: Sequence[Collection[tuple[int, int]]] | None = None,
    stretch: bool = False,
    heads_a_key: int = 1,
    faded: str = "",
) -> CanvasFigure:
    """Draw a grid for each kind of attention, one row per layer, with the weights of ``attention_grid``.

    ``groups`` has the views of one kind each, one per layer; ``captions``, for each group, short labels by (layer,
    head). If ``clear`` is given, the (layer, head) in it stand out for each group, and the others are pale, which
    ``faded`` says in the legend. The scale
    is fixed from 0 to 1; with ``stretch``, the scale of each map ends at its largest weight. Groups of ``heads_a_key``
    heads share their keys and values and are on one band.

    Raises:
        ValueError: As in ``attention_grid``, and if a group is missing or ``selected`` is not one of the heads.
    """
    if not groups:
        raise ValueError("attention_overview got no views; give those of one kind of attention at least")
    parts, n_heads = [], 0
    arrays: dict[str, np.ndarray] = {}
    for index, views in enumerate(groups):
        grid = attention_grid(
            views,
            captions=captions[index] if captions else None,
            clear=clear[index] if clear else (),
            stretch=stretch,
        )
        place = {"stack": views[0].stack, "attention": views[0].kind}
        shared = {"heads_a_key": heads_a_key} if heads_a_key > 1 else {}
        parts.append({**grid.metadata, "title": attention_name(views[0]), **place, **shared})
        arrays |= {f"{name}{index}": values for name, values in grid.arrays.items()}
        n_heads += len(grid.metadata["tiles"])
    metadata = {
        "kind": "overview",
        "title": say("all_heads", count=n_heads),
        "parts": parts,
        "selected": list(selected) if selected else None,
        **({"stretched": True} if stretch else {}),
        **({"dimmed": True, "faded": faded} if clear else {}),
    }
    figure = CanvasFigure(metadata, arrays)
    if selected and selected not in heads_of(figure):
        raise ValueError(f"attention_overview: selected is {tuple(selected)}, but there is no such head")
    return figure


def heads_of(figure: CanvasFigure) -> set[AnyHead]:
    """Return every head that an overview shows."""
    return {
        AnyHead(part["stack"], part["attention"], tile["layer"], tile["head"])
        for part in figure.metadata["parts"]
        for tile in part["tiles"]
    }
