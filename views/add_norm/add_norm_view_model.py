"""Content of the Add & Norm page for one token: its vector in one norm, and the residual stream.

Everything that the page draws is computed here, without Streamlit. A notebook builds the same object:

>>> import transformer
>>> from views.add_norm.add_norm_view_model import add_norm_view_model, norms_by_place
>>> checkpoint = transformer.load("checkpoints/en-fr")
>>> trace = transformer.trace(checkpoint, "The cat sat on the mat.")
>>> norms = norms_by_place(trace, stack="encoder", layer=1)
>>> list(norms)
['self_attention_norm', 'feed_forward_norm', 'final_norm']
>>> view_model = add_norm_view_model(trace, norms["feed_forward_norm"], stack="encoder", layer=1, token=2)
>>> view_model.kind, view_model.order, [half.kind for half in view_model.halves]
('LayerNorm', 'pre', ['norm', 'add'])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer import Trace
from transformer.guests.described_parts import not_exposed
from transformer.layers.norms import (
    Half,
    NormStatistics,
    NormSteps,
    add_and_norm,
    norm_kind,
    norm_names,
    norm_parameters,
    norm_statistics,
    norm_steps,
)
from transformer.layers.residual_stream import Addition, additions, contributions, stream_lengths
from views.view_models import TokenViewModel

_ALONE = ("final_norm", "embedding_norm", "vocabulary_projection_norm")


@dataclass(frozen=True)
class AddNormViewModel(TokenViewModel):
    """One norm of one layer, for one token in focus.

    Attributes:
        norm: The name of the norm's module.
        layer: The layer in focus.
    """

    norm: str
    layer: int

    @property
    def place(self) -> str:
        """The position of the norm, one of the keys of ``norms_by_place``."""
        return place_of(self.norm)

    @property
    def kind(self) -> str:
        """The kind of the norm, "LayerNorm" or "RMSNorm"."""
        return norm_kind(self.checkpoint, self.norm)

    @property
    def is_rms(self) -> bool:
        """Whether the norm subtracts no mean and adds no β."""
        return self.kind == "RMSNorm"

    @property
    def order(self) -> str:
        """Whether this model's norms are before ("pre") or after ("post") the residual additions."""
        return self.checkpoint.config.norm

    @property
    def block(self) -> str:
        """How a layer combines its sub-layers: "sequential", "parallel" or "sandwich"."""
        return getattr(self.checkpoint.config, "block", "sequential")

    @property
    def formula(self) -> str:
        """The formula that gives the position of the norm: "pre", "post", "parallel", "final" and so on."""
        if self.place in _ALONE:
            return self.place.removesuffix("_norm")
        return self.order if self.block == "sequential" else self.block

    @property
    def shape(self) -> tuple[int, int]:
        """How many tokens pass through the norm, and how many dimensions each has."""
        return self.trace[f"{self.norm}.input"].shape

    @cached_property
    def halves(self) -> tuple[Half, ...]:
        """The addition and the norm with the vectors of the token in focus, in the order of computation."""
        return add_and_norm(self.trace, self.stack, self.layer, self.norm, self.token)

    @cached_property
    def vectors(self) -> tuple[tuple[str, str, np.ndarray], ...]:
        """The vectors of the first figure in the order of computation: name, sub-layer, [model] each.

        The normalised copy is shown before γ and β. A vector shared by both halves is listed once, and the update is
        normalised if a norm follows the sub-layer.
        """
        found: dict[str, tuple[str, str, np.ndarray]] = {}
        for half in self.halves:
            after_sublayer = "written" in half.vectors
            for name, vector in half.vectors.items():
                if name != "scaled" and not (after_sublayer and name == "normalized"):
                    found.setdefault(name, (name, half.sublayer, vector))
        return tuple(found.values())

    @property
    def claim(self) -> str:
        """The order of the steps, in one word: "pre", "post", "sandwich", or "alone" where nothing is added."""
        if len(self.halves) == 3:
            return "sandwich"
        return self.order if any(half.kind == "add" for half in self.halves) else "alone"

    @cached_property
    def mean_and_spread(self) -> tuple[float, float, float]:
        """The mean and spread of the vector that is normalised, and its spread afterwards, before γ and β.

        The spread is the standard deviation, or the root mean square of an RMSNorm, which is then 1.
        """
        norm = next(half for half in self.halves if half.kind == "norm")
        x = norm.vectors.get("x")
        if x is None:
            x = next((half.vectors["sum"] for half in self.halves if half.kind == "add"), None)
        exact = x.astype(np.float64)
        spread = np.sqrt(np.square(exact).mean()) if self.is_rms else exact.std()
        after = 1.0 if self.is_rms else norm.vectors["normalized"].std()
        return float(exact.mean()), float(spread), float(after)

    def statistics(self, after: str) -> NormStatistics:
        """Return mean and spread of every token before the norm and ``after`` it ("normalized" or "output")."""
        return norm_statistics(self.trace, self.norm, after=after)

    @cached_property
    def steps(self) -> NormSteps:
        """The arithmetic of the norm for the token in focus."""
        return norm_steps(self.trace, self.norm, self.token)

    @cached_property
    def parameters(self) -> tuple[np.ndarray, np.ndarray | None, float]:
        """γ and β, [model] each, and ε; an RMSNorm has no β."""
        return norm_parameters(self.checkpoint, self.norm)

    @cached_property
    def additions(self) -> tuple[Addition, ...]:
        """In + update = out for every sub-layer of the stack, with the lengths of the token in focus."""
        return additions(self.trace, self.stack, self.token, norm=self.order)

    @cached_property
    def stream_lengths(self) -> tuple[tuple[str, ...], np.ndarray]:
        """The steps of the stack, and the length of every token's vector after each: [step, token]."""
        return stream_lengths(self.trace, self.stack)

    @cached_property
    def contributions(self) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        """The sub-layers, with the relative size and cosine of each update: [sub-layer, token] each."""
        return contributions(self.trace, self.stack)


def place_of(name: str) -> str:
    """Return the kind of position of a norm: "self_attention_norm", "final_norm" and so on."""
    *_, parent, last = name.split(".")
    return f"{parent}_norm" if last == "norm" else last


def norms_by_place(trace: Trace, *, stack: str, layer: int) -> dict[str, str]:
    """Return the norms of a layer and its stack by position, in the order of the forward pass.

    Raises:
        NotExposedError: If none was found in a model that is run by its own code.
    """
    layer = min(layer, trace.n_layers(stack) - 1)
    if not (found := {place_of(name): name for name in norm_names(trace, stack, layer)}):
        raise not_exposed("the steps of its norms")
    return found


def add_norm_view_model(trace: Trace, norm: str, *, stack: str, layer: int = 0, token: int = 0) -> AddNormViewModel:
    """Build the view model of one norm.

    Args:
        trace: The recorded run.
        norm: The name of the norm, one of ``norms_by_place``.
        stack: "encoder" or "decoder".
        layer, token: What is in focus; numbers that are too large for this stack mean its last one.
    """
    layer, token = min(layer, trace.n_layers(stack) - 1), min(token, len(trace.tokens(stack)) - 1)
    return AddNormViewModel(trace, stack, token, norm=norm, layer=layer)
