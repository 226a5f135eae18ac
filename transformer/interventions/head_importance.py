"""Importance of heads for an output: every head is removed once, many heads in one pass.

The sentence is repeated along the batch, and in every row another head is zeroed: one batched pass measures as many
heads as it has rows. "Are Sixteen Heads Really Better than One?" (Michel et al. 2019, §3) does it one head at a time.
No head of the decoder affects the encoder, so for these the encoder runs once, over one sentence.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer.config import ModelConfig
from transformer.interventions.experiment import ChangeOfAnswer, experiment
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.probes import Edit, record
from transformer.runs.decoding_state import writable
from transformer.runs.edits import ablate_head
from transformer.runs.head_places import Head, all_heads
from transformer.runs.recording_size import rows_that_fit
from transformer.runs.traces import Trace

TOKENS_PER_PASS = 1024  # rows × tokens; more needs memory and saves no time


class HeadImportance(NamedTuple):
    """Effect of removing one head.

    Attributes:
        change: Σ log p of the output's tokens without the head − with it, in nats; below 0 if the head helped.
        kl: KL(original ‖ without) of the next-token distribution in nats, averaged over the output.
        predicts_otherwise: Whether another token (or class) is the most likely one somewhere in the output, so that
            greedy decoding gives another output; ``None`` if unknown.
    """

    place: Head
    change: float
    kl: float
    predicts_otherwise: bool | None = None


@dataclass(frozen=True)
class Importance:
    """Importance of the heads ``measured`` so far, which are all ``heads`` unless it was stopped."""

    heads: tuple[Head, ...]
    measured: tuple[HeadImportance, ...]

    @property
    def complete(self) -> bool:
        """Whether every head was measured."""
        return len(self.measured) == len(self.heads)

    def table(self, stack: str, kind: str, what: str = "change") -> np.ndarray:
        """Return ``change`` or ``kl`` as [layer, head]; NaN if a head was not measured."""
        places = [place for place in self.heads if (place.stack, place.kind) == (stack, kind)]
        if not places:
            raise ValueError(f"there is no {stack} {kind}-attention in this model")
        table = np.full((1 + max(p.layer for p in places), 1 + max(p.head for p in places)), np.nan)
        for row in self.measured:
            if (row.place.stack, row.place.kind) == (stack, kind):
                table[row.place.layer, row.place.head] = getattr(row, what)
        return table


def head_importance(
    trace: Trace,
    *,
    rows: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Importance:
    """Measure the importance of all heads for the output in ``trace``.

    Args:
        trace: The recorded pass.
        rows: Heads per pass (by default ``TOKENS_PER_PASS`` tokens).
        progress: Called as ``progress(done, total)`` after every pass.
        cancelled: If it returns true after a pass, the remaining heads are left out.
    """
    heads = all_heads(trace.checkpoint.config)
    measured: list[HeadImportance] = []
    for part in importance_by_chunks(trace, heads=heads, rows=rows):
        measured += part
        if progress is not None:
            progress(len(measured), len(heads))
        if cancelled is not None and cancelled():
            break
    return Importance(heads, tuple(measured))


def importance_by_chunks(
    trace: Trace, *, heads: Sequence[Head], rows: int | None = None
) -> Iterator[tuple[HeadImportance, ...]]:
    """Measure the importance of ``heads``, yielding after each batched pass so that the caller may stop."""
    if rows is not None and rows < 1:
        raise ValueError(f"rows is {rows}; a pass needs at least 1 head")
    question, model = prediction_rows(trace), trace.checkpoint.model
    sequences = [tokens.ids for tokens in (trace.source, trace.target) if tokens is not None]
    if rows is None:
        lengths = {name: len(tokens) for name in ("source", "target") if (tokens := getattr(trace, name)) is not None}
        rows = rows_that_fit(model, TOKENS_PER_PASS // sum(lengths.values()), **lengths)
    device = model.device
    logits = torch.from_numpy(np.atleast_2d(trace.values(question.logits)).copy()).to(device)
    ids = torch.tensor(question.ids, device=device)
    with torch.inference_mode():
        before = answer_log_p(trace, logits[list(question.rows)])  # [token, vocabulary]
        probabilities = before.exp()
        own = before.gather(-1, ids[:, None])
        most_likely = before.argmax(dim=-1)  # [token]
        once = [torch.tensor([sequence], device=device) for sequence in sequences]
        memory = None  # the output of the encoder, computed with the first heads of the decoder
        for chunk in chunks(heads, rows):
            inputs = [sequence.expand(len(chunk), -1) for sequence in once]
            if memory is None and model.config.kind == "encoder-decoder" and chunk[0].stack == "decoder":
                memory = model.encode(once[0])
            with record(remove_one_head_per_row(chunk, model.config), names=()):
                if chunk[0].stack == "decoder" and memory is not None:
                    hidden = model.decode(inputs[1], memory.expand(len(chunk), -1, -1), inputs[0])
                    after = model.project(hidden)
                else:
                    after = model(*inputs)
            if after.ndim == 2:  # a classifier has one row of logits per sentence
                after = after[:, None]
            after = answer_log_p(trace, after[:, list(question.rows)])  # [head, token, vocabulary]
            change = (after.gather(-1, ids[None, :, None].expand(len(chunk), -1, -1)) - own).sum(dim=(1, 2))
            terms = torch.where(probabilities > 0, probabilities * (before - after), 0.0)  # avoids −∞ − (−∞)
            divergence = terms.sum(dim=-1).mean(dim=-1).clamp(min=0.0)
            otherwise = (after.argmax(dim=-1) != most_likely).any(dim=-1)
            numbers = zip(chunk, change.tolist(), divergence.tolist(), otherwise.tolist(), strict=True)
            yield tuple(HeadImportance(Head(*head), *measured) for head, *measured in numbers)


def answer_log_p(trace: Trace, logits: Tensor) -> Tensor:
    """Return log p of everything possible, as in ``PredictionRows.log_probabilities``."""
    checkpoint = trace.checkpoint
    return (writable(logits, checkpoint.framing.never) if checkpoint.config.has_decoder else logits).log_softmax(dim=-1)


def chunks(heads: Iterable[Head], rows: int) -> Iterator[tuple[Head, ...]]:
    """Split ``heads`` into chunks of at most ``rows`` heads from a single stack, in order."""
    for _, group in groupby(heads, key=lambda head: head.stack):
        stack = tuple(group)
        yield from (stack[start : start + rows] for start in range(0, len(stack), rows))


def remove_one_head_per_row(heads: Iterable[Head], config: ModelConfig) -> list[Edit]:
    """Return edits that remove only ``heads[b]`` from row b of the batch."""
    by_layer: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    heads = tuple(heads)
    for row, (stack, kind, layer, head) in enumerate(heads):
        if not 0 <= head < config.heads_in(stack):
            raise ValueError(f"there is no head {head}; this model has heads 0 to {config.heads_in(stack) - 1}")
        by_layer.setdefault((stack, kind, layer), []).append((row, head))
    edits = []
    for (stack, kind, layer), places in by_layer.items():
        kept = torch.ones(len(heads), config.heads_in(stack), 1, 1)
        for row, head in places:
            kept[row, head] = 0.0

        def zero(context: Tensor, kept: Tensor = kept) -> Tensor:  # [batch, head, query, channel]
            return context * kept.to(context)

        edits.append(Edit(f"{stack}.layers.{layer}.{kind}_attention.context", zero, "another head removed in each row"))
    return edits


@dataclass(frozen=True)
class HeadEffect(ChangeOfAnswer):
    """Log p of an output with a head (``before``) and without it (``after``), in nats: [token].

    The output is the one that the whole model gave; it is not generated again. If it is empty, nothing was predicted.
    ``displays`` are its tokens (or the class). ``change`` is below 0 if the head helped.
    """

    displays: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray


def head_effect(trace: Trace, stack: str, layer: int, kind: str, *, head: int) -> HeadEffect:
    """Run the model over the tokens of ``trace`` again, with one head zeroed.

    "Are Sixteen Heads Really Better than One?" (Michel et al. 2019, §2.3): the head's context is set to 0 before W_O.
    """
    effect = experiment(trace, [ablate_head(stack, layer=layer, kind=kind, head=head)])
    if effect.asked.predicts_nothing:  # a masked-token model without a blank has no output that a head could help
        return HeadEffect((), np.zeros(0), np.zeros(0))
    return HeadEffect(effect.asked.displays, effect.before, effect.after)
