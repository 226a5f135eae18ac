"""What precedes the first layer, found by the numbers of a trial pass and described by our modules."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer.guests.attention_function import GuestPass
from transformer.guests.described_parts import NotExposed, describe_rows
from transformer.guests.hooks import probe_scaled
from transformer.guests.search import Search
from transformer.guests.trial_pass import Event, close, same
from transformer.probes import Probe


class GuestEmbedding(nn.Module):
    """The embedding of a guest: E[id] · scale + P[position] and a norm, where it has them.

    Attributes:
        kind_of_rows: "learned", "sinusoidal" or "unknown" rows P that are added to the tokens; "" for none.
        n_before: Number of tokens before the patches of an image.
    """

    position: Probe

    def __init__(self) -> None:
        super().__init__()
        self.pad_id: int | None = None
        self.separator_id = -1  # no token ends a segment
        self.table: nn.Module = NotExposed("the table of its embeddings")
        self.scale = 1.0
        self.kind_of_rows, self.n_before = "", 0
        self.segment: Probe | None = None
        self.segment_table: nn.Module | None = None
        self.position_encoding: nn.Module | None = None
        self.projection: nn.Module | None = None
        self.norm: nn.Module | None = None
        self.token = Probe("position", "model")
        self.sum = Probe("position", "model")

    def add_rows(self, rows: nn.Module, kind: str) -> None:
        """Describe the rows P, of which ``kind`` is the kind."""
        self.position_encoding, self.kind_of_rows = rows, kind
        self.position = Probe("position", "model")


def find_embedding(search: Search, first: Event, ids: Tensor, since: int) -> GuestEmbedding:
    """Return our embedding with the tables of a network's: tokens, positions, segments, and a norm.

    Args:
        search: What is searched.
        first: The call of the first layer.
        ids: The token ids that the stack read.
        since: The end of the stack before it; -1 if there is none.
    """
    hooks, embedding = search.hooks, GuestEmbedding()
    before = [event for event in search.trial.events if event.ended < first.started and event.started > since]
    tables = [event for event in before if isinstance(event.module, nn.Embedding)]
    tokens = next((each for each in tables if each.inputs and same(each.input, ids) and not _find_rows(each)), None)
    # A narrower table holds rotary positions, which are not added.
    width = (first.input if tokens is None else tokens.output).shape[-1]
    others = [event for event in before if event is not tokens and event.output.shape[-1] == width]
    positions = next((event for event in others if _find_rows(event)), None)
    if positions is not None:
        embedding.add_rows(*describe_rows(positions.module, *_find_rows(positions)))
        hooks.after(positions.module, lambda _, __, y: embedding.position(y if y.ndim == 3 else y[None]))
    norm = norm_before(before, first)
    scale, constant = _compare_with_sum(tokens, positions, (norm or first).input)
    if scale is None:  # the table is narrower than the model, or the sum has unknown terms
        embedding.projection = NotExposed("the computation from its token embeddings to the first vectors")
        embedding.kind_of_rows = embedding.kind_of_rows or "unknown"
    if constant is not None:
        embedding.segment = Probe("position", "model")
        embedding.segment_table = next((each.module for each in tables if _is_row(each, constant)), None)
    if tokens is not None:
        embedding.table = tokens.module
        embedding.scale = (scale or 1.0) * _table_scale(tokens, ids)
        _connect_tokens(search, embedding, tokens.module, scale or 1.0, constant)
    if norm is not None:
        hooks.before(norm.module, lambda _, x: embedding.sum(x))
        embedding.norm = hooks.norm(norm)
    else:
        hooks.before(first.module, lambda seen, stream: embedding.sum(stream) if seen.depth < 0 else stream, first=True)
    return embedding


def norm_before(events: Sequence[Event], first: Event) -> Event | None:
    """Return the call of the norm whose output is the input of the first layer, if there is one."""
    return next((event for event in reversed(events) if event.is_norm and same(event.output, first.input)), None)


def _compare_with_sum(
    tokens: Event | None, positions: Event | None, total: Tensor
) -> tuple[float | None, Tensor | None]:
    """Return s and c in ``total`` = s · tokens + positions + c, with one c for all positions.

    c is the first segment of BERT, and None if it is 0. Both are None if it is another sum.
    """
    if tokens is None or tokens.output.shape != total.shape:
        return None, None
    looked_up, added = tokens.output, total - (0.0 if positions is None else positions.output)
    own, wanted = looked_up - looked_up[:, :1], added - added[:, :1]  # c is the same in each row
    ratio = float((own * wanted).sum() / own.square().sum())
    if not close(own * ratio, wanted):
        return None, None
    scale = round(ratio, 4) if abs(ratio - round(ratio, 4)) < 1e-6 else ratio
    return scale, None if close(looked_up * ratio, added) else (added - looked_up * scale)[0, 0].clone()


def _connect_tokens(
    search: Search, embedding: GuestEmbedding, table: nn.Module, scale: float, constant: Tensor | None
) -> None:
    """Connect the table of tokens, and what looks up the constant that is added to each of them."""
    segment, segments = embedding.segment, embedding.segment_table

    def tokens(_: GuestPass, __: Tensor, output: Tensor) -> Tensor:
        changed = probe_scaled(embedding.token, output, scale)[1]
        if segment is not None and segments is None and constant is not None:
            added = constant.expand_as(output)
            if (edited := segment(added)) is not added:
                changed = changed + (edited - added) / scale
        return changed

    search.hooks.after(table, tokens)
    if segment is not None and segments is not None:
        search.hooks.after(segments, lambda _, __, output: segment(output))


def _table_scale(lookup: Event, ids: Tensor) -> float:
    """Return the factor by which an embedding multiplies the rows of E (Gemma: √d); 1 if there is none."""
    rows = dict(lookup.module.named_parameters())["weight"].detach()[ids].float()
    if rows.shape != lookup.output.shape or close(rows, lookup.output):
        return 1.0
    factor = float((rows * lookup.output).sum() / rows.square().sum())
    return round(factor, 4) if close(rows * factor, lookup.output) else 1.0


def _is_row(table: Event, row: Tensor) -> bool:
    """Return whether a table looked up the same row at each position."""
    found = table.output.reshape(-1, table.output.shape[-1])
    return found.shape[-1] == len(row) and close(found, row.expand_as(found))


def _find_rows(event: Event) -> tuple[str, int] | tuple[()]:
    """Return the name of a module's table and the row for position 0; () if no rows were read in sequence."""
    rows = event.output.reshape(-1, event.output.shape[-1])
    module = event.module
    for name, table in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        if table.ndim != 2 or rows.shape[-1] != table.shape[-1] or len(rows) > len(table):
            continue
        starts = (table == rows[0]).all(dim=-1).nonzero().flatten().tolist()
        for start in starts:
            if torch.equal(table[start : start + len(rows)], rows):
                return name, start
    return ()
