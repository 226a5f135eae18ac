"""Dropout (Srivastava et al. 2014), which costs nothing where nothing is dropped."""

from __future__ import annotations

from torch import Tensor, nn


class Dropout(nn.Dropout):
    """While training: each number becomes 0 with probability p, and the others are divided by 1 − p. Else: x itself."""

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) if self.training else x
