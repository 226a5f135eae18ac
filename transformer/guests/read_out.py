"""How any model computes logits from its last vectors: the facts that analyses and pages ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from transformer.guests.output_heads import ScaledProjection, TokenHead
from transformer.models import Classifier, FirstTokenClassifier, Model

_KINDS = {TokenHead: "token head", FirstTokenClassifier: "first", Classifier: "mean", nn.Linear: "matrix"}


@dataclass(frozen=True)
class ReadOut:
    """What follows the last vectors x of a stack.

    Attributes:
        kind: "matrix": x Wᵀ + b of each vector; "token head": a layer and a norm come before W (``TokenHead``);
            "first": a classifier reads the first vector, through a layer of its own (``FirstTokenClassifier``);
            "mean": a classifier reads the mean; "unknown": a guest does not expose it.
        head: The module that computes the logits.
        projection: W and b.
        scale: Factor of x before W.
        cap: Logits are cap · tanh(logit / cap); ``None`` if they are not capped.
    """

    kind: str
    head: Any
    projection: Any
    scale: float = 1.0
    cap: float | None = None

    @property
    def has_own_layer(self) -> bool:
        """Whether a layer comes before W, so that rows of W are not directions of the residual stream."""
        return self.kind in ("token head", "first")


def read_out_of(model: Model, stack: str) -> ReadOut | None:
    """Return how a stack's logits are computed, of tokens or of classes; ``None`` if it has none."""
    part: Any = model.get_submodule(stack)
    head: Any = model.classifier if model.config.n_classes else getattr(part, "vocabulary_projection", None)
    if head is None:
        return None
    kind = next((kind for module, kind in _KINDS.items() if isinstance(head, module)), "unknown")
    projection = head if kind in ("matrix", "unknown") else head.projection
    scaled = isinstance(head, ScaledProjection)
    return ReadOut(kind, head, projection, *((head.scale, head.cap) if scaled else ()))
