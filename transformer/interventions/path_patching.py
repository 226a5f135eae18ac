"""Path patching: the direct effect of one head on another.

Goldowsky-Dill et al. 2023, §2; Wang et al. 2023, §3.1. Activation patching restores a head for everything after it.
Here only one edge is restored, from a sender to a receiver:

1. The corrupted sentence runs with the sender's context from the clean run, and every other head and every feed-forward
   layer as in the corrupted run. So the change reaches the receiver through the residual stream alone.
2. What then arrives at the receiver, as its query, keys or values, is put into a corrupted run in which everything else
   is free. The recovered share of that run is the effect of the edge.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from transformer.guests.described_parts import ATTENTION, not_exposed
from transformer.interventions.activation_patching import Contrast, Turn, logits_at, rows_in_a_pass
from transformer.models import Model
from transformer.probes import Edit, record
from transformer.runs.head_places import Head, all_heads

INPUTS = ("query", "key", "value")
_CONTEXT, _FEED_FORWARD = "attention.context", "feed_forward.output"


def senders_of(contrast: Contrast, receiver: Head) -> tuple[Head, ...]:
    """Return all heads before ``receiver`` that can affect it directly.

    These are heads of its own stack and, for cross-attention, of the encoder, whose output it reads.

    Raises:
        ValueError: If the head does not exist.
    """
    heads = all_heads(contrast.checkpoint.config)
    if receiver not in heads:
        raise ValueError(f"this model has no head {receiver}; all_heads lists those that it has")
    return tuple(head for head in heads if _can_affect(receiver, head))


def _can_affect(receiver: Head, sender: Head) -> bool:
    if sender.stack != receiver.stack:
        return sender.stack == "encoder"  # everything in the decoder can depend on it, directly through cross-attention
    within = receiver.kind == "cross" and sender.kind == "self" and sender.layer == receiver.layer
    return sender.layer < receiver.layer or within


def path_patching(
    contrast: Contrast,
    turn: Turn,
    receiver: Head,
    senders: Sequence[Head] | None = None,
    *,
    inputs: Sequence[str] = INPUTS,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Measure the recovered share of the edge from each of ``senders`` to ``receiver``: [sender].

    Many senders share a batch, each in its own row. A sender in the encoder directly affects only the keys and values
    of cross-attention; elsewhere its share is 0.

    Args:
        contrast: The two sentences.
        turn: The prediction that is compared.
        receiver: The receiving head.
        senders: By default those of ``senders_of``.
        inputs: Which of "query", "key" and "value" of the receiver the change passes through.
        progress: Called as ``progress(done, total)`` after every batch.

    Raises:
        ValueError: If an input is unknown.
        NotExposedError: If a guest does not expose one of them.
    """
    ears = inputs_of(contrast.checkpoint.model, receiver, inputs)
    senders = senders_of(contrast, receiver) if senders is None else tuple(senders)
    rows = min(len(senders) + 1, rows_in_a_pass(contrast, turn))
    differences: list[Tensor] = []
    with torch.inference_mode():
        clean, corrupt = (_record_outputs(contrast, turn, read, rows) for read in (contrast.clean, contrast.corrupt))
        tasks: list[Head | None] = [*senders, None]  # no sender, in a batch of the same shape: share 0
        for start in range(0, len(tasks), rows):
            chunk = tasks[start : start + rows]
            with record(_freeze_except(chunk, clean, corrupt), names=ears) as received:
                logits_at(contrast, turn, contrast.corrupt, rows)
            with record([_replace_input(name, receiver.head, received.tensors[name]) for name in ears], names=()):
                logits = logits_at(contrast, turn, contrast.corrupt, rows)
            differences.append((logits[:, turn.answer] - logits[:, turn.other])[: len(chunk)])
            if progress is not None:
                progress(min(start + rows, len(tasks)), len(tasks))
    found = torch.cat(differences).double().cpu().numpy()
    return turn._replace(corrupt=float(found[-1])).share(found[:-1])


def attention_name(head: Head) -> str:
    """Return the name of the attention layer that a head belongs to."""
    return f"{head.stack}.layers.{head.layer}.{head.kind}_attention"


def inputs_of(model: Model, receiver: Head, inputs: Sequence[str]) -> list[str]:
    """Return the names of the probes of a head's inputs.

    Raises:
        ValueError: If an input is unknown.
        NotExposedError: If a guest does not expose one of them.
    """
    if wrong := [name for name in inputs if name not in INPUTS]:
        raise ValueError(f"{wrong[0]!r} is not an input of a head; choose from {', '.join(INPUTS)}")
    ears = [f"{attention_name(receiver)}.{name}" for name in inputs]
    if not model.probes.keys() >= set(ears):
        raise not_exposed(ATTENTION)
    return ears


def is_frozen(name: str) -> bool:
    """Return whether path patching holds ``name`` fixed: a context of heads or a feed-forward output."""
    return name.endswith((_CONTEXT, _FEED_FORWARD))


def _record_outputs(contrast: Contrast, turn: Turn, read: Mapping, rows: int) -> dict[str, Tensor]:
    """Return the contexts of all heads and the outputs of the feed-forward layers."""
    names = {name for name in contrast.checkpoint.model.probes if is_frozen(name)}
    with record(names=names) as recording:
        logits_at(contrast, turn, read, rows)
    return recording.tensors


def _freeze_except(
    senders: Sequence[Head | None], clean: Mapping[str, Tensor], corrupt: Mapping[str, Tensor]
) -> list[Edit]:
    """Return edits that freeze the corrupted run, except the context of ``senders[b]`` in row b.

    That context is taken from the clean run.
    """
    wanted = dict(corrupt)
    for row, sender in enumerate(senders):
        if sender is not None:
            name = f"{attention_name(sender)}.context"
            if wanted[name] is corrupt[name]:
                wanted[name] = corrupt[name].clone()
            wanted[name][row, sender.head] = clean[name][row, sender.head]
    return [Edit(name, lambda _own, as_it_was=tensor: as_it_was, "frozen") for name, tensor in wanted.items()]


def _replace_input(name: str, head: int, received: Tensor) -> Edit:
    def put(own: Tensor) -> Tensor:  # [batch, head, position, channel]
        new = own.clone()
        new[:, head] = received[:, head]
        return new

    return Edit(name, put, "what the sender tells the receiver")
