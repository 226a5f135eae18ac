"""Attribution patching: the effect of patching every location, estimated by one backward pass.

Activation patching runs the model once per location. To first order, one gradient gives the same ("Attribution
patching", Nanda 2023; Syed et al. 2024, "Attribution Patching Outperforms Automated Circuit Discovery", §2):

    F(a patched with a′) ≈ F(a) + (a′ − a) · ∂F/∂a

with the activations ``a`` of the run that is patched, and the gradient there. The estimate is good where F is nearly
linear between ``a`` and ``a′`` and poor where a softmax saturates or a norm rescales, so its largest values are worth
measuring (``recovered_shares``, ``importance_by_chunks``). A divergence has its minimum at ``a``: its gradient there is
0 and predicts nothing.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from transformer.interventions.activation_patching import Contrast, Place, Turn, logits_of, probe_of
from transformer.interventions.head_importance import HeadImportance, Importance, context_of
from transformer.models import Model
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.predictions.target import log_probabilities
from transformer.probes import Edit, record
from transformer.runs.autograd import gradients, gradients_begin_at
from transformer.runs.head_places import Head, all_heads
from transformer.runs.traces import Trace


def estimated_shares(contrast: Contrast, turn: Turn, places: Sequence[Sequence[Place]]) -> np.ndarray:
    """Estimate ``recovered_shares``: [row, column], as ``places``; NaN if the two runs do not differ."""
    changes = estimated_changes(contrast, turn, [(place,) for row in places for place in row])
    return turn.share(changes).reshape(len(places), -1)


def estimated_changes(contrast: Contrast, turn: Turn, experiments: Sequence[Sequence[Place]]) -> np.ndarray:
    """Estimate ``patched_changes``: what each experiment adds to logit(answer) − logit(other).

    ``a`` is from the corrupted run, ``a′`` from the clean one, F = logit(answer) − logit(other).
    """
    names = {probe_of(place) for places in experiments for place in places}
    with gradients(), record(embeddings_as_leaves(contrast.checkpoint.model), names) as both:
        slopes = slopes_of(turn.difference(logits_of(contrast, turn)[1]), both.tensors)
    with torch.no_grad():
        sums = {
            name: ((own[0] - own[1]) * slopes[name][1]).flatten(1).double().sum(dim=1)
            for name, own in both.tensors.items()
        }  # [position] or [head]
    return np.array([sum(float(sums[probe_of(place)][place.index]) for place in places) for places in experiments])


def estimated_importance(trace: Trace) -> Importance:
    """Estimate what ``head_importance`` measures: ``a′`` is 0, F is Σ log p of the output."""
    question, model = prediction_rows(trace), trace.checkpoint.model
    heads = all_heads(model.config)
    names = {head: context_of(head) for head in heads}
    read = [tokens.ids for tokens in (trace.source, trace.target) if tokens is not None]
    with gradients(), record(embeddings_as_leaves(model), set(names.values())) as recording:
        logits = torch.atleast_2d(model(*(torch.tensor([ids], device=model.device) for ids in read))[0])
        log_p = log_probabilities(trace.checkpoint, logits[list(question.rows)])
        number = log_p.gather(-1, torch.tensor(question.ids, device=model.device)[:, None]).sum()
        slopes = slopes_of(number, recording.tensors)
    with torch.no_grad():
        sums = {
            name: -(own * slopes[name])[0].flatten(1).double().sum(dim=1) for name, own in recording.tensors.items()
        }
    return Importance(
        heads, tuple(HeadImportance(head, float(sums[names[head]][head.head]), float("nan")) for head in heads)
    )


def strongest(importance: Importance, count: int) -> tuple[Head, ...]:
    """Return the heads with the largest changes, in the order of all heads."""
    best = sorted(importance.measured, key=lambda one: -abs(one.change))[:count]
    return tuple(sorted((one.place for one in best), key=importance.heads.index))


def embeddings_as_leaves(model: Model) -> list[Edit]:
    """Return edits that make the embeddings leaves, so that parameters are never differentiated."""
    return [gradients_begin_at(name) for name in model.probes if name.endswith("embedding.token")]


def slopes_of(number: Tensor, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return ∂F/∂a at every probe; 0 if F does not depend on it."""
    found: Iterable[Tensor | None] = torch.autograd.grad(number, list(tensors.values()), allow_unused=True)
    return {
        name: torch.zeros_like(tensor) if slope is None else slope
        for (name, tensor), slope in zip(tensors.items(), found, strict=True)
    }
