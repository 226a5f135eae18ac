"""Learning from a teacher: what a trained model thinks likely says more than the one word that was written.

    loss = (1 − w) · cross-entropy with the text + w · (− Σ_v q(v) ln p(v))    for every predicted token

q: the teacher's probabilities of all tokens v at that place, p: the student's. Kim and Rush 2016, "Sequence-Level
Knowledge Distillation", §3.1, "word-level"; after Hinton et al. 2015. A student with the teacher's own shape can come
out better than its teacher (Furlanello et al. 2018, "Born-Again Neural Networks").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformer.training.objectives import Objective


class Teacher:
    """A trained model that answers the student's batches. Not a module: nothing of it is trained or saved."""

    def __init__(self, objective: Objective, weight: float) -> None:
        """``objective``: the student's, around the teacher; ``weight``: w, from 0 to 1."""
        self.objective = objective.eval().requires_grad_(False)
        self.weight = weight

    @torch.no_grad()
    def hidden(self, batch: dict[str, Tensor]) -> Tensor:
        """The teacher's last hidden states at the places of the targets, [batch, target, d_model]."""
        if self.objective.model.device != (device := next(iter(batch.values())).device):
            self.objective.to(device)
        return self.objective.hidden_and_targets(batch)[0]

    @torch.no_grad()
    def probabilities(self, hidden: Tensor) -> Tensor:
        """q: [..., d_model] → [..., vocabulary]."""
        return self.objective.model.project(hidden).float().softmax(dim=-1)
