"""Figures of ``charts.notebook``, also from arrays, and the living picture, wherever it is installed.

    from glassformer.notebook import attention_grid, attention_map, living_picture
    attention_grid(outputs.attentions, tokens)  # every head of any model that runs
    attention_map(outputs.attentions, tokens, layer=3, head=1)  # one head, exact to the last digit
    living_picture(trace)  # the sentence moving through the model: it plays, and unfolds down to one product

In an installation, a view draws itself in a notebook without an import: this module is the entry point
``transformer.drawings`` (pyproject.toml), which a view looks up when it is shown.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer import APP
from transformer.runs.attention_arrays import Tokens, attention_views
from transformer.runs.attention_view import AttentionView

sys.path.insert(0, str(APP))  # only for a moment: an installation adds no packages called ``charts`` or ``ui``
try:
    from charts import notebook as figures
    from charts.canvas.living_picture_canvas import living_picture_canvas
    from charts.notebook import CanvasFigure, attention_heads, attention_overview, value_map
finally:
    sys.path.remove(str(APP))

__all__ = [
    "CanvasFigure",
    "attention_grid",
    "attention_heads",
    "attention_lines",
    "attention_map",
    "attention_overview",
    "batch",
    "living_picture",
    "steer",
    "value_map",
]

if TYPE_CHECKING:
    import pandas as pd

    from transformer.files.checkpoints import Checkpoint
    from transformer.runs.traces import Trace


def attention_map(
    weights: Any,
    tokens: Tokens | None = None,
    *,
    key_tokens: Tokens | None = None,
    allowed: Any = None,
    layer: int | None = None,
    head: int | None = None,
    **drawing: Any,
) -> CanvasFigure:
    """Draw one head with exact weights; a layer or head that is not given is chosen in the figure.

    Args:
        weights: An ``AttentionView`` or several, or arrays of any framework: [head, query, key], or a sequence with
            one per layer, as ``output_attentions`` returns them.
        tokens: Texts of the tokens, for arrays.
        key_tokens: Texts of the keys, for cross-attention.
        allowed: Mask, [query, key] or [layer, query, key]; by default a key is masked where all heads of a layer give
            it exactly 0.
        layer: Index of the layer.
        head: Index of the head.
        drawing: Options of ``charts.canvas.attention_maps.attention_map`` or, without ``head``,
            ``attention_grid``.

    Raises:
        ValueError: If shapes, tokens or numbers do not fit; the message states both.
    """
    views = _views(weights, tokens, key_tokens, allowed)
    views = views if layer is None else (_layer(views, layer),)
    if len(views) > 1 and head is not None:
        raise ValueError(f"There are {len(views)} layers; choose one with layer, too.")
    if len(views) > 1:
        return figures.attention_grid(views, **drawing)
    if head is None and views[0].n_heads > 1:
        return figures.attention_heads(views[0], **drawing)
    return figures.attention_map(views[0], head=head or 0, **drawing)


def attention_grid(
    weights: Any,
    tokens: Tokens | None = None,
    *,
    key_tokens: Tokens | None = None,
    allowed: Any = None,
    **drawing: Any,
) -> CanvasFigure:
    """Draw every head of every layer, the one under the pointer large; a click keeps it.

    Arguments and errors are those of ``attention_map``; ``drawing`` are options of
    ``charts.canvas.attention_maps.attention_grid``, such as ``stretch=True`` for hundreds of tokens.
    """
    return figures.attention_grid(_views(weights, tokens, key_tokens, allowed), **drawing)


def attention_lines(
    weights: Any,
    tokens: Tokens | None = None,
    *,
    key_tokens: Tokens | None = None,
    allowed: Any = None,
    layer: int = 0,
    **drawing: Any,
) -> CanvasFigure:
    """Draw the heads of one layer as lines between tokens.

    Arguments and errors are those of ``attention_map``; ``drawing`` are options of
    ``charts.canvas.attention_maps.attention_lines``.
    """
    views = _views(weights, tokens, key_tokens, allowed)
    return figures.attention_lines(views[0] if len(views) == 1 else _layer(views, layer), **drawing)


def _views(weights: Any, tokens: Tokens | None, key_tokens: Tokens | None, allowed: Any) -> tuple[AttentionView, ...]:
    views = (weights,) if isinstance(weights, AttentionView) else weights
    if isinstance(views, (list, tuple)) and views and all(isinstance(view, AttentionView) for view in views):
        if not (tokens is None and key_tokens is None and allowed is None):
            raise ValueError("An AttentionView has its own tokens and mask; give no others.")
        return tuple(views)
    if tokens is None:
        raise ValueError("Give the texts of the tokens as the second argument.")
    return attention_views(weights, tokens, key_tokens=key_tokens, allowed=allowed)


def _layer(views: tuple[AttentionView, ...], layer: int) -> AttentionView:
    found = {view.layer: view for view in views}
    if layer not in found:
        raise ValueError(f"There is no layer {layer}; the layers are {', '.join(map(str, found))}.")
    return found[layer]


MAX_INSIDE = 2_000_000  # numbers of unfolded layers, four bytes each, in one figure


def batch(checkpoint: Checkpoint, prompts: str | Path | Iterable[Sequence[str]], *, largest: int = 10) -> pd.DataFrame:
    """Return what every head contributes over many prompts or pairs, as a table.

    Its columns are the mean, standard deviation and count of attribution and patching in logits, and the roles
    (``transformer.heads.prompt_batch``).

    ``prompts`` is a file, or rows of (clean, corrupted, answer, other), of which the last may be missing. Lines that
    the model cannot read are left out, each with a warning.

    Raises:
        InputError: If no line is left.
    """
    import pandas as pd

    from transformer.heads.prompt_batch import Line, cases_of, prompt_batch, read_lines

    rows = prompts if isinstance(prompts, (str, Path)) else [Line(at, *row) for at, row in enumerate(prompts, start=1)]
    cases, problems = cases_of(checkpoint, read_lines(rows) if isinstance(rows, (str, Path)) else rows)
    for problem in problems:
        warnings.warn(str(problem), stacklevel=2)
    return pd.DataFrame(prompt_batch(checkpoint, cases, largest=largest).records())


def steer(trace: Trace, edit: str, *, controls: int = 8) -> pd.DataFrame:
    """Return what a direction in the residual stream does to the output, beside random directions.

    One row per direction, the direction itself first: the change of log p of the original output and the mean KL
    divergence, in nats, the token that gains most probability, and the output (``transformer.interventions.steering``).

    Args:
        trace: The original run.
        edit: Such as "steer:decoder.1.residual=4 prompts I love it. ||| I hate it." or "steer:decoder.1.residual=4
            word Paris"; ``transformer.runs.directions`` lists the directions.
        controls: Number of random directions.

    Raises:
        InputError: If the model cannot take a text of the edit.
        ValueError: If the edit does not fit the model.
    """
    import pandas as pd

    from transformer.interventions.steering import steering_effect

    return pd.DataFrame(steering_effect(trace, edit, seeds=range(1, controls + 1)).records())


def living_picture(trace: Trace, *, layers: Iterable[tuple[str, int]] | None = None, **begin: object) -> CanvasFigure:
    """Return a sentence moving through the model, as on Overview: it plays, and sub-layers unfold.

    Args:
        trace: The run.
        layers: (stack, layer) of those that unfold down to one product; by default as many as a page handles well.
        begin: Where it opens: ``stack``, ``layer`` and ``token``.

    Raises:
        ValueError: If the trace has no model, or a layer does not exist.
    """
    from transformer.predictions.living_picture_numbers import layers_within, living_picture_numbers

    inside = layers_within(trace, MAX_INSIDE) if layers is None else tuple(layers)
    return living_picture_canvas(living_picture_numbers(trace, inside=inside), begin=begin)
