"""From a word's row of W back through the residual stream: what did each part add to that word's logit?

What leaves the stack is a sum: the embedding, and what every sub-layer wrote. A LayerNorm on the way is linear as long
as the σ that it divided by is held fixed, and so is the projection to the vocabulary. So the row of W can be carried
*backwards* through them, and its dot product with what a part wrote is what that part added to the logit (Elhage et al.
2021, "Direct logit attribution"; nostalgebraist 2020).
"""

import numpy as np
from torch import nn

from transformer.layer_norm import RMSNorm
from transformer.layers.residual_stream import CONVOLUTION, SUBLAYERS
from transformer.layers.stream_parts import Part, Values, array


class Walk:
    """The way back through one stack for ``direction`` [row, model], one for each of the positions ``rows``.

    ``parts``: what each part adds, over all rows. ``readings``: for each attention, by its name, the vectors that the
    heads' contexts are multiplied by, [row, head, channel]: with them the share of every key can be told.
    """

    def __init__(self, values: Values, stack: nn.Module, name: str, rows: list[int], direction: np.ndarray) -> None:
        self.values, self.rows, self.direction = values, rows, direction
        self.parts: dict[Part, float] = {}
        self.readings: dict[str, np.ndarray] = {}
        if stack.final_norm is not None:
            self.direction = self.before_norm(stack.final_norm, f"{name}.final_norm", Part("final_norm"))
        for index in reversed(range(len(stack.layers))):
            self.walk_layer(stack.layers[index], f"{name}.layers.{index}", index)
        self.walk_embedding(stack.embedding, f"{name}.embedding")
        self.parts = dict(reversed(self.parts.items()))  # in the order of the forward pass

    def walk_layer(self, layer: nn.Module, name: str, index: int) -> None:
        if hasattr(layer, CONVOLUTION):  # out = norm(x + convolution), DeBERTa-v2's first layer
            norm = Part("convolution_norm", index)
            self.direction = self.before_norm(layer.convolution_norm, f"{name}.convolution_norm", norm)
            self.parts[Part(CONVOLUTION, index)] = self.product(f"{name}.{CONVOLUTION}", self.direction)
        for kind in reversed(SUBLAYERS):
            if (sublayer := getattr(layer, kind, None)) is None:
                continue
            if not layer.pre_norm:  # out = norm(x + sublayer(x)): everything before goes through this norm, too
                norm = Part(f"{kind}_norm", index)
                self.direction = self.before_norm(getattr(layer, norm.kind), f"{name}.{norm.kind}", norm)
            written = self.direction
            if hasattr(layer, f"{kind}_output_norm"):  # out = x + norm(sublayer(norm(x)))
                norm = Part(f"{kind}_output_norm", index)
                written = self.before_norm(getattr(layer, norm.kind), f"{name}.{norm.kind}", norm)
            if kind == "feed_forward":
                self.parts[Part(kind, index)] = self.product(f"{name}.{kind}.output", written)
            else:
                self.walk_heads(sublayer, f"{name}.{kind}", written, Part(kind, index))

    def walk_heads(self, attention: nn.Module, name: str, written: np.ndarray, part: Part) -> None:
        """Concat(head_1, …) W_O + b_O is a sum over the heads: each has its own columns of W_O."""
        projection = attention.output_projection
        if projection.bias is not None:
            self.parts[part._replace(kind=f"{part.kind}_bias")] = float((written @ array(projection.bias)).sum())
        read = (written @ array(projection.weight)).reshape(len(self.rows), attention.n_heads, -1)
        self.readings[name] = read  # [row, head, channel]
        per_head = self.added(name, read)
        for head in reversed(range(attention.n_heads)):
            self.parts[part._replace(head=head)] = float(per_head[head])

    def added(self, name: str, read: np.ndarray) -> np.ndarray:
        """What each head's context adds along its reading, over the rows: [head]."""
        context = self.values(f"{name}.context")[:, self.rows]  # [head, row, channel]
        return np.einsum("hrc,rhc->h", context, read)

    def walk_embedding(self, embedding: nn.Module, name: str) -> None:
        """x = norm((token + segment + position) W), of which a model has what it has."""
        if getattr(embedding, "norm", None) is not None:
            self.direction = self.before_norm(embedding.norm, f"{name}.norm", Part("embedding_norm"))
        if getattr(embedding, "projection", None) is not None:
            self.direction = self.direction @ array(embedding.projection.weight)
        if embedding.position_encoding is not None:
            self.parts[Part("position")] = self.product(f"{name}.position", self.direction)
        if getattr(embedding, "segment", None) is not None:
            self.parts[Part("segment")] = float((self.direction @ array(embedding.segment)).sum())
        self.parts[Part("token")] = self.product(f"{name}.token", self.direction)

    def before_norm(self, norm: nn.Module, name: str, part: Part) -> np.ndarray:
        """The direction before a norm; its β is a part of its own."""
        if (bias := getattr(norm, "bias", None)) is not None:
            self.parts[part] = float((self.direction @ array(bias)).sum())
        return before_norm(norm, name, self.values, self.rows, self.direction)

    def product(self, name: str, direction: np.ndarray) -> float:
        """Σ over the rows of what was written there, along the direction."""
        return float((self.values(name)[self.rows] * direction).sum())


def before_norm(norm: nn.Module, name: str, values: Values, rows: list[int], direction: np.ndarray) -> np.ndarray:
    """The direction [row, model] before a norm whose σ is held fixed.

    ⟨d, γ (x − μ)/σ⟩ = ⟨(γd − mean(γd))/σ, x⟩, for taking the mean away is symmetric. RMSNorm takes none away.
    """
    scaled = direction * array(norm.weight)
    if isinstance(norm, RMSNorm):
        mean_square = values(f"{name}.mean_square")[rows].astype(np.float64)
        return scaled / np.sqrt(mean_square + norm.epsilon)[:, None]
    return (scaled - scaled.mean(axis=-1, keepdims=True)) / values(f"{name}.std")[rows].astype(np.float64)[:, None]
