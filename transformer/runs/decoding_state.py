"""State of a model during decoding: what it has read and generated, and its caches."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, cast

import torch
from torch import Tensor

from transformer.fast.cache import DecoderCache
from transformer.fast.shortcut import use_cache, uses_fast_path
from transformer.fast.writing_steps import WritingSteps
from transformer.guests.text_cache import TextCache
from transformer.masks import padding_mask
from transformer.models import Model
from transformer.probes import has_forward_hooks, is_recording
from transformer.text.special_ids import Framing
from transformer.text.tokenizer import FRAMINGS, NEVER_WRITTEN


def writable(logits: Tensor, never: Sequence[int] = NEVER_WRITTEN) -> Tensor:
    """Return logits with −∞ for ``never``: tokens that training never targets (``<pad>``, ``<s>``)."""
    logits = logits.clone()
    for id in never:
        logits[..., id] = -torch.inf
    return logits


class DecodingState:
    """Feeds tokens to the decoder of an encoder-decoder or decoder-only model, for a batch of texts.

    Args:
        model: The model.
        source_ids: What the encoder reads, [batch, source position]; ``None`` for a decoder-only model.
        cached: If ``False``, all tokens are run again at every step: slow, and the reference for testing the cache.
        hooked: Whether the model has forward hooks, if the caller knows.
    """

    def __init__(
        self, model: Model, source_ids: Tensor | None, *, cached: bool = True, hooked: bool | None = None
    ) -> None:
        hooked = has_forward_hooks(model) if hooked is None else hooked
        self.model = cast(Any, model)  # a model with a decoder
        self.cached = cached and not (model.is_guest and hooked)  # a hook in a guest sees the whole text at each step
        self.source_ids = source_ids
        self.memory: Tensor | None = None if source_ids is None else self.model.encode(source_ids)
        self.cache = self._new_cache()
        self.ids: Tensor | None = None  # all tokens fed so far, [batch, position]
        # The modules must be called in training (dropout), and if one of them has a hook.
        self.unobserved = cached and not model.is_guest and not model.training and not hooked
        self.steps: WritingSteps | None = None

    def feed(self, ids: Tensor) -> Tensor:
        """Append ``ids``, [batch, new positions], and return the last logits, [batch, vocabulary]."""
        return self.model.project(self._hidden(ids)[:, -1:])[:, 0]

    def feed_all(self, ids: Tensor) -> Tensor:
        """Append ``ids`` and return the logits after each of them, [batch, new positions, vocabulary]."""
        return self.model.project(self._hidden(ids)[:, -ids.shape[1] :])

    def _hidden(self, ids: Tensor) -> Tensor:
        before = 0 if self.ids is None else self.ids.shape[1]
        self.ids = ids if self.ids is None else torch.cat((self.ids, ids), dim=1)
        config, now = self.model.config, self.ids.shape[1]
        if self.cache is not None and any(before <= length < now for length in config.switch_lengths):
            self.cache = self._new_cache()  # keys and values of the shorter text are not valid here
        cache = self.cache
        if self.model.is_guest:
            return self._hidden_of_guest(cache)
        new = self.ids if cache is None else self.ids[:, cache.length :]
        if self.unobserved and new.shape[1] == 1 and cache is not None and cache.length and uses_fast_path():
            self.steps = self.steps or WritingSteps(self.model.decoder)
            keys_allowed = None if self.source_ids is None else padding_mask(self.source_ids, config.pad_id)
            return self.steps(new, cache, self.memory, keys_allowed)
        read = (new,) if self.memory is None else (new, self.memory, self.source_ids)
        if cache is None:
            return self.model.decode(*read)
        with use_cache(cache):
            return self.model.decode(*read, start=cache.length)

    def _hidden_of_guest(self, cache: TextCache | None) -> Tensor:
        """Return the output of a guest for all positions, or for the new ones if its cache holds the others."""
        read = () if self.memory is None else (self.memory, self.source_ids)
        if cache is not None and not is_recording():  # a recorded step shows the whole text
            return self.model.decode_new(self.ids, cache, *read)
        return self.model.decode(self.ids, *read)

    def _new_cache(self) -> Any:
        if not self.cached:
            return None
        return self.model.new_cache() if self.model.is_guest else DecoderCache(self.model.decoder)

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order; a row may occur several times."""
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
    """Translate a batch of padded sources, [batch, position], greedily.

    Returns:
        The token ids of each translation, without special tokens, up to ``max_new_tokens`` or the model's maximum.
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
