"""Pruning heads while training: a gate per head, and a price for every gate that is open.

Each head's context is multiplied by a gate z between 0 and 1 before W_O joins the heads (Voita et al. 2019, "Analyzing
Multi-Head Self-Attention", §5.1). A gate is drawn from the hard concrete distribution (Louizos et al. 2018, "Learning
Sparse Neural Networks through L0 Regularization", §2.2), which is exactly 0 or exactly 1 much of the time, and has a
derivative in its one parameter log α:

    u ~ U(0, 1)      s = σ((log u − log(1 − u) + log α) / β)      z = min(1, max(0, s (ζ − γ) + γ))
    P(z ≠ 0) = σ(log α − β log(−γ / ζ))                           loss = cross-entropy + λ Σ_heads P(z ≠ 0)

After training nothing is drawn any more: ẑ = min(1, max(0, σ(log α) (ζ − γ) + γ)).
"""

import copy
import math

import torch
from torch import Tensor, nn

from transformer.attention import MultiHeadAttention
from transformer.models import Model
from transformer.probes import Edit, record
from transformer.training.objectives import Translation

BETA, GAMMA, ZETA = 2 / 3, -0.1, 1.1  # Louizos et al. 2018, §4


class HeadGates(nn.Module):
    """One gate for each head of each attention: ``log_alpha`` [attention, head].

    They begin where ẑ reaches 1: the model is still itself, and the derivative is not yet lost in the clamp.
    """

    OPEN = math.log((1 - GAMMA) / (ZETA - 1))  # σ(OPEN) (ζ − γ) + γ = 1

    def __init__(self, n_attentions: int, n_heads: int) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((n_attentions, n_heads), self.OPEN))

    def draw(self) -> Tensor:
        """z of one training step, the same for the whole batch: [attention, head]."""
        u = torch.rand_like(self.log_alpha).clamp(1e-6, 1 - 1e-6)
        s = torch.sigmoid((u.log() - (1 - u).log() + self.log_alpha) / BETA)
        return (s * (ZETA - GAMMA) + GAMMA).clamp(0.0, 1.0)

    def open_probabilities(self) -> Tensor:
        """P(z ≠ 0): [attention, head]; their sum is the expected number of open gates, the "L0 norm"."""
        return torch.sigmoid(self.log_alpha - BETA * math.log(-GAMMA / ZETA))

    def settled(self) -> Tensor:
        """ẑ: [attention, head]."""
        return (torch.sigmoid(self.log_alpha.detach()) * (ZETA - GAMMA) + GAMMA).clamp(0.0, 1.0)


class PrunedTranslation(Translation):
    """Translation with a gate on every head.

    ``penalty``: λ, the price of an open gate in nats a token. ``least_score``: the dev score that a checkpoint must
    still have. ``gate_rate``: how many times faster gates learn than weights, since a gate has far to go.
    """

    def __init__(
        self, model: Model, label_smoothing: float = 0.0, *, penalty: float, least_score: float, gate_rate: float
    ) -> None:
        super().__init__(model, label_smoothing)
        self.attentions = attention_names(model)
        self.gates = HeadGates(len(self.attentions), model.config.n_heads)
        self.penalty, self.least_score, self.gate_rate = penalty, least_score, gate_rate

    def parameter_groups(self) -> list[dict]:
        weights = {"params": list(self.model.parameters()), "rate": 1.0}
        return [weights, {"params": list(self.gates.parameters()), "rate": self.gate_rate}]

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, int]:
        loss, predictions = super().forward(batch)
        return loss + predictions * self.penalty * self.gates.open_probabilities().sum(), predictions

    def hidden_and_targets(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        drawn = self.gates.draw() if self.training else self.gates.settled()
        with record(gate_edits(self.attentions, drawn)):
            return super().hidden_and_targets(batch)

    def finished(self, model: Model) -> Model:
        return with_gates(model, self.gates.settled())

    def merit(self, score: float) -> float:
        """How many heads are off, among equals the score; below 0 where the score has fallen too far."""
        if score < self.least_score:
            return score - self.least_score
        return int((self.gates.settled() == 0).sum()) + score / 1000


def attention_names(model: Model) -> list[str]:
    """Every attention of a model, in the order of its modules: ``encoder.layers.0.self_attention``, …"""
    return [name for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)]


def gate_edits(attentions: list[str], gates: Tensor) -> list[Edit]:
    """Each head's context times its gate, ``gates`` [attention, head]: what Surgery does where a gate is 0."""
    return [
        Edit(f"{name}.context", lambda context, gate=gate: context * gate[:, None, None])
        for name, gate in zip(attentions, gates, strict=True)
    ]


@torch.no_grad()
def with_gates(model: Model, gates: Tensor) -> Model:
    """A copy of ``model`` whose heads are multiplied by ``gates`` [attention, head], as an ordinary model: the columns
    of W_O that read a head are multiplied by its gate."""
    finished = copy.deepcopy(model)
    for name, gate in zip(attention_names(finished), gates, strict=True):
        attention = finished.get_submodule(name)
        attention.output_projection.weight *= gate.repeat_interleave(attention.d_head)
    return finished
