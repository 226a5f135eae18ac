"""A map with words merged or tokens left out; without Streamlit."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from transformer.attention_maps.token_groups import (
    kept_keys,
    share_left_out,
    sink_keys,
    without_keys,
)
from transformer.attention_maps.whole_words import Span, merge_into_words, spans
from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence


@dataclass(frozen=True)
class ReadingChoices:
    """What the reader chose below the map, by token positions.

    Where words are merged, a token stands for its word.

    Attributes:
        whole_words: Whether the pieces of a word are merged.
        left_out: The keys that are left out.
    """

    whole_words: bool = True
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True)
class MapReading:
    """The weights of a layer under ``ReadingChoices``.

    Attributes:
        own: The layer as the model computed it.
        head: The head that is drawn.
        choices: What the reader chose.
    """

    own: AttentionView = field(repr=False)
    head: int
    choices: ReadingChoices

    @cached_property
    def query_spans(self) -> tuple[Span, ...]:
        """The tokens of each row."""
        return self._spans(self.own.query)

    @cached_property
    def key_spans(self) -> tuple[Span, ...]:
        """The tokens of each column, those left out included."""
        return self._spans(self.own.key)

    @cached_property
    def merged(self) -> AttentionView:
        """The layer with one row and one column per word, if words are merged."""
        return merge_into_words(self.own) if self.choices.whole_words else self.own

    @property
    def n_pieces_merged(self) -> int:
        """How many rows and columns fewer the merged map has."""
        merged, own = self.merged, self.own
        return len(own.query) + len(own.key) - len(merged.query) - len(merged.key)

    @cached_property
    def left_out(self) -> tuple[int, ...]:
        """The columns of ``merged`` that are left out; none if no column would remain."""
        found = _groups(self.key_spans, self.choices.left_out)
        return found if len(found) < len(self.key_spans) else ()

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        """The first token of each column that acts as an attention sink; at most all columns but one."""
        columns = _groups(self.key_spans, sink_keys(self.own))
        return tuple(self.key_spans[column][0] for column in columns) if len(columns) < len(self.key_spans) else ()

    @cached_property
    def kept(self) -> list[int]:
        """The columns of ``merged`` that remain."""
        return kept_keys(self.merged, self.left_out)

    @cached_property
    def view(self) -> AttentionView:
        """The layer that is drawn. Its key labels count repeated words anew; draw ``key_labels``."""
        return without_keys(self.merged, self.left_out) if self.left_out else self.merged

    @cached_property
    def key_labels(self) -> tuple[str, ...]:
        """The names of the columns that remain, numbered as in the whole map."""
        return tuple(self.merged.key.labels[column] for column in self.kept)

    @property
    def left_out_labels(self) -> tuple[str, ...]:
        """The names of the columns that are left out."""
        return tuple(self.merged.key.labels[column] for column in self.left_out)

    @cached_property
    def share_left_out(self) -> np.ndarray:
        """What each row of the head gave to the keys that are left out: [query]."""
        return share_left_out(self.merged, self.left_out)[self.head]

    @property
    def n_empty_rows(self) -> int:
        """The number of rows that gave everything to the keys left out."""
        return int((self.view.weights[self.head].sum(axis=-1) == 0).sum())

    def row_of(self, token: int) -> int:
        """Return the row that contains a token."""
        return next(row for row, (_begin, end) in enumerate(self.query_spans) if token < end)

    def _spans(self, tokens: TokenSequence) -> tuple[Span, ...]:
        return spans(tokens) if self.choices.whole_words else tuple((at, at + 1) for at in range(len(tokens)))


def _groups(parts: tuple[Span, ...], tokens: Iterable[int]) -> tuple[int, ...]:
    """Return the indices of the parts that contain one of ``tokens``, in order; others have no effect."""
    tokens = frozenset(tokens)
    return tuple(index for index, (begin, end) in enumerate(parts) if not tokens.isdisjoint(range(begin, end)))
