"""AttnLRP (Achtibat et al. 2024): the answer handed back through every layer, by rules under which nothing is lost.

Layer-wise relevance propagation gives each number of a layer a share R of the answer, and hands it to the numbers that
it was made of. Under these rules R = x · g, where g is a gradient whose backward pass was changed, so that one backward
pass does it ("gradient × input" with some factors held fixed):

    linear layer, sum       z-rule (ε → 0):      R_i = Σ_j x_i w_ji / z_j · R_j      the plain gradient
    activation f            identity rule:       R_in = R_out                        g_in = g_out · f(x) / x
    LayerNorm, RMSNorm      1/σ held fixed, so that the norm is linear; β takes its share
    product (Q Kᵀ, A V, gate) uniform rule:      half of R to each factor            half of the plain gradient
    softmax                 Taylor rule:         R_i = x_i (R_i − s_i Σ_j R_j)       the plain gradient

What is added and comes from no token takes its share: biases, positions, and the constant of the softmax's Taylor
expansion. ``Relevance.absorbed`` has them, each measured where it is added; with them R in = R out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from transformer.attribution.input_attribution import embeddings
from transformer.files.checkpoints import Checkpoint
from transformer.models import Model
from transformer.predictions.quantity import Quantity, numbers
from transformer.probes import Edit, record
from transformer.runs.autograd import gradients, gradients_begin_at
from transformer.variants.gated_feed_forward import GatedFeedForward

ABSORBED = ("biases", "positions", "softmax")
_POSITIONS = (".embedding.position", ".position_bias.values", ".content_to_position", ".position_to_content")
_FACTORS = (".query", ".key", ".weights", ".value")


@dataclass(frozen=True)
class Relevance:
    """``source`` [token], ``target`` [token]: the share of each input token. ``out``: the relevance that sets out from
    the logits, Σ_j z_j ∂F/∂z_j, which for a logit is the number F itself. ``absorbed``: by the names of ``ABSORBED``,
    what stayed at what comes from no token."""

    quantity: Quantity
    source: np.ndarray | None
    target: np.ndarray | None
    out: float
    absorbed: Mapping[str, float]

    @property
    def total(self) -> float:
        """Σ_i R_i over all tokens of both sentences."""
        return float(sum(part.sum() for part in (self.source, self.target) if part is not None))

    @property
    def error(self) -> float:
        """R in + R absorbed − R out: 0 where the rules conserve."""
        return self.total + sum(self.absorbed.values()) - self.out


def attention_lrp(checkpoint: Checkpoint, quantity: Quantity) -> Relevance:
    """The relevance of every input token for one number, at its row of the embedding table, before positions are added.

    The backward pass is changed on a copy of the model; the shared one is not touched.
    """
    with gradients():
        model = _copy_with_rules(checkpoint.model)
        inputs = {stack: value.requires_grad_() for stack, value in embeddings(checkpoint, quantity).items()}
        edits = [Edit(f"{stack}.embedding.token", lambda _, x=x: x) for stack, x in inputs.items()]
        ids = {stack: torch.tensor([tokens.ids], device=model.device) for stack, tokens in quantity.read.items()}
        with record([*edits, *_rules(model)]) as recording:
            value = numbers(replace(checkpoint, model=model), quantity, ids, row=quantity.row)
        tensors = recording.tensors
        added = [parameter for name, parameter in model.named_parameters() if _is_added(name)]
        logits = next(tensors[name] for name in tensors if name.endswith(".logits"))
        positions = [tensors[name] for name in tensors if name.endswith(_POSITIONS)]
        weights = [tensors[name] for name in tensors if name.endswith(".weights")]
        scores = [tensors[name] for name in tensors if name.endswith(".scores")]
        groups = ([*inputs.values()], [logits], added, positions, weights, scores)
        found = torch.autograd.grad(value.sum(), [x for group in groups for x in group], allow_unused=True)
    slopes = iter(found)
    shares = [[_share(x, next(slopes)) for x in group] for group in groups]
    sums = [sum(float(share.sum()) for share in group) for group in shares]
    tokens = {stack: share[0].sum(dim=-1).cpu().numpy() for stack, share in zip(inputs, shares[0], strict=True)}
    # Behind the softmax stands the product with the values, which hands it one half.
    absorbed = dict(zip(ABSORBED, (sums[2], sums[3], 0.5 * sums[4] - sums[5]), strict=True))
    return Relevance(quantity, tokens.get("encoder"), tokens.get("decoder"), sums[1], absorbed)


def _share(x: Tensor, slope: Tensor | None) -> Tensor:
    """R = x · g, in double precision; 0 for what the answer does not read."""
    return torch.zeros_like(x, dtype=torch.float64) if slope is None else x.detach().double() * slope.double()


def _copy_with_rules(model: Model) -> Model:
    """The model with the identity rule at every activation; gradients only of what is added. Its weights are shared."""
    copied = model.copy_sharing_weights(_is_added)
    for module in copied.modules():
        for name in ("activation", "convolution_activation"):
            if callable(getattr(module, name, None)):
                setattr(module, name, _IdentityRule(getattr(module, name)))
    return copied


def _is_added(name: str) -> bool:
    return name.rpartition(".")[2] in ("bias", "segment")


class _IdentityRule:
    """f with f(x) = x · (f(x)/x), the second factor held fixed: what comes back to x is what came to f(x)."""

    def __init__(self, function: object) -> None:
        self.function = function

    def __call__(self, x: Tensor) -> Tensor:
        value = self.function(x)
        return _with_gradient(value, x * _ratio(value, x))


def _ratio(value: Tensor, x: Tensor) -> Tensor:
    return torch.where(x == 0, 0.0, value / torch.where(x == 0, 1.0, x)).detach()


def _with_gradient(value: Tensor, like: Tensor) -> Tensor:
    """The numbers of ``value`` with the gradient of ``like``."""
    return like + (value - like).detach()


def _half(x: Tensor) -> Tensor:
    return _with_gradient(x, 0.5 * x)


def _uncapped(capped: Tensor, cap: float) -> Tensor:
    """The identity rule for s = cap · tanh(x / cap), whose plain gradient has been or will be taken: g · (s/x) / s′."""
    bent = (capped / cap).detach().clamp(-1 + 1e-6, 1 - 1e-6)
    factor = torch.where(bent.abs() < 1e-6, 1.0, bent / torch.atanh(bent) / (1 - bent.square()))
    return _with_gradient(capped, capped * factor)


def _rules(model: nn.Module) -> list[Edit]:
    """The rules that stand at probes."""
    edits = []
    for name in model.probes:
        if name.endswith((".std", ".mean_square")):
            edits.append(Edit(name, Tensor.detach))
        elif name.endswith(_POSITIONS):
            edits.append(gradients_begin_at(name))
        elif name.endswith(_FACTORS):
            edits.append(Edit(name, _half))
    for name, module in model.named_modules():
        if isinstance(module, GatedFeedForward):
            edits.append(Edit(f"{name}.hidden", _half))
        if cap := getattr(module, "score_cap", None):
            edits.append(Edit(f"{name}.scores", lambda x, cap=cap: _uncapped(x, cap)))
        if cap := getattr(module, "cap", None):
            edits.append(Edit(f"{name.rpartition('.')[0]}.logits", lambda x, cap=cap: _uncapped(x, cap)))
    return edits
