"""The data of the Positions page for one run: its scheme, and the effect of other positions.

Everything that the page draws is computed here, without Streamlit. A notebook builds the same objects:

>>> import transformer
>>> from views.positions.positions_view_model import positions_view_model
>>> checkpoint = transformer.load("checkpoints/bert-en")
>>> trace = transformer.trace(checkpoint, "The cat ___ on the mat.")
>>> view_model = positions_view_model(trace, stack="encoder", token=4)
>>> view_model.scheme, view_model.sections
('learned', ('heatmap', 'waves', 'similarity', 'sum', 'distance'))
>>> position, back, ahead = view_model.directions(view_model.table(16))  # cosines two tokens back and ahead
>>> position, round(back, 2), round(ahead, 2)
(4, 0.16, 0.31)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from transformer import Checkpoint, Edit, Trace
from transformer.attention import MultiHeadAttention
from transformer.guests.described_layers import HalvedSinusoids
from transformer.guests.rotary_positions import Rotary
from transformer.layers import positional_encodings
from transformer.layers.positional_encodings import reordered_positions, without_positions
from transformer.text.tokens import Token
from views.view_models import TokenViewModel

BACK = 2  # distance in tokens for comparing the two directions and for the linear map
MOST_PAIRS = 10  # pairs of tokens whose swap is tried
FAR = 32  # distances shown to each side
SHORTEST, LONGEST = 16, 64  # minimum and default of the slider, in positions
REORDERED = ("sinusoidal", "learned", "rotary", "relative", "alibi")


@dataclass(frozen=True)
class PositionsViewModel(TokenViewModel):
    """The position scheme of one run.

    Attributes:
        layer, head: The focused layer and head, if this stack has them.
    """

    layer: int
    head: int

    @property
    def scheme(self) -> str:
        """How this stack encodes positions."""
        return self.checkpoint.config.positions_in(self.stack)

    @property
    def sections(self) -> tuple[str, ...]:
        """The names of the sections that this scheme has."""
        return {
            "rotary": ("heatmap", "angles", "distance"),
            "relative": ("bias", "distance"),
            "alibi": ("distance",),
            "none": (),
            "unknown": (),
        }.get(self.scheme, ("heatmap", "waves", "similarity", "sum", "distance"))

    @property
    def maximum(self) -> int:
        """The maximum number of positions in a table of this scheme."""
        return self.checkpoint.config.max_length

    @property
    def is_in_halves(self) -> bool:
        """Whether all sines precede all cosines (Marian, M2M100) instead of alternating with them."""
        embedding = self.checkpoint.model.get_submodule(self.stack).embedding
        return isinstance(embedding.position_encoding, HalvedSinusoids)

    def table(self, n_positions: int) -> np.ndarray:
        """Return the rows that are added to tokens: [position, model]."""
        return positional_encodings.added_encoding(self.checkpoint.model, self.stack, n_positions)

    def directions(self, table: np.ndarray) -> tuple[int, float, float] | None:
        """Compare the two directions from one position of ``table``.

        Returns:
            The position (the token in focus, or the nearest that has neighbours on both sides), and its cosine with
            the positions ``BACK`` tokens back and ahead; ``None`` if the table is too short.
        """
        if len(table) <= 2 * BACK:
            return None
        position = min(max(self.token, BACK), len(table) - 1 - BACK)
        cosines = positional_encodings.similarity(table[[position - BACK, position, position + BACK]])[1]
        return position, float(cosines[0]), float(cosines[2])

    def shift_deviation(self, table: np.ndarray) -> float | None:
        """Return how far PE(p − ``BACK``) is from its linear map of PE(p); ``None`` if there is no such map."""
        if self.scheme != "sinusoidal" or self.is_in_halves or table.shape[1] % 2 or len(table) <= BACK:
            return None
        return float(np.abs(positional_encodings.shift_encoding(table[BACK:], -BACK) - table[:-BACK]).max())

    @cached_property
    def attention(self) -> MultiHeadAttention:
        """The self-attention of the layer in focus."""
        return self.checkpoint.model.get_submodule(self.stack).layers[self.layer].self_attention

    @cached_property
    def rotary(self) -> Rotary:
        """The rotation of that layer's heads."""
        return positional_encodings.rotary_of(self.attention)

    @cached_property
    def layers_without(self) -> tuple[int, ...]:
        """The layers of this stack that do not rotate, if the others do."""
        layers = self.checkpoint.model.get_submodule(self.stack).layers
        rotates = self.scheme == "rotary"
        return tuple(n for n, layer in enumerate(layers) if rotates and layer.self_attention.rotary is None)

    @cached_property
    def rotary_layers(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The layers of this stack with the same angles as the one in focus, and those with others."""
        layers = self.checkpoint.model.get_submodule(self.stack).layers
        turned = [positional_encodings.rotary_of(layer.self_attention) for layer in layers]
        same = tuple(index for index, other in enumerate(turned) if other == self.rotary)
        return same, tuple(index for index, other in enumerate(turned) if other != self.rotary)

    def scores_by_distance(self) -> tuple[np.ndarray, np.ndarray]:
        """Measure what positions add to scores: [head, distance], and the distances. Takes about a second."""
        ids, n_positions = self.measured
        return positional_encodings.measured_position_scores(
            self.checkpoint, ids, stack=self.stack, n_positions=n_positions
        )

    @property
    def measured(self) -> tuple[tuple[int, ...], int]:
        """The token ids that the measured texts are drawn from, and the number of tokens of such a text."""
        words = tuple(token.id for token in self.tokens if not token.special)
        return words or self.tokens.ids, min(LONGEST, self.checkpoint.config.max_length)

    @cached_property
    def bias(self) -> tuple[np.ndarray, np.ndarray]:
        """The relative bias by distance, [head, distance], and the distances."""
        return positional_encodings.relative_bias(self.checkpoint.model, self.stack, FAR)


def positions_view_model(
    trace: Trace,
    *,
    stack: str,
    layer: int = 0,
    head: int = 0,
    token: int = 0,
) -> PositionsViewModel:
    """Build the view model of one run.

    Args:
        trace: The recorded run.
        stack: "encoder" or "decoder".
        layer, head, token: What is in focus; numbers that are too large for this stack mean its last one.
    """
    checkpoint = trace.checkpoint
    return PositionsViewModel(
        trace,
        stack,
        min(token, len(trace.tokens(stack)) - 1),
        layer=min(layer, trace.n_layers(stack) - 1),
        head=min(head, checkpoint.config.heads_in(stack) - 1),
    )


@dataclass(frozen=True)
class NewOrder:
    """The positions that tokens get instead of their own.

    Attributes:
        stacks: The stacks whose positions change.
        order: ``order[i]`` is the position of token i; ``None`` where positions are removed.
        pair: The two tokens that are swapped, if the change is a swap.
        followed: The token whose attention is compared.
    """

    stacks: tuple[str, ...]
    order: tuple[int, ...] | None
    pair: tuple[int, int] | None
    followed: int

    def edits(self, checkpoint: Checkpoint) -> tuple[Edit, ...]:
        """Return the edits of a run that give the tokens these positions."""
        model = checkpoint.model
        return tuple(
            edit
            for stack in self.stacks
            for edit in (
                without_positions(model, stack) if self.order is None else reordered_positions(model, stack, self.order)
            )
        )


@dataclass(frozen=True)
class ReorderedInput:
    """The input of the model, with the tokens that may be swapped.

    Attributes:
        before: The run with the original positions.
        n_read: How many tokens are read (in a decoder, those of the prompt).
    """

    before: Trace
    n_read: int

    @property
    def stack(self) -> str:
        """The stack that reads the typed text."""
        return "encoder" if self.before.checkpoint.config.has_encoder else "decoder"

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the input."""
        return self.before.tokens(self.stack).tokens[: self.n_read]

    @property
    def movable(self) -> list[int]:
        """The positions of tokens that may move: all but special ones."""
        return [token.index for token in self.tokens if not token.special]

    def pairs(self, task_prefix: str = "") -> tuple[tuple[int, int], ...]:
        """Return pairs of words that may be swapped: whole, long and unrepeated ones if there are any.

        The first is of words that are far apart; there are at most ``MOST_PAIRS``.

        Args:
            task_prefix: The prefix that was added before the reader's text, e.g. "translate English to French:".
        """
        movable, tokens = self.movable, self.tokens
        read = np.cumsum([0, *(0 if token.special else len(token.text) for token in tokens)])
        own = [index for index in movable if read[index] >= len(task_prefix)]
        words = [index for index in own if any(letter.isalnum() for letter in tokens[index].text)]
        # Neither "the" nor "on" if possible: a word of at least three letters that occurs only once.
        spelt = [tokens[index].text.strip().lower() for index in words]
        telling = [index for index, word in zip(words, spelt, strict=True) if len(word) > 2 and spelt.count(word) == 1]
        whole = [index for index in telling if self._is_whole_word(index)]
        start = next(group for group in (whole, telling, words, movable) if len(group) >= 2)
        first = (start[0] if len(start) < 4 else start[1], start[-1])
        others = [pair for pair in combinations(start, 2) if pair != first]
        every = max(1, len(others) // (MOST_PAIRS - 1))  # of many pairs, some with each word
        return (first, *others[::every])[:MOST_PAIRS]

    def _is_whole_word(self, index: int) -> bool:
        """Return whether a token begins a word that no later token continues."""
        tokens = self.tokens
        begins = index == self.movable[0] or tokens[index].text[:1].isspace()
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        return begins and (after is None or after.special or not after.text[:1].isalnum())

    def new_order(
        self, change: str, *, pair: tuple[int, int], shuffle: int = 0, followed: int | None = None
    ) -> NewOrder:
        """Return the positions after a change.

        Args:
            change: "swap", "shuffle", "reverse", "remove", or "remove_all" (in the decoder, too).
            pair: The tokens that "swap" exchanges.
            shuffle: The seed of "shuffle".
            followed: The token whose attention is compared; one of ``pair`` by default.
        """
        if followed is None:  # with a causal mask, the later of the two attends to more tokens
            followed = (max if self.stack == "decoder" else min)(pair)
        stacks = self.before.stacks if change == "remove_all" else (self.stack,)
        if change.startswith("remove"):
            return NewOrder(tuple(stacks), None, None, followed)
        order, movable = np.arange(self.n_read), np.array(self.movable)
        if change == "swap":
            order[list(pair)] = order[list(pair)[::-1]]
        elif change == "reverse":
            order[movable] = movable[::-1]
        else:
            order[movable] = np.random.default_rng(shuffle).permutation(movable)
        return NewOrder(tuple(stacks), tuple(order.tolist()), pair if change == "swap" else None, followed)

    def attention_change(self, after: Trace, token: int) -> AttentionChange:
        """Return a token's attention before and after, in the first-layer head that changes most."""
        tokens = self.tokens
        rows = [one.attention(self.stack, 0, "self").weights[:, token, : self.n_read] for one in (self.before, after)]
        if self.stack == "decoder":  # later tokens are masked, before and after
            tokens, rows = tokens[: token + 1], [row[:, : token + 1] for row in rows]
        head = most_changed_head(*rows)
        return AttentionChange(head, tokens, rows[0][head], rows[1][head])


@dataclass(frozen=True)
class AttentionChange:
    """The attention of one token in one head, before and after: [token] each."""

    head: int
    tokens: Sequence[Token]
    before: np.ndarray
    after: np.ndarray


def most_changed_head(before: np.ndarray, after: np.ndarray) -> int:
    """Return the head of two arrays [head, token] in which most weight has moved to other tokens."""
    return int(np.abs(before.astype(np.float64) - after).sum(axis=1).argmax())
