"""A trace: everything recorded in one forward pass of one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from transformer.errors import NotFiniteError
from transformer.runs.activation import Activation
from transformer.runs.attention_view import KINDS, AttentionView, scores_of
from transformer.runs.not_finite import NotFinite, first_not_finite, not_finite_error
from transformer.runs.run import Run
from transformer.text.message import did_you_mean
from transformer.text.tokens import TokenSequence

if TYPE_CHECKING:
    from transformer.files.checkpoints import Checkpoint

STACKS = ("encoder", "decoder")


@dataclass(frozen=True)
class Trace:
    """All activations of one recorded pass, with its tokens.

    Attributes:
        source: Tokens that the encoder read; ``None`` for a decoder-only model.
        target: Tokens that the decoder read, beginning with ``<s>``; ``None`` for an encoder-only model.
        prediction: For each row of ``target`` the token that follows it: row t of the logits predicts the token after
            ``target[t]``, and ``prediction[t]`` is the token that came next. ``None`` without an output.
        text: The output as plain text (translation, continuation, class); see ``forced``.
        forced: ``True`` if the target was given (teacher forcing) instead of decoded.
        notes: Sentences for the reader about changes to the input (cut, padded …).
        run: What the trace was made from; ``None`` for a trace read from a file, which has no model.
    """

    activations: Mapping[str, Activation]
    source: TokenSequence | None
    target: TokenSequence | None
    prediction: TokenSequence | None
    text: str
    forced: bool = False
    notes: tuple[str, ...] = field(default=())
    run: Run | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        read = [f"{len(self.tokens(stack))} {stack} tokens" for stack in self.stacks]
        return f"Trace({', '.join([*read, f'{len(self.activations)} activations', f'answer {self.text!r}'])})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the tokens, the output, and how to see more."""
        rows = [(f"{stack} read", " ".join(self.tokens(stack).displays)) for stack in self.stacks]
        rows.append(("given" if self.forced else "answer", self.text))
        rows += [("note", note) for note in self.notes]
        rows += [("not finite", str(self._not_finite_error(found)))] if (found := self.first_not_finite) else []
        asked = ", ".join(
            f"attention({stack!r}, layer=0…{self.n_layers(stack) - 1}, kind={kind!r})"
            for stack, kind in self.attention_kinds()
        )
        rows += [("attention", asked), ("activations", f"{len(self.activations)}, see names()")]
        cells = "".join(
            f"<tr><th>{escape(name)}</th><td style='text-align:left'><bdi>{escape(said)}</bdi></td></tr>"
            for name, said in rows
        )
        return f"<table>{cells}</table>"

    @property
    def checkpoint(self) -> Checkpoint:
        """The model that was recorded.

        Raises:
            ValueError: If the trace was read from a file.
        """
        return self._made_from.checkpoint

    @property
    def sentence(self) -> str:
        """The sentence that was typed.

        Raises:
            ValueError: If the trace was read from a file.
        """
        return self._made_from.sentence

    @property
    def _made_from(self) -> Run:
        if self.run is None:
            raise ValueError("this trace does not know its model; make it anew with transformer.trace")
        return self.run

    def names(self) -> tuple[str, ...]:
        """Names of all recorded activations, in the order of the forward pass."""
        return tuple(self.activations)

    def __contains__(self, name: str) -> bool:
        return name in self.activations

    def __iter__(self) -> Iterator[str]:
        return iter(self.activations)

    def __getitem__(self, name: str) -> Activation:
        try:
            return self.activations[name]
        except KeyError:
            if self.run is not None and (why := self.run.checkpoint.model.not_exposed(name)) is not None:
                raise why from None
            hint = did_you_mean(name, self.activations, otherwise="names() lists all")
            raise KeyError(f"this trace has no activation {name!r}; {hint}") from None

    def values(self, name: str) -> np.ndarray:
        """Return ``trace[name].values``."""
        return self[name].values

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks of this model: "encoder", "decoder" or both."""
        return tuple(stack for stack in STACKS if self.n_layers(stack))

    def n_layers(self, stack: str) -> int:
        """Return the number of layers of a stack, 0 if the model lacks it."""
        return self._n_layers.get(stack, 0)

    @cached_property
    def _n_layers(self) -> Mapping[str, int]:
        """Number of layers by stack, from the names: ``encoder.layers.2.…`` shows a third encoder layer."""
        places = [name.split(".", 3) for name in self.activations]
        found = {(place[0], place[2]) for place in places if len(place) > 2 and place[1] == "layers"}
        return Counter(stack for stack, _ in found)

    def attention_kinds(self) -> tuple[tuple[str, str], ...]:
        """The (stack, kind) pairs that exist, in the order of the forward pass."""
        return tuple(
            (stack, kind)
            for stack in STACKS
            for kind in KINDS
            if f"{stack}.layers.0.{kind}_attention.weights" in self.activations
        )

    @property
    def first_not_finite(self) -> NotFinite | None:
        """The first activation of the pass that holds NaN or an infinity; ``None`` if all numbers are finite.

        If a text is recorded layer by layer, only the layers that have run count.
        """
        return first_not_finite(self.activations)

    def check_finite(self) -> None:
        """Check that every number is finite.

        Raises:
            NotFiniteError: If an activation holds NaN or an infinity.
        """
        if (found := self.first_not_finite) is not None:
            raise self._not_finite_error(found)

    def _not_finite_error(self, found: NotFinite) -> NotFiniteError:
        sequence = None if found.position is None else self.tokens(found.stack)
        return not_finite_error(found, sequence, edited=self.run is not None and bool(self.run.edits))

    def tokens(self, stack: str) -> TokenSequence:
        """Return the tokens that a stack read."""
        sequence = {"encoder": self.source, "decoder": self.target}.get(stack)
        if sequence is None:
            raise ValueError(f"this trace has no stack {stack!r}; it has {', '.join(self.stacks)}")
        return sequence

    def attention_views(self) -> tuple[AttentionView, ...]:
        """All attention layers, in the order of the forward pass."""
        return tuple(
            self.attention(stack, layer, kind)
            for stack, kind in self.attention_kinds()
            for layer in range(self.n_layers(stack))
        )

    def attention(self, stack: str, layer: int, kind: str = "self") -> AttentionView:
        """Return all heads of one attention layer.

        Args:
            stack: "encoder" or "decoder".
            layer: Index of the layer.
            kind: "self", or "cross", whose rows are decoder tokens and whose columns are encoder tokens.

        Raises:
            ValueError: If the layer does not exist.
        """
        prefix = f"{stack}.layers.{layer}.{kind}_attention"
        if f"{prefix}.weights" not in self.activations:
            kinds = ", ".join(
                f"{s} {k}-attention in layers 0–{self.n_layers(s) - 1}" for s, k in self.attention_kinds()
            )
            raise ValueError(f"there is no {stack} {kind}-attention in layer {layer}; this model has {kinds}")
        weights = self.values(f"{prefix}.weights")
        scored = f"{prefix}.scores" in self.activations
        return AttentionView(
            name=prefix,
            stack=stack,
            layer=layer,
            kind=kind,
            weights=weights,
            allowed=self.values(f"{prefix}.allowed"),
            scores=self.values(f"{prefix}.scores") if scored else scores_of(weights),
            query=self.tokens(stack),
            key=self.tokens("encoder" if kind == "cross" else stack),
        )
