"""Heads that are off: W_O has nothing but zeros where it would read them (after pruning; Voita et al. 2019, §5)."""

from torch import nn


def pruned_heads(attention: nn.Module) -> tuple[int, ...]:
    """The heads of one attention whose columns of W_O, [model, head · channel], are all exactly 0: whatever they look
    at, nothing of it is written into the residual stream."""
    by_head = attention.output_projection.weight.unflatten(1, (attention.n_heads, -1))  # [model, head, channel]
    written = by_head.ne(0).any(dim=2).any(dim=0)  # [head]
    return tuple(head for head, writes in enumerate(written.tolist()) if not writes)
