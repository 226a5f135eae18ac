"""Rotary positions of a guest: frequencies of its network, verified on the queries of a trial pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.guests.trial_pass import TOLERANCE, close


@dataclass(frozen=True)
class Rotary:
    """Which channels rotate and how fast: channel pair i by position · θ_i (Su et al. 2021, §3.2).

    Attributes:
        thetas: θ, in radians per position, [pair].
        base: Base of the frequencies base^(−2i/width), before any RoPE scaling.
        way: Name of the RoPE scaling in ``transformers`` ("yarn", "llama3", …); "default" if there is none.
        attention_factor: Factor of rotated queries and keys, which sharpens attention.
        neighbours: Whether pair i has the channels 2i and 2i + 1 instead of i and i + n/2.
        long_thetas: θ in texts of more than ``original_length`` tokens, where it differs (LongRoPE).
    """

    thetas: tuple[float, ...]
    base: float = 10_000.0
    way: str = "default"
    attention_factor: float = 1.0
    neighbours: bool = False
    long_thetas: tuple[float, ...] = ()
    original_length: int = 0

    @property
    def n_turned(self) -> int:
        """Number of channels of a head that rotate."""
        return 2 * len(self.thetas)

    def frequencies(self, n_positions: int, device: torch.device | None = None) -> Tensor:
        """Return radians per position for a text of ``n_positions`` tokens, [pair]."""
        is_long = self.long_thetas and n_positions > self.original_length
        return torch.tensor(self.long_thetas if is_long else self.thetas, device=device)

    def slowing(self, n_positions: int) -> Tensor:
        """Return how many times slower each pair rotates than base^(−2i/width), [pair]."""
        return plain_frequencies(self.n_turned, self.base) / self.frequencies(n_positions)

    @property
    def is_stretched(self) -> bool:
        """Whether some pairs rotate at another speed than base^(−2i/width)."""
        return bool(((self.slowing(1) - 1).abs() > 1e-4).any()) or bool(self.long_thetas)


def plain_frequencies(width: int, base: float = 10_000.0) -> Tensor:
    """Return θ_i = base^(−2i/width), [pair], computed in float32."""
    return 1.0 / (base ** (torch.arange(0, width, 2, dtype=torch.float) / width))


def plain_rotary(width: int, base: float = 10_000.0) -> Rotary:
    """Return the rotation of all ``width`` channels of a head, without RoPE scaling."""
    return Rotary(tuple(plain_frequencies(width, base).tolist()), base)


class RotaryPositions(nn.Module):
    """Rotation of queries or keys by the angles of ``rotary``; channels beyond its pairs are unchanged."""

    def __init__(self, rotary: Rotary) -> None:
        super().__init__()
        self.rotary = rotary

    def forward(  # heads: [batch, head, position, channel]
        self, heads: Tensor, start: int = 0, n_positions: int | None = None
    ) -> Tensor:
        """Rotate ``heads``; ``n_positions``: length of the text if it continues after them (LongRoPE)."""
        end = start + heads.shape[-2]
        position = torch.arange(start, end, dtype=torch.float, device=heads.device)
        angle = position[:, None] * self.rotary.frequencies(n_positions or end, heads.device)  # [position, pair]
        return rotate(heads, angle, self.rotary)


def rotate(heads: Tensor, angle: Tensor, rotary: Rotary, *, factor: float | None = None) -> Tensor:
    """Rotate [batch, head, position, channel] by ``angle``, [position, pair].

    Args:
        heads: Queries or keys.
        angle: The angle of each pair at each position.
        rotary: The rotation, which defines the channels that form a pair.
        factor: Factor of rotated channels; by default, that of ``rotary``.
    """
    factor = rotary.attention_factor if factor is None else factor
    cosine, sine = angle.cos().to(heads) * factor, angle.sin().to(heads) * factor
    turned, kept = heads[..., : 2 * angle.shape[-1]], heads[..., 2 * angle.shape[-1] :]
    first, second = (turned[..., 0::2], turned[..., 1::2]) if rotary.neighbours else turned.chunk(2, dim=-1)
    pairs = (first * cosine - second * sine, second * cosine + first * sine)
    return torch.cat((torch.stack(pairs, dim=-1).flatten(-2) if rotary.neighbours else torch.cat(pairs, -1), kept), -1)


def rotary_of_query(frequencies: Iterable[Rotary], unturned: Tensor, query: Tensor) -> Rotary | None:
    """Return the one of ``frequencies`` that turns ``unturned`` into ``query``, or ``None``.

    Args:
        frequencies: The rotations that the network has frequencies for.
        unturned: Queries before the rotation, [position, head · channel].
        query: Queries that the attention received, [batch, head, position, channel].
    """
    given = unturned.reshape(query.shape[2], query.shape[1], query.shape[3]).transpose(0, 1)[None]
    for found in frequencies:
        if found.n_turned > query.shape[-1]:
            continue
        for rotary in (found, replace(found, neighbours=True)):
            if close(query, RotaryPositions(rotary)(given), TOLERANCE):
                return rotary
    return None


def frequencies_of(network: nn.Module) -> Iterator[Rotary]:
    """Yield the rotations that a network has frequencies for, or a table of their sines and cosines."""
    for module in network.modules():
        for name, table in (*module.named_buffers(recurse=False), *module.named_parameters(recurse=False)):
            if name.endswith("inv_freq") and "original" not in name and table.ndim == 1:
                yield _of_buffer(module, name, table)
            elif table.ndim == 2 and len(table) > 1 and table.shape[1] % 2 == 0:
                sine, cosine = table[1].detach().float().chunk(2)
                if torch.allclose(sine.square() + cosine.square(), torch.ones(()), atol=1e-4):
                    yield _of_thetas(torch.atan2(sine, cosine))


def _of_buffer(module: Any, name: str, table: Tensor) -> Rotary:
    """Return the rotation of one buffer ``inv_freq``, or of one kind of layer (Gemma 3)."""
    front = name.removesuffix("inv_freq")
    config = getattr(module, "config", None)
    settings = getattr(config, "rope_parameters", None) or {}
    kind = front.removesuffix("_") or None
    settings = settings.get(kind, settings)
    found = _of_thetas(table)
    way = str(settings.get("rope_type", "default"))
    base, factor = settings.get("rope_theta"), getattr(module, f"{front}attention_scaling", 1.0)
    found = replace(found, way=way, attention_factor=float(factor), base=float(base or found.base))
    if way != "longrope":
        return found
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    length = int(settings["original_max_position_embeddings"])
    short, long = (
        tuple(ROPE_INIT_FUNCTIONS[way](config, None, seq_len=n, layer_type=kind)[0].tolist())
        for n in (length, length + 1)
    )
    return replace(found, thetas=short, long_thetas=long, original_length=length)


def _of_thetas(thetas: Tensor) -> Rotary:
    ratio = float((thetas[0] / thetas[1]).detach()) if len(thetas) > 1 else 1.0
    return Rotary(tuple(thetas.float().tolist()), ratio ** len(thetas) if ratio > 0 else 1.0)
