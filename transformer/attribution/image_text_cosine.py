"""The cosine of an image and a text in CLIP, split over patches and words.

The vector of each tower is P LN(x), where x is the last residual stream at one position: the class token of an image,
the end token of a text. x is a sum: what the first layer reads there, what attention writes there in each layer from
each position, and what the feed-forward layers write there. With the mean and the standard deviation of x as measured,
P LN is linear, so that every term has its share of the cosine, and the shares add up to it exactly (Gandelsman et al.
2024). They are direct contributions: a patch may also act through other positions, and σ would be another without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace


@dataclass(frozen=True, eq=False)
class TowerShares:
    """Shares of one tower in the cosine.

    Attributes:
        trace: The run of this tower.
        row: Position whose residual stream becomes the vector.
        positions: [layer, position]: through attention, from each position.
        start: What the first layer reads at ``row``.
        feed_forward: [layer].
        bias: Biases of attention's output, of the last norm and of the projection.
    """

    trace: Trace
    row: int
    positions: np.ndarray
    start: float
    feed_forward: np.ndarray
    bias: float

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
    one, other = _vector(of_image, 0), _vector(of_text, row := _end_of(of_text))
    one, other = one / one.norm(), other / other.norm()
    return ImageTextCosine(float(one @ other), _shares(of_image, 0, other), _shares(of_text, row, one))


def _end_of(run: Trace) -> int:
    """Return the position that a text's vector is read from, as in the code of CLIP."""
    ids, end = list(run.source.ids), run.checkpoint.model.network.config.eos_token_id
    return ids.index(max(ids)) if end == 2 or end not in ids else ids.index(end)


def _head(run: Trace) -> tuple[Any, Tensor]:
    """Return the last norm of a tower and its projection [vector, model]."""
    network = run.checkpoint.model.network
    if run.checkpoint.config.reads_images:
        return network.vision_model.post_layernorm, network.visual_projection.weight.double()
    return network.text_model.final_layer_norm, network.text_projection.weight.double()


def _stream(run: Trace, row: int) -> Tensor:
    last = run.n_layers("encoder") - 1
    return torch.tensor(run.values(f"encoder.layers.{last}.residual.out")[row]).double()


def _vector(run: Trace, row: int) -> Tensor:
    norm, projection = _head(run)
    x = _stream(run, row)
    centred = x - x.mean()
    normal = centred / torch.sqrt(centred.square().mean() + norm.eps)
    return projection @ (normal * norm.weight.double() + norm.bias.double())


def _shares(run: Trace, row: int, other: Tensor) -> TowerShares:
    """Return the shares of a tower in the cosine with ``other``, the unit vector of the other tower."""
    norm, projection = _head(run)
    x = _stream(run, row)
    sigma = torch.sqrt((x - x.mean()).square().mean() + norm.eps)
    length = _vector(run, row).norm()
    reads = (projection.T @ other) / length  # [model]: what one unit of the normalised stream adds to the cosine
    along = reads * norm.weight.double() / sigma
    along = along - along.mean()  # the norm subtracts each term's own mean

    def share(values: np.ndarray | Tensor) -> Tensor:
        return torch.tensor(np.asarray(values)).double() @ along

    n_layers = run.n_layers("encoder")
    bias = float(reads @ norm.bias.double())
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
