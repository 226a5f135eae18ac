"""Heads that are off: W_O has nothing but zeros where it would read them (after pruning; Voita et al. 2019, §5)."""

from torch import nn


def pruned_heads(attention: nn.Module) -> tuple[int, ...]:
    """The heads of one attention whose columns of W_O, [model, head · channel], are all exactly 0: whatever they look
    at, nothing of it is written into the residual stream."""
    by_head = attention.output_projection.weight.unflatten(1, (attention.n_heads, -1))  # [model, head, channel]
    silent = by_head[0].any(dim=1).logical_not()  # one row tells nearly always, and is read in no time
    return tuple(head for head in silent.nonzero().flatten().tolist() if not by_head[:, head].any())
