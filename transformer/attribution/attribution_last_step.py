"""What turns the last stream into a logit, read backwards: the projection, and whatever stands in front of it."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from transformer.attribution.attribution_question import Question
from transformer.attribution.attribution_walk import before_norm
from transformer.layers.stream_parts import Part, Values, array
from transformer.models import Model
from transformer.variants.output_heads import FirstTokenClassifier, TokenHead

_SMALLEST = 1e-6  # below it f(z)/z is taken there: 0/0 has no value, its limit does


@dataclass(frozen=True)
class LastStep:
    """``direction`` [row, model]: what the stack's output is multiplied by; ``parts``: what is added behind it;
    ``logit``: before a ``cap`` bends it; ``gated``: a layer with an activation stands in between."""

    direction: np.ndarray
    parts: dict[Part, float]
    logit: float
    cap: float | None
    gated: bool


def last_step(model: Model, values: Values, question: Question) -> LastStep:
    """The row of W that reads the word's logit out of the stream (minus the other's), carried to before the head.

    A head with a layer of its own, f(x W + b), is linear once every unit lets through the share f(z)/z that it let
    through in this run (Ali et al. 2022, "XAI for Transformers", §3, do so with the gates of attention).
    """
    stack, rows = model.get_submodule(question.stack), list(question.rows)
    head = model.classifier if question.position is None else stack.vocabulary_projection
    gated = isinstance(head, TokenHead | FirstTokenClassifier)
    projection = head if isinstance(head, nn.Linear) else head.projection
    ids = [id for id in (question.token, question.against) if id is not None]
    signs = np.array([1.0, -1.0])[: len(ids)]
    direction = signs @ array(projection.weight[ids]) * getattr(projection, "scale", 1.0)
    direction = np.tile(direction / len(rows), (len(rows), 1))  # a classifier takes the mean of its rows
    parts: dict[Part, float] = {}
    if projection.bias is not None:
        parts[Part("logit_bias")] = float(signs @ array(projection.bias[ids]))
    cap = getattr(projection, "cap", None)
    hidden = read_out(model, question.stack)
    if cap is None:
        given = values(question.logits)
        given = given if question.position is None else given[question.position]
        logit = float(signs @ given[ids].astype(np.float64))
    else:  # the recorded ones are bent already
        logit = float((values(hidden)[rows] * direction).sum()) + sum(parts.values())
    if isinstance(head, TokenHead):
        norm = f"{question.stack}.vocabulary_projection.norm"
        parts[Part("head_norm")] = float((direction @ array(head.norm.bias)).sum())
        direction = before_norm(head.norm, norm, values, rows, direction)
    if gated:
        before = torch.from_numpy(values(hidden)[rows].astype(np.float64)) @ _double(head.dense.weight).T
        before = before + _double(head.dense.bias)
        before = torch.where(before.abs() < _SMALLEST, _SMALLEST, before)
        direction = direction * (head.activation(before) / before).numpy()
        parts[Part("head_bias")] = float((direction @ array(head.dense.bias)).sum())
        direction = direction @ array(head.dense.weight)
    return LastStep(direction, parts, logit, cap, gated)


def read_out(model: Model, stack: str) -> str:
    """The activation that the last step reads."""
    module = model.get_submodule(stack)
    last = f"{stack}.layers.{len(module.layers) - 1}.residual.out"
    return last if module.final_norm is None else f"{stack}.final_norm.output"


def _double(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().double()
