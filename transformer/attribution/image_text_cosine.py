"""The cosine of an image and a text in CLIP or SigLIP, split over patches and words.

The vector of each tower is P LN(x), where x is the last residual stream at one position: the class token of an image,
the end token of a text. x is a sum: what the first layer reads there, what attention writes there in each layer from
each position, and what the feed-forward layers write there. With the mean and the standard deviation of x as measured,
P LN is linear, so that every term has its share of the cosine, and the shares add up to it exactly (Gandelsman et al.
2024). They are direct contributions: a patch may also act through other positions, and σ would be another without it.

SigLIP (Zhai et al. 2023) reads a text at its last position, after padding it to full length. An image's vector is that
of a pooling head: a learned query attends to the last vectors of all patches, and a feed-forward layer follows. The
share of a patch is what the query reads from its last vector.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.files.checkpoints import Checkpoint
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace


@dataclass(frozen=True, eq=False)
class TowerShares:
    """Shares of one tower in the cosine.

    Attributes:
        trace: The run of this tower.
        row: Position whose residual stream becomes the vector; None for a pooling head, which counts as one layer.
        positions: [layer, position]: through attention, from each position.
        start: What the first layer reads at ``row``.
        feed_forward: [layer].
        bias: Biases of attention's output, of the last norm and of the projection.
        n_pads: Number of padding tokens at the end.
    """

    trace: Trace
    row: int | None
    positions: np.ndarray
    start: float
    feed_forward: np.ndarray
    bias: float
    n_pads: int = 0

    @property
    def by_position(self) -> np.ndarray:
        """[position]: the sum over all layers."""
        return self.positions.sum(axis=0)

    @property
    def total(self) -> float:
        """The cosine, as the sum of all shares."""
        return float(self.positions.sum() + self.start + self.feed_forward.sum() + self.bias)


@dataclass(frozen=True, eq=False)
class ImageTextCosine:
    """The cosine of an image and a text.

    Attributes:
        cosine: Of the vectors that the towers compute.
    """

    cosine: float
    image: TowerShares
    text: TowerShares


def image_text_cosine(images: Checkpoint, texts: Checkpoint, image: str, text: str) -> ImageTextCosine:
    """Compare an image with a text, and split the cosine over patches and over words.

    Args:
        images: The image tower, as ``transformer.load`` opens the checkpoint.
        texts: Its text tower (``open_text_tower``).
        image: The image, as ``image_text`` returns it.
        text: The text.

    Raises:
        InputError: If the checkpoint cannot take one of them.
    """
    of_image, of_text = trace(images, image), trace(texts, text)
    n_pads = 0
    if texts.config.pads_texts:
        n_pads = texts.config.max_length - len(of_text.source)
        of_text = trace(texts, text, source_pads=n_pads)
    row = len(of_text.source) - 1 if texts.config.pads_texts else _end_of(of_text)
    pooled = _pooled(of_image) if hasattr(images.model.network, "head") else None
    one = _vector(of_image, 0) if pooled is None else pooled.vector
    other = _vector(of_text, row)
    length, one, other = one.norm(), one / one.norm(), other / other.norm()
    shares = _shares(of_image, 0, other) if pooled is None else pooled.shares(of_image, other / length)
    return ImageTextCosine(float(one @ other), shares, replace(_shares(of_text, row, one), n_pads=n_pads))


def _end_of(run: Trace) -> int:
    """Return the position that a text's vector is read from, as in the code of CLIP."""
    ids, end = list(run.source.ids), run.checkpoint.model.network.config.eos_token_id
    return ids.index(max(ids)) if end == 2 or end not in ids else ids.index(end)


@dataclass(frozen=True)
class _Pooled:
    """Terms of a pooling head's vector: read from each position, [position, model], bias, feed-forward."""

    read: Tensor
    bias: Tensor
    fed: Tensor

    @property
    def vector(self) -> Tensor:
        return self.read.sum(dim=0) + self.bias + self.fed

    def shares(self, run: Trace, along: Tensor) -> TowerShares:
        """Return the shares along the other tower's unit vector, divided by the length of this one."""
        positions, fed = (self.read @ along)[None], (self.fed @ along)[None]
        return TowerShares(run, None, positions.numpy(), 0.0, fed.numpy(), float(self.bias @ along))


def _pooled(run: Trace) -> _Pooled:
    """Run the pooling head over the last vectors, in float64."""
    network = run.checkpoint.model.network
    head = copy.deepcopy(network.head).double()
    hidden = _normed(network.post_layernorm, _stream(run))  # [position, model]
    attention = head.attention
    projected = [
        x @ weight.T + bias
        for x, weight, bias in zip(
            (head.probe[0], hidden, hidden),
            attention.in_proj_weight.chunk(3),
            attention.in_proj_bias.chunk(3),
            strict=True,
        )
    ]
    query, key, value = (x.unflatten(-1, (attention.num_heads, -1)).transpose(0, 1) for x in projected)
    scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5  # [head, 1, position]
    weights = torch.softmax(scores, dim=-1)
    mixed = (weights.transpose(1, 2) * value).transpose(0, 1).flatten(1)  # [position, head · channel]
    read = mixed @ attention.out_proj.weight.T
    attended = read.sum(dim=0) + attention.out_proj.bias
    return _Pooled(read.detach(), attention.out_proj.bias.detach(), head.mlp(head.layernorm(attended)).detach())


def _head(run: Trace) -> tuple[Any, Tensor, Tensor | float]:
    """Return the last norm of a tower, its projection [vector, model], and the bias of that."""
    network = run.checkpoint.model.network
    if run.checkpoint.config.reads_images:
        return network.vision_model.post_layernorm, network.visual_projection.weight.double(), 0.0
    if run.checkpoint.config.pads_texts:
        return network.final_layer_norm, network.head.weight.double(), network.head.bias.double()
    return network.text_model.final_layer_norm, network.text_projection.weight.double(), 0.0


def _stream(run: Trace) -> Tensor:
    """Return the last residual stream, [position, model]."""
    last = run.n_layers("encoder") - 1
    return torch.tensor(run.values(f"encoder.layers.{last}.residual.out")).double()


def _normed(norm: Any, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], norm.weight.double(), norm.bias.double(), norm.eps)


def _vector(run: Trace, row: int) -> Tensor:
    norm, projection, bias = _head(run)
    return projection @ _normed(norm, _stream(run)[row]) + bias


def _shares(run: Trace, row: int, other: Tensor) -> TowerShares:
    """Return the shares of a tower in the cosine with ``other``, the unit vector of the other tower."""
    norm, projection, last_bias = _head(run)
    x = _stream(run)[row]
    sigma = torch.sqrt((x - x.mean()).square().mean() + norm.eps)
    length = _vector(run, row).norm()
    reads = (projection.T @ other) / length  # [model]: what one unit of the normalised stream adds to the cosine
    along = reads * norm.weight.double() / sigma
    along = along - along.mean()  # the norm subtracts each term's own mean

    def share(values: np.ndarray | Tensor) -> Tensor:
        return torch.tensor(np.asarray(values)).double() @ along

    n_layers = run.n_layers("encoder")
    bias = float(reads @ norm.bias.double() + (other * last_bias).sum() / length)
    positions, fed = [], []
    for layer in range(n_layers):
        prefix = f"encoder.layers.{layer}"
        output = run.checkpoint.model.get_submodule(f"{prefix}.self_attention.output_projection")
        weights = torch.tensor(run.values(f"{prefix}.self_attention.weights")[:, row]).double()  # [head, key]
        values = torch.tensor(run.values(f"{prefix}.self_attention.value")).double()  # [head, key, channel]
        mixed = (weights[..., None] * values).transpose(0, 1).flatten(1)  # [key, head · channel]
        positions.append((mixed @ output.weight.double().T) @ along)
        if output.bias is not None:
            bias += float(output.bias.double() @ along)
        fed.append(float(share(run.values(f"{prefix}.feed_forward.output")[row])))
    start = float(share(run.values("encoder.layers.0.residual.in")[row]))
    return TowerShares(run, row, torch.stack(positions).detach().numpy(), start, np.array(fed), bias)
