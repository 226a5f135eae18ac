"""The data of the Attention page for one head and one row, built once per run, without Streamlit.

A notebook builds the same:

    >>> import transformer
    >>> from transformer.runs.head_places import Head
    >>> from views.attention.attention_view_model import AttentionChoices, attention_view_model
    >>> trace = transformer.trace(transformer.load("checkpoints/gpt-en"), "My dog is big and my cat is small.")
    >>> shown = attention_view_model(trace, Head("decoder", "self", 1, 2), 4, AttentionChoices(key=2))
    >>> shown.row_label, shown.arithmetic.is_allowed, shown.drawn.weights.shape[0]
    ('·big', True, 1)
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from transformer.attention_maps.attention_arithmetic import CellArithmetic, why_masked
from transformer.attention_maps.attention_path import AttentionPath, HeadMap, attention_path, norm_weighted
from transformer.attention_maps.rollout import Rollout, attention_rollout
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence
from views.attention.map_reading import MapReading, ReadingChoices

DRAWINGS = ("map", "lines", "values", "rollout")
FEW_KEYS = 48  # up to this many columns, a map as high as the window leaves space next to it


@dataclass(frozen=True)
class AttentionChoices:
    """What the reader chose above the map.

    Attributes:
        drawing: One of ``DRAWINGS``: the weights as a map or as lines, ‖α·v‖, or rollout.
        predicted: Whether the rows of a decoder are named after the tokens that they predict, instead of those that
            they read; ``None`` for the default of the kind of attention (``predicts_by_default``).
        stretch: Whether the colours end at the largest weight.
        key: The column whose arithmetic is open, if any.
        reading: The tokens that are merged, left out or taken together in the section below the map.
    """

    drawing: str = "map"
    predicted: bool | None = None
    stretch: bool = False
    key: int | None = None
    reading: ReadingChoices = field(default_factory=ReadingChoices)


@dataclass(frozen=True)
class RowNumbers:
    """Numbers of one row of the drawn map.

    Attributes:
        n_allowed: How many keys the query may attend to.
        entropy: In bits; at most log₂ ``n_allowed``.
        sink_share: The share of the row that goes to special tokens and punctuation, 0…1.
        mean_sink_share: The mean of that share over all rows.
    """

    n_allowed: int
    entropy: float
    sink_share: float
    mean_sink_share: float


def predicts_by_default(stack: str, kind: str) -> bool:
    """Return whether rows are named after predictions by default.

    In cross-attention a row looks for the source of the token that it predicts; in self-attention it looks back at what
    was read. An encoder predicts nothing from a row.
    """
    return stack == "decoder" and kind == "cross"


@dataclass(frozen=True)
class AttentionViewModel:
    """All that the Attention page draws about this sentence; make it with ``attention_view_model``.

    Attributes:
        trace: The recorded sentence.
        location: The head.
        row: The query token, by its position in the sequence that the stack reads.
        choices: What the reader chose.
        path: The head from queries and keys to its output, or its weights alone; ``path.view`` has the whole layer.
    """

    trace: Trace = field(repr=False)
    location: Head
    row: int
    choices: AttentionChoices
    path: AttentionPath | HeadMap = field(repr=False)

    @property
    def view(self) -> AttentionView:
        """All heads of the layer."""
        return self.path.view

    @property
    def place(self) -> tuple[str, int, str]:
        """Stack, layer and kind, as the functions of ``transformer`` take them."""
        return self.location.stack, self.location.layer, self.location.kind

    @property
    def names_predictions(self) -> bool:
        """Whether rows are named after the tokens that they predict."""
        stack, chosen = self.location.stack, self.choices.predicted
        return stack == "decoder" and (predicts_by_default(stack, self.location.kind) if chosen is None else chosen)

    @property
    def row_tokens(self) -> TokenSequence:
        """The tokens that name the rows: the tokens read, or the tokens predicted."""
        return self.trace.prediction if self.names_predictions else self.view.query

    @cached_property
    def row_labels(self) -> tuple[str, ...]:
        """The names of all rows."""
        return self.row_tokens.labels

    @property
    def row_label(self) -> str:
        """The name of the row."""
        return self.row_labels[self.row]

    @property
    def read_label(self) -> str:
        """The token that the row reads; sentences name the row after it, whatever the map shows."""
        return self.view.query.labels[self.row]

    @property
    def predicted(self) -> str | None:
        """The token that the row predicts, if the rows are named after predictions."""
        return self.row_label if self.names_predictions else None

    @property
    def cell(self) -> tuple[int, int] | None:
        """The row and the column whose arithmetic is open."""
        return None if self.choices.key is None else (self.row, self.choices.key)

    @property
    def is_wide(self) -> bool:
        """Whether the map has so many columns that nothing fits next to it; patches need no width for names."""
        return len(self.view.key) > FEW_KEYS and not self.trace.checkpoint.config.reads_images

    @cached_property
    def value_weighted(self) -> np.ndarray:
        """‖α·v‖, what a query receives from a key: [query, key], in units of the residual stream."""
        return norm_weighted(self.trace, *self.place)[self.location.head]

    @cached_property
    def rollout(self) -> Rollout:
        """All heads of all layers up to this one."""
        return attention_rollout(self.trace, self.location.stack, layer=self.location.layer)

    @cached_property
    def drawn(self) -> AttentionView:
        """The content of the figure, as one head whose rows sum to 1."""
        if self.choices.drawing == "rollout":
            return self.rollout.view(self.location.kind)
        shares = self.path.weights
        if self.choices.drawing == "values":
            total = self.value_weighted.sum(axis=-1, keepdims=True)
            shares = np.divide(self.value_weighted, total, out=np.zeros_like(self.value_weighted), where=total > 0)
        return replace(self.view, weights=shares[None], scores=self.path.scores[None])

    @cached_property
    def reading(self) -> MapReading:
        """The weights with words merged and tokens left out, and what several tokens receive or attend to."""
        return MapReading(self.view, self.location.head, self.choices.reading)

    @cached_property
    def limit(self) -> float:
        """The share at which colours end."""
        if not self.choices.stretch:
            return 1.0
        return float(self.drawn.weights[0].max(initial=0.0, where=self.drawn.allowed)) or 1.0

    @cached_property
    def numbers(self) -> RowNumbers:
        """The numbers of the row that is drawn."""
        sink_share = self.drawn.sink_share[0]
        return RowNumbers(
            n_allowed=int(self.drawn.allowed[self.row].sum()),
            entropy=float(self.drawn.entropy[0, self.row]),
            sink_share=float(sink_share[self.row]),
            mean_sink_share=float(sink_share.mean()),
        )

    @property
    def strongest_value(self) -> tuple[int, float] | None:
        """The key with the largest ‖α·v‖ and its share of the row; ``None`` if all are 0."""
        row = self.value_weighted[self.row]
        total, best = float(row.sum()), int(row.argmax())
        return (best, float(row[best]) / total) if total > 0 else None

    @cached_property
    def arithmetic(self) -> CellArithmetic | None:
        """The arithmetic of the open cell, if there is one."""
        return None if self.choices.key is None else self.path.cell(query=self.row, key=self.choices.key)

    @property
    def reason_masked(self) -> str:
        """Why the open cell is masked: "padding", "causal", "window" or "other"; empty if it is not."""
        if self.arithmetic is None or self.arithmetic.is_allowed:
            return ""
        return why_masked(self.view, self.path.rule, query=self.row, key=self.arithmetic.column)


def attention_view_model(
    trace: Trace,
    location: Head,
    row: int,
    choices: AttentionChoices = AttentionChoices(),
    *,
    weights_only: bool = False,
) -> AttentionViewModel:
    """Return what the Attention page shows for one head.

    Args:
        trace: The recorded sentence.
        location: The head.
        row: The query token, by its position.
        choices: What the reader chose.
        weights_only: Whether the trace has no queries and keys.

    Raises:
        ValueError: For a layer, head, row or column that does not exist, or another drawing.
    """
    if choices.drawing not in DRAWINGS:
        raise ValueError(f"there is no drawing {choices.drawing!r}; choose one of {', '.join(DRAWINGS)}")
    place = location.stack, location.layer, location.kind
    path: AttentionPath | HeadMap = (
        HeadMap(trace.attention(*place), location.head)
        if weights_only
        else attention_path(trace, *place, head=location.head)
    )
    path.require_cell(query=row, key=0 if choices.key is None else choices.key)
    return AttentionViewModel(trace, location, row, choices, path)
