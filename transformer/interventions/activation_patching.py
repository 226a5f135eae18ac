"""Activation patching: which activation of the clean run restores the clean prediction?

Two sentences differ in one word and have the same number of tokens. The model reads the corrupted one, and one
activation is replaced by that of the clean run ("causal tracing", Meng et al. 2022, §2.1; "How to use and interpret
activation patching", Heimersheim & Nanda 2024). The measure is the difference of two logits, of the clean and of the
corrupted prediction:

    recovered share = (d(patched) − d(corrupt)) / (d(clean) − d(corrupt)),   d = logit(answer) − logit(other)

0: as corrupted as before; 1: as if nothing had been corrupted. Many locations are tested in one pass: the corrupted
sentence is repeated along the batch, and each row is patched at another location. The clean run is recorded in a batch
of the same shape, so that only the patch can change a digit.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.interventions.experiment import Experiment, experiment
from transformer.predictions.quantity import answer_logits
from transformer.probes import Edit, record
from transformer.runs.recording_size import rows_that_fit
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

TOKENS_PER_PASS = 1024  # rows × tokens; more needs memory and saves no time
PARTS = ("residual", "self_attention", "cross_attention", "feed_forward")
HEADS = {"self_heads": "self_attention", "cross_heads": "cross_attention"}
_PROBES = {
    "residual": "residual.in",
    **{part: f"{part}.output" for part in PARTS[1:]},
    **{part: f"{attention}.context" for part, attention in HEADS.items()},
}


class Turn(NamedTuple):
    """One predicted token, compared between the clean and the corrupted run.

    Attributes:
        row: Row of the logits.
        answer: Id (or class) of the clean prediction.
        other: Id (or class) of the corrupted prediction.
        clean: logit(answer) − logit(other) in the clean run.
        corrupt: The same in the corrupted run.
    """

    row: int
    answer: int
    other: int
    clean: float
    corrupt: float

    def share(self, differences: np.ndarray) -> np.ndarray:
        """Return the recovered share of patched differences; NaN if the two runs do not differ."""
        gap = self.clean - self.corrupt
        return (np.asarray(differences) - self.corrupt) / gap if gap else np.full(np.shape(differences), np.nan)


@dataclass(frozen=True)
class Contrast:
    """Two sentences of equal length, read with the same output.

    Attributes:
        clean: Tokens of the clean run, by stack.
        corrupt: Tokens of the corrupted run, by stack.
        turns: One per predicted token.
    """

    checkpoint: Checkpoint
    clean: Mapping[str, TokenSequence]
    corrupt: Mapping[str, TokenSequence]
    turns: tuple[Turn, ...]

    @property
    def differing(self) -> dict[str, list[int]]:
        """Positions whose tokens differ, by stack."""
        pairs = {stack: zip(self.clean[stack].ids, self.corrupt[stack].ids, strict=True) for stack in self.clean}
        return {stack: [index for index, (a, b) in enumerate(both) if a != b] for stack, both in pairs.items()}

    @property
    def carried_turns(self) -> tuple[Turn, ...]:
        """The turns to which attention has to carry the difference; all, if there are none.

        A decoder-only model reads the swapped token and predicts the next one at the same position.
        """
        swapped = () if "encoder" in self.clean else self.differing["decoder"]
        return tuple(turn for turn in self.turns if turn.row not in swapped) or self.turns

    @property
    def most_changed_turn(self) -> Turn:
        """The word that the corrupted run predicts differently, by the largest change of clean − corrupt.

        A part of a word is taken only if no whole word changes, and an unchanged prediction if none changes.
        """
        turns = self.carried_turns
        changed = [turn for turn in turns if turn.corrupt < 0 <= turn.clean]
        words = [turn for turn in changed if self._is_word(turn.answer) and self._is_word(turn.other)]
        return max(words or changed or turns, key=lambda turn: turn.clean - turn.corrupt)

    def display(self, id: int) -> str:
        """Return how an output token, or a class, is displayed."""
        names = self.checkpoint.config.class_names
        return names[id] if self.checkpoint.config.n_classes else self.checkpoint.tokenizer.display(id)

    def _is_word(self, id: int) -> bool:
        """Whether an output begins a word and is more than a letter, as far as a single token can tell."""
        if self.checkpoint.config.n_classes:
            return True
        display = self.checkpoint.tokenizer.display(id)
        return display.startswith("·") and len(display) > 2

    def tokens(self, stack: str, turn: Turn) -> TokenSequence:
        """Return the clean tokens that can affect a turn, those of the decoder only up to its row."""
        tokens = self.clean[stack]
        return TokenSequence(tokens.tokens[: turn.row + 1], tokens.name) if stack == "decoder" else tokens


class Place(NamedTuple):
    """Location of a patch: a part of ``PARTS`` at token ``index``, or head ``index`` everywhere.

    "residual" is the input of a layer. Heads are the parts in ``HEADS``.
    """

    stack: str
    part: str
    layer: int
    index: int


def contrast(clean: Trace, sentence: str) -> Contrast:
    """Compare the sentence of a trace with a corrupted one; both are read with the output of ``clean``.

    Raises:
        InputError: If the sentence has a different number of tokens, or is the same.
    """
    return contrast_of(experiment(clean, sentence=sentence, keep_answer=True))


def contrast_of(found: Experiment) -> Contrast:
    """Return the contrast of an experiment with another sentence whose output was kept."""
    stacks = found.original.stacks
    clean, corrupt = ({stack: run.tokens(stack) for stack in stacks} for run in (found.original, found.changed))
    return Contrast(found.original.checkpoint, clean, corrupt, _turns(found))


def _turns(found: Experiment) -> tuple[Turn, ...]:
    """Return, for each predicted row, what the clean and the corrupted run predict.

    For a typed text, the clean answer is what the model predicts, which may differ from the token that follows.
    """
    question = found.asked
    before, after = (
        np.atleast_2d(run.values(question.logits))[list(question.rows)].astype(np.float64)
        for run in (found.original, found.changed)
    )
    turns = []
    for row, answer, was, now in zip(question.rows, question.ids, before, after, strict=True):
        answer = int(was.argmax()) if question.everywhere else answer
        other = int(now.argmax())
        if other == answer:  # the prediction is unchanged: take what gained most
            gain = now - was
            gain[answer] = -np.inf
            other = int(gain.argmax())
        turns.append(Turn(row, answer, other, float(was[answer] - was[other]), float(now[answer] - now[other])))
    return tuple(turns)


def replace_turn_tokens(contrast: Contrast, turn: Turn, *, answer: int | None = None, other: int | None = None) -> Turn:
    """Return the same turn with other tokens (or classes), chosen by a reader.

    ``None`` keeps the token that the runs chose, but the two are never the same token.
    """
    if answer is None:
        answer = turn.answer if turn.answer != other else turn.other
    if other is None:
        other = turn.other if turn.other != answer else turn.answer
    if (answer, other) == (turn.answer, turn.other):
        return turn
    with torch.inference_mode():
        both = [logits_at(contrast, turn, read, 1)[0].double() for read in (contrast.clean, contrast.corrupt)]
    return Turn(turn.row, answer, other, *(float(logits[answer] - logits[other]) for logits in both))


def token_places(contrast: Contrast, turn: Turn, stack: str) -> list[list[Place]]:
    """Return every part of every layer at every token: [part and layer][token]."""
    model = contrast.checkpoint.model
    cross = stack == "decoder" and "encoder" in contrast.clean
    parts = [part for part in PARTS if part != "cross_attention" or cross]
    n_layers, n_tokens = len(getattr(model, stack).layers), len(contrast.tokens(stack, turn))
    return [
        [Place(stack, part, layer, token) for token in range(n_tokens)] for part in parts for layer in range(n_layers)
    ]


def head_places(contrast: Contrast, stack: str) -> list[list[Place]]:
    """Return every head of every layer, at all positions: [kind and layer][head]."""
    checkpoint = contrast.checkpoint
    cross = stack == "decoder" and "encoder" in contrast.clean
    n_layers, n_heads = len(getattr(checkpoint.model, stack).layers), checkpoint.config.heads_in(stack)
    return [
        [Place(stack, part, layer, head) for head in range(n_heads)]
        for part in HEADS
        if part == "self_heads" or cross
        for layer in range(n_layers)
    ]


def patch_grid(
    contrast: Contrast, turn: Turn, *, heads: bool = False, every_part: bool = False
) -> tuple[tuple[Place | None, ...], ...]:
    """Return the locations of a map, [row][column]; ``None`` where a stack has no such part.

    For vectors, the columns are the encoder's tokens followed by the decoder's up to the row of the word, and the rows
    are layers, of the residual stream only or of ``every_part``. For ``heads``, each attention layer of each kind has a
    row.
    """
    stacks = tuple(contrast.clean)
    if heads:
        own = [row for stack in stacks for row in head_places(contrast, stack)]
        most = max(map(len, own))
        return tuple((*row, *[None] * (most - len(row))) for row in own)
    by_stack = [{row[0][1:3]: row for row in token_places(contrast, turn, stack)} for stack in stacks]
    widths = [len(next(iter(rows.values()))) for rows in by_stack]
    parts = PARTS if every_part else PARTS[:1]
    order = sorted(
        {at for rows in by_stack for at in rows if at[0] in parts}, key=lambda at: (PARTS.index(at[0]), at[1])
    )
    return tuple(
        tuple(place for rows, width in zip(by_stack, widths, strict=True) for place in rows.get(at, [None] * width))
        for at in order
    )


def recovered_shares(
    contrast: Contrast,
    turn: Turn,
    places: Sequence[Sequence[Place]],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Measure the recovered share of every location: [row, column], as ``places``.

    ``progress(done, total)`` is called after every pass.
    """
    flat = [(place,) for row in places for place in row]
    differences = patched_differences(contrast, turn, [*flat, ()], progress=progress)
    nothing = differences[-1]  # measured in the same batches, so that a patch without effect gives exactly 0
    return turn._replace(corrupt=float(nothing)).share(differences[:-1]).reshape(len(places), -1)


def patched_differences(
    contrast: Contrast,
    turn: Turn,
    experiments: Sequence[Sequence[Place]],
    *,
    rows: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Return logit(answer) − logit(other) of the corrupted run under each experiment: [experiment].

    ``rows`` is the number of experiments per pass (by default ``TOKENS_PER_PASS`` tokens).
    """
    rows = rows or max(1, min(len(experiments), rows_in_a_pass(contrast, turn)))
    names = {probe_of(place) for places in experiments for place in places}
    found: list[Tensor] = []
    with torch.inference_mode():
        with record(names=names) as recording:
            logits_at(contrast, turn, contrast.clean, rows)
        clean = recording.tensors
        memory = None
        if "encoder" in contrast.clean and "decoder" in contrast.clean and not any(n[0] == "e" for n in names):
            memory = contrast.checkpoint.model.encode(_ids(contrast, turn, contrast.corrupt, rows)["encoder"])
        for start in range(0, len(experiments), rows):
            chunk = experiments[start : start + rows]
            with record(patches(chunk, clean), names=()):
                logits = logits_at(contrast, turn, contrast.corrupt, rows, memory)
            found.append((logits[:, turn.answer] - logits[:, turn.other])[: len(chunk)])
            if progress is not None:
                progress(min(start + rows, len(experiments)), len(experiments))
    return torch.cat(found).double().cpu().numpy()


def patches(experiments: Sequence[Sequence[Place]], clean: Mapping[str, Tensor]) -> list[Edit]:
    """Return edits that patch row b of the batch at ``experiments[b]`` with values from ``clean``.

    ``clean`` was recorded with one row per experiment.
    """
    masks: dict[str, Tensor] = {}
    for row, places in enumerate(experiments):
        for place in places:
            name = probe_of(place)
            shape = clean[name].shape[:2]  # [batch, position, model] or [batch, head, query, channel]
            mask = masks.setdefault(name, torch.zeros(shape, dtype=torch.bool, device=clean[name].device))
            mask[row, place.index] = True

    def put_back(own: Tensor, mask: Tensor, wanted: Tensor) -> Tensor:
        return torch.where(mask.reshape(*mask.shape, *[1] * (own.ndim - 2)), wanted, own)

    return [
        Edit(name, lambda own, mask=mask, wanted=clean[name]: put_back(own, mask, wanted), "patched from the clean run")
        for name, mask in masks.items()
    ]


def probe_of(place: Place) -> str:
    """Return the name of the probe of a location."""
    return f"{place.stack}.layers.{place.layer}.{_PROBES[place.part]}"


def _ids(contrast: Contrast, turn: Turn, read: Mapping[str, TokenSequence], rows: int) -> dict[str, Tensor]:
    device = contrast.checkpoint.model.device
    lengths = {stack: len(contrast.tokens(stack, turn)) for stack in read}
    return {
        stack: torch.tensor([tokens.ids[: lengths[stack]]], device=device).expand(rows, -1)
        for stack, tokens in read.items()
    }


def logits_at(
    contrast: Contrast, turn: Turn, read: Mapping[str, TokenSequence], rows: int, memory: Tensor | None = None
) -> Tensor:
    """Return the logits of a turn for one of the sentences, ``rows`` times: [row, vocabulary]."""
    return answer_logits(contrast.checkpoint, _ids(contrast, turn, read, rows), row=turn.row, memory=memory)


def n_passes(contrast: Contrast, turn: Turn, count: int) -> int:
    """Return how many batches ``recovered_shares`` runs for ``count`` locations, for a progress bar."""
    return 1 + math.ceil((1 + count) / rows_in_a_pass(contrast, turn))


def rows_in_a_pass(contrast: Contrast, turn: Turn) -> int:
    """Return how many experiments run in one pass.

    They have ``TOKENS_PER_PASS`` tokens, or fewer if their two recordings would not fit into memory.
    """
    lengths = {stack: len(contrast.tokens(stack, turn)) for stack in contrast.clean}
    rows = TOKENS_PER_PASS // sum(lengths.values())
    source, target = lengths.get("encoder", 0), lengths.get("decoder", 0)
    return rows_that_fit(contrast.checkpoint.model, 2 * rows, source=source, target=target) // 2 or 1
