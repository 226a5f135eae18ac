"""Beam search with a length penalty (Wu et al. 2016, §7)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from transformer.errors import NotFiniteError
from transformer.models import Model, log_probabilities
from transformer.runs.decoding_state import DecodingState, writable
from transformer.runs.decoding_strategies import Beam, length_penalty
from transformer.text.tokenizer import END_ID


@dataclass(frozen=True)
class Hypothesis:
    """One text of a beam.

    Attributes:
        ids: Token ids without the prompt.
        score: Log probability divided by the length penalty.
    """

    ids: tuple[int, ...]
    text: str
    log_probability: float
    score: float
    finished: bool


class SearchRecorder(Protocol):
    """Observer of a beam search (``transformer.predictions.hypothesis_tree``)."""

    def step(self, log_p: Tensor, before: Tensor, rows: Tensor, ids: Tensor) -> None:
        """Observe one step of the search.

        Args:
            log_p: Log probabilities of the next token, [text, vocabulary].
            before: Total log probability of each text before the step, [text].
            rows: Which text each kept continuation extends, [kept], best first.
            ids: The token that each kept continuation adds, [kept].
        """


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
    ends: Sequence[int] = (END_ID,),
    recorder: SearchRecorder | None = None,
    text_of: Callable[[Sequence[int]], str] = str,
) -> list[Hypothesis]:
    """Return the best texts, best first; they are unfinished if none ended within ``limit`` tokens.

    Every continuation of an unfinished text by an id of ``ends`` (``</s>``) counts as finished. If the width is so
    large that no text is ever dropped, the search is exhaustive and finds the best text of up to ``limit`` tokens. A
    ``recorder`` only observes; ``text_of`` converts the ids of a text to a string.
    """
    state = DecodingState(model, source, cached=cached)
    logits = state.feed(torch.tensor([list(prompt)], device=model.device))
    texts: list[tuple[int, ...]] = [()]
    totals = torch.zeros(1)
    finished: list[tuple[float, float, tuple[int, ...]]] = []  # score, log-probability, ids
    for length in range(1, limit + 1):
        check_logits(logits, texts[0])
        log_p = log_probabilities(writable(logits.cpu(), banned))  # [live, vocabulary]
        if length <= len(forced):
            id = forced[length - 1]
            log_p = torch.full_like(log_p, -torch.inf).index_copy(1, torch.tensor([id]), log_p[:, [id]])
        continued = totals[:, None] + log_p
        penalty = length_penalty(length, strategy.length_penalty)
        for end in ends:
            for text, total in zip(texts, continued[:, end].tolist(), strict=True):
                if total > -torch.inf:
                    finished.append((total / penalty, total, (*text, end)))
        continued[:, list(ends)] = -torch.inf
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
        # An unfinished text can only lose probability, and gain at most the penalty of the longest one.
        highest = float(totals[0]) / length_penalty(limit, strategy.length_penalty)
        if length == limit or (finished and max(finished)[0] >= highest):
            break
        state.select(rows.to(model.device))
        logits = state.feed(ids[:, None].to(model.device))
    penalty = length_penalty(len(texts[0]), strategy.length_penalty)
    found = finished or [(total / penalty, total, text) for text, total in zip(texts, totals.tolist(), strict=True)]
    best = sorted(found, key=lambda text: text[0], reverse=True)[: strategy.width]  # stable: ties keep their order
    return [Hypothesis(ids, text_of(ids), total, score, bool(finished)) for score, total, ids in best]


def check_logits(logits: Tensor, written: Sequence[int]) -> None:
    """Check that a token can be chosen from ``logits``, [..., vocabulary].

    Args:
        logits: The logits to check.
        written: Token ids chosen before.

    Raises:
        NotFiniteError: If there is NaN or +∞ among the logits.
    """
    if not torch.isfinite(logits.amax(dim=-1)).all():  # the maximum of a row with NaN is NaN
        error = NotFiniteError(
            f"The logits of step {len(written)} are not finite (NaN or infinite), so that no next token can be chosen."
        )
        error.written = tuple(written)
        raise error
