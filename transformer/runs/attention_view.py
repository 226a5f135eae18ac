"""Attention of one layer with the tokens of both axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import ClassVar
from unicodedata import category

import numpy as np

from transformer.text.tokens import TokenSequence

KINDS = ("self", "cross")


@dataclass(frozen=True)
class AttentionView:
    """All heads of one attention layer, labelled with tokens.

    Attributes:
        stack: "encoder" or "decoder".
        query: Tokens that attend; in cross-attention, those of the target.
        key: Tokens that are attended to; in cross-attention, those of the source.
        weights: [head, query, key]; each row sums to 1 over ``key``, or is all 0 if no key is allowed.
        scores: [head, query, key], scaled by 1/√d_k, before the mask; log w where only weights are known.
        allowed: [query, key]; ``True`` where the query may attend to the key.

    Raises:
        ValueError: If an array does not fit the number of tokens of its axes.
    """

    _drawing: ClassVar[Callable[[AttentionView], str] | None] = None

    name: str
    stack: str
    layer: int
    kind: str
    weights: np.ndarray
    allowed: np.ndarray
    scores: np.ndarray
    query: TokenSequence
    key: TokenSequence

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"attention kind {self.kind!r} is unknown; choose one of {', '.join(KINDS)}")
        n_queries, n_keys = cell = len(self.query), len(self.key)
        heads = self.weights.shape[:1]
        for field, wanted in {"weights": (*heads, *cell), "scores": (*heads, *cell), "allowed": cell}.items():
            if (shape := getattr(self, field).shape) != wanted:
                raise ValueError(
                    f"{self.name}: {field} has shape {shape} but there are {n_queries} query tokens and {n_keys} key "
                    f"tokens; it must be {wanted}, {'[query, key]' if field == 'allowed' else '[head, query, key]'}"
                )

    def __repr__(self) -> str:
        rows, columns = len(self.query), len(self.key)
        return f"AttentionView({self.name}: {self.n_heads} heads, {rows} query × {columns} key tokens)"

    def _repr_html_(self) -> str | None:
        """Return the figure that a notebook shows; ``None`` (plain text) if no package draws views."""
        if AttentionView._drawing is None:
            for installed in entry_points(group="transformer.drawings"):
                installed.load()  # loading the entry point calls ``register_drawing``
        return AttentionView._drawing(self) if AttentionView._drawing else None

    @classmethod
    def register_drawing(cls, drawing: Callable[[AttentionView], str]) -> None:
        """Register ``drawing``, which returns the HTML of a view in a notebook. ``charts.notebook`` does so."""
        cls._drawing = drawing

    @property
    def n_heads(self) -> int:
        """Number of heads."""
        return self.weights.shape[0]

    @property
    def is_causal(self) -> bool:
        """Whether no row may attend to later positions."""
        return self.kind == "self" and not np.triu(self.allowed, 1).any()

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of every row in bits, H = −Σ_key w·log₂ w, [head, query]; 0 if one key gets all the weight."""
        positive = np.where(self.weights > 0, self.weights, 1.0)
        return (self.weights * -np.log2(positive)).sum(axis=-1) + 0.0  # + 0.0 turns −0 into 0

    @property
    def sink_share(self) -> np.ndarray:
        """Share of every row that goes to ``sinks``, i.e. special tokens and punctuation: [head, query]."""
        return self.weights[:, :, self.sinks].sum(axis=-1)

    @cached_property
    def sinks(self) -> np.ndarray:
        """Mask of the keys, [key]: special tokens except blanks, and separate punctuation."""
        return np.array([token.is_sink or stands_alone(self.key, token.index) for token in self.key], dtype=bool)

    def strongest_pair(self, head: int) -> tuple[int, int] | None:
        """Return the row and column of a head's largest weight from one token to another.

        The diagonal of self-attention, special tokens and punctuation are left out; ``None`` if nothing remains.
        """
        counts = self.allowed & ~self.sinks
        if self.kind == "self":
            counts &= ~self.sinks[:, None] & ~np.eye(len(self.key), dtype=bool)
        weights = np.where(counts, self.weights[head], 0.0)
        query, key = np.unravel_index(int(weights.argmax()), weights.shape)
        return (int(query), int(key)) if weights[query, key] > 0 else None


def scores_of(weights: np.ndarray) -> np.ndarray:
    """Return log w: scores whose softmax is w. Weights determine scores up to one constant per row."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


def stands_alone(tokens: TokenSequence, index: int) -> bool:
    """Return whether a token is only punctuation and, unlike the apostrophe in *s'assit*, not in a word."""
    text = tokens[index].text
    if not is_punctuation(text):
        return False
    before = tokens[index - 1].text if index else ""
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    return not (before[-1:].isalnum() and text == text.strip() and after[:1].isalnum())


def is_punctuation(text: str) -> bool:
    """Return whether a text has punctuation marks and, apart from spaces around them, nothing else."""
    return bool(text.strip()) and all(category(character).startswith("P") for character in text.strip())
