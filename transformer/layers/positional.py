"""Positional encodings as tables to look at: of a checkpoint, or of a scheme by its formula."""

from dataclasses import replace

import numpy as np
import torch

from transformer.attention import MultiHeadAttention
from transformer.config import ModelConfig
from transformer.models import Model
from transformer.positions import RelativePositionBias, sinusoidal_encoding
from transformer.variants.partial_rotary import Rotary


def added_encoding(model: Model, stack: str, n_positions: int) -> np.ndarray | None:
    """The first rows of what this model adds to its embeddings: [position, model]; ``None`` if it adds nothing."""
    encoding = getattr(model, stack).embedding.position_encoding
    if encoding is None:
        return None
    with torch.inference_mode():
        return encoding(min(n_positions, model.config.max_length))[0].cpu().numpy()


def sinusoidal_table(n_positions: int, d_model: int) -> np.ndarray:
    """The formula of Vaswani et al. 2017, §3.5: [position, model]."""
    return sinusoidal_encoding(n_positions, d_model).numpy()


def similarity(encoding: np.ndarray) -> np.ndarray:
    """Cosine of the encodings of every two positions: [position, position]."""
    lengths = np.linalg.norm(encoding, axis=1, keepdims=True)
    unit = np.divide(encoding, lengths, out=np.zeros_like(encoding), where=lengths > 0)
    return np.clip(unit @ unit.T, -1.0, 1.0)


def shifted(encoding: np.ndarray, distance: int) -> np.ndarray:
    """M · PE(p) for every p, with the linear map M that takes PE(p) to PE(p + distance): [position, model].

    M turns each pair (sin ωp, cos ωp) by distance · ω, whatever p is (Vaswani et al. 2017, §3.5). Sinusoidal encodings
    only; ``encoding`` has an even number of dimensions.
    """
    width = encoding.shape[1]
    angle = distance * 10_000.0 ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    sine, cosine = encoding[:, 0::2], encoding[:, 1::2]
    turned = np.empty(encoding.shape)
    turned[:, 0::2] = sine * np.cos(angle) + cosine * np.sin(angle)
    turned[:, 1::2] = cosine * np.cos(angle) - sine * np.sin(angle)
    return turned


def rotary_angles(config: ModelConfig, n_distances: int) -> np.ndarray:
    """By which angle rotary encoding turns each pair of channels, in radians: [distance, pair].

    angle = distance · 10000^(−2i/d_k) (Su et al. 2021, §3.2); pair i is (channel i, channel i + d_k/2). A test holds
    their sines and cosines equal to the tables of ``RotaryEncoding``.
    """
    half = config.d_head // 2
    frequency = 10_000.0 ** (-np.arange(half, dtype=np.float64) / half)
    return np.arange(n_distances, dtype=np.float64)[:, None] * frequency


def rotary_of(attention: MultiHeadAttention) -> Rotary:
    """Which channels one layer turns, and how fast: all of a head's by base 10,000 in the paper's models."""
    return getattr(attention.rotary, "rotary", None) or Rotary(attention.d_head)


def own_rotary_angles(attention: MultiHeadAttention, n_distances: int, *, n_positions: int) -> np.ndarray:
    """By which angle this layer turns each of its pairs of channels, in radians: [distance, pair].

    ``n_positions``: tokens of the text, which ``LongRope`` depends on.
    """
    return angles_of(rotary_of(attention), n_distances, n_positions=n_positions)


def angles_of(rotary: Rotary, n_distances: int, *, n_positions: int) -> np.ndarray:
    """The same of any turning: p·θ_i, [distance, pair]."""
    frequencies = rotary.frequencies(n_positions).double().numpy()
    return np.arange(n_distances, dtype=np.float64)[:, None] * frequencies


def rotary_table(rotary: Rotary, n_positions: int) -> np.ndarray:
    """By which cosine and sine each channel of a head is turned: [position, channel], the cosines cos p·θ_i of all
    pairs in the first half, their sines sin p·θ_i in the second (Su et al. 2021, §3.4.2)."""
    angles = angles_of(rotary, n_positions, n_positions=n_positions)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def stretched_pairs(rotary: Rotary, n_positions: int) -> tuple[int, int, int]:
    """Of a layer's pairs of channels in a text of ``n_positions`` tokens: how many turn as fast as without stretching,
    how many ``scaling.factor`` times as slowly, and how many in between."""
    plain = replace(rotary, scaling=None).frequencies(n_positions)
    slower = plain / rotary.frequencies(n_positions)
    kept = slower.isclose(torch.ones(()), rtol=1e-5)
    slowed = slower.isclose(torch.tensor(rotary.scaling.factor), rtol=1e-5) & ~kept
    return int(kept.sum()), int(slowed.sum()), int((~kept & ~slowed).sum())


def relative_bias(model: Model, stack: str, n_distance: int) -> tuple[np.ndarray, np.ndarray]:
    """The bias of every head at the distances −n … n (0 … −n where causal): [head, distance], and the distances."""
    bias: RelativePositionBias = getattr(model, stack).position_bias
    if bias is None:
        raise ValueError(f"this model's positions are {model.config.positions!r}; only 'relative' has a bias")
    distances = torch.arange(-n_distance, 1 if bias.causal else n_distance + 1)
    with torch.inference_mode():
        values = bias.table[:, bias.bucket(distances)]
    return values.cpu().numpy(), distances.numpy()


def relative_buckets(config: ModelConfig, n_distance: int, *, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """The formula of T5: which of its 32 buckets each distance falls into: [distance], and the distances."""
    distances = torch.arange(-n_distance, 1 if causal else n_distance + 1)
    return RelativePositionBias(config, causal=causal).bucket(distances).numpy(), distances.numpy()
