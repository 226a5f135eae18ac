"""The data of the Feed-forward page for one token in one layer: units, values, promoted words.

Everything that the page draws is computed here, without Streamlit. A notebook builds the same object:

>>> import transformer
>>> from views.feed_forward.feed_forward_view_model import feed_forward_view_model
>>> checkpoint = transformer.load("checkpoints/bert-en")
>>> trace = transformer.trace(checkpoint, "The cat ___ on the mat.")
>>> view_model = feed_forward_view_model(trace, stack="encoder", layer=2, token=4)
>>> view_model.n_units, len(view_model.strongest), view_model.is_gated
(1024, 12, False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer import Trace
from transformer.layers.feed_forward_units import (
    UnitWords,
    most_active_units,
    norms_on_the_way,
    output_vectors,
    silent_share,
    strongest_units,
    unit_words,
    why_no_words,
)
from transformer.layers.norms import norm_kind
from views.view_models import TokenViewModel

STRONGEST = 12  # units
_WORDS = 40  # words read out per unit, so that enough remain without single bytes
_ACTIVE = 48  # units in the heatmap of all tokens


@dataclass(frozen=True)
class FeedForwardViewModel(TokenViewModel):
    """The units of one feed-forward layer, for one token in focus.

    Attributes:
        layer: The layer in focus.
    """

    layer: int

    @property
    def name(self) -> str:
        """The name of the layer's module, the prefix of its activations' names."""
        return f"{self.stack}.layers.{self.layer}.feed_forward"

    @property
    def activation(self) -> str:
        """The name of the activation function."""
        return self.checkpoint.config.activation

    @property
    def is_gated(self) -> bool:
        """Whether a third matrix gates the units (SwiGLU and similar)."""
        return f"{self.name}.gate" in self.trace

    @property
    def is_biased(self) -> bool:
        """Whether the layer's matrices have biases."""
        return self.checkpoint.model.get_submodule(f"{self.name}.output_projection").bias is not None

    @property
    def n_units(self) -> int:
        """How many units the layer has."""
        return self.trace[f"{self.name}.hidden"].shape[-1]

    @cached_property
    def hidden(self) -> np.ndarray:
        """The values after the activation function: [token, unit]."""
        return self.trace.values(f"{self.name}.hidden")

    @cached_property
    def pre_activation(self) -> np.ndarray:
        """The values before the activation function (of the gate, if there is one): [token, unit]."""
        return self.trace.values(f"{self.name}.pre_activation")

    @cached_property
    def n_active(self) -> int:
        """How many units of the token in focus have a pre-activation above 0."""
        return int((self.pre_activation[self.token] > 0).sum())

    @cached_property
    def strongest(self) -> tuple[int, ...]:
        """The units with the largest hidden values of the token in focus, strongest first."""
        return strongest_units(self.trace, self.stack, self.layer, self.token, count=STRONGEST)

    @cached_property
    def why_no_words(self) -> str | None:
        """Why the output of units cannot be read as words in this stack; ``None`` if it can."""
        return why_no_words(self.checkpoint, self.stack)

    @cached_property
    def words(self) -> tuple[UnitWords, ...]:
        """The words that each of the ``strongest`` units promotes and suppresses, if they can be read."""
        place = (self.stack, self.layer, self.token)
        return unit_words(self.trace, *place, units=self.strongest, words=_WORDS)

    @property
    def norm_on_the_way(self) -> str:
        """The kind of the last norm between this layer and the vocabulary: "LayerNorm" or "RMSNorm"."""
        return norm_kind(self.checkpoint, norms_on_the_way(self.trace, self.stack, self.layer)[-1])

    def added_lengths(self, units: Sequence[int]) -> list[float]:
        """Return ‖h · w‖ of units: the length of each unit's contribution for the token in focus."""
        hidden = self.hidden[self.token, list(units)]
        vectors = output_vectors(self.checkpoint, self.stack, self.layer, units)
        return np.linalg.norm(hidden[:, None] * vectors, axis=-1).tolist()

    @cached_property
    def most_active(self) -> np.ndarray:
        """The units with the largest hidden values anywhere in the sentence, in the order of their numbers."""
        return most_active_units(self.trace, self.stack, self.layer, count=_ACTIVE)

    def inactive_share(self) -> np.ndarray:
        """Return the share of units at or below 0, [layer, token], of every layer; large models run again."""
        return silent_share(self.trace, self.stack)

    @property
    def read(self) -> str:
        """The name of the activation that the layer reads: the normalised residual stream in a pre-norm model."""
        if self.checkpoint.config.norm != "post":
            return f"{self.name}_norm.output"
        layer = self.name.rsplit(".", 1)[0]
        sublayer = "cross" if f"{layer}.residual.after_cross_attention" in self.trace else "self"
        return f"{layer}.residual.after_{sublayer}_attention"


def feed_forward_view_model(trace: Trace, *, stack: str, layer: int = 0, token: int = 0) -> FeedForwardViewModel:
    """Build the view model of one token in one layer.

    Args:
        trace: The recorded run.
        stack: "encoder" or "decoder".
        layer, token: What is in focus; larger numbers than this stack has mean its last one.
    """
    layer, token = min(layer, trace.n_layers(stack) - 1), min(token, len(trace.tokens(stack)) - 1)
    return FeedForwardViewModel(trace, stack, token, layer=layer)
