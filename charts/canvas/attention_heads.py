"""Heads of one kind of attention: one large and named, beside all heads as small maps."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from charts.canvas.attention_maps import attention_grid
from charts.canvas.figure import CanvasFigure
from charts.toolkit.payload_bytes import mask_bits
from charts.toolkit.words import say
from transformer.runs.attention_view import AttentionView


class HeadWords(NamedTuple):
    """Text about a head: ``short`` below a small map, ``title`` and ``sentence`` above a large one."""

    short: str
    title: str
    sentence: str


def attention_heads(
    views: Sequence[AttentionView],
    *,
    selected: tuple[int, int],
    words: Mapping[tuple[int, int], HeadWords],
    clear: Collection[tuple[int, int]] = (),
    order: Sequence[tuple[int, int]] | None = None,
    shifted_labels: Sequence[str] | None = None,
    stretch: bool = False,
    heads_a_key: int = 1,
    image_row: int | None = None,
    faded: str = "",
    colours: Mapping[tuple[int, int], int] | None = None,
    groups: Sequence[tuple[str, int]] = (),
    marked: Mapping[tuple[int, int], tuple[int, int] | None] | None = None,
) -> CanvasFigure:
    """Return ``attention_grid`` with the map of one head large beside the small ones.

    The large map is that of the ``selected`` (layer, head), or of the head that is pointed at. Small maps have no text,
    and those that are not ``clear`` are pale. ``words`` has an entry for every head. Groups of ``heads_a_key`` heads,
    which share their keys and values, are on one band. With ``image_row``, every map is this row of the head, laid over
    the square image whose patches are the keys. ``faded`` says in the legend what pale maps are, if there are any.
    ``colours`` are the indices of the theme colours that frame the small maps, and ``groups`` says in the legend what
    each means. ``marked`` is the (row, column) that is framed in a large map.

    Raises:
        ValueError: As in ``attention_grid``, and if ``selected`` is not among the heads, or a head lacks text.
    """
    short = {place: entry.short for place, entry in words.items() if place in clear}
    figure = attention_grid(
        views, selected=selected, captions=short, order=order, shifted_labels=shifted_labels, stretch=stretch
    )
    tiles = []
    for tile in figure.metadata["tiles"]:
        place = tile["layer"], tile["head"]
        if place not in words:
            raise ValueError(f"attention_heads: words: there is nothing for {place} (layer, head)")
        own = {"clear": place in clear, "colour": (colours or {}).get(place), "edge": (marked or {}).get(place)}
        tiles.append({**tile, **own, "title": words[place].title, "sentence": words[place].sentence})
    if image_row is not None:
        figure = _over_the_image(figure, views[0], image_row)
    return figure.with_metadata(
        kind="heads",
        tiles=[{**tile, "mask": 0} for tile in tiles] if image_row is not None else tiles,
        heads_a_key=heads_a_key,
        groups=list(groups),
        faded=faded if len(short) < len(tiles) else "",
    )


def _over_the_image(figure: CanvasFigure, view: AttentionView, row: int) -> CanvasFigure:
    """Return the grid with one row of every head, its keys arranged as the patches of the image."""
    patches = view.key.patches
    side = view.key.patches_across
    if side is None:
        raise ValueError(f"{view.name}: image_row needs keys that are the patches of a square image")
    lines = [str(line + 1) for line in range(side)]
    weights = figure.arrays["weights"][:, row, patches].reshape(-1, side, side)
    hidden: dict[str, Any] = {"row_pictures": None, "column_pictures": None, "special_rows": [], "special_columns": []}
    return CanvasFigure(
        {
            **figure.metadata,
            **hidden,
            "rows": lines,
            "columns": lines,
            "row_title": say("row_image"),
            "column_title": say("column_image"),
            "phrase": [say("row"), say("column"), ""],
            "inks": [list(view.key[patch].pixels) for patch in patches],
        },
        {"weights": weights, "masks": mask_bits(np.ones((side, side), dtype=bool))[None]},
    )
