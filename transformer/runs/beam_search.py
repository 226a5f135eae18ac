"""Beam search with a length penalty (Wu et al. 2016, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer.models import Model, log_probabilities
from transformer.runs.decoding_state import DecodingState
from transformer.runs.strategies import Beam, length_penalty
from transformer.text.tokenizer import END_ID

if TYPE_CHECKING:
    from transformer.analysis.answers.beam_tree import BeamRecorder


@dataclass(frozen=True)
class FoundText:
    """``ids`` without the prompt; ``score`` = log-probability / length penalty."""

    ids: tuple[int, ...]
    log_probability: float
    score: float
    finished: bool


def beam_search(
    model: Model,
    source: Tensor | None,  # [1, source position]
    prompt: Sequence[int],
    strategy: Beam,
    limit: int,
    *,
    forced: Sequence[int] = (),
    cached: bool = True,
    banned: Sequence[int] = (),
    recorder: BeamRecorder | None = None,
) -> list[FoundText]:
    """The best texts, best first: all finished ones that were met, or the unfinished ones where none ended in time.

    Every continuation by ``</s>`` of a live text counts as finished. With a width that never has to drop a text
    the search is exhaustive, so it finds the best text there is (up to ``limit`` tokens). A ``recorder`` only looks on.
    """
    state = DecodingState(model, source, cached=cached)
    logits = state.feed(torch.tensor([list(prompt)], device=model.device))
    texts: list[tuple[int, ...]] = [()]
    totals = torch.zeros(1)
    finished: list[FoundText] = []
    for length in range(1, limit + 1):
        log_p = log_probabilities(_ban(logits.cpu(), banned))  # [live, vocabulary]
        if length <= len(forced):
            log_p = _only(log_p, forced[length - 1])
        continued = totals[:, None] + log_p
        penalty = length_penalty(length, strategy.length_penalty)
        for text, total in zip(texts, continued[:, END_ID].tolist(), strict=True):
            if total > -torch.inf:
                finished.append(FoundText((*text, END_ID), total, total / penalty, True))
        continued[:, END_ID] = -torch.inf
        before = totals
        totals, flat = continued.flatten().topk(min(strategy.width, continued.numel()))
        possible = totals > -torch.inf
        totals, flat = totals[possible], flat[possible]
        rows, ids = flat // continued.shape[1], flat % continued.shape[1]
        if recorder is not None:
            recorder.step(log_p, before, rows, ids)
        if not len(totals):
            break
        texts = [(*texts[row], id) for row, id in zip(rows.tolist(), ids.tolist(), strict=True)]
        if length == limit or _decided(finished, float(totals[0]), limit, strategy):
            break
        state.select(rows.to(model.device))
        logits = state.feed(ids[:, None].to(model.device))
    if not finished:
        penalty = length_penalty(len(texts[0]), strategy.length_penalty)
        finished = [FoundText(t, p, p / penalty, False) for t, p in zip(texts, totals.tolist(), strict=True)]
    return sorted(finished, key=lambda found: found.score, reverse=True)[: strategy.width]


def _decided(finished: list[FoundText], best_live: float, limit: int, strategy: Beam) -> bool:
    """Whether no live text can overtake: it can only lose probability, and gain at most the longest text's penalty."""
    if not finished:
        return False
    return max(found.score for found in finished) >= best_live / length_penalty(limit, strategy.length_penalty)


def _ban(logits: Tensor, banned: Sequence[int]) -> Tensor:
    logits = logits.clone()
    logits[:, list(banned)] = -torch.inf
    return logits


def _only(log_p: Tensor, id: int) -> Tensor:
    """Allow nothing but the forced token, at its own probability."""
    kept = torch.full_like(log_p, -torch.inf)
    kept[:, id] = log_p[:, id]
    return kept
