"""Importance of heads for an output: every head is removed once, many heads per pass (``sweep``).

"Are Sixteen Heads Really Better than One?" (Michel et al. 2019, §3) does it one head at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from transformer.config import ModelConfig
from transformer.interventions.experiment import Experiment, experiment
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.predictions.sweep import Replacement, sweep, text_of
from transformer.predictions.target import log_probabilities
from transformer.runs.edits import ablate_head
from transformer.runs.head_places import Head, all_heads
from transformer.runs.traces import Trace


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
) -> Importance:
    """Measure the importance of all heads for the output in ``trace``.

    Args:
        trace: The recorded pass.
        rows: Heads per pass; by default as many as fit (``sweep``).
        progress: Called as ``progress(done, total)`` after every pass.
    """
    heads = all_heads(trace.checkpoint.config)
    measured: list[HeadImportance] = []
    for part in importance_by_chunks(trace, heads=heads, rows=rows):
        measured += part
        if progress is not None:
            progress(len(measured), len(heads))
    return Importance(heads, tuple(measured))


def importance_by_chunks(
    trace: Trace, *, heads: Sequence[Head], rows: int | None = None
) -> Iterator[tuple[HeadImportance, ...]]:
    """Measure the importance of ``heads``, yielding after each batched pass so that the caller may stop."""
    if rows is not None and rows < 1:
        raise ValueError(f"rows is {rows}; a pass needs at least 1 head")
    question, left = prediction_rows(trace), iter(heads)
    model, ids = trace.checkpoint.model, torch.tensor(question.ids, device=trace.checkpoint.model.device)
    variants = [[removed_head(head, model.config)] for head in heads]
    for found in sweep(model, [text_of(trace)], variants, positions=question.rows, rows=rows, edits=trace.run.edits):
        log_p = log_probabilities(trace.checkpoint, found.logits)  # [head, token, vocabulary]
        before, after = log_p.split([1, len(log_p) - 1])
        change = (after - before).gather(-1, ids[None, :, None].expand(len(after), -1, -1)).sum(dim=(1, 2))
        terms = torch.where(before > -torch.inf, before.exp() * (before - after), 0.0)  # avoids −∞ − (−∞)
        divergence = terms.sum(dim=-1).mean(dim=-1).clamp(min=0.0)
        otherwise = (after.argmax(dim=-1) != before.argmax(dim=-1)).any(dim=-1)
        numbers = zip(change.tolist(), divergence.tolist(), otherwise.tolist(), strict=True)
        yield tuple(HeadImportance(next(left), *measured) for measured in numbers)


def context_of(head: Head) -> str:
    """Return the name of the probe that holds what a head writes, before W_O."""
    return f"{head.stack}.layers.{head.layer}.{head.kind}_attention.context"


def removed_head(head: Head, config: ModelConfig) -> Replacement:
    """Return the replacement of a head's context by 0."""
    if not 0 <= head.head < config.heads_in(head.stack):
        raise ValueError(f"there is no head {head.head}; this model has heads 0 to {config.heads_in(head.stack) - 1}")
    return Replacement(context_of(head), head.head, 0.0)


def head_effect(trace: Trace, stack: str, layer: int, kind: str, *, head: int) -> Experiment:
    """Run the model over the tokens of ``trace`` again, with one head's context set to 0 before W_O.

    As in "Are Sixteen Heads Really Better than One?" (Michel et al. 2019, §2.3).
    """
    return experiment(trace, [ablate_head(stack, layer=layer, kind=kind, head=head)])
