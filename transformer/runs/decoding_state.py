"""A model in the middle of writing: what it has read, what it has written, and its caches."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, cast

import torch
from torch import Tensor

from transformer.fast.cache import DecoderCache
from transformer.fast.shortcut import keeping, takes_fast_path
from transformer.fast.writing_steps import WritingSteps
from transformer.masks import padding_mask
from transformer.models import Model
from transformer.probes import has_forward_hooks
from transformer.text.special_ids import Framing
from transformer.text.tokenizer import FRAMINGS, NEVER_WRITTEN


def writable(logits: Tensor, never: Sequence[int] = NEVER_WRITTEN) -> Tensor:
    """Logits with −∞ for ``never``: training never asks for ``<pad>`` and ``<s>``, so their logits mean nothing."""
    logits = logits.clone()
    for id in never:
        logits[..., id] = -torch.inf
    return logits


class DecodingState:
    """Feeds tokens to the decoder of an encoder-decoder or decoder-only model, for a batch of texts.

    ``cached=False`` runs all tokens again at every step: slow, and the reference that the cache is tested against.
    ``hooked``: whether the model has forward hooks, where the caller has looked already.
    """

    def __init__(
        self, model: Model, source_ids: Tensor | None, *, cached: bool = True, hooked: bool | None = None
    ) -> None:
        hooked = has_forward_hooks(model) if hooked is None else hooked
        self.model = cast(Any, model)  # one that writes: it has a decoder
        self.source_ids = source_ids
        self.memory: Tensor | None = None if source_ids is None else self.model.encode(source_ids)
        self.cache = DecoderCache(self.model.decoder) if cached else None
        self.ids: Tensor | None = None  # everything fed so far: [batch, position]
        # A module that is being trained drops, and one with a hook shows something: both have to be called.
        self.unobserved = cached and not model.training and not hooked
        self.steps: WritingSteps | None = None

    def feed(self, ids: Tensor) -> Tensor:
        """Append ``ids`` [batch, new positions]; return the logits after the last of them: [batch, vocabulary]."""
        return self.model.project(self._hidden(ids)[:, -1:])[:, 0]

    def feed_all(self, ids: Tensor) -> Tensor:
        """Append ``ids``; return the logits after each of them: [batch, new positions, vocabulary]."""
        return self.model.project(self._hidden(ids)[:, -ids.shape[1] :])

    def _hidden(self, ids: Tensor) -> Tensor:
        before = 0 if self.ids is None else self.ids.shape[1]
        self.ids = ids if self.ids is None else torch.cat((self.ids, ids), dim=1)
        config, now = self.model.config, self.ids.shape[1]
        if self.cache is not None and any(before <= length < now for length in config.switch_lengths):
            self.cache = DecoderCache(self.model.decoder)  # what was kept of the shorter text does not hold here
        new = self.ids if self.cache is None else self.ids[:, self.cache.length :]
        cache = self.cache
        if self.unobserved and new.shape[1] == 1 and cache is not None and cache.length and takes_fast_path():
            self.steps = self.steps or WritingSteps(self.model.decoder)
            keys_allowed = None if self.source_ids is None else padding_mask(self.source_ids, config.pad_id)
            return self.steps(new, cache, self.memory, keys_allowed)
        read = (new,) if self.memory is None else (new, self.memory, self.source_ids)
        if self.cache is None:
            return self.model.decode(*read)
        with keeping(self.cache):
            return self.model.decode(*read, start=self.cache.length)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows of the batch, in this order; a row may be taken several times."""
        if self.ids is not None:
            self.ids = self.ids[rows]
        if self.memory is not None and self.source_ids is not None:
            self.memory, self.source_ids = self.memory[rows], self.source_ids[rows]
        if self.cache is not None:
            self.cache.select(rows)


@torch.inference_mode()
def greedy_batch(
    model: Model,
    source_ids: Tensor,
    max_new_tokens: int,
    *,
    framing: Framing = FRAMINGS["encoder-decoder"],
) -> list[list[int]]:
    """Translate many padded sources [batch, position] at once, taking the most probable token at every step.

    The ids of each translation, without special tokens; it stops at ``max_new_tokens`` or at the model's maximum.
    """
    state = DecodingState(model, source_ids)
    batch = len(source_ids)
    next_ids = torch.tensor([framing.answer], device=source_ids.device).expand(batch, -1)
    ends = torch.tensor(framing.ends, device=source_ids.device)
    finished = torch.zeros(batch, dtype=torch.bool, device=source_ids.device)
    written = []
    for _ in range(min(max_new_tokens, model.config.max_length)):
        best = writable(state.feed(next_ids), framing.never).argmax(dim=-1)
        written.append(best)
        finished = finished | torch.isin(best, ends)
        if bool(finished.all()):
            break
        next_ids = best[:, None]
    rows = torch.stack(written, dim=1).tolist()
    return [list(takewhile(lambda id: id not in framing.ends, row)) for row in rows]
