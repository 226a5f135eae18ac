"""One plain run of a model per edit: what every sweep over heads, tokens or parts must equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from transformer import Checkpoint, Edit, Trace
from transformer.probes import record
from transformer.text.tokens import TokenSequence


def tokens_of(trace: Trace) -> list[TokenSequence]:
    """Return what the encoder and the decoder read, as far as the model has them."""
    return [trace.tokens(stack) for stack in trace.stacks]


def logits_alone(checkpoint: Checkpoint, read: Iterable[TokenSequence], edits: Iterable[Edit] = ()) -> Tensor:
    """Return the logits of a run that reads these tokens, [position, vocabulary] or [class]."""
    with torch.inference_mode(), record(edits):
        return checkpoint.model(*(torch.tensor([tokens.ids]) for tokens in read))[0]


def values_alone(checkpoint: Checkpoint, read: Iterable[TokenSequence]) -> dict[str, Tensor]:
    """Return all that such a run records, with a batch of 1."""
    with torch.inference_mode(), record() as recording:
        checkpoint.model(*(torch.tensor([tokens.ids]) for tokens in read))
    return recording.tensors


def change_at(name: str, index: object, function: Callable[[Tensor], Tensor]) -> Edit:
    """Return an edit that changes only ``values[index]`` of the one text of a batch."""

    def change(own: Tensor) -> Tensor:
        changed = own.clone()
        changed[0][index] = function(own[0][index])
        return changed

    return Edit(name, change)
