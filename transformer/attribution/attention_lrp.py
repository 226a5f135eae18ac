"""AttnLRP (Achtibat et al. 2024): relevance propagated back through every layer without loss.

Layer-wise relevance propagation gives each number of a layer a share R of the prediction, and distributes it over the
numbers that it was computed from. Under the following rules R = x · g, where g is a gradient with a modified backward
pass, so a single backward pass is enough ("gradient × input" with some factors held fixed):

    linear layer, sum       z-rule (ε → 0):      R_i = Σ_j x_i w_ji / z_j · R_j      the plain gradient
    activation f            identity rule:       R_in = R_out                        g_in = g_out · f(x) / x
    LayerNorm, RMSNorm      1/σ held fixed, so that the norm is linear; β takes its share
    product (Q Kᵀ, A V, gate) uniform rule:      half of R to each factor            half of the plain gradient
    softmax                 Taylor rule:         R_i = x_i (R_i − s_i Σ_j R_j)       the plain gradient

Terms that come from no token take their share: biases, positions, and the constant of the softmax's Taylor expansion.
``Relevance.absorbed`` holds these shares, each measured where the term is added; with them, R in = R out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from transformer.attribution.input_attribution import embeddings
from transformer.files.checkpoints import Checkpoint
from transformer.guests.described_parts import not_exposed
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
    """Relevance of the input tokens.

    Attributes:
        source: Share of each source token, [token].
        target: Share of each target token, [token].
        out: Relevance at the logits, Σ_j z_j ∂F/∂z_j; if F is a logit, this is F itself.
        absorbed: Relevance of terms that come from no token, by the names in ``ABSORBED``.
    """

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
        """R in + R absorbed − R out; 0 if the rules conserve relevance."""
        return self.total + sum(self.absorbed.values()) - self.out


def require_own_layers(model: Model) -> None:
    """Check that the rules of AttnLRP can replace the backward pass of each layer.

    Raises:
        NotExposedError: If the model's own code in ``transformers`` computes.
    """
    if not model.own_code:
        raise not_exposed("the backward pass of each of its layers")


def attention_lrp(checkpoint: Checkpoint, quantity: Quantity) -> Relevance:
    """Return the relevance of every input token for one number, at its row of the embedding table.

    Positions are added after that. The backward pass is modified on a copy of the model; the shared one is not touched.
    """
    require_own_layers(checkpoint.model)
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
    # The softmax is followed by the product with the values, which passes one half on.
    absorbed = dict(zip(ABSORBED, (sums[2], sums[3], 0.5 * sums[4] - sums[5]), strict=True))
    return Relevance(quantity, tokens.get("encoder"), tokens.get("decoder"), sums[1], absorbed)


def _share(x: Tensor, slope: Tensor | None) -> Tensor:
    """Return R = x · g in double precision; 0 for inputs that the prediction does not depend on."""
    return torch.zeros_like(x, dtype=torch.float64) if slope is None else x.detach().double() * slope.double()


def _copy_with_rules(model: Model) -> Model:
    """Return the model with the identity rule at every activation, and gradients only for added terms.

    The copy shares its weights with the model.
    """
    copied = model.copy_sharing_weights(_is_added)
    for module in copied.modules():
        for name in ("activation", "convolution_activation"):
            if callable(getattr(module, name, None)):
                setattr(module, name, _IdentityRule(getattr(module, name)))
    return copied


def _is_added(name: str) -> bool:
    return name.endswith(("bias", "segment_table.weight"))


class _IdentityRule:
    """f with f(x) = x · (f(x)/x), the second factor held fixed: x receives the gradient of f(x)."""

    def __init__(self, function: object) -> None:
        self.function = function

    def __call__(self, x: Tensor) -> Tensor:
        value = self.function(x)
        return _with_gradient(value, x * _ratio(value, x))


def _ratio(value: Tensor, x: Tensor) -> Tensor:
    return torch.where(x == 0, 0.0, value / torch.where(x == 0, 1.0, x)).detach()


def _with_gradient(value: Tensor, like: Tensor) -> Tensor:
    """Return the numbers of ``value`` with the gradient of ``like``."""
    return like + (value - like).detach()


def _half(x: Tensor) -> Tensor:
    return _with_gradient(x, 0.5 * x)


def _undo_cap(capped: Tensor, cap: float) -> Tensor:
    """Apply the identity rule for s = cap · tanh(x / cap), on top of its plain gradient: g · (s/x) / s′."""
    bent = (capped / cap).detach().clamp(-1 + 1e-6, 1 - 1e-6)
    factor = torch.where(bent.abs() < 1e-6, 1.0, bent / torch.atanh(bent) / (1 - bent.square()))
    return _with_gradient(capped, capped * factor)


def _rules(model: nn.Module) -> list[Edit]:
    """Return the rules that apply at probes."""
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
            edits.append(Edit(f"{name}.scores", lambda x, cap=cap: _undo_cap(x, cap)))
        if cap := getattr(module, "cap", None):
            edits.append(Edit(f"{name.rpartition('.')[0]}.logits", lambda x, cap=cap: _undo_cap(x, cap)))
    return edits
