"""Attribution of one number of the output to each input token: gradient × input, integrated gradients.

The number F is the log probability, probability or logit of one token (or class). The inputs are the tokens' rows of
the embedding table, x = E[id] · √d_model, at the activation ``*.embedding.token``: *before* positions are added, so
that a baseline removes the words and keeps their order, whatever the positional encoding.

    gradient × input       a_i = Σ_channel x_i · ∂F/∂x_i                                    Shrikumar et al. 2016
    integrated gradients   a_i = Σ_channel (x_i − x′_i) · ∫₀¹ ∂F/∂x_i (x′ + α(x − x′)) dα   Sundararajan et al. 2017, §3

Completeness: the second sums to F(x) − F(x′), up to the numerical error of the integral (``InputAttribution.error``).
The first need not sum to anything: it is a local slope.

Both are computed by captum (its quadrature is Gauss–Legendre). With its dependencies captum takes 80 MB on disk, and
its import takes about half as long as that of torch, mostly for matplotlib; so it is a requirement, but it is imported
only for the first attribution. Parameters are never differentiated: gradients are taken with respect to the embeddings
of this call, and ``.grad`` of every weight stays ``None``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.predictions.target import Target, logits_at, number_of
from transformer.probes import Edit, record
from transformer.runs.autograd import gradients
from transformer.runs.inputs import padding_ids

BASELINES = ("zero", "pad", "mean")
ROWS = 16  # points of the path that pass through the model in one batch


@dataclass(frozen=True)
class InputAttribution:
    """Share of each input token in the number, signed, in its unit.

    Attributes:
        source: [token].
        target: [token].
        value: F(x).
        baseline_value: F(x′); NaN without a baseline.
        n_steps: Number of points between the two; 0 without a baseline.
    """

    quantity: Target
    source: np.ndarray | None
    target: np.ndarray | None
    value: float
    baseline_value: float = float("nan")
    n_steps: int = 0

    @property
    def total(self) -> float:
        """Σ_i a_i over all tokens of both sentences."""
        return float(sum(part.sum() for part in (self.source, self.target) if part is not None))

    @property
    def difference(self) -> float:
        """F(x) − F(x′), which integrated gradients must sum to."""
        return self.value - self.baseline_value

    @property
    def error(self) -> float:
        """Σ a − (F(x) − F(x′)); 0 if completeness holds exactly."""
        return self.total - self.difference


def gradient_times_input(checkpoint: Checkpoint, quantity: Target) -> InputAttribution:
    """Compute a_i = x_i · ∂F/∂x_i, summed over the channels."""
    from captum.attr import InputXGradient

    with gradients():
        inputs = embeddings(checkpoint, quantity)
        forward = _forward(checkpoint, quantity)
        found = InputXGradient(forward).attribute(tuple(value.requires_grad_() for value in inputs.values()))
        with torch.no_grad():
            value = float(forward(*inputs.values()))
    return _attribution(quantity, inputs, found, value)


def integrated_gradients(
    checkpoint: Checkpoint, quantity: Target, *, baseline: str = "mean", n_steps: int = 64
) -> InputAttribution:
    """Average the gradient over ``n_steps`` points on the line from the baseline x′ to the input x.

    Args:
        checkpoint: The model.
        quantity: The number F.
        baseline: Replaces every token (including ``<s>`` and ``<mask>``): "zero" (the zero vector), "pad" (the row of
            ``<pad>``) or "mean" (the mean row of the vocabulary). None of them means "no word" to the model: compare
            them.
        n_steps: Number of points.

    Raises:
        ValueError: If the baseline is unknown, or there is less than 1 step.
    """
    if n_steps < 1:
        raise ValueError(f"n_steps is {n_steps}; the path needs at least 1 point")
    from captum.attr import IntegratedGradients

    with gradients():
        inputs = embeddings(checkpoint, quantity)
        points = tuple(inputs.values())
        baselines = tuple(_baseline(checkpoint, stack, baseline).expand_as(x) for stack, x in inputs.items())
        forward = _forward(checkpoint, quantity)
        found = IntegratedGradients(forward).attribute(
            points, baselines=baselines, n_steps=n_steps, internal_batch_size=ROWS
        )
        with torch.no_grad():
            value, start = float(forward(*points)), float(forward(*baselines))
    return replace(_attribution(quantity, inputs, found, value), baseline_value=start, n_steps=n_steps)


def embeddings(checkpoint: Checkpoint, quantity: Target) -> dict[str, Tensor]:
    """Return x = E[id] · √d_model of every stack, [1, position, model], detached from the table."""
    found = {}
    for stack, tokens in quantity.read.items():
        embedding = getattr(checkpoint.model, stack).embedding
        ids = torch.tensor([tokens.ids], device=checkpoint.model.device)
        found[stack] = (embedding.table(ids) * embedding.scale).detach().clone()
    return found


def _baseline(checkpoint: Checkpoint, stack: str, name: str) -> Tensor:
    """Return the baseline x′ of one stack, [model]."""
    embedding = getattr(checkpoint.model, stack).embedding
    table = embedding.table.weight.detach()
    rows = {
        "zero": lambda: torch.zeros_like(table[0]),
        "pad": lambda: table[padding_ids(checkpoint, 1)[0]],
        "mean": lambda: table.mean(dim=0),
    }
    if name not in rows:
        raise ValueError(f"baseline is {name!r}; choose one of {', '.join(BASELINES)}")
    return rows[name]() * embedding.scale


def _forward(checkpoint: Checkpoint, quantity: Target) -> Callable[..., Tensor]:
    """Return F as a function of the embeddings, [batch, position, model] per stack → [batch]."""
    ids = {stack: torch.tensor([tokens.ids], device=checkpoint.model.device) for stack, tokens in quantity.read.items()}

    def forward(*embeddings: Tensor) -> Tensor:
        edits = [Edit(f"{stack}.embedding.token", lambda _, x=x: x) for stack, x in zip(ids, embeddings, strict=True)]
        read = {stack: row.expand(len(embeddings[0]), -1) for stack, row in ids.items()}
        with record(edits):
            logits = logits_at(checkpoint.model, read, [quantity.row])[:, 0]
            return number_of(checkpoint, quantity, logits)

    return forward


def _attribution(
    quantity: Target, inputs: dict[str, Tensor], found: tuple[Tensor, ...], value: float
) -> InputAttribution:
    parts = {
        stack: part[0].detach().double().sum(dim=-1).cpu().numpy() for stack, part in zip(inputs, found, strict=True)
    }
    return InputAttribution(quantity, parts.get("encoder"), parts.get("decoder"), value)
