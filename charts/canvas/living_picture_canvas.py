"""The living picture: a sentence moving through a model, as a figure of the canvas.

All numbers are sent as float32, as in the model. If a long text has more than ``MAX_EXACT`` attention weights, they are
sent in units of 1/65535 and shown with fewer digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from charts.canvas.attention_maps import patch_pixels
from charts.canvas.figure import CanvasFigure
from charts.toolkit.payload_bytes import mask_bits
from charts.toolkit.words import localize

if TYPE_CHECKING:
    from transformer.attribution.leave_one_out import LeaveOneOut
    from transformer.predictions.living_picture_numbers import (
        InsideLayer,
        LivingPicture,
        PictureAttention,
        PictureStack,
    )

TITLE = "The path of a sentence through the model"
MAX_EXACT = 120_000


def living_picture_canvas(
    picture: LivingPicture,
    *,
    begin: Mapping[str, Any] | None = None,
    links: Mapping[str, str] | None = None,
    left_out: LeaveOneOut | None = None,
) -> CanvasFigure:
    """Return the canvas of ``picture``.

    Args:
        picture: The numbers.
        begin: Where it opens ("stack", "kind", "layer", "head", "token").
        links: By kind of sub-layer, the name of the page with details; a click on its link is sent to Python.
        left_out: Class probabilities without each word; the picture then opens at the word that the class depends on
            most.
    """
    arrays: dict[str, np.ndarray] = {}
    decisive = _decisive(left_out, len(picture.stacks[-1].tokens)) if left_out else None
    n_weights = sum(attention.weights.size for attention in picture.attentions)
    metadata = {
        "kind": "living_picture",
        "title": localize(TITLE),
        "checkpoint": picture.checkpoint,
        "stacks": [_stack(stack, arrays) for stack in picture.stacks],
        "attentions": [_attention(attention, arrays, n_weights) for attention in picture.attentions],
        "written": [
            {"position": row.position, "names": list(row.names), "chosen": row.chosen} for row in picture.written
        ],
        "writes": picture.writes,
        "classes": picture.classes,
        "pooling": picture.pooling,
        "asked": picture.asked,
        "edited": picture.edited,
        "vocabulary": picture.vocabulary,
        "text": picture.text,
        "begin": dict(begin or {}),
        "follow": {stack.name: _followed(stack, picture, decisive) for stack in picture.stacks},
        "links": dict(links or {}),
        "inside": [_inside(layer, arrays) for layer in picture.inside],
        "decisive": decisive,
    }
    most = max((len(row.names) for row in picture.written), default=1)
    for name in ("probabilities", "logits"):
        table = np.zeros((len(picture.written), most), dtype=np.float32)
        for place, row in zip(table, picture.written, strict=True):
            place[: len(row.names)] = getattr(row, name)
        arrays[f"written.{name}"] = table
    arrays["written.log_sum"] = _exact([row.log_sum for row in picture.written])
    return CanvasFigure(metadata, arrays)


def _followed(stack: PictureStack, picture: LivingPicture, decisive: dict[str, Any] | None) -> int:
    """Return the token that is followed at first if the reader has chosen none.

    It is the word that the class depends on, the class token, the position whose prediction is shown first, or the
    token after the first.
    """
    second = min(1, len(stack.tokens) - 1)
    if stack is not picture.stacks[-1]:
        return second
    if decisive and picture.pooling == "mean":
        return decisive["positions"][0]
    if picture.classes:
        return 0 if patch_pixels(stack.tokens) else second
    return second if picture.opening is None else picture.opening


def _decisive(left_out: LeaveOneOut, n_tokens: int) -> dict[str, Any] | None:
    """Return the word that the class depends on most, the class without it, and all words' effects.

    The effect of a word is how much the probability of the class falls without it, as a share of the largest such
    decrease. Effects are listed by token.
    """
    at, predicted = left_out.decisive, left_out.predicted
    if at is None:
        return None
    word, without = left_out.words[at], left_out.without[at]
    decreases = left_out.contributions[:, predicted].clip(min=0)
    effects = np.zeros(n_tokens)
    for each, decrease in zip(left_out.words, decreases, strict=True):
        effects[each.start : each.end] = decrease / decreases[at]
    return {
        "word": word.text,
        "positions": list(range(word.start, word.end)),
        "probability": float(left_out.probabilities[predicted]),
        "without": float(without[predicted]),
        "other": left_out.class_names[int(without.argmax())],
        "effects": [round(float(effect), 3) for effect in effects],
    }


def _exact(values: np.ndarray | list[float]) -> np.ndarray:
    return np.asarray(values, dtype=np.float32)


def _stack(stack: PictureStack, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    for name, values in stack.arrays.items():
        arrays[f"{stack.name}.{name}"] = values.astype(np.uint16) if name == "units" else _exact(values)
    return {
        "name": stack.name,
        "tokens": [
            {"text": token.display, "label": label, "special": token.special, "role": token.role}
            for token, label in zip(stack.tokens, stack.tokens.labels, strict=True)
        ],
        "pictures": patch_pixels(stack.tokens),
        "steps": [{"layer": step.layer, "kind": step.kind} for step in stack.steps],
        "layers": len(stack.arrays["units"]),
        "channels": stack.d_model,
        "units": stack.n_units,
        "adds": stack.adds,
        "normed": any(step.update.endswith("_norm.output") for step in stack.steps),
    }


def _attention(attention: PictureAttention, arrays: dict[str, np.ndarray], n_weights: int) -> dict[str, Any]:
    name = f"{attention.stack}.{attention.kind}"
    exact = n_weights <= MAX_EXACT
    rounded = np.nan_to_num(attention.weights.astype(np.float64)).clip(0.0, 1.0) * 65535
    arrays[f"{name}.weights"] = _exact(attention.weights) if exact else np.rint(rounded).astype(np.uint16)
    arrays[f"{name}.allowed"] = mask_bits(attention.allowed)
    return {"stack": attention.stack, "kind": attention.kind, "exact": exact}


def _inside(layer: InsideLayer, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    for name, values in layer.arrays.items():
        arrays[f"inside.{layer.stack}.{layer.layer}.{name}"] = _exact(values)
    return {
        "stack": layer.stack,
        "layer": layer.layer,
        "scale": dict(layer.scale),
        "plain": dict(layer.plain),
    }
