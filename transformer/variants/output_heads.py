"""What other families put behind the last layer: a token head with a layer of its own, a classifier, or no
more than the vector of a sentence."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.layer_norm import LayerNorm
from transformer.masks import padding_mask
from transformer.models import EncoderOnly
from transformer.probes import Probe


class ScaledProjection(nn.Linear):
    """logits = cap · tanh(((x · scale) Wᵀ + b) / cap), of which a family has what it has.

    ``scale``: T5 multiplies by 1/√d_model where E and W are one (Raffel et al. 2020). ``cap``: Gemma 2 (2024, §2).
    """

    def __init__(self, width: int, vocabulary_size: int, *, bias: bool, scale: float, cap: float | None) -> None:
        super().__init__(width, vocabulary_size, bias=bias)
        self.scale, self.cap = scale, cap

    def forward(self, hidden: Tensor) -> Tensor:
        logits = super().forward(hidden * self.scale)
        return logits if self.cap is None else self.cap * torch.tanh(logits / self.cap)


class TokenHead(nn.Module):
    """logits = norm(f(x W + b)) Eᵀ + c: BERT's masked-token head (Devlin et al. 2019). It is not linear in x."""

    def __init__(self, config: ModelConfig, width: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, width)
        self.activation = activation
        self.norm = LayerNorm(config, width)
        self.projection = nn.Linear(width, config.vocabulary_size)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.projection(self.norm(self.activation(self.dense(hidden))))


class FirstTokenClassifier(nn.Module):
    """logits = f(x₀ W + b) C + c, x₀ the first token's vector (Devlin et al. 2019, §4.1): [batch, class]."""

    def __init__(self, config: ModelConfig, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = activation
        self.projection = nn.Linear(config.d_model, config.n_classes)
        self.pooled = Probe("model")
        self.logits = Probe("class")

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        pooled = self.pooled(self.activation(self.dense(hidden[:, 0])))
        return self.logits(self.projection(pooled))


class Pooling(nn.Module):
    """One vector of all real positions: their "mean", the "first" one, or the largest number of each channel ("max")
    (Sentence-BERT, Reimers & Gurevych 2019, §3): [batch, model]."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.vector = Probe("model")

    def forward(self, hidden: Tensor, real: Tensor) -> Tensor:
        """hidden [batch, position, model], real [batch, position]."""
        if self.kind == "first":
            return self.vector(hidden[:, 0])
        if self.kind == "max":
            return self.vector(hidden.masked_fill(~real[..., None], -torch.inf).amax(dim=1))
        weight = real[..., None].to(hidden.dtype)
        return self.vector((hidden * weight).sum(dim=1) / weight.sum(dim=1))


class SentenceEncoder(EncoderOnly):
    """An encoder without a head: it predicts no word, and answers with the vector of a sentence."""

    def forward(self, ids: Tensor) -> Tensor:
        """[batch, position] → [batch, model]."""
        return self.pooling(self.encode(ids), padding_mask(ids, self.config.pad_id))
