"""Effect of each head over many prompts, or over many pairs of a clean and a corrupted prompt.

One sentence shows what a head did there; only many show that this is its habit (Wang et al. 2023, "Interpretability in
the Wild", §3, over hundreds of pairs). Everything is measured in logits of one difference,

    d = logit(answer) − logit(other)

so that numbers of different sentences can be averaged; without an ``other`` d is logit(answer). The file is CSV with
the columns ``COLUMNS``, all but the first of which are optional, or has one prompt per line.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from transformer.layers.residual_stream import Part
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.head_places import Head, all_heads, attention_layers
from transformer.runs.output_tokens import quoted, token_of
from transformer.runs.recording_size import check_recording
from transformer.runs.tracing import trace
from transformer.text.sentence_files import SHIPPED, as_text

COLUMNS = ("clean", "corrupted", "answer", "other")
PAIRS = SHIPPED.with_name("pairs.csv")  # ten included pairs with two names each (Wang et al. 2023)
MOST_BYTES = 1_000_000
MOST_MEMORY = 500_000_000  # bytes beyond the model; every line is recorded alone
LARGEST = 10  # heads that are actually patched
WHOLE = -1  # in place of the index of a head: the whole sub-layer
_SEPARATORS = ",;\t"


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


_UNKNOWN = Spread()


@dataclass(frozen=True)
class PartOverLines:
    """One head, or a whole sub-layer (``head`` = ``WHOLE``; ``kind`` "self", "cross" or "feed_forward").

    Attributes:
        attribution: What it adds to d itself in the clean run (``attribute``); biases of a sub-layer excluded.
        estimated: What patching it into the corrupted run adds to d, estimated by one backward pass
            (``attribution_patching``).
        patched: The same, measured, for the heads with the largest estimates.
        role: Role of a head, as in ``head_roles``.
        share: Share of the sentences in which it has the role.
        score: Score of that role.
    """

    stack: str
    kind: str
    layer: int
    head: int
    attribution: Spread = _UNKNOWN
    estimated: Spread = _UNKNOWN
    patched: Spread = _UNKNOWN
    role: str = ""
    share: float = math.nan
    score: Spread = _UNKNOWN

    @property
    def size(self) -> float:
        """Rank of the part: the absolute mean of the best available measure."""
        return next((abs(one.mean) for one in (self.patched, self.estimated, self.attribution) if one.count), 0.0)


class LineResult(NamedTuple):
    """Measurements on one line: ``answer`` and ``other`` as text ("" for none), and d in both runs."""

    line: Line
    answer: str
    other: str
    clean: float
    corrupted: float = math.nan


@dataclass(frozen=True)
class PromptBatch:
    """Results over all lines.

    ``gap`` is d(clean) − d(corrupted) over the pairs; dividing a mean by its mean gives a recovered share.
    """

    parts: tuple[PartOverLines, ...]
    said: tuple[LineResult, ...]
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
                **_columns("patched", part.patched),
                "patched_share": self.share(part),
                **_columns("estimated", part.estimated),
                **_columns("attribution", part.attribution),
                "role": part.role,
                "role_share": part.share,
                **_columns("role_score", part.score),
            }
            for part in self.parts
        ]

    def lines(self) -> list[dict[str, object]]:
        """Return a flat row for every line that was read."""
        said = (
            {"answer": one.answer, "other": one.other, "d": one.clean, "d_corrupted": one.corrupted}
            for one in self.said
        )
        return [one.line._asdict() | more for one, more in zip(self.said, said, strict=True)]


def read_lines(path: str | Path) -> tuple[Line, ...]:
    """Read the lines of a file.

    Raises:
        InputError: If the file is missing or too long, or as in ``lines_of``.
    """
    path = Path(path)
    try:
        return lines_of(read_plain(path, MOST_BYTES), path.name)
    except (MessageError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read: {text_of(error)}") from error


def lines_of(content: bytes | str, name: str = "") -> tuple[Line, ...]:
    """Parse the lines of a text.

    It is CSV (with commas, semicolons or tabs) if its first line contains one of ``COLUMNS`` or ``name`` ends in .csv;
    otherwise every line is a prompt.

    Raises:
        InputError: If the text cannot be parsed.
    """
    try:
        text = as_text(content) if isinstance(content, bytes) else content
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"Line {line} is not UTF-8 text: it has the byte 0x{content[error.start]:02x}. Save the file as UTF-8."
        ) from error
    text = text.removeprefix("\ufeff")
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise InputError(f"The text has more than {MOST_BYTES:,} bytes, which is the limit.")
    first, _, _ = text.lstrip().partition("\n")
    separator = max(_SEPARATORS, key=first.count)
    header = [name.strip().strip('"').lower() for name in first.split(separator)]
    found: tuple[Line, ...] = ()
    if first and (set(header) & set(COLUMNS) or name.lower().endswith(".csv")):
        found = _rows(text, header, separator)
    elif first:
        found = tuple(Line(at, line.strip()) for at, line in enumerate(text.splitlines(), 1) if line.strip())
    if not found:
        raise InputError(
            f"There is no line to read. Write one prompt per line, or CSV with the columns {', '.join(COLUMNS)}."
        )
    return found


def _rows(text: str, header: Sequence[str], separator: str) -> tuple[Line, ...]:
    unknown = [name for name in header if name not in COLUMNS or header.count(name) > 1]
    if unknown or COLUMNS[0] not in header:
        line = text[: len(text) - len(text.lstrip())].count("\n") + 1
        names = ", ".join(name[:40] or "∅" for name in header)
        raise InputError(
            f"Line {line} names the columns {names}; a table has clean and may have corrupted, answer and other, "
            "each once."
        )
    reader, found = csv.reader(io.StringIO(text, newline=""), delimiter=separator), []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) or [cell.lower() for cell in cells] == list(header):
                continue
            if len(cells) > len(header):
                raise InputError(
                    f"Line {reader.line_num} has {len(cells)} values, the first line {len(header)}: put a text that "
                    f"holds {separator!r} between quotation marks. It reads: {quoted(separator.join(row))}"
                )
            found.append(Line(reader.line_num, **dict(zip(header, cells, strict=False))))
    except csv.Error as error:
        raise InputError(f"Line {reader.line_num} is not a table row: {text_of(error)}") from error
    return tuple(found)


def cases_of(checkpoint: Checkpoint, lines: Sequence[Line]) -> tuple[tuple[Case, ...], tuple[InputError, ...]]:
    """Return the lines that the model can read, with token ids, and an error for each of the others.

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


def prompt_batch(
    checkpoint: Checkpoint,
    cases: Sequence[Case],
    *,
    largest: int = LARGEST,
    progress: Callable[[int, int], None] | None = None,
) -> PromptBatch:
    """Measure every head and sub-layer over ``cases``, one line at a time to save memory.

    A prompt is read as typed, without a chat template; what a decoder would generate is not part of the run.

    Args:
        checkpoint: The model.
        cases: The lines.
        largest: Number of heads to patch, those with the largest mean estimates.
        progress: Called as ``progress(done, total)`` after every line, twice for a pair.

    Raises:
        InputError: If there is no case.
    """
    if not cases:
        raise InputError("There is no line left that this model can read.")
    checkpoint = replace(checkpoint, prompt=None)
    pairs: list[tuple[Contrast, Turn]] = []
    said: list[LineResult] = []
    roles: list[tuple[HeadRole, ...]] = []
    heads, wholes = all_heads(checkpoint.config), _whole_layers(checkpoint)
    attributions: dict[Head, list[float]] = {place: [] for place in (*heads, *wholes)}
    estimates: dict[Head, list[float]] = {place: [] for place in attributions}
    total = len(cases) + sum(bool(case.line.corrupted) for case in cases)

    def report(done: int) -> None:
        if progress is not None:
            progress(done, total)

    for done, case in enumerate(cases, start=1):
        one = _measure_case(checkpoint, case)
        said.append(one.said)
        roles.append(one.roles)
        for place, values in attributions.items():
            values.append(one.attribution.get(place, math.nan))
        if one.pair is not None:
            pairs.append(one.pair)
            places = {place: _patch_places(place, one.pair[0], checkpoint) for place in estimates}
            flat = estimated_changes(*one.pair, [place for row in places.values() for place in row])
            for place, row in zip(estimates, np.split(flat, np.cumsum([*map(len, places.values())])), strict=False):
                estimates[place].append(float(row.sum()))
        report(done)
    patched: dict[Head, list[float]] = {}
    if pairs:
        strength = {head: abs(Spread.of(estimates[head]).mean) for head in heads}
        best = sorted(heads, key=lambda head: -strength[head])[: max(0, largest)]
        patched = {head: [] for head in best}
        for done, (both, turn) in enumerate(pairs, start=len(cases) + 1):
            changes = patched_changes(both, turn, [_patch_places(head, both, checkpoint) for head in best])
            for head, value in zip(best, changes, strict=True):
                patched[head].append(float(value))
            report(done)
    parts = [
        PartOverLines(
            *place,
            attribution=Spread.of(attributions[place]),
            estimated=Spread.of(estimates[place]),
            patched=Spread.of(patched.get(place, ())),
        )
        for place in attributions
    ]
    for index, of_head in enumerate(zip(*roles, strict=True)):
        found = summarise(of_head)
        score = Spread.of(role.scores.get(found.role, math.nan) for role in of_head)
        parts[index] = replace(parts[index], role=found.role, share=found.shares.get(found.role, math.nan), score=score)
    gap = Spread.of(one.clean - one.corrupted for one in said)
    return PromptBatch(tuple(parts), tuple(said), gap)


class _Measured(NamedTuple):
    said: LineResult
    attribution: Mapping[Head, float]
    roles: tuple[HeadRole, ...]
    pair: tuple[Contrast, Turn] | None


def _measure_case(checkpoint: Checkpoint, case: Case) -> _Measured:
    """Measure one line: in a decoder its next token, otherwise its blank or its class."""
    config, line = checkpoint.config, case.line
    found = trace(checkpoint, line.clean, strategy=Greedy(1) if config.has_decoder else None)
    question, pair = prediction_rows(found), None
    row, answer, other = question.rows[0], case.answer, case.other
    if line.corrupted:
        both = contrast(found, line.corrupted)
        turn = replace_turn_tokens(both, both.turns[0], answer=answer, other=other)
        pair, answer, other = (both, turn), turn.answer, turn.other
    answer = question.ids[0] if answer is None else answer
    parts = attribute(found, None if config.n_classes else row, token=answer, against=other)
    stack = parts.question.stack
    added: dict[Head, float] = {}
    for part, value in zip(parts.parts, parts.values.tolist(), strict=True):
        if part.head >= 0:
            head = Head(stack, part.kind.removesuffix("_attention"), part.layer, part.head)
            added[head] = value
            whole = head._replace(head=WHOLE)
            added[whole] = added.get(whole, 0.0) + value
        elif part == Part("feed_forward", part.layer):
            added[Head(stack, part.kind, part.layer, WHOLE)] = value
    show = config.class_names.__getitem__ if config.n_classes else checkpoint.tokenizer.display
    d = (pair[1].clean, pair[1].corrupt) if pair else (parts.logit,)
    said = LineResult(line, show(answer), "" if other is None else show(other), *d)
    roles = tuple(role for view in found.attention_views() for role in head_roles(view))
    return _Measured(said, added, roles, pair)


def _whole_layers(checkpoint: Checkpoint) -> tuple[Head, ...]:
    """Return every sub-layer as a whole, in the order of the heads, feed-forward layers last."""
    found = [Head(*layer, WHOLE) for layer in attention_layers(checkpoint.config)]
    layers = dict.fromkeys((place.stack, place.layer) for place in found)
    return (*found, *(Head(stack, "feed_forward", layer, WHOLE) for stack, layer in layers))


def _patch_places(place: Head, both: Contrast, checkpoint: Checkpoint) -> list[Place]:
    """Return what is patched for a head, or for a whole sub-layer."""
    if place.kind == "feed_forward":
        count, part = len(both.clean[place.stack]), place.kind
    else:
        count, part = checkpoint.config.heads_in(place.stack), f"{place.kind}_heads"
    return [
        Place(place.stack, part, place.layer, index)
        for index in (range(count) if place.head == WHOLE else (place.head,))
    ]


def _columns(name: str, spread: Spread) -> dict[str, object]:
    return {f"{name}_{part}": value for part, value in spread._asdict().items()}
