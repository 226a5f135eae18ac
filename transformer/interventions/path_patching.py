"""Path patching: what does one head tell another directly? (Goldowsky-Dill et al. 2023, §2; Wang et al. 2023, §3.1.)

``patching`` puts a head back for everything behind it. Here only one edge is put back, from a sender to a receiver:

1. The corrupted sentence runs with the sender's context from the clean run, and every other head and every feed-forward
   layer as they were in the corrupted run. So the receiver hears of the change through the residual stream alone.
2. What then arrives at the receiver, as its query, its keys or its values, is put into a corrupted run in which all
   the rest is free. The recovered share of that run is the effect of the edge.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from transformer.interventions.activation_patching import Contrast, Turn, logits_at, rows_in_a_pass
from transformer.probes import Edit, record
from transformer.runs.head_places import Head, all_heads

INPUTS = ("query", "key", "value")
_CONTEXT, _FEED_FORWARD = "attention.context", "feed_forward.output"


def senders_of(contrast: Contrast, receiver: Head) -> tuple[Head, ...]:
    """All heads that come before ``receiver`` and that it can hear: of its own stack, and for cross-attention of the
    encoder, whose last layer it reads. Raises ``ValueError`` for a head that does not exist."""
    heads = all_heads(contrast.checkpoint.config)
    if receiver not in heads:
        raise ValueError(f"this model has no head {receiver}; all_heads lists those that it has")
    return tuple(head for head in heads if _hears(receiver, head))


def _hears(receiver: Head, sender: Head) -> bool:
    if sender.stack != receiver.stack:
        return sender.stack == "encoder"  # everything in the decoder may depend on it, directly through cross-attention
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
    """The recovered share of the edge from each of ``senders`` (by default ``senders_of``) to ``receiver``: [sender].

    ``inputs``: through which of "query", "key" and "value" the receiver hears. Many senders in one batch, each in a row
    of its own; ``progress(done, total)`` after every batch. An encoder's sender reaches only the keys and values of a
    cross-attention directly; elsewhere it is 0. Raises ``ValueError`` for another input.
    """
    if wrong := [name for name in inputs if name not in INPUTS]:
        raise ValueError(f"{wrong[0]!r} is not an input of a head; choose from {', '.join(INPUTS)}")
    senders = senders_of(contrast, receiver) if senders is None else tuple(senders)
    rows = min(len(senders) + 1, rows_in_a_pass(contrast, turn))
    ears = [f"{_attention(receiver)}.{name}" for name in inputs]
    differences: list[Tensor] = []
    with torch.inference_mode():
        clean, corrupt = (_recorded(contrast, turn, read, rows) for read in (contrast.clean, contrast.corrupt))
        tasks: list[Head | None] = [*senders, None]  # nothing is sent, in a batch of the same shape: share 0
        for start in range(0, len(tasks), rows):
            chunk = tasks[start : start + rows]
            with record(_frozen_but(chunk, clean, corrupt), names=ears) as heard:
                logits_at(contrast, turn, contrast.corrupt, rows)
            with record([_told(name, receiver.head, heard.tensors[name]) for name in ears], names=()):
                logits = logits_at(contrast, turn, contrast.corrupt, rows)
            differences.append((logits[:, turn.answer] - logits[:, turn.other])[: len(chunk)])
            if progress is not None:
                progress(min(start + rows, len(tasks)), len(tasks))
    found = torch.cat(differences).double().cpu().numpy()
    return turn._replace(corrupt=float(found[-1])).share(found[:-1])


def _attention(head: Head) -> str:
    return f"{head.stack}.layers.{head.layer}.{head.kind}_attention"


def _recorded(contrast: Contrast, turn: Turn, read: Mapping, rows: int) -> dict[str, Tensor]:
    """The contexts of all heads, and what the feed-forward layers wrote."""
    names = {name for name in contrast.checkpoint.model.probes if name.endswith((_CONTEXT, _FEED_FORWARD))}
    with record(names=names) as recording:
        logits_at(contrast, turn, read, rows)
    return recording.tensors


def _frozen_but(
    senders: Sequence[Head | None], clean: Mapping[str, Tensor], corrupt: Mapping[str, Tensor]
) -> list[Edit]:
    """Everything as in the corrupted run, but in row b the context of ``senders[b]`` as in the clean one."""
    wanted = dict(corrupt)
    for row, sender in enumerate(senders):
        if sender is not None:
            name = f"{_attention(sender)}.context"
            if wanted[name] is corrupt[name]:
                wanted[name] = corrupt[name].clone()
            wanted[name][row, sender.head] = clean[name][row, sender.head]
    return [Edit(name, lambda _own, as_it_was=tensor: as_it_was, "frozen") for name, tensor in wanted.items()]


def _told(name: str, head: int, heard: Tensor) -> Edit:
    def put(own: Tensor) -> Tensor:  # [batch, head, position, channel]
        new = own.clone()
        new[:, head] = heard[:, head]
        return new

    return Edit(name, put, "what the sender tells the receiver")
