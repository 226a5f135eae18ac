"""Heads of one kind of attention: one large and named, beside all heads as small maps."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from charts.canvas.attention_maps import HeadChoice, attention_grid
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
    scrolls: bool = False,
    image_row: int | None = None,
    faded: str = "",
    colours: Mapping[tuple[int, int], int] | None = None,
    groups: Sequence[tuple[str, int]] = (),
    marked: Mapping[tuple[int, int], tuple[int, int] | None] | None = None,
) -> CanvasFigure:
    """Return ``attention_grid`` with the map of one head large beside the small ones.

    The large map is that of the ``selected`` (layer, head), or of the head that is pointed at. Small maps have no text,
    and those that are not ``clear`` are pale. ``words`` has an entry for every head. Groups of ``heads_a_key`` heads,
    which share their keys and values, are on one band. With ``scrolls``, the small maps are as large as the width
    allows, with their text, and the large one stays visible while the small ones scroll; otherwise all of them fit on
    one screen.
    With ``image_row``, every map is this row of the head, laid over the square image whose patches are the keys.
    ``faded`` says in the legend what pale maps are, if there are any. ``colours`` are the numbers of the theme's
    colours that frame the small maps, and ``groups`` says in the legend what each means. ``marked`` is the (row,
    column) that is framed in a large map.

    Raises:
        ValueError: As in ``attention_grid``, and if ``selected`` is not among the heads, or a head lacks text.
    """
    short = {place: entry.short for place, entry in words.items() if place in clear}
    figure = attention_grid(
        views,
        selected=selected,
        captions=short,
        clear=clear,
        order=order,
        shifted_labels=shifted_labels,
        stretch=stretch,
    )
    tiles = figure.metadata["tiles"]
    places = [HeadChoice(tile["layer"], tile["head"]) for tile in tiles]
    for what, heads in (("selected", [selected]), ("words", places)):
        known = places if what == "selected" else words
        if missing := [tuple(place) for place in heads if place not in known]:
            raise ValueError(f"attention_heads: {what}: there is nothing for {missing[0]} (layer, head)")
    colours, marked = colours or {}, marked or {}
    head_texts = [
        {
            **tile,
            "title": words[place].title,
            "sentence": words[place].sentence,
            **({"colour": colours[place]} if place in colours else {}),
            **({"edge": list(map(int, cell))} if (cell := marked.get(place)) is not None else {}),
        }
        for tile, place in zip(tiles, places, strict=True)
    ]
    if image_row is not None:
        figure = _over_the_image(figure, views[0], image_row)
    return figure.with_metadata(
        kind="heads",
        tiles=head_texts,
        named=[list(map(int, selected))],
        **({"heads_a_key": heads_a_key} if heads_a_key > 1 else {}),
        **({"scrolls": True} if scrolls else {}),
        **({"groups": [[name, colour] for name, colour in groups]} if groups else {}),
        **({"faded": faded} if faded and set(places) - set(clear) else {}),
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
            "tiles": [{**tile, "mask": 0} for tile in figure.metadata["tiles"]],
            "rows": lines,
            "columns": lines,
            "row_title": say("row_image"),
            "column_title": say("column_image"),
            "phrase": [say("row"), say("column"), ""],
            "inks": [list(view.key[patch].pixels) for patch in patches],
        },
        {"weights": weights, "masks": mask_bits(np.ones((side, side), dtype=bool))[None]},
    )
