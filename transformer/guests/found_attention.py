"""The attention of one layer, found by the numbers of a trial pass and described by ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from transformer.attention import MultiHeadAttention
from transformer.guests.attention_function import show, watch_softmax
from transformer.guests.described_parts import NotExposed, linear
from transformer.guests.rotary_positions import RotaryPositions, rotary_of_query
from transformer.guests.search import Search, SubLayer
from transformer.guests.trial_pass import Event, same

_FIRST = slice(0, 1)  # position 0, where rotary positions change nothing


def find_attention(search: Search, stream: Tensor, inside: Sequence[Event], event: Event) -> SubLayer:
    """Return our attention with the matrices of a network's, each in the order of our heads.

    Args:
        search: What is searched.
        stream: The input of the layer.
        inside: The calls that the layer made.
        event: The call of the attention module.
    """
    with torch.device("meta"):
        attention: Any = MultiHeadAttention(search.config)
    for name in ("query", "key", "value"):
        setattr(attention, f"{name}_projection", NotExposed("the projections of its queries, keys and values"))
    attention.output_projection = NotExposed("the output matrix of its heads")
    linears = [each for each in inside if each.is_linear]
    own = [each for each in linears if each.within(event)]
    reader = next((each for each in own if each.input.shape == stream.shape), event)
    show(event.module, attention)
    if (call := search.trial.call_of(event)) is None:
        watch_softmax(event.module)
        attention.scale = None
        for name in ("query", "key"):
            setattr(attention, name, NotExposed("queries and keys, because its attention has its own code"))
        return SubLayer(attention, reader, _last_matrix(event, own, linears) or event)
    output = next((each for each in linears if same(each.input, call.context)), None)
    window = getattr(event.module, "sliding_window", None)
    attention.window = window if isinstance(window, int) and window > 0 else None
    attention.scale, attention.score_cap = call.scale, call.cap
    attention.n_heads, attention.d_head = call.query.shape[1], call.query.shape[-1]
    attention.heads_a_key = attention.n_heads // call.key.shape[1]
    own = [each for each in own if each is not output]
    norms = [each for each in inside if each.within(event) and each.is_norm]
    scalings = (1.0, *sorted({each.attention_factor for each in search.frequencies} - {1.0}))
    _describe_projection(attention, "value", own, _heads_as_columns(call.value))
    unturned = _describe_turned(attention, "query", call.query, own, norms, scalings)
    _describe_turned(attention, "key", call.key, own, norms, scalings)
    if unturned is not None and (rotary := rotary_of_query(search.frequencies, unturned, call.query)) is not None:
        attention.rotary = RotaryPositions(rotary)  # until its scores show that they depend on positions
    return SubLayer(attention, reader, output or event)


def _last_matrix(event: Event, own: Sequence[Event], linears: Sequence[Event]) -> Event | None:
    """Return the call of W_O, within an attention that calls no attention function or after it."""
    last = own[-1] if len(own) > 1 and not same(own[-1].input, own[0].input) else None
    if last is not None and last.output.shape == last.input.shape == event.output.shape:
        return last
    return next((each for each in linears if each.started > event.ended and same(each.input, event.output)), None)


def _describe_turned(
    attention: Any,
    name: str,
    heads: Tensor,
    own: Sequence[Event],
    norms: Sequence[Event],
    scalings: Sequence[float],
) -> Tensor | None:
    """Describe the projection of queries or keys, and a norm that follows it.

    Args:
        attention: Our attention.
        name: "query" or "key".
        heads: What the attention function received, [1, head, position, channel].
        own: The calls of linear layers of the attention.
        norms: The calls of its norms.
        scalings: Factors of channels that rotate.

    Returns:
        What rotary positions turn, [position, head · channel]; None if it was not found.
    """
    wanted = _heads_as_columns(heads)
    for scaling in scalings:
        for factor in (1.0, heads.shape[-1] ** -0.5):
            found = _describe_projection(attention, name, own, wanted, rows=_FIRST, factor=factor, scaling=scaling)
            if found is not None:
                return found
    for norm in norms:
        given, unturned = _rows(norm.input, len(wanted)), _rows(norm.output, len(wanted))
        if given is None or unturned is None or unturned.shape[1] != wanted.shape[1]:
            continue
        if any(_same_values(unturned[_FIRST] * scaling, wanted[_FIRST]) for scaling in scalings):
            setattr(attention, f"{name}_norm", norm.module)
            attention.normalizes = True
            _describe_projection(attention, name, own, given)
            return unturned
    return None


def _describe_projection(
    attention: Any,
    name: str,
    own: Sequence[Event],
    wanted: Tensor,
    *,
    rows: slice = slice(None),
    factor: float = 1.0,
    scaling: float = 1.0,
) -> Tensor | None:
    """Describe the linear layer whose output has the columns ``wanted``, and return them.

    They may be in any order and a part of its output, which is multiplied by ``factor``. Those that rotate may also be
    multiplied by ``scaling``. Only the positions ``rows`` are compared.
    """
    for event in own:
        output = event.output * factor
        if output.ndim != 3 or output.shape[1] != len(wanted) or output.shape[2] < wanted.shape[1]:
            continue
        if (order := _order_of_columns(output[0, rows], wanted[rows], scaling)) is not None:
            whole = torch.equal(order, torch.arange(output.shape[2]))
            setattr(attention, f"{name}_projection", linear(event.module, None if whole else order, factor))
            return output[0][:, order]
    return None


def _order_of_columns(given: Tensor, wanted: Tensor, scaling: float) -> Tensor | None:
    """Return where the columns ``wanted`` are in ``given``, as they are or multiplied by ``scaling``."""
    if given.shape == wanted.shape and torch.equal(given, wanted):
        return torch.arange(given.shape[1])
    places: dict[tuple[float, ...], int] = {}
    for columns in (given, given * scaling):
        places |= {tuple(column): place for place, column in enumerate(columns.T.tolist())}
    found = [places.get(tuple(column), -1) for column in wanted.T.tolist()]
    return None if min(found) < 0 or len(set(found)) < len(found) else torch.tensor(found)


def _same_values(one: Tensor, other: Tensor) -> bool:
    """Return whether each row of one tensor has the numbers of the other's, in any order."""
    return torch.equal(one.sort(dim=1).values, other.sort(dim=1).values)


def _heads_as_columns(heads: Tensor) -> Tensor:
    """Reshape [1, head, position, channel] to [position, head · channel]."""
    return heads[0].transpose(0, 1).flatten(1)


def _rows(tensor: Tensor, n_positions: int) -> Tensor | None:
    """Return a tensor of one text as [position, …] for any order of its axes; None if no axis fits."""
    tensor = tensor[0]
    if tensor.ndim == 3 and tensor.shape[0] != n_positions:
        tensor = tensor.transpose(0, 1)
    return tensor.flatten(1) if tensor.shape[0] == n_positions and tensor.ndim > 1 else None
