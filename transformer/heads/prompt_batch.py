"""Effect of each head over many prompts, or over many pairs of a clean and a corrupted prompt.

One sentence shows what a head does there; only many show whether it does so in general (Wang et al. 2023,
"Interpretability in the Wild", §3, over hundreds of pairs). Everything is measured in logits of one difference,

    d = logit(answer) − logit(other)

so that numbers of different sentences can be averaged; without an ``other``, d is logit(answer). The file is CSV with
the columns ``COLUMNS``, all but the first of which are optional, or has one prompt per line.
"""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from transformer.attribution.direct_logit_attribution import attribute
from transformer.disk.plain_files import read_plain
from transformer.errors import InputError, MessageError, text_of
from transformer.files.checkpoints import Checkpoint
from transformer.heads.head_roles import HeadRole, head_roles, summarise
from transformer.interventions.activation_patching import (
    Contrast,
    Place,
    Turn,
    contrast,
    patched_changes,
    replace_turn_tokens,
)
from transformer.interventions.attribution_patching import estimated_changes
from transformer.interventions.experiment import check_pair, typed_ids
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.head_places import Head, LocatedAtHead, all_heads, attention_layers
from transformer.runs.output_tokens import quoted, token_of
from transformer.runs.recording_size import check_recording
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace
from transformer.text.sentence_files import SHIPPED, as_text

COLUMNS = ("clean", "corrupted", "answer", "other")
PAIRS = SHIPPED.with_name("pairs.csv")  # ten included pairs with two names each (Wang et al. 2023)
MOST_BYTES = 1_000_000
MOST_MEMORY = 500_000_000  # bytes beyond the model; every line is recorded alone
LARGEST = 10  # heads that are actually patched
WHOLE = -1  # in place of the index of a head: the whole sub-layer
_SEPARATORS = ",;\t"
_MEASURED = ("attribution", "estimated", "patched")


class Line(NamedTuple):
    """One row of a file: its ``number`` in it, from 1, and the texts of ``COLUMNS`` ("" if missing)."""

    number: int
    clean: str
    corrupted: str = ""
    answer: str = ""
    other: str = ""


class Case(NamedTuple):
    """A line that a model can read.

    ``answer`` and ``other`` are ids (or classes); ``None`` stands for what the model predicts.
    """

    line: Line
    answer: int | None
    other: int | None


class Spread(NamedTuple):
    """Mean and spread over the ``count`` lines in which a number is defined.

    ``std`` divides by count − 1; it is NaN for fewer than two.
    """

    mean: float = math.nan
    std: float = math.nan
    count: int = 0

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Return the spread of ``values``."""
        known = np.array([value for value in values if not math.isnan(value)], dtype=np.float64)
        if not len(known):
            return cls()
        return cls(float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else math.nan, len(known))

    def columns(self, name: str) -> dict[str, float]:
        """Return the three numbers under "<name>_mean" and so on."""
        return {f"{name}_{part}": value for part, value in self._asdict().items()}


@dataclass(frozen=True)
class PartOverLines(LocatedAtHead):
    """One head, or a whole sub-layer (``head`` = ``WHOLE``; ``kind`` "self", "cross" or "feed_forward").

    Attributes:
        attribution: What it adds to d itself in the clean run (``attribute``); biases of a sub-layer excluded.
        estimated: What patching it into the corrupted run adds to d, estimated by one backward pass
            (``attribution_patching``).
        patched: The same effect as measured, for the heads with the largest estimates.
        role: Role of a head, as in ``head_roles``; "" for a whole sub-layer.
        share: Share of the sentences in which it has the role.
        score: Score of that role.
    """

    attribution: Spread
    estimated: Spread
    patched: Spread
    role: str = ""
    share: float = math.nan
    score: Spread = field(default_factory=Spread)


@dataclass(frozen=True)
class PromptBatch:
    """Results over all lines.

    ``gap`` is d(clean) − d(corrupted) over the pairs; dividing a mean by its mean gives a recovered share.
    """

    parts: tuple[PartOverLines, ...]
    gap: Spread

    def share(self, part: PartOverLines) -> float:
        """Return the share of the mean gap that the patched part recovers on average."""
        return part.patched.mean / self.gap.mean if self.gap.mean else math.nan

    def records(self) -> list[dict[str, object]]:
        """Return a flat row for every part, for a table."""
        return [
            {
                **{name: getattr(part, name) for name in ("stack", "kind", "layer")},
                "head": None if part.head == WHOLE else part.head,
                **part.patched.columns("patched"),
                "patched_share": self.share(part),
                **part.estimated.columns("estimated"),
                **part.attribution.columns("attribution"),
                "role": part.role,
                "role_share": part.share,
                **part.score.columns("role_score"),
            }
            for part in self.parts
        ]


def read_lines(path: str | Path) -> tuple[Line, ...]:
    """Read the lines of a file: a table if it is a .csv or begins with ``COLUMNS``, else prompts.

    Commas, semicolons or tabs separate the columns of a table.

    Raises:
        InputError: If the file is missing, too long, not UTF-8, no such table, or without a line.
    """
    path = Path(path)
    try:
        raw = read_plain(path, MOST_BYTES)
    except (MessageError, OSError) as error:
        raise InputError(text_of(error)) from error
    try:
        text = as_text(raw).removeprefix("\ufeff")
        first = text.lstrip().partition("\n")[0].lower()
        separator = max(_SEPARATORS, key=first.count)
        names = {name.strip().strip('"') for name in first.split(separator)}
        if first and (path.suffix == ".csv" or names & set(COLUMNS)):
            found = _rows(text, separator)
        else:
            found = tuple(Line(at, line.strip()) for at, line in enumerate(text.splitlines(), 1) if line.strip())
        if not found:
            raise InputError(f"write one prompt per line, or a table with the columns {', '.join(COLUMNS)}.")
    except (csv.Error, ValueError) as error:
        raise InputError(f"{path} cannot be read: {text_of(error)}") from error
    return found


def _rows(text: str, separator: str) -> tuple[Line, ...]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    filled = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if "".join(row).strip()]
    header = [name.lower() for name in filled[0][1]]
    if COLUMNS[0] not in header or len(set(header) & set(COLUMNS)) < len(header):
        raise InputError(
            f"its columns are {', '.join(header)}; there must be clean, and may be corrupted, answer and other, each "
            "once."
        )
    for number, cells in filled:
        if len(cells) > len(header):
            raise InputError(
                f"line {number} has {len(cells)} values, the first line {len(header)}; put a text that holds "
                f"{separator!r} between quotation marks."
            )
    return tuple(Line(number, **dict(zip(header, cells, strict=False))) for number, cells in filled[1:])


def cases_of(checkpoint: Checkpoint, lines: Sequence[Line]) -> tuple[tuple[Case, ...], tuple[InputError, ...]]:
    """Return the lines that the model can read, as cases with token ids, and an error for each other line.

    Raises:
        InputError: If the model makes no predictions.
    """
    if checkpoint.config.encodes_sentences:
        raise InputError(f"{checkpoint.name} does not predict a word, so there is nothing to measure.")
    checkpoint, found, problems = replace(checkpoint, prompt=None), [], []
    for line in lines:
        try:
            found.append(_case(checkpoint, line))
        except InputError as error:
            problems.append(
                InputError(
                    f"Line {line.number}: {text_of(error)} It reads: "
                    f"{quoted('; '.join(filter(None, line[1:])), most=160)}"
                )
            )
    return tuple(found), tuple(problems)


def _case(checkpoint: Checkpoint, line: Line) -> Case:
    clean = typed_ids(checkpoint, line.clean)
    stack = "source" if checkpoint.config.has_encoder else "target"
    check_recording(checkpoint.model, **{stack: len(clean)}, most=MOST_MEMORY)
    if checkpoint.config.fills_blanks and (blanks := clean.count(checkpoint.special.mask)) != 1:
        raise InputError(f"A prompt for this model has one blank, [MASK]; this one has {blanks}.")
    if line.corrupted:
        check_pair(clean, typed_ids(checkpoint, line.corrupted))
    answer, other = (token_of(checkpoint, line.clean, text) if text else None for text in (line.answer, line.other))
    if answer is not None and answer == other:
        raise InputError(f"The answer and the other word are the same token, {quoted(line.answer)}.")
    return Case(line, answer, other)


def prompt_batch(checkpoint: Checkpoint, cases: Sequence[Case], *, largest: int = LARGEST) -> PromptBatch:
    """Measure every head and sub-layer over ``cases``, one line at a time to save memory.

    A prompt is read as typed, without a chat template; what a decoder would generate is not part of the run.

    Args:
        checkpoint: The model.
        cases: The lines.
        largest: Number of heads to patch, those with the largest mean estimates.

    Raises:
        InputError: If there is no case.
    """
    if not cases:
        raise InputError("There is no line left that this model can read.")
    checkpoint = replace(checkpoint, prompt=None)
    heads = all_heads(checkpoint.config)
    values = {name: {place: [] for place in (*heads, *_whole_layers(checkpoint))} for name in _MEASURED}
    pairs: list[tuple[Contrast, Turn]] = []
    roles: list[tuple[HeadRole, ...]] = []
    for case in cases:
        found = trace(checkpoint, case.line.clean, strategy=Greedy(1) if checkpoint.config.has_decoder else None)
        roles.append(tuple(role for view in found.attention_views() for role in head_roles(view)))
        pair = _pair(found, case)
        contributions = _contributions(found, case, pair[1] if pair else None)
        for place, own in values["attribution"].items():
            own.append(contributions.get(place, math.nan))
        if pair:
            pairs.append(pair)
            places = [_patch_places(place, pair[0]) for place in values["estimated"]]
            _extend(values["estimated"], values["estimated"], estimated_changes(*pair, places))
    if pairs:
        strength = {head: abs(Spread.of(values["estimated"][head]).mean) for head in heads}
        best = sorted(heads, key=lambda head: -strength[head])[: max(0, largest)]
        for pair in pairs:
            changes = patched_changes(*pair, [_patch_places(head, pair[0]) for head in best])
            _extend(values["patched"], best, changes)
    spreads = {name: {place: Spread.of(own) for place, own in by_place.items()} for name, by_place in values.items()}
    parts = [PartOverLines(*place, *(spreads[name][place] for name in _MEASURED)) for place in values["patched"]]
    for index, of_head in enumerate(zip(*roles, strict=True)):
        whole = summarise(of_head)
        score = Spread.of(role.scores.get(whole.role, math.nan) for role in of_head)
        parts[index] = replace(parts[index], role=whole.role, share=whole.shares.get(whole.role, math.nan), score=score)
    return PromptBatch(tuple(parts), Spread.of(turn.clean - turn.corrupt for _, turn in pairs))


def _extend(values: dict[Head, list[float]], places: Iterable[Head], found: np.ndarray) -> None:
    for place, value in zip(places, found.tolist(), strict=True):
        values[place].append(value)


def _pair(found: Trace, case: Case) -> tuple[Contrast, Turn] | None:
    """Return both prompts with the compared token; ``None`` for a line without a corrupted prompt."""
    if not case.line.corrupted:
        return None
    both = contrast(found, case.line.corrupted)
    return both, replace_turn_tokens(both, both.turns[0], answer=case.answer, other=case.other)


def _contributions(found: Trace, case: Case, turn: Turn | None) -> dict[Head, float]:
    """Return what each part adds to d: of the next token in a decoder, else of the blank or the class."""
    asked = prediction_rows(found)
    answer, other = (turn.answer, turn.other) if turn else (case.answer, case.other)
    row = None if found.checkpoint.config.n_classes else asked.rows[0]
    parts = attribute(found, row, token=asked.ids[0] if answer is None else answer, against=other)
    added: dict[Head, float] = {}
    for part, value in zip(parts.parts, parts.values.tolist(), strict=True):
        if part.head >= 0 or part.kind == "feed_forward":
            head = Head(parts.target.stack, part.kind.removesuffix("_attention"), part.layer, part.head)
            whole = head._replace(head=WHOLE)
            added[head] = value
            added[whole] = value if head == whole else added.get(whole, 0.0) + value
    return added


def _whole_layers(checkpoint: Checkpoint) -> tuple[Head, ...]:
    """Return every sub-layer as a whole, in the order of the heads, feed-forward layers last."""
    found = [Head(*layer, WHOLE) for layer in attention_layers(checkpoint.config)]
    layers = dict.fromkeys((place.stack, place.layer) for place in found)
    return (*found, *(Head(stack, "feed_forward", layer, WHOLE) for stack, layer in layers))


def _patch_places(place: Head, both: Contrast) -> list[Place]:
    """Return what is patched for a head, or for a whole sub-layer."""
    if place.kind == "feed_forward":
        count, part = len(both.clean[place.stack]), place.kind
    else:
        count, part = both.checkpoint.config.heads_in(place.stack), f"{place.kind}_heads"
    indices = range(count) if place.head == WHOLE else (place.head,)
    return [Place(place.stack, part, place.layer, index) for index in indices]
