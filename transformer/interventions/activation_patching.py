"""Activation patching: which activation of the clean run restores the clean prediction?

Two sentences differ in one word and have the same number of tokens. The model reads the corrupted one, and one
activation is replaced by that of the clean run ("causal tracing", Meng et al. 2022, §2.1; "How to use and interpret
activation patching", Heimersheim & Nanda 2024). The measure is the difference of two logits, of the clean and of the
corrupted prediction:

    recovered share = (d(patched) − d(corrupt)) / (d(clean) − d(corrupt)),   d = logit(answer) − logit(other)

At 0, the prediction is as corrupted as before; at 1, it is as if nothing had been corrupted. Many locations are tested
in one pass (``sweep``), whose first row is the clean sentence: every other row is patched from it at another location.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.interventions.experiment import Experiment, experiment
from transformer.predictions.sweep import Replacement, Text, n_rows, sweep
from transformer.predictions.target import logits_at, shown_word
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

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

    def difference(self, logits: Tensor) -> Tensor:
        """Return logit(answer) − logit(other) of [..., vocabulary]."""
        return logits[..., self.answer].double() - logits[..., self.other].double()

    def share(self, changes: np.ndarray) -> np.ndarray:
        """Return the recovered share of patches that change the difference; NaN if the two runs do not differ."""
        gap = self.clean - self.corrupt
        return np.asarray(changes) / gap if gap else np.full(np.shape(changes), np.nan)


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
        """The turns at which only attention can bring the difference; all turns if there are none.

        They exclude the turns of a decoder-only model that read a swapped token themselves.
        """
        swapped = () if "encoder" in self.clean else self.differing["decoder"]
        return tuple(turn for turn in self.turns if turn.row not in swapped) or self.turns

    @property
    def most_changed_turn(self) -> Turn:
        """The word that the corrupted run predicts differently, by the largest change of clean − corrupt.

        It is a part of a word only if no whole word changes, and an unchanged prediction only if no prediction changes.
        """
        turns = self.carried_turns
        changed = [turn for turn in turns if turn.corrupt < 0 <= turn.clean]
        words = [turn for turn in changed if self._is_word(turn.answer) and self._is_word(turn.other)]
        return max(words or changed or turns, key=lambda turn: turn.clean - turn.corrupt)

    def display(self, id: int) -> str:
        """Return how an output token, or a class, is displayed."""
        return shown_word(self.checkpoint, id)

    def _is_word(self, id: int) -> bool:
        """Return whether an output begins a word and is more than a letter, as far as a single token can tell."""
        if self.checkpoint.config.n_classes:
            return True
        display = self.checkpoint.tokenizer.display(id)
        return display.startswith("·") and len(display) > 2

    def tokens(self, stack: str, turn: Turn) -> TokenSequence:
        """Return the clean tokens that can affect a turn: in the decoder, only those up to its row."""
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
        both = logits_of(contrast, turn).double()
    return Turn(turn.row, answer, other, *(both[:, answer] - both[:, other]).tolist())


def token_places(contrast: Contrast, turn: Turn, stack: str) -> list[list[Place]]:
    """Return every part of every layer at every token: [part and layer][token]."""
    return _places(contrast, stack, PARTS, len(contrast.tokens(stack, turn)))


def head_places(contrast: Contrast, stack: str) -> list[list[Place]]:
    """Return every head of every layer, at all positions: [kind and layer][head]."""
    return _places(contrast, stack, HEADS, contrast.checkpoint.config.heads_in(stack))


def _places(contrast: Contrast, stack: str, parts: Iterable[str], count: int) -> list[list[Place]]:
    cross = stack == "decoder" and "encoder" in contrast.clean
    n_layers = len(contrast.checkpoint.model.get_submodule(stack).layers)
    return [
        [Place(stack, part, layer, index) for index in range(count)]
        for part in parts
        if cross or not part.startswith("cross")
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
    return turn.share(patched_changes(contrast, turn, flat, progress=progress)).reshape(len(places), -1)


def patched_changes(
    contrast: Contrast,
    turn: Turn,
    experiments: Sequence[Sequence[Place]],
    *,
    rows: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Return what each experiment adds to logit(answer) − logit(other) of the corrupted run: [experiment].

    ``rows`` is the number of experiments per pass (by default as many as fit).
    """
    model, texts = contrast.checkpoint.model, _texts(contrast, turn)
    variants = [[Replacement(probe_of(place), place.index, None) for place in places] for places in experiments]
    found: list[Tensor] = []
    for one in sweep(model, texts, variants, positions=[turn.row], rows=rows):
        differences = turn.difference(one.logits[:, 0])
        found.append(differences[len(texts) :] - differences[1])  # against the corrupted text in the same pass
        if progress is not None:
            progress(sum(map(len, found)), len(experiments))
    return torch.cat(found).cpu().numpy()


def probe_of(place: Place) -> str:
    """Return the name of the probe of a location."""
    return f"{place.stack}.layers.{place.layer}.{_PROBES[place.part]}"


def logits_of(contrast: Contrast, turn: Turn) -> Tensor:
    """Return the logits of a turn in the clean and in the corrupted run: [2, vocabulary]."""
    model, texts = contrast.checkpoint.model, _texts(contrast, turn)
    ids = {stack: torch.tensor([text[stack] for text in texts], device=model.device) for stack in contrast.clean}
    return logits_at(model, ids, [turn.row])[:, 0]


def _texts(contrast: Contrast, turn: Turn) -> list[Text]:
    """Return the clean and the corrupted text; the decoder's part ends at the row of the turn."""
    lengths = {stack: len(contrast.tokens(stack, turn)) for stack in contrast.clean}
    return [
        {stack: tokens.ids[: lengths[stack]] for stack, tokens in read.items()}
        for read in (contrast.clean, contrast.corrupt)
    ]


def n_passes(contrast: Contrast, turn: Turn, count: int) -> int:
    """Return how many batches ``recovered_shares`` runs for ``count`` locations, for a progress bar."""
    texts = _texts(contrast, turn)
    return math.ceil(count / max(1, n_rows(contrast.checkpoint.model, texts[-1]) - len(texts)))
