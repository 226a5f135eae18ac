"""Content of the Lens page: every layer read out as if it were the last, and a logit as a sum.

A notebook builds the same:

    >>> import transformer
    >>> from views.lens.lens_view_model import lens_view_model
    >>> trace = transformer.trace(transformer.load("checkpoints/en-fr"), "The cat sat on the mat.")
    >>> shown = lens_view_model(trace, 1)
    >>> shown.read, shown.word, str(shown.steps[shown.top_from]), f"{shown.probability:.2f}"
    ('·Le', '·chat', 'layer 1', '0.99')
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from transformer.attribution.direct_logit_attribution import Attribution, Source, attribute, strongest_sources
from transformer.layers.residual_stream import Part
from transformer.predictions.lens import Lens, WordProbabilities, lens_stack, logit_lens, shown_word, word_probabilities
from transformer.runs.traces import Trace
from views.view_models import RunViewModel

MAX_COLUMNS = 10  # of the grid at a time: words fit into their cells on a small laptop
READ_COLUMNS = 40  # read out at a time, so that a neighbouring position is there at once
MOST_PARTS = 9  # with a bar of their own
MOST_SOURCES = 2000
_CANDIDATES = 100
ATTENTIONS = ("self_attention", "cross_attention")


@dataclass(frozen=True)
class LensChoices:
    """What the reader chose.

    Attributes:
        sublayers: Whether there is also a row after each attention.
        colour: Value shown by colour: the "probability" of the followed word, its "rank", or the "divergence".
        came: Whether the next word of the text is followed instead of the model's own.
        first: The first column that is drawn; ``None`` for the window around the position.
    """

    sublayers: bool = False
    colour: str = "probability"
    came: bool = False
    first: int | None = None


def position_of(trace: Trace, token: int) -> int:
    """Return the column of a token; a classifier's whole sentence, shown as ``<s>``, is the first."""
    return token + 1 if trace.checkpoint.config.n_classes and token else token


def n_columns(trace: Trace) -> int:
    """Return how many columns the whole grid has."""
    return len(trace.tokens(lens_stack(trace.checkpoint))) + bool(trace.checkpoint.config.n_classes)


def first_column(trace: Trace, position: int) -> int:
    """Return the first column of the window, with ``position`` in its middle if the text allows."""
    return min(max(0, position - MAX_COLUMNS // 2), max(0, n_columns(trace) - MAX_COLUMNS))


def first_shown(trace: Trace, choices: LensChoices, position: int) -> int:
    """Return the first column of the grid: the chosen one, or that of the window around the position."""
    return first_column(trace, position) if choices.first is None else choices.first


def first_read(trace: Trace, choices: LensChoices, position: int) -> int:
    """Return the first column that is read out for the grid."""
    first = first_shown(trace, choices, position)
    return min(max(0, first - (READ_COLUMNS - MAX_COLUMNS) // 2), max(0, n_columns(trace) - READ_COLUMNS))


def ids_that_came(trace: Trace) -> tuple[int, ...]:
    """Return the next tokens of the text where they differ from the predictions; else nothing."""
    if not trace.checkpoint.config.has_decoder or any(token.role == "pad" for token in trace.prediction):
        return ()
    own = tuple(trace.values("decoder.logits").argmax(axis=-1).tolist())
    return trace.prediction.ids if trace.prediction.ids != own else ()


def read_lens(trace: Trace, choices: LensChoices, position: int = 0) -> Lens:
    """Read out the grid's columns and some around them; the divergence only if it is the colour."""
    first = first_read(trace, choices, position)
    columns = slice(first, first + READ_COLUMNS)
    follow = ids_that_came(trace)[columns] if choices.came else ()
    return logit_lens(
        trace,
        sublayers=choices.sublayers,
        follow=follow or None,
        columns=columns,
        spread=choices.colour == "divergence",
    )


@dataclass(frozen=True)
class LensViewModel(RunViewModel):
    """Everything that the Lens page draws for the readout; ``lens_view_model`` creates it.

    Attributes:
        position: The column whose word is followed below.
        choices: What the reader chose.
        lens: The columns of the window, read out after every step.
    """

    position: int
    choices: LensChoices
    lens: Lens = field(repr=False)

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the rows."""
        return self.lens.steps

    @property
    def selected(self) -> int | None:
        """The column of the window whose word is followed, if it is inside."""
        column = self.position - self.lens.first
        return column if 0 <= column < len(self.lens.read) else None

    @property
    def _column(self) -> int:
        if self.selected is None:
            raise ValueError(f"position {self.position} is outside of the columns that are drawn")
        return self.selected

    @property
    def is_whole(self) -> bool:
        """Whether the column is a classifier's whole sentence."""
        return self.lens.of_classes and self.position == 0

    @property
    def read(self) -> str:
        """The token that is read at the position."""
        return self.lens.read[self._column]

    @property
    def token(self) -> int:
        """The position of that token in its sequence."""
        return self.position - self.lens.of_classes

    @property
    def word(self) -> str:
        """The followed word; for a token that a classifier reads alone, the class of that token."""
        if self.lens.of_classes and not self.is_whole:
            return self.lens.words[-1][self._column]
        return self.lens.followed_words[self._column]

    @property
    def probability(self) -> float:
        """Its probability at the last step."""
        if self.lens.of_classes and not self.is_whole:
            return float(self.lens.probabilities[-1, self._column, 0])
        return float(self.lens.probability[-1, self._column])

    @property
    def top_from(self) -> int:
        """The step from which the followed word stays the most likely; −1 if it does not lead at the end."""
        return int(self.lens.decided[self._column])

    @property
    def n_late(self) -> int:
        """Number of columns whose followed word is the most likely at the last step only."""
        return int((self.lens.decided == len(self.steps) - 1).sum())

    @property
    def n_never(self) -> int:
        """Number of columns whose followed word is not the most likely at the end."""
        return int((self.lens.decided < 0).sum())

    @property
    def earlier(self) -> tuple[str, ...]:
        """The words that were on top at the position earlier, each once, from the bottom up."""
        return tuple(dict.fromkeys(row[self._column] for row in self.lens.words[: max(0, self.top_from)]))

    @property
    def runner_up(self) -> str:
        """The most likely other word at the last step, if there is one."""
        ids = self.lens.ids[-1, self._column]
        others = [int(id) for id in ids if id != self.lens.followed[self._column]]
        return self.lens.pieces[others[0]] if others else ""

    @cached_property
    def course(self) -> WordProbabilities:
        """Probabilities of the competing words at the position, step by step."""
        return word_probabilities(self.trace, self.lens, self.position)


def lens_view_model(
    trace: Trace, position: int, choices: LensChoices = LensChoices(), *, lens: Lens | None = None
) -> LensViewModel:
    """Return what the page draws for the readout.

    Args:
        trace: The run.
        position: The column whose word is followed; in a classifier the first one is the whole sentence.
        choices: What the reader chose.
        lens: The readout, if it is already known (``read_lens``).
    """
    read = read_lens(trace, choices, position) if lens is None else lens
    first = first_shown(trace, choices, position) - read.first
    return LensViewModel(trace, position, choices, read.part(first, first + MAX_COLUMNS))


def candidate_words(trace: Trace, position: int | None, first: int | None = None) -> dict[str, int]:
    """Return the most likely words at a position, by their display.

    Args:
        trace: The run.
        position: Where the words are predicted; ``None`` for the classes of a whole input.
        first: The id that precedes all others, if any.
    """
    stack = lens_stack(trace.checkpoint)
    logits = trace.values("classifier.logits" if position is None else f"{stack}.logits")
    logits = logits if position is None else logits[position]
    known: dict[str, int] = {}
    ids = [] if first is None else [first]
    for id in dict.fromkeys((*ids, *np.argsort(-logits, kind="stable")[:_CANDIDATES].tolist())):
        label = shown_word(trace.checkpoint, id)
        known[f"{label} ({id})" if label in known else label] = id
    return known


@dataclass(frozen=True)
class AuthorViewModel(RunViewModel):
    """The logit of one word, or the difference of two, as a sum over the parts of the model.

    Attributes:
        found: The sum.
    """

    found: Attribution = field(repr=False)

    @property
    def word(self) -> str:
        """The word of the logit: "chat", or "chat − chien"."""
        question = self.found.question
        own = shown_word(self.checkpoint, question.token)
        return own if question.against is None else f"{own} − {shown_word(self.checkpoint, question.against)}"

    @property
    def read(self) -> str:
        """The token that is read at the position; nothing for a whole input."""
        question = self.found.question
        return "" if question.position is None else self.trace.tokens(question.stack).displays[question.position]

    @cached_property
    def bars(self) -> tuple[tuple[Part, float], ...]:
        """The strongest parts with their contributions, in the order of the forward pass."""
        strongest = self.found.strongest(MOST_PARTS)
        return tuple((part, self.found.of(part)) for part in self.found.parts if part in strongest)

    @property
    def n_others(self) -> int:
        """The number of parts that do not have a separate bar."""
        return len(self.found.parts) - len(self.bars)

    @property
    def strongest(self) -> Part:
        """The part with the largest contribution of either sign."""
        return self.found.strongest(1)[0]

    @cached_property
    def columns(self) -> tuple[Part, ...]:
        """The parts that the columns of the map of heads show; their ``layer`` is 0."""
        kinds = [kind for kind in ATTENTIONS if Part(kind, 0, 0) in self.found.parts]
        heads = (Part(kind, 0, head) for kind in kinds for head in range(self.found.table(kind).shape[1]))
        return (*heads, Part("feed_forward", 0))

    @cached_property
    def heads(self) -> np.ndarray:
        """Contributions of every head and feed-forward layer: [layer, column]."""
        kinds = dict.fromkeys(part.kind for part in self.columns)
        return np.concatenate([self.found.table(kind) for kind in kinds], axis=1)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The words that contributed most, each with the head that it contributed through."""
        return strongest_sources(self.trace, self.found, most=MOST_SOURCES)


def author_view_model(
    trace: Trace, position: int | None, token: int, against: int | None = None, *, found: Attribution | None = None
) -> AuthorViewModel:
    """Return a word's logit as a sum over the parts of the model.

    Args:
        trace: The run.
        position: Where the word is predicted; ``None`` for the class of a whole input.
        token: The id of the word, or class.
        against: The id of the word that it is compared with, if any.
        found: The sum, if it is already known.
    """
    return AuthorViewModel(trace, attribute(trace, position, token=token, against=against) if found is None else found)
