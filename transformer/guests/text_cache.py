"""The keys and values of a text that a guest has read, kept by the cache of ``transformers``."""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn

_NAMES = ("cache", "past_key_values")  # argument of a network that takes a cache; transformers renamed it in 5.24
_BY_LENGTH = ("dynamic", "longrope")  # rotary angles that depend on the length of the text, also at earlier positions


class TextCache:
    """Keys and values of the positions that a guest's decoder has read.

    Attributes:
        length: Number of these positions.
    """

    def __init__(self, network: Any, argument: str, *, two_stacks: bool) -> None:
        from transformers import DynamicCache, EncoderDecoderCache

        self.argument, self.length = argument, 0
        if two_stacks:  # a config counts the layers of the encoder, and T5's decoder may have more
            self.kept = EncoderDecoderCache(DynamicCache(), DynamicCache())
        else:
            self.kept = DynamicCache(config=network.config)

    def given(self) -> dict[str, Any]:
        """Return the arguments with which a network reads only new positions and adds them to the cache."""
        return {self.argument: self.kept, "use_cache": True}

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order."""
        if self.length:
            self.kept.reorder_cache(rows)


def cache_argument(network: nn.Module) -> str | None:
    """Return the argument by which a network takes a cache; ``None`` if it can use none."""
    if any(kind in str(getattr(module, "rope_type", "")) for module in network.modules() for kind in _BY_LENGTH):
        return None
    accepted = inspect.signature(type(network).forward).parameters
    return next((name for name in _NAMES if name in accepted), None)
