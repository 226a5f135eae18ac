"""Distillation from a teacher model, whose probabilities contain more than the one correct token.

    loss = (1 − w) · cross-entropy with the text + w · (− Σ_v q(v) ln p(v))    for every predicted token

q are the teacher model's probabilities of all tokens v at that position, p the student's. Kim and Rush 2016,
"Sequence-Level Knowledge Distillation", §3.1, "word-level"; after Hinton et al. 2015. A student with the same shape can
become better than its teacher model (Furlanello et al. 2018, "Born-Again Neural Networks").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformer.training.objectives import Objective


class Teacher:
    """A trained model that predicts on the student's batches and is not trained itself."""

    def __init__(self, objective: Objective, weight: float) -> None:
        """Wrap the teacher model in the student's ``objective``; ``weight`` is w, from 0 to 1."""
        self.objective = objective.eval().requires_grad_(False)
        self.weight = weight

    @torch.no_grad()
    def hidden(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the teacher model's last hidden states at the targets, [batch, target, d_model]."""
        if self.objective.model.device != (device := next(iter(batch.values())).device):
            self.objective.to(device)
        return self.objective.hidden_and_targets(batch)[0]

    @torch.no_grad()
    def probabilities(self, hidden: Tensor) -> Tensor:
        """Return q: [..., d_model] → [..., vocabulary]."""
        return self.objective.model.project(hidden).float().softmax(dim=-1)
