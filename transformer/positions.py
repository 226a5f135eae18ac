"""Five ways to encode the order of tokens, selected by ``config.positions``.

Sinusoidal and learned encodings are *added* to the token embedding. Rotary encoding *rotates* queries and keys in
self-attention. The relative bias is *added to the scores* of self-attention. "none" does nothing.
"""

import math

import torch
from torch import Tensor, nn

from transformer.config import ModelConfig
from transformer.probes import Probe


def sinusoidal_encoding(n_positions: int, d_model: int) -> Tensor:
    """Return PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model)).

    Vaswani et al. 2017, §3.5. Computed in float64.

    Returns:
        [position, model], float32.
    """
    position = torch.arange(n_positions, dtype=torch.float64)[:, None]
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000.0) / d_model))
    encoding = torch.zeros(n_positions, d_model, dtype=torch.float64)
    encoding[:, 0::2] = torch.sin(position * frequency)
    encoding[:, 1::2] = torch.cos(position * frequency)
    return encoding.float()


def alibi_slopes(n_heads: int) -> Tensor:
    """Return m_h, what each head's scores lose per token of distance in ALiBi: [head].

    m_h = 2^(−8 (h + 1) / n) for n = 1, 2, 4, 8 … heads (Press et al. 2022, §3). For other counts, the heads beyond the
    power of 2 below n take every second slope of twice that power, as in the code of the paper.
    """
    power = 2 ** int(math.log2(n_heads))
    slopes = 2.0 ** (-8.0 * torch.arange(1, power + 1, dtype=torch.float64) / power)
    between = 2.0 ** (-4.0 * torch.arange(1, 2 * power, 2, dtype=torch.float64) / power)
    return torch.cat((slopes, between[: n_heads - power]))


class SinusoidalEncoding(nn.Module):
    """Fixed table of sines and cosines, held in a buffer that checkpoints do not store."""

    table: Tensor  # [position, model]

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(config.max_length, config.d_model), persistent=False)

    def forward(self, n_positions: int, start: int = 0) -> Tensor:
        """Return the encodings of ``n_positions`` positions from ``start``, [1, position, model]."""
        return self.table[None, start : start + n_positions]  # [1, position, model]


class LearnedEncoding(nn.Module):
    """One trained vector per position (Gehring et al. 2017; BERT, GPT-2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(config.max_length, config.d_model))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, n_positions: int, start: int = 0) -> Tensor:
        """Return the encodings of ``n_positions`` positions from ``start``, [1, position, model]."""
        return self.table[None, start : start + n_positions]  # [1, position, model]


def additive_encoding(config: ModelConfig) -> nn.Module | None:
    """Create the encoding that is added to the token embedding, or ``None`` if nothing is added."""
    encodings = {"sinusoidal": SinusoidalEncoding, "learned": LearnedEncoding}
    return encodings[config.positions](config) if config.positions in encodings else None


class RotaryEncoding(nn.Module):
    """Rotary encoding: rotates channels (i, i + d_k/2) as a pair by the angle position · 10000^(−2i/d_k).

    The dot product of a rotated query and a rotated key depends on their positions only through the distance (Su et al.
    2021, RoFormer, §3.2). Pairing the two halves of a head follows GPT-NeoX and Llama.
    """

    cosine: Tensor  # [position, half a head]
    sine: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        half = config.d_head // 2
        frequency = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(config.max_length, dtype=torch.float64)[:, None] * frequency  # [position, half]
        self.register_buffer("cosine", angle.cos().float(), persistent=False)
        self.register_buffer("sine", angle.sin().float(), persistent=False)

    def forward(self, heads: Tensor, start: int = 0) -> Tensor:  # [batch, head, position, channel]
        """Rotate queries or keys, [batch, head, position, channel]; ``start`` is their first position."""
        stop = start + heads.shape[-2]
        cosine, sine = self.cosine[start:stop], self.sine[start:stop]
        first, second = heads.chunk(2, dim=-1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class RelativePositionBias(nn.Module):
    """Learned number per head and distance, added to every score (T5, Raffel et al. 2020, §2.1).

    Distances are sorted into buckets: half of them hold one distance each, the others grow logarithmically up to
    ``max_distance``.
    """

    def __init__(self, config: ModelConfig, *, causal: bool, n_buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__()
        self.causal, self.n_buckets, self.max_distance = causal, n_buckets, max_distance
        self.table = nn.Parameter(torch.zeros(config.n_heads, n_buckets))
        self.values = Probe("head", "query", "key")

    def bucket(self, distance: Tensor) -> Tensor:
        """Return the bucket of each ``distance`` = key − query, element by element."""
        n_buckets = self.n_buckets
        offset = torch.zeros_like(distance)
        if self.causal:
            distance = (-distance).clamp(min=0)
        else:
            n_buckets //= 2
            offset = (distance > 0).long() * n_buckets
            distance = distance.abs()
        n_exact = n_buckets // 2
        log_ratio = torch.log(distance.clamp(min=1) / n_exact) / math.log(self.max_distance / n_exact)
        wide = n_exact + (log_ratio * (n_buckets - n_exact)).long()
        return offset + torch.where(distance < n_exact, distance, wide.clamp(max=n_buckets - 1))

    def forward(self, n_queries: int, n_keys: int) -> Tensor:
        """Return the bias of the last ``n_queries`` of ``n_keys`` positions, [1, head, query, key]."""
        device = self.table.device
        queries = torch.arange(n_keys - n_queries, n_keys, device=device)
        distance = torch.arange(n_keys, device=device)[None, :] - queries[:, None]
        return self.values(self.table[:, self.bucket(distance)][None])  # [1, head, query, key]
