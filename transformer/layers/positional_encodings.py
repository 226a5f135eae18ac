"""Positional encodings: their tables, edits of the positions, and their effect on attention scores.

A table is read from a checkpoint or computed by the formula of a scheme. An edit reorders or removes positions under
any scheme without changing the words. The scores show how attention changes as two tokens move apart.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from transformer.attention import MultiHeadAttention
from transformer.files.checkpoints import Checkpoint
from transformer.guests.described_parts import not_exposed
from transformer.guests.rotary_positions import Rotary, plain_rotary, rotate
from transformer.models import Model
from transformer.positions import RelativePositionBias, alibi_slopes, sinusoidal_encoding
from transformer.probes import Edit, record


def added_encoding(model: Model, stack: str, n_positions: int) -> np.ndarray | None:
    """Return the first rows of what the model adds to its embeddings, [position, model], or ``None``."""
    encoding = getattr(model, stack).embedding.position_encoding
    if encoding is None:
        return None
    with torch.inference_mode():
        return encoding(min(n_positions, model.config.max_length))[0].cpu().numpy()


def sinusoidal_table(n_positions: int, d_model: int) -> np.ndarray:
    """Return the sinusoidal table of Vaswani et al. 2017, §3.5: [position, model]."""
    return sinusoidal_encoding(n_positions, d_model).numpy()


def similarity(encoding: np.ndarray) -> np.ndarray:
    """Return the cosine between the encodings of every two positions: [position, position]."""
    lengths = np.linalg.norm(encoding, axis=1, keepdims=True)
    unit = np.divide(encoding, lengths, out=np.zeros_like(encoding), where=lengths > 0)
    return np.clip(unit @ unit.T, -1.0, 1.0)


def shift_deviation(encoding: np.ndarray, distance: int) -> float:
    """Return the largest difference between M · PE(p) and PE(p + distance), for one linear map M.

    M rotates each pair (sin ωp, cos ωp) by distance · ω (Vaswani et al. 2017, §3.5), so that of a sinusoidal encoding,
    [position, model], only rounding remains.
    """
    count, width = len(encoding) - abs(distance), encoding.shape[1]
    kept, moved = encoding[max(0, -distance) :][:count], encoding[max(0, distance) :][:count]
    angle = distance * 10_000.0 ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    sine, cosine = kept[:, 0::2], kept[:, 1::2]
    turned = np.empty(kept.shape)
    turned[:, 0::2] = sine * np.cos(angle) + cosine * np.sin(angle)
    turned[:, 1::2] = cosine * np.cos(angle) - sine * np.sin(angle)
    return float(np.abs(turned - moved).max())


def cosines_around(encoding: np.ndarray, position: int, distance: int) -> tuple[float, float]:
    """Return the cosines of a position with those ``distance`` before it and after it."""
    cosines = similarity(encoding[[position - distance, position, position + distance]])[1]
    return float(cosines[0]), float(cosines[2])


def rotary_of(attention: MultiHeadAttention) -> Rotary:
    """Return which channels a layer rotates and how fast; in our own models all, with base 10,000."""
    return getattr(attention.rotary, "rotary", None) or plain_rotary(attention.d_head)


def rotary_layers(model: Model, stack: str, layer: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the layers with the angles of ``layer``, with other angles, and without rotation."""
    attentions = [each.self_attention for each in getattr(model, stack).layers]
    own = rotary_of(attentions[layer])
    same = tuple(place for place, each in enumerate(attentions) if rotary_of(each) == own)
    others = tuple(place for place in range(len(attentions)) if place not in same)
    return same, others, tuple(place for place, each in enumerate(attentions) if each.rotary is None)


def angles_of(rotary: Rotary, n_distances: int, *, n_positions: int) -> np.ndarray:
    """Return the angles p·θ_i of a rotation, in radians: [distance, pair].

    ``n_positions`` is the number of tokens in the text, on which the angles of LongRoPE depend.
    """
    frequencies = rotary.frequencies(n_positions).double().numpy()
    return np.arange(n_distances, dtype=np.float64)[:, None] * frequencies


def rotary_table(rotary: Rotary, n_positions: int) -> np.ndarray:
    """Return the cosines and sines by which a head's channels are rotated: [position, channel].

    The first half holds cos p·θ_i of all pairs, the second half sin p·θ_i (Su et al. 2021, §3.4.2).
    """
    angles = angles_of(rotary, n_positions, n_positions=n_positions)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def stretched_pairs(rotary: Rotary, n_positions: int) -> tuple[int, int, int]:
    """Return how many pairs of channels keep their speed, are slowed down most, and are slowed down less.

    The speeds are those in a text of ``n_positions`` tokens.
    """
    slower = rotary.slowing(n_positions)
    kept = slower.isclose(torch.ones(()), rtol=1e-4)
    slowed = slower.isclose(slower.max(), rtol=1e-4) & ~kept
    return int(kept.sum()), int(slowed.sum()), int((~kept & ~slowed).sum())


def relative_bias(model: Model, stack: str, n_distance: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bias of every head, [head, distance], and the distances −n to n (0 to −n if causal)."""
    bias: RelativePositionBias = getattr(model, stack).position_bias
    if bias is None:
        raise ValueError(f"this model's positions are {model.config.positions!r}; only 'relative' has a bias")
    distances = torch.arange(-n_distance, 1 if bias.causal else n_distance + 1)
    with torch.inference_mode():
        values = bias.table[:, bias.bucket(distances)]
    return values.cpu().numpy(), distances.numpy()


def without_positions(model: Model, stack: str) -> tuple[Edit, ...]:
    """Return the edits that remove all position information from ``stack``; empty if it has none.

    Added encodings become 0; rotary queries and keys are rotated back; the relative bias becomes 0. The causal mask of
    a decoder stays: even without positions it lets a model tell early tokens from late ones (Haviv et al. 2022).
    """
    return _edits(model, stack, torch.zeros_like, lambda n: None, "no positions")


def reordered_positions(model: Model, stack: str, order: Sequence[int]) -> tuple[Edit, ...]:
    """Return the edits that give token i of ``stack`` the position ``order[i]``.

    Tokens beyond ``order`` keep their positions. If nothing else depends on the order (in an encoder), the model then
    reads the sentence as if its words were in that order.

    Raises:
        ValueError: If ``order`` does not contain each of 0 to n − 1 exactly once.
    """
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"order is {list(order)}; it must hold each of 0 to {len(order) - 1} exactly once")

    def whole(n_positions: int) -> Tensor:
        if n_positions < len(order):
            raise ValueError(f"order has {len(order)} places, but the {stack} reads only {n_positions} tokens")
        return torch.tensor([*order, *range(len(order), n_positions)])

    def reorder(tensor: Tensor) -> Tensor:
        """Reorder [1, position, model], or the bias [1, head, query, key]."""
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
    scheme = model.config.positions_in(stack)
    if scheme == "unknown":
        raise not_exposed("how it encodes positions")
    if len(model.config.kinds_in(stack)) > 1:
        raise not_exposed("a way to change all of its positions, of which it has several kinds")
    if scheme in ("sinusoidal", "learned"):
        return (Edit(f"{stack}.embedding.position", change, description),)
    edited = {"relative": "position_bias.values", "rotary": "layers.0.self_attention.rotary"}.get(scheme, "")
    if edited and (why := model.not_exposed(f"{stack}.{edited}")) is not None:
        raise why
    if scheme == "relative":
        return (Edit(f"{stack}.position_bias.values", change, description),)
    if scheme == "alibi":
        n_layers = len(getattr(model, stack).layers)
        change_scores = _replace_alibi(model.config.heads_in(stack), places)
        return tuple(
            Edit(f"{stack}.layers.{layer}.self_attention.scores", change_scores, description)
            for layer in range(n_layers)
        )
    if scheme == "rotary":
        return tuple(
            Edit(
                f"{stack}.layers.{layer}.self_attention.{what}",
                _rerotate(module.self_attention, places),
                description,
            )
            for layer, module in enumerate(getattr(model, stack).layers)
            if module.self_attention.rotary is not None  # some layers of some models have no positions
            for what in ("query", "key")
        )
    return ()


def _replace_alibi(n_heads: int, places: Callable[[int], Tensor | None]) -> Callable[[Tensor], Tensor]:
    """Return a function that replaces ALiBi's bias in scores by that of other positions."""

    def bias(place: Tensor) -> Tensor:
        return -alibi_slopes(n_heads)[:, None, None] * (place[:, None] - place).abs()

    def replace_bias(scores: Tensor) -> Tensor:
        own = bias(torch.arange(scores.shape[-1]))
        wanted = places(scores.shape[-1])
        return scores + (-own if wanted is None else bias(wanted) - own).to(scores)

    return replace_bias


def _rerotate(attention: MultiHeadAttention, places: Callable[[int], Tensor | None]) -> Callable[[Tensor], Tensor]:
    """Return a function that replaces the rotation of [batch, head, position, channel] by another.

    The angles are those of this layer; its attention factor stays.
    """
    rotary = rotary_of(attention)

    def turn(heads: Tensor) -> Tensor:
        n_positions = heads.shape[-2]
        angle = torch.arange(n_positions)[:, None] * rotary.frequencies(n_positions)  # [position, pair]
        plain = rotate(heads, -angle, rotary, factor=1.0)
        wanted = places(n_positions)
        return plain if wanted is None else rotate(plain, angle[wanted], rotary, factor=1.0)

    return turn


N_TEXTS = 16


def measured_position_scores(
    checkpoint: Checkpoint, ids: Sequence[int], *, stack: str, n_positions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Measure what a model's positions add to the scores of its first layer.

    ``N_TEXTS`` texts are drawn from ``ids`` (always the same), so that many different pairs of tokens occur at each
    distance. The scores of layer 0 are computed with and without positions (``without_positions``), and their
    difference is averaged over all pairs at each distance, up to half of the positions. In layer 0 queries and keys
    come from the same tokens in both runs, so only the positions differ. In a decoder all distances are ≤ 0.

    Args:
        checkpoint: The model.
        ids: Token ids to draw from.
        stack: "encoder" or "decoder".
        n_positions: Number of tokens per text.

    Returns:
        The mean difference, [head, distance], and the distances key − query.

    Raises:
        ValueError: If the model lacks the stack or the length.
    """
    config = checkpoint.config
    if not (config.has_encoder if stack == "encoder" else config.has_decoder):
        raise ValueError(f"this model has no {stack}")
    if not 2 <= n_positions <= config.max_length or not ids:
        raise ValueError(f"{n_positions} positions of {len(ids)} tokens; this model reads 2 to {config.max_length}")
    device = checkpoint.model.device
    drawn = np.random.default_rng(0).choice(np.array(ids), size=(N_TEXTS, n_positions))
    filled = torch.tensor(drawn, device=device)
    inputs = [filled]
    if config.kind == "encoder-decoder":  # the other stack reads one token, which does not affect layer 0 of this one
        other = torch.full((N_TEXTS, 1), int(ids[0]), device=device)
        inputs = [filled, other] if stack == "encoder" else [other, filled]
    name, scores = f"{stack}.layers.0.self_attention.scores", []
    for edits in ((), without_positions(checkpoint.model, stack)):
        with torch.inference_mode(), record(edits) as recording:
            checkpoint.model(*inputs)
        scores.append(recording.tensors[name].double().mean(dim=0))
    added = (scores[0] - scores[1]).numpy(force=True)  # [head, query, key]
    farthest = n_positions // 2
    distances = np.arange(-farthest, 1 if stack == "decoder" else farthest + 1)
    means = [np.diagonal(added, int(distance), axis1=1, axis2=2).mean(axis=-1) for distance in distances]
    return np.stack(means, axis=1), distances
