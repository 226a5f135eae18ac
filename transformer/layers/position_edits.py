"""What if the tokens stood in another order, or in none? Edits of the positions, not of the words, for every scheme."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer.attention import MultiHeadAttention
from transformer.layers.positional import rotary_of
from transformer.models import Model
from transformer.probes import Edit


def without_positions(model: Model, stack: str) -> tuple[Edit, ...]:
    """The edits after which the tokens of ``stack`` come without any positions. Empty for a model that has none.

    Added encodings become 0; rotary queries and keys are turned back; the relative bias becomes 0. A decoder's causal
    mask stays: even without positions it lets a model tell early tokens from late ones (Haviv et al. 2022).
    """
    return _edits(model, stack, torch.zeros_like, lambda n: None, "no positions")


def reordered_positions(model: Model, stack: str, order: Sequence[int]) -> tuple[Edit, ...]:
    """The edits after which token i of ``stack`` gets the position ``order[i]``; tokens beyond ``order`` keep theirs.

    If nothing else depends on the order (an encoder), the model then reads the sentence as if its words stood in that
    order. Raises ``ValueError`` unless ``order`` holds each of 0 … n − 1 once.
    """
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"order is {list(order)}; it must hold each of 0 to {len(order) - 1} exactly once")

    def whole(n_positions: int) -> Tensor:
        if n_positions < len(order):
            raise ValueError(f"order has {len(order)} places, but the {stack} reads only {n_positions} tokens")
        return torch.tensor([*order, *range(len(order), n_positions)])

    def reorder(tensor: Tensor) -> Tensor:
        """[1, position, model], or the bias [1, head, query, key]."""
        places = whole(tensor.shape[-2])
        if tensor.ndim == 3:
            return tensor[:, places]
        return tensor[:, :, places][:, :, :, places]

    return _edits(model, stack, reorder, whole, "positions in another order")


def _edits(
    model: Model,
    stack: str,
    change: Callable[[Tensor], Tensor],
    places: Callable[[int], Tensor | None],
    description: str,
) -> tuple[Edit, ...]:
    scheme = model.config.positions
    if scheme in ("sinusoidal", "learned"):
        return (Edit(f"{stack}.embedding.position", change, description),)
    if scheme == "relative":
        return (Edit(f"{stack}.position_bias.values", change, description),)
    if scheme == "rotary":
        return tuple(
            Edit(f"{stack}.layers.{layer}.self_attention.{what}", _turned(module.self_attention, places), description)
            for layer, module in enumerate(getattr(model, stack).layers)
            for what in ("query", "key")
        )
    return ()


def _turned(attention: MultiHeadAttention, places: Callable[[int], Tensor | None]) -> Callable[[Tensor], Tensor]:
    """A function that takes the turn of rotary encoding off [batch, head, position, channel], and puts another on.

    Base, width and stretching are those of this layer; the factor of its attention stays (``rotary_scaling``).
    """
    rotary = rotary_of(attention)

    def turn(heads: Tensor) -> Tensor:
        n_positions = heads.shape[-2]
        angle = torch.arange(n_positions)[:, None] * rotary.frequencies(n_positions)  # [position, pair]
        plain = _rotate(heads, -angle)
        wanted = places(n_positions)
        return plain if wanted is None else _rotate(plain, angle[wanted])

    return turn


def _rotate(heads: Tensor, angle: Tensor) -> Tensor:
    """Turns the first channels, as many as there are angles for; the others stay."""
    cosine, sine = angle.cos().to(heads), angle.sin().to(heads)
    first, second, kept = heads.tensor_split((angle.shape[-1], 2 * angle.shape[-1]), dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine, kept), dim=-1)
