"""Attention on the canvas: one head, a mask to paint, all heads, or edges between tokens.

Pure functions from an ``AttentionView`` to a ``CanvasFigure``. The precision of a number depends on what the figure
shows:

- one head (and any matrix, ``charts.canvas.value_map``): float32, exactly the numbers of the model;
- lines: uint16, weight = round(w · 65535), with an error of at most 1/131070;
- all heads of all layers: float32; more than ``MAX_EXACT`` weights as uint8, weight = round(w · 255), with an error of
  at most 1/510; the figure then shows "≈", and its file of numbers says so.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from charts.canvas.figure import CanvasFigure
from charts.canvas.value_map import value_map
from charts.toolkit.head_names import head_name, layer_name
from charts.toolkit.payload_bytes import TOLERANCE, mask_bits
from charts.toolkit.words import localize, say
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

MAX_EXACT = 120_000  # weights of all heads
QUERY_TITLE = "query: the token that looks"
KEY_TITLE = "key: the token that is looked at"
SHIFTED_TITLE = "query: looks to predict this token"
NEXT_TITLE = "query: the token that comes next"
EARLIER_TITLE = "rows: the output before the mask"
PREDICTING = "predicting "
BEFORE = "before "
LOOKS_AT = " looks at "
LOOKED_AT_BY = " is looked at most by"
_ATTENTIONS = {
    ("encoder", "self"): "encoder self-attention",
    ("decoder", "self"): "decoder self-attention",
    ("decoder", "cross"): "decoder cross-attention",
}


def attention_map(
    view: AttentionView,
    *,
    head: int,
    shifted_labels: Sequence[str] | None = None,
    of_other_output: bool = False,
    selected: tuple[int, int] | None = None,
    stretch: bool = False,
    height: int | None = None,
    chosen_row: int | None = None,
    follow_pointer: bool = False,
) -> CanvasFigure:
    """Draw one head: ``view.weights[head]``, [query, key], on a fixed scale from 0 to 1.

    Args:
        view: The layer.
        head: Index of the head.
        shifted_labels: Labels of the rows by predicted tokens (cross- and causal attention).
        of_other_output: Whether the rows may read another model's output, whose next tokens this model need not
            predict.
        selected: A selected cell.
        stretch: End the scale at the largest weight instead; the legend says so.
        height: Largest height in pixels.
        chosen_row: A marked row.
        follow_pointer: As in ``value_map``.
    """
    _check_head(view, head)
    _check_weights(view)
    axes = _axes(view, shifted_labels)
    if of_other_output and shifted_labels is not None:
        axes |= {"row_title": localize(NEXT_TITLE), "phrase": [localize(BEFORE), *axes["phrase"][1:]]}
    drawn = value_map(
        view.weights[head],
        row_labels=axes["rows"],
        column_labels=axes["columns"],
        scale="sequential",
        allowed=view.allowed,
        selected=selected,
        limit=_largest(view, head) if stretch else 1.0,
        title=title_of(view, head=head),
        value_name="",
        height=height,
        chosen_row=chosen_row,
        legend=say("stretched_scale" if stretch else "fixed_scale"),
        follow_pointer=follow_pointer,
    )
    return drawn.with_metadata(**axes, **patch_pictures(view.query, view.key))


def mask_editor(
    view: AttentionView,
    *,
    head: int,
    own: np.ndarray,
    shifted_labels: Sequence[str] | None = None,
    of_earlier_output: bool = False,
    height: int | None = None,
) -> CanvasFigure:
    """Draw one head as a heatmap whose mask is painted with the mouse.

    A click or a drag blocks or allows cells. ``view`` holds the current mask, ``own`` [query, key] the model's; cells
    that differ are framed. ``shifted_labels`` is as in ``attention_map``. ``of_earlier_output`` says that the rows are
    an output that the model no longer generates under the mask.

    Raises:
        ValueError: If the two masks differ in shape.
    """
    mask = np.asarray(own, dtype=bool)
    if mask.shape != view.allowed.shape:
        raise ValueError(f"own has shape {mask.shape} but the mask of {view.name} has {view.allowed.shape}")
    drawn = attention_map(view, head=head, shifted_labels=shifted_labels, height=height)
    rows = {"row_title": localize(EARLIER_TITLE)} if of_earlier_output else {}
    return CanvasFigure({**drawn.metadata, **rows, "kind": "mask"}, {**drawn.arrays, "own": mask_bits(mask)})


def attention_grid(
    views: Sequence[AttentionView],
    *,
    selected: tuple[int, int] | None = None,
    captions: Mapping[tuple[int, int], str] | None = None,
    clear: Collection[tuple[int, int]] = (),
    order: Sequence[tuple[int, int]] | None = None,
    per_line: int | None = None,
    shifted_labels: Sequence[str] | None = None,
    stretch: bool = False,
) -> CanvasFigure:
    """Draw all heads of several layers, in full precision or, with many weights, in steps of 1/255.

    The scale is fixed from 0 to 1. With ``stretch``, the scale of each map ends at its largest weight, as the legend
    says, because with hundreds of tokens most weights would be black on a fixed scale.

    ``views`` has one view per layer, all of the same tokens. ``selected`` is (layer, head). ``captions`` are short role
    labels below the tiles; those of the heads in ``clear`` stand out, the others are pale. ``order`` lists (layer,
    head) in the order of the tiles; without it a row is a layer and a column is a head, unless ``per_line`` sets the
    number of tiles per row. ``shifted_labels`` is as in ``attention_map``.

    Raises:
        ValueError: If the views do not share their tokens, or a head does not exist.
    """
    if not views:
        raise ValueError("attention_grid got no views; give one AttentionView per layer")
    by_layer = {view.layer: view for view in views}
    if len(by_layer) != len(views):
        raise ValueError(f"attention_grid: layers {[view.layer for view in views]} repeat; give one view per layer")
    first = views[0]
    for view in views:
        if view.query.labels != first.query.labels or view.key.labels != first.key.labels:
            raise ValueError(f"{view.name} and {first.name} have different tokens; a grid shows one sentence only")
        _check_weights(view)
    every = [(view.layer, head) for view in views for head in range(view.n_heads)]
    tiles = every if order is None else [tuple(choice) for choice in order]
    captions = captions or {}
    for what, choices in (("order", tiles), ("captions", captions), ("selected", [selected] if selected else [])):
        if unknown := [tuple(choice) for choice in choices if tuple(choice) not in set(every)]:
            raise ValueError(f"attention_grid: {what} names {unknown[0]} (layer, head), but there is no such head")
    if len(set(tiles)) != len(tiles):
        raise ValueError("attention_grid: order names a head twice; list every (layer, head) once")
    masks: list[np.ndarray] = []
    mask_of_layer = {view.layer: _mask_index(masks, view.allowed) for view in views}
    limits = [_largest(by_layer[layer], head) if stretch else 1.0 for layer, head in tiles]
    weights = np.stack([by_layer[layer].weights[head] for layer, head in tiles]).astype(np.float32)
    if weights.size > MAX_EXACT:
        weights = _quantise(weights / np.array(limits)[:, None, None], np.uint8)
    count = say("all_heads", count=len(tiles))
    if len(tiles) < len(every):
        count = say("some_heads", count=len(tiles), every=len(every))
    metadata = {
        "kind": "grid",
        "title": f"{title_of(first) if len(views) == 1 else attention_name(first)} · {count}",
        **_axes(first, shifted_labels),
        **patch_pictures(first.query, first.key),
        "sorted": order is not None,
        "tiles": [
            {
                "layer": layer,
                "head": head,
                "caption": captions.get((layer, head), ""),
                **({"clear": True} if (layer, head) in clear else {}),
                "mask": mask_of_layer[layer],
                **({"limit": limit} if stretch else {}),
            }
            for (layer, head), limit in zip(tiles, limits, strict=True)
        ],
        "stretched": stretch,
        "selected": selected,
        "per_line": per_line,
    }
    return CanvasFigure(metadata, {"weights": weights, "masks": np.stack([mask_bits(mask) for mask in masks])})


def attention_overview(
    groups: Sequence[Sequence[AttentionView]],
    *,
    selected: tuple[str, str, int, int] | None = None,
    captions: Sequence[Mapping[tuple[int, int], str]] | None = None,
    stretch: bool = False,
) -> CanvasFigure:
    """Draw an ``attention_grid`` of all layers for each kind of attention; a group holds its views.

    ``selected`` is (stack, kind, layer, head). ``captions`` has those of ``attention_grid`` for each group.

    Raises:
        ValueError: As in ``attention_grid``, if there is no group, or if ``selected`` is in none.
    """
    if not groups:
        raise ValueError("attention_overview got no views; give those of one kind of attention at least")
    parts: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for index, views in enumerate(groups):
        grid = attention_grid(views, captions=captions[index] if captions else None, stretch=stretch)
        first = views[0]
        own = {"title": attention_name(first), "stack": first.stack, "attention": first.kind}
        parts.append({**grid.metadata, **own})
        arrays |= {f"{name}{index}": values for name, values in grid.arrays.items()}
    heads = {
        (part["stack"], part["attention"], tile["layer"], tile["head"]) for part in parts for tile in part["tiles"]
    }
    if selected and tuple(selected) not in heads:
        raise ValueError(f"attention_overview: selected is {tuple(selected)}, but there is no such head")
    title = say("all_heads", count=len(heads))
    metadata = {"kind": "overview", "title": title, "parts": parts, "selected": selected, "stretched": stretch}
    return CanvasFigure(metadata, arrays)


def attention_lines(
    view: AttentionView, *, heads: Sequence[int] | None = None, selected_token: int | None = None
) -> CanvasFigure:
    """Draw all heads of one layer as lines, weights as uint16 [head, query, key].

    ``heads`` are those that are visible at first (``None``: all). ``selected_token`` is the query whose edges are shown
    while nothing is hovered.
    """
    _check_weights(view)
    shown = list(range(view.n_heads)) if heads is None else list(heads)
    for head in shown:
        _check_head(view, head)
    if selected_token is not None and not 0 <= selected_token < len(view.query):
        raise ValueError(f"{view.name}: selected_token is {selected_token}; it must be 0 to {len(view.query) - 1}")
    metadata = {
        "kind": "lines",
        "title": title_of(view),
        **_axes(view),
        "same_tokens": view.kind == "self",
        "heads": shown,
        "selected": selected_token,
    }
    return CanvasFigure(metadata, {"weights": _quantise(view.weights, np.uint16), "allowed": mask_bits(view.allowed)})


def patch_pictures(rows: TokenSequence, columns: TokenSequence) -> dict[str, list[list[float | str] | None]]:
    """Return the metadata with which labels are drawn as the image patches that they name."""
    pixels = {"row_pictures": patch_pixels(rows), "column_pictures": patch_pixels(columns)}
    return {name: inks for name, inks in pixels.items() if inks is not None}


def patch_pixels(tokens: TokenSequence) -> list[list[float | str] | None] | None:
    """Return the pixels of every image patch, ink or colours; ``None`` if no token is a patch."""
    return [list(token.pixels) or None for token in tokens] if tokens.patches else None


def predicted_rows(trace: Trace, kind: str) -> tuple[str, ...] | None:
    """Return the default of ``shifted_labels``.

    These are the predicted tokens for cross-attention, where a row attends to the source of what it predicts; ``None``,
    the tokens that are read, for self-attention.
    """
    return trace.prediction.labels if kind == "cross" and trace.prediction is not None else None


def row_title(*, shifted: bool = False) -> str:
    """Return the English title of the rows.

    A row of a decoder has two names: the token that it reads and, if ``shifted``, the one that it predicts.
    """
    return SHIFTED_TITLE if shifted else QUERY_TITLE


def attention_name(view: AttentionView) -> str:
    """Return the name of the attention, such as "decoder self-attention", in the reader's language."""
    return localize(_ATTENTIONS[view.stack, view.kind])


def title_of(view: AttentionView, *, head: int | None = None) -> str:
    """Return a title such as "decoder self-attention, layer 1, head 2" in the reader's language."""
    return f"{attention_name(view)}, {layer_name(view.layer) if head is None else head_name(view.layer, head)}"


def _axes(view: AttentionView, shifted_labels: Sequence[str] | None = None) -> dict[str, Any]:
    """Return labels and titles of both axes, and the words with which a sentence about a cell is formed."""
    shifted = shifted_labels is not None
    return {
        "rows": list(view.query.labels if shifted_labels is None else shifted_labels),
        "columns": list(view.key.labels),
        "row_title": localize(row_title(shifted=shifted)),
        "column_title": localize(KEY_TITLE),
        "special_rows": [] if shifted else _special(view.query),
        "special_columns": _special(view.key),
        "phrase": [localize(PREDICTING) if shifted else "", localize(LOOKS_AT), localize(LOOKED_AT_BY)],
    }


def _quantise(weights: np.ndarray, dtype: type) -> np.ndarray:
    return np.rint(np.clip(weights, 0.0, 1.0) * np.iinfo(dtype).max).astype(dtype)


def _largest(view: AttentionView, head: int) -> float:
    """Return the largest weight of one map; 1 if it has none."""
    weights = view.weights[head][view.allowed]
    return float(weights.max()) or 1.0 if weights.size else 1.0


def _mask_index(masks: list[np.ndarray], mask: np.ndarray) -> int:
    """Return the index of a mask, added if new: layers nearly always share one."""
    for index, known in enumerate(masks):
        if np.array_equal(known, mask):
            return index
    masks.append(mask)
    return len(masks) - 1


def _special(tokens: TokenSequence) -> list[int]:
    return [token.index for token in tokens if token.special]


def _check_head(view: AttentionView, head: int) -> None:
    if not 0 <= head < view.n_heads:
        raise ValueError(f"{view.name}: there is no head {head}; choose 0 to {view.n_heads - 1}")


def _check_weights(view: AttentionView) -> None:
    """Check that a figure with the scale 0…1 would not clip anything silently."""
    weights = view.weights
    if not np.isfinite(weights).all():
        raise ValueError(f"{view.name}: some weights are not finite numbers; draw them with value_map instead")
    if weights.size and (weights.min() < -TOLERANCE or weights.max() > 1 + TOLERANCE):
        raise ValueError(
            f"{view.name}: weights reach from {weights.min():.6g} to {weights.max():.6g}, but attention weights lie "
            f"between 0 and 1; draw other values with value_map"
        )
