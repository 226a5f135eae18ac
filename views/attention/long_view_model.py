"""A window of the map of a long text, and the overview on which it is placed, without Streamlit.

A map of 2,048 × 2,048 cells fits on no screen. The text is divided into blocks of ``WINDOW`` tokens: the overview has
one cell per pair of blocks, and the window shows one pair in full.

>>> import transformer
>>> from transformer.runs.head_places import Head
>>> from views.attention.attention_view_model import attention_view_model
>>> trace = transformer.trace(transformer.load("checkpoints/gpt-en"), "My dog is big and my cat is small.")
>>> shown = LongViewModel(attention_view_model(trace, Head("decoder", "self", 1, 2), 4), find="is", size=4)
>>> shown.block_labels, shown.found, shown.window.weights.shape[1:]
(('0–3', '4–7', '8–10'), (3, 8), (4, 4))
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.text.tokens import TokenSequence
from views.attention.attention_view_model import AttentionViewModel

WINDOW = 64  # tokens on each side of the window
STRONGEST = 5


@dataclass(frozen=True)
class LongViewModel:
    """What the Attention page draws for a long text.

    Attributes:
        shown: The whole head, with the chosen row.
        block: The block of keys that the window shows; by default the one to which the row attends most,
            the first token apart.
        find: A text to look for.
        size: Number of tokens in a block.
    """

    shown: AttentionViewModel = field(repr=False)
    block: int | None = None
    find: str = ""
    size: int = WINDOW

    @property
    def tokens(self) -> TokenSequence:
        """The tokens of the text, which are both rows and columns."""
        return self.shown.view.key

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """The tokens of each block."""
        count = len(self.tokens)
        return tuple(range(first, min(first + self.size, count)) for first in range(0, count, self.size))

    @property
    def block_labels(self) -> tuple[str, ...]:
        """The names of the blocks: the positions of their first and last tokens."""
        return tuple(f"{block[0]}–{block[-1]}" if len(block) > 1 else f"{block[0]}" for block in self.blocks)

    @property
    def row_block(self) -> int:
        """The block of the chosen row."""
        return self.shown.row // self.size

    @property
    def key_block(self) -> int:
        """The block of keys in the window."""
        if self.block is not None:
            return self.block
        shares = self.strip.copy()
        shares[0] -= self.shown.path.weights[self.shown.row, 0]  # many heads rest on the first token
        return int(shares.argmax())

    @property
    def rows(self) -> range:
        """The rows of the window."""
        return self.blocks[self.row_block]

    @property
    def columns(self) -> range:
        """The columns of the window."""
        return self.blocks[self.key_block]

    @cached_property
    def window(self) -> AttentionView:
        """The weights of the window; its rows sum to less than 1. Its tokens are numbered from 0."""
        view = self.shown.view
        rows, columns = (slice(each[0], each[-1] + 1) for each in (self.rows, self.columns))
        return replace(
            view,
            weights=view.weights[:, rows, columns],
            scores=view.scores[:, rows, columns],
            allowed=view.allowed[rows, columns],
            query=_part(view.query, self.rows),
            key=_part(view.key, self.columns),
        )

    @property
    def cell(self) -> tuple[int, int] | None:
        """The open cell as a row and a column of the window, if the window shows it."""
        cell = self.shown.cell
        if cell is None or cell[1] not in self.columns:
            return None
        return cell[0] - self.rows[0], cell[1] - self.columns[0]

    @cached_property
    def overview(self) -> np.ndarray:
        """The largest weight of each pair of blocks, [query block, key block]."""
        starts = [block[0] for block in self.blocks]
        weights = np.where(self.shown.view.allowed, self.shown.path.weights, 0.0)
        return np.maximum.reduceat(np.maximum.reduceat(weights, starts, axis=0), starts, axis=1)

    @cached_property
    def may_attend(self) -> np.ndarray:
        """Whether any token of a block may attend to one of another, [query block, key block]."""
        starts = [block[0] for block in self.blocks]
        return np.logical_or.reduceat(np.logical_or.reduceat(self.shown.view.allowed, starts, axis=0), starts, axis=1)

    @cached_property
    def strip(self) -> np.ndarray:
        """How much of its attention the chosen row pays to each block, [key block]; the sum is 1."""
        return np.add.reduceat(self.shown.path.weights[self.shown.row], [block[0] for block in self.blocks])

    @property
    def share_in_window(self) -> float:
        """How much of its attention the chosen row pays to the columns of the window."""
        return float(self.strip[self.key_block])

    @property
    def strongest(self) -> tuple[int, ...]:
        """The keys with the largest weights of the row, largest first."""
        row, allowed = self.shown.path.weights[self.shown.row], self.shown.view.allowed[self.shown.row]
        order = np.argsort(-row, kind="stable")
        return tuple(int(key) for key in order[:STRONGEST] if allowed[key] and row[key] > 0)

    @cached_property
    def found(self) -> tuple[int, ...]:
        """The tokens at which ``find`` begins, in any case; a word may consist of several tokens."""
        wanted = self.find.strip().casefold()
        if not wanted:
            return ()
        pieces = [token.display if token.special else token.text.casefold() for token in self.tokens]
        ends = np.fromiter(accumulate(map(len, pieces)), dtype=np.int64)
        places = _occurrences("".join(pieces), wanted)
        return tuple(dict.fromkeys(int(np.searchsorted(ends, place, side="right")) for place in places))

    @property
    def found_here(self) -> tuple[int, ...]:
        """Those of ``found`` that are columns of the window."""
        return tuple(token for token in self.found if token in self.columns)

    @property
    def neighbours(self) -> tuple[int, int] | None:
        """The nearest of ``found`` before and after the window, around the ends of the text, if any."""
        if not self.found:
            return None
        before = [token for token in self.found if token < self.columns[0]]
        after = [token for token in self.found if token > self.columns[-1]]
        return (before or self.found)[-1], (after or self.found)[0]


def _part(tokens: TokenSequence, places: range) -> TokenSequence:
    return TokenSequence(tuple(replace(tokens[place], index=i) for i, place in enumerate(places)), tokens.name)


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    place = text.find(wanted)
    while place >= 0:
        yield place
        place = text.find(wanted, place + 1)
