"""The heads of a model and their locations."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from transformer.config import ModelConfig


class Head(NamedTuple):
    """Location of one head in a model."""

    stack: str
    kind: str
    layer: int
    head: int


@dataclass(frozen=True)
class LocatedAtHead:
    """Base of results about one head, with the location of the head."""

    stack: str
    kind: str
    layer: int
    head: int

    @property
    def place(self) -> Head:
        """Location of the head."""
        return Head(self.stack, self.kind, self.layer, self.head)


def attention_layers(config: ModelConfig) -> Iterator[tuple[str, str, int]]:
    """Yield (stack, kind, layer) of every attention layer, in the order in which heads are listed."""
    for layer in range(config.n_encoder_layers):
        yield "encoder", "self", layer
    for kind in ("self", "cross") if config.has_encoder else ("self",):
        for layer in range(config.n_decoder_layers):
            yield "decoder", kind, layer


def all_heads(config: ModelConfig) -> tuple[Head, ...]:
    """Return the locations of all heads of a model, layer by layer as in ``attention_layers``."""
    return tuple(Head(*layer, head) for layer in attention_layers(config) for head in range(config.heads_in(layer[0])))
