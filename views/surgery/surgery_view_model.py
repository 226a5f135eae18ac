"""Content of the Surgery page for one run: the edits, their effects, and the importance of each head.

A notebook builds the same:

    >>> import transformer
    >>> from transformer.interventions.head_importance import head_importance
    >>> from transformer.runs.head_places import Head
    >>> from views.surgery.surgery_view_model import SurgeryChoices, surgery_view_model
    >>> trace = transformer.trace(transformer.load("checkpoints/en-fr"), "The cat is on the mat.")
    >>> choices = SurgeryChoices(edits=("zero:encoder.0.self.3",), number="kl")
    >>> shown = surgery_view_model(trace, Head("decoder", "cross", 0, 2), choices, importance=head_importance(trace))
    >>> shown.importance_map.values.shape, shown.importance_map.selected, shown.importance_map.crossed
    ((9, 8), (6, 2), ((0, 3),))
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer.interventions.experiment import Experiment, experiment
from transformer.interventions.head_importance import Importance
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.edit_specs import EditSpec, edits_from
from transformer.runs.head_places import Head, all_heads
from transformer.runs.traces import Trace
from views.view_models import RunViewModel

NUMBERED = 1 / 3  # smallest share of the largest number with which a number is written: cells whose colour is strong


@dataclass(frozen=True)
class SurgeryChoices:
    """The choices on the page.

    Attributes:
        edits: The edits as strings (``transformer.runs.edit_specs``), in the order in which they are applied.
        click: What a click on a head does: "zero" and "mean" edit it, "focus" selects it.
        number: What the map shows for each head: "p", the change of the probability of the output in per cent,
            "change", that of log p in nats, or "kl".
    """

    edits: tuple[str, ...] = ()
    click: str = "zero"
    number: str = "p"


@dataclass(frozen=True)
class ImportanceMap:
    """One number for each head, a row for each attention layer.

    Attributes:
        values: [row, head], in per cent or nats; NaN where a head was not measured or a layer has fewer heads.
        rows: Stack, kind and layer of each row.
        n_heads: The number of heads of each row.
        breaks: The first row of each kind of attention except the first.
        selected: The cell of the marked head, if there is one.
        framed: The cells of the marked heads, if there are several.
        numbered: The cells whose numbers are written: those with a strong colour, and the marked ones.
        crossed: The cells of the heads that are removed, or replaced by their mean.
    """

    values: np.ndarray
    rows: tuple[tuple[str, str, int], ...]
    n_heads: tuple[int, ...]
    breaks: tuple[int, ...]
    selected: tuple[int, int] | None
    framed: tuple[tuple[int, int], ...]
    numbered: tuple[tuple[int, int], ...]
    crossed: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SurgeryViewModel(RunViewModel):
    """A run, the same run with the edits, and the importance of the heads measured so far."""

    location: Head
    choices: SurgeryChoices
    importance: Importance
    experiment_with: Callable[[tuple[str, ...]], Experiment]
    marked: tuple[Head, ...]

    @cached_property
    def found(self) -> Experiment:
        """The run and the same run with the edits, computed on first access.

        Raises ``NotFiniteError`` if either has NaN or infinite activations. The map does not need them.
        """
        return self.experiment_with(self.choices.edits)

    @cached_property
    def importance_map(self) -> ImportanceMap:
        """The measured importance of all heads."""
        return self.map_of(self.importance)

    def map_of(self, importance: Importance, number: str = "") -> ImportanceMap:
        """Return the map of ``importance``, which may be an estimate; by default of the chosen number."""
        number = number or self.choices.number
        kinds = dict.fromkeys((head.stack, head.kind) for head in importance.heads)
        tables = {place: importance.table(*place, "kl" if number == "kl" else "change") for place in kinds}
        if number == "p":
            tables = {place: 100 * np.expm1(table) for place, table in tables.items()}
        most = max(table.shape[1] for table in tables.values())  # a decoder may have more heads than the encoder
        padded = [
            np.pad(table, ((0, 0), (0, most - table.shape[1])), constant_values=np.nan) for table in tables.values()
        ]
        rows = [(*place, layer) for place, table in tables.items() for layer in range(len(table))]
        edits = [EditSpec.parse(text) for text in self.choices.edits]
        marked = tuple((rows.index(head[:3]), head.head) for head in self.marked)
        values = np.concatenate(padded)
        return ImportanceMap(
            values=values,
            rows=tuple(rows),
            n_heads=tuple(table.shape[1] for table in tables.values() for _row in table),
            breaks=tuple(np.cumsum([len(table) for table in padded])[:-1].tolist()),
            selected=marked[0] if len(marked) == 1 else None,
            framed=marked if len(marked) > 1 else (),
            numbered=tuple(dict.fromkeys((*strong(values), *marked))),
            crossed=tuple(
                (rows.index((edit.stack, edit.part, edit.layer)), edit.head)
                for edit in edits
                if edit.action in ("zero", "mean")
            ),
        )


def measured_by(trace: Trace) -> str:
    """Return the key of the text that names what log p is of, which is not the output if it is empty."""
    if not prediction_rows(trace).everywhere:
        return "measured_output"
    return "measured_typed" if trace.checkpoint.config.has_decoder else "measured_predicted"


def surgery_view_model(
    trace: Trace,
    location: Head,
    choices: SurgeryChoices,
    *,
    importance: Importance | None = None,
    marked: tuple[Head, ...] | None = None,
    experiment_with: Callable[[tuple[str, ...]], Experiment] | None = None,
) -> SurgeryViewModel:
    """Build what the page draws.

    Args:
        trace: The run without edits.
        location: The selected head.
        choices: What the reader chose.
        importance: The importance of the heads measured so far; by default none.
        marked: The heads that the map marks; by default the selected one.
        experiment_with: Returns the run and the same run with these edits; by default computes it.
    """

    def compute(edits: tuple[str, ...]) -> Experiment:
        return experiment(trace, edits_from(trace.checkpoint, edits))

    known = importance or Importance(all_heads(trace.checkpoint.config), ())
    shown = (location,) if marked is None else marked
    return SurgeryViewModel(trace, location, choices, known, experiment_with or compute, shown)


def strong(values: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return the cells whose absolute values are not small beside the largest."""
    sizes = np.nan_to_num(np.abs(values))
    cells = np.argwhere((sizes > 0) & (sizes >= NUMBERED * sizes.max()))
    return tuple((int(row), int(column)) for row, column in cells)
