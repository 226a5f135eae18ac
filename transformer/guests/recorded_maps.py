"""A file of attention maps as a model that has maps and tokens but computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from transformer.errors import NotExposedError
from transformer.families.family_config import FamilyConfig
from transformer.guests.attention_file import AttentionFile
from transformer.models import Model
from transformer.probes import Probe
from transformer.text.special_ids import SpecialIds
from transformer.text.tokenizer import Tokenizer
from transformer.text.tokens import TokenSequence

_COMPUTES = ("encoder", "decoder", "encode", "decode", "project", "classify", "classifier", "pooling")


@dataclass(frozen=True)
class MapsConfig(FamilyConfig):
    """The sizes of a file of attention maps; the fields about other layers mean nothing."""


def config_of_maps(content: AttentionFile) -> MapsConfig:
    """Return the kind of model, and its numbers of layers, heads and tokens."""
    layers = {(maps.stack, maps.kind): len(maps.weights) for maps in content.maps}
    heads = {maps.stack: len(maps.weights[0]) for maps in content.maps}
    both = len(content.sequences) == 2
    kind = "encoder-decoder" if both else "encoder-only" if content.source is not None else "decoder-only"
    n_heads, decoder_heads = heads.get("encoder") or heads["decoder"], heads.get("decoder", 0)
    return MapsConfig(
        kind=kind,
        family="attention file",
        vocabulary_size=_vocabulary_size(content),
        d_model=n_heads * (decoder_heads if both else 1),
        n_heads=n_heads,
        decoder_heads=decoder_heads if both and decoder_heads != n_heads else 0,
        head_width=1,
        d_ff=1,
        n_encoder_layers=layers.get(("encoder", "self"), 0),
        n_decoder_layers=layers.get(("decoder", "self"), 0),
        max_length=max(map(len, content.sequences)),
        positions="none",
        pooling="" if content.target is not None else "mean",
    )


def _vocabulary_size(content: AttentionFile) -> int:
    return 1 + max(max(sequence.ids) for sequence in content.sequences)


class RecordedMaps(Model):
    """The maps of a file under the names of our activations; computing anything else raises an error.

    Attributes:
        content: The file.
        recorded: Its weights and masks by the names of our activations; they cannot be written to.
        lacks: The error that says so.
    """

    own_code = False
    lacks = NotExposedError("A file of attention maps has nothing but weights and tokens: nothing can be computed.")

    def __init__(self, content: AttentionFile) -> None:
        super().__init__(config_of_maps(content))
        self.content = content
        self.n_bytes = content.n_bytes
        self.recorded: dict[str, np.ndarray] = {}
        for maps in content.maps:
            for layer, (weights, allowed) in enumerate(zip(maps.weights, maps.allowed, strict=True)):
                prefix = f"{maps.stack}.layers.{layer}.{maps.kind}_attention"
                self.recorded |= {f"{prefix}.allowed": allowed, f"{prefix}.weights": weights}
        for values in self.recorded.values():
            values.flags.writeable = False  # traces are shared between threads
        axes = ("head", "query", "key")
        self.probes = {name: Probe(*axes[-values.ndim :]) for name, values in self.recorded.items()}

    def __getattr__(self, name: str) -> Any:
        if name in _COMPUTES:
            raise self.lacks
        return super().__getattr__(name)

    def get_submodule(self, target: str) -> nn.Module:
        """Raise ``NotExposedError``: there are no modules."""
        raise self.lacks

    def forward(self, *_: object) -> torch.Tensor:
        """Raise ``NotExposedError``: nothing can be computed."""
        raise self.lacks

    def not_exposed(self, name: str) -> Exception | None:
        """Return the error that says why nothing is recorded at ``name``."""
        return self.lacks

    @property
    def device(self) -> torch.device:
        """The processor."""
        return torch.device("cpu")


class RecordedTokens(Tokenizer):
    """The tokens of a file, returned for any typed text, since the file has no other maps."""

    kind, alphabet = "", "byte-level"
    n_bytes = 0
    framing = None
    mask = None

    def __init__(self, content: AttentionFile) -> None:
        self._source, self._target = content.source, content.target
        self._sequences, self._size = content.sequences, _vocabulary_size(content)
        self.special = SpecialIds()

    @property
    def vocabulary_size(self) -> int:
        """Number of different tokens."""
        return self._size

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        """Return the ids of the recorded tokens, whatever the text is."""
        return list((self._source or self._target).ids)

    def encode_with_blanks(self, text: str) -> list[int]:
        """Return ``encode``."""
        return self.encode(text)

    def encode_target(self, text: str) -> list[int]:
        """Return the ids of the recorded tokens of the decoder, whatever the text is."""
        return list((self._target or self._source).ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the recorded text."""
        return (self._target or self._source).text

    def sequence(self, ids: Sequence[int], name: str = "source") -> TokenSequence:
        """Return the recorded tokens."""
        found = self._source if name == "source" else self._target
        return found or self._source or self._target

    def display(self, id: int) -> str:
        """Return how the first token with this id is shown."""
        return next((token.display for tokens in self._sequences for token in tokens if token.id == id), f"⟨{id}⟩")
