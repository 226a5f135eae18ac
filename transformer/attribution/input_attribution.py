"""How much of one number of the answer goes back to each input token: gradient × input and integrated gradients.

The number F is what the model says of one token (or class): its log-probability, probability or logit. The inputs are
the tokens' rows of the embedding table, x = E[id] · √d_model, at the activation ``*.embedding.token``: *before* the
positions are added, so that a baseline takes the words away and leaves their order, whatever the scheme of positions.

    gradient × input       a_i = Σ_channel x_i · ∂F/∂x_i                                    Shrikumar et al. 2016
    integrated gradients   a_i = Σ_channel (x_i − x′_i) · ∫₀¹ ∂F/∂x_i (x′ + α(x − x′)) dα   Sundararajan et al. 2017, §3

Completeness: the second sums to F(x) − F(x′) but for the error of the sum that stands for the integral
(``Attribution.error``). The first sums to nothing in particular: it is the slope where one stands.

Both are captum's (its quadrature is Gauss–Legendre). Measured: with what it needs it takes 80 MB on disk, no pin of it
conflicts, and its import takes about half as long as torch's own, most of it for matplotlib; so it is a requirement,
and imported only when the first attribution is asked for. Parameters are never differentiated: gradients
are taken with respect to the embeddings of this call, and ``.grad`` of every weight stays ``None``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.predictions.quantity import Quantity, numbers
from transformer.probes import Edit, record
from transformer.runs.autograd import gradients
from transformer.runs.inputs import padding

BASELINES = ("zero", "pad", "mean")
ROWS = 16  # of a batch: points of the path that go through the model at once


@dataclass(frozen=True)
class Attribution:
    """``source`` [token], ``target`` [token]: the share of each input token in the number, in its unit, signed.

    ``value`` = F(x); ``baseline_value`` = F(x′), and ``n_steps`` points between the two; without a baseline NaN and 0.
    """

    method: str
    quantity: Quantity
    source: np.ndarray | None
    target: np.ndarray | None
    value: float
    baseline: str = ""
    baseline_value: float = float("nan")
    n_steps: int = 0

    @property
    def total(self) -> float:
        """Σ_i a_i over all tokens of both sentences."""
        return float(sum(part.sum() for part in (self.source, self.target) if part is not None))

    @property
    def difference(self) -> float:
        """F(x) − F(x′), what integrated gradients must sum to."""
        return self.value - self.baseline_value

    @property
    def error(self) -> float:
        """Σ a − (F(x) − F(x′)): 0 where completeness holds exactly."""
        return self.total - self.difference


def gradient_times_input(checkpoint: Checkpoint, quantity: Quantity) -> Attribution:
    """a_i = x_i · ∂F/∂x_i, summed over the channels. The "input" is counted from 0, the zero vector."""
    from captum.attr import InputXGradient

    with gradients():
        inputs = embeddings(checkpoint, quantity)
        forward = _forward(checkpoint, quantity)
        found = InputXGradient(forward).attribute(tuple(value.requires_grad_() for value in inputs.values()))
        with torch.no_grad():
            value = float(forward(*inputs.values()))
    return _attribution("gradient_times_input", quantity, inputs, found, value=value)


def integrated_gradients(
    checkpoint: Checkpoint, quantity: Quantity, *, baseline: str = "mean", n_steps: int = 64
) -> Attribution:
    """The gradient averaged over ``n_steps`` points on the straight line from the baseline x′ to the input x.

    ``baseline``, in the place of every token (``<s>`` and ``<mask>`` too): "zero" (the zero vector), "pad" (the row of
    ``<pad>``) or "mean" (the mean row of the vocabulary). None of them means "no word" to the model: compare them.
    Raises ``ValueError`` for another baseline or fewer than 1 step.
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
    whole = _attribution("integrated_gradients", quantity, inputs, found, value=value)
    return replace(whole, baseline=baseline, baseline_value=start, n_steps=n_steps)


def embeddings(checkpoint: Checkpoint, quantity: Quantity) -> dict[str, Tensor]:
    """x = E[id] · √d_model of every stack, [1, position, model], cut off from the table."""
    found = {}
    for stack, tokens in quantity.read.items():
        embedding = getattr(checkpoint.model, stack).embedding
        ids = torch.tensor([tokens.ids], device=checkpoint.model.device)
        found[stack] = (embedding.table(ids) * embedding.scale).detach().clone()
    return found


def _baseline(checkpoint: Checkpoint, stack: str, name: str) -> Tensor:
    """x′: [model]."""
    embedding = getattr(checkpoint.model, stack).embedding
    table = embedding.table.weight.detach()
    rows = {
        "zero": lambda: torch.zeros_like(table[0]),
        "pad": lambda: table[padding(checkpoint, 1)[0]],
        "mean": lambda: table.mean(dim=0),
    }
    if name not in rows:
        raise ValueError(f"baseline is {name!r}; choose one of {', '.join(BASELINES)}")
    return rows[name]() * embedding.scale


def _forward(checkpoint: Checkpoint, quantity: Quantity) -> Callable[..., Tensor]:
    """F as a function of the embeddings: of each stack [batch, position, model] → [batch]."""
    ids = {stack: torch.tensor([tokens.ids], device=checkpoint.model.device) for stack, tokens in quantity.read.items()}

    def forward(*embeddings: Tensor) -> Tensor:
        edits = [Edit(f"{stack}.embedding.token", lambda _, x=x: x) for stack, x in zip(ids, embeddings, strict=True)]
        read = {stack: row.expand(len(embeddings[0]), -1) for stack, row in ids.items()}
        with record(edits):
            return numbers(checkpoint, quantity, read, row=quantity.row)

    return forward


def _attribution(
    method: str, quantity: Quantity, inputs: dict[str, Tensor], found: tuple[Tensor, ...], *, value: float
) -> Attribution:
    parts = {
        stack: part[0].detach().double().sum(dim=-1).cpu().numpy() for stack, part in zip(inputs, found, strict=True)
    }
    return Attribution(method, quantity, parts.get("encoder"), parts.get("decoder"), value)
