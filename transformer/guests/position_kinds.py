"""How a guest encodes positions, inferred from numbers and not from the name of its family.

Rows that are added to the tokens are those of a table. Rotary angles are the ones that reproduce a query. What is added
to scores is measured in a pass over equal tokens, in which every layer reads one vector at all positions: whatever then
differs between two scores comes from their positions. A kind that no number confirms is "unknown", which the pages
state.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from transformer.guests.attention_function import GuestPass
from transformer.guests.described_parts import NotExposed, SharedBias
from transformer.guests.guest_model import GuestModel
from transformer.guests.rotary_positions import frequencies_of
from transformer.guests.structure import GuestStack
from transformer.guests.trial_pass import TOLERANCE, close
from transformer.positions import alibi_slopes
from transformer.probes import name_probes, record

KINDS = ("learned", "sinusoidal", "rotary", "relative", "alibi")
UNKNOWN = "unknown"


def describe_positions(model: GuestModel, given: Mapping[str, Tensor]) -> None:
    """Add to a guest and its config how its stacks encode positions.

    ``given`` is what its network received in the longest trial pass.
    """
    level, image = _level_pass(model, given), model.config.image
    grid = (0, 0) if image is None else (len(image.before), image.columns)
    has_frequencies = any(True for _ in frequencies_of(model.network))
    kinds: dict[str, tuple[str, ...]] = {}
    for name in model.stack_hooks:
        stack: GuestStack = getattr(model, name)
        seen = {stack.embedding.kind_of_rows} - {""}
        for index, layer in enumerate(stack.layers):
            front, attention = f"{name}.layers.{index}.self_attention", layer.self_attention
            scores, weights, query = (level.get(f"{front}.{part}") for part in ("scores", "weights", "query"))
            of_scores = {UNKNOWN}
            if scores is not None and weights is not None:
                of_scores = _kinds_of_scores(scores, (weights > 0).all(dim=0), query, grid, rotates=has_frequencies)
                if "relative" in of_scores and stack.position_bias is None:
                    stack.position_bias = _relative_bias(model, name, scores)
            if "rotary" not in of_scores:
                attention.rotary = None
            elif attention.rotary is None:
                attention.rotary = NotExposed("the angles of its rotary positions")
            seen |= of_scores
        kinds[name] = (UNKNOWN,) if UNKNOWN in seen else tuple(kind for kind in KINDS if kind in seen)
    first = kinds["decoder" if model.config.has_decoder else "encoder"]
    model.config = replace(model.config, position_kinds=tuple(kinds.items()), positions=next(iter(first), "none"))
    model.probes = name_probes(model)


def _level_pass(model: GuestModel, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Record two texts of one token; every layer reads the first vector of one, the last of the other."""

    def level(_: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        stream = args[0] if args else kwargs["hidden_states"]
        texts = stream if stream.ndim == 3 else stream.unflatten(0, (2, -1))  # some have one row per position
        rows = torch.stack((texts[0, 0], texts[1, -1]))[:, None]  # [text, 1, model]
        same = rows.expand_as(texts).contiguous().reshape(stream.shape)
        return ((same, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": same})

    doubled = {}
    for name, value in given.items():
        if name.endswith("input_ids"):
            tokens = [id for id in value.unique().tolist() if id != model.config.pad_id]
            value = torch.tensor([tokens[0], tokens[-1]])[:, None].expand(2, value.shape[1])
        doubled[name] = value.expand(2, *value.shape[1:]).clone()
    names = {name for name in model.probes if name.endswith(tuple(f"self_attention.{e}" for e in _SHOWN))}
    with ExitStack() as stack, torch.inference_mode(), record(names=names) as recording:
        for block in (block for hooks in model.stack_hooks.values() for block in hooks.blocks):
            stack.callback(block.register_forward_pre_hook(level, with_kwargs=True).remove)
        model.stack_outputs(doubled)
    return recording.tensors


_SHOWN = ("scores", "weights", "query")


def _kinds_of_scores(
    scores: Tensor, allowed: Tensor, query: Tensor | None, grid: tuple[int, int], *, rotates: bool
) -> set[str]:
    """Return the kinds of positions in the scores of equal tokens.

    Args:
        scores: [text, head, query, key]; the two texts are of different tokens.
        allowed: Which keys have a weight, [head, query, key].
        query: Queries as the attention received them, [text, head, query, channel], if they are known.
        grid: Number of tokens before the patches of an image, and patches per row; 0 for a text.
        rotates: Whether the network has rotary frequencies.
    """
    one, other = (_without_constants(each) for each in scores)
    bound = TOLERANCE * (float(scores[0][allowed].abs().max()) + 1e-30)
    if float(one[allowed].abs().max()) <= bound:
        return set()
    turned = query is not None and not close(query, query[:, :, :1].expand_as(query), TOLERANCE)
    if turned or float((one - other)[allowed].abs().max()) > bound:  # it depends on what the tokens are
        rotary = (turned or (query is None and rotates)) and _depends_on_distance(one, allowed, *grid)
        return {"rotary"} if rotary else {UNKNOWN}
    if not _depends_on_distance(one, allowed, *grid):
        return {UNKNOWN}
    n_heads, n_queries, n_keys = one.shape
    if not grid[1] and n_queries == n_keys:
        away = (torch.arange(n_keys) - torch.arange(n_queries)[:, None]).abs().float()
        expected = -alibi_slopes(n_heads).float()[:, None, None] * away
        if float((one - expected)[allowed].abs().max()) <= bound:
            return {"alibi"}
        if float((one - one[:, 1:2, :1] * away)[allowed].abs().max()) <= bound and n_queries > 3:
            return {UNKNOWN}  # a straight line that is not ALiBi's
    return {"relative"}


def _relative_bias(model: GuestModel, name: str, scores: Tensor) -> SharedBias | NotExposed:
    """Return the table of a network whose rows are what a stack adds to the scores of equal tokens."""
    measured, hooks, causal = _without_constants(scores[0]), model.stack_hooks[name], name == "decoder"
    away = torch.arange(measured.shape[-1]) - torch.arange(measured.shape[-2])[:, None]
    for module in (hooks.carrier or model.network).modules():
        for table in (each for each in module.children() if isinstance(each, nn.Embedding)):
            if table.embedding_dim != len(measured):
                continue
            longest = getattr(module, "relative_attention_max_distance", 128)
            bias = SharedBias(table, causal=causal, max_distance=longest)
            values = _without_constants(bias.table[:, bias.bucket(away)].detach())
            counted = away <= 0 if causal else torch.ones_like(away, dtype=torch.bool)
            if float((values - measured)[:, counted].abs().max()) <= TOLERANCE * float(scores.abs().max()):
                hooks.after(table, partial(_show_bias, bias))
                return bias
    return NotExposed("the table of its relative positions")


def _show_bias(bias: SharedBias, _: GuestPass, __: Tensor, output: Tensor) -> Tensor:
    """Record what a guest reads of its table of relative positions, [query, key, head]."""
    given = output.permute(2, 0, 1)[None]
    shown = bias.values(given)
    return output if shown is given else shown[0].permute(1, 2, 0)


def _without_constants(scores: Tensor) -> Tensor:
    """Return the scores minus each query's score with itself, since a constant per row changes no weight."""
    return scores - scores.diagonal(dim1=1, dim2=2)[..., None] if scores.shape[1] == scores.shape[2] else scores


def _depends_on_distance(values: Tensor, allowed: Tensor, n_before: int, columns: int) -> bool:
    """Return whether [head, query, key] depends on the distance alone.

    In an image, the distance is a pair: the distance in rows and the distance in columns.
    """
    n_heads, n_queries, n_keys = values.shape
    if n_queries != n_keys:
        return False
    across = columns or n_queries  # a text is one row
    places = torch.arange(n_queries) - n_before
    row, column = places.div(across, rounding_mode="floor"), places % across
    distance = (row - row[:, None]) * 2 * across + column - column[:, None]  # [query, key]
    counted = allowed.all(dim=0) & (places >= 0) & (places >= 0)[:, None]
    where = (distance - distance.min())[counted].expand(n_heads, -1)
    chosen = values[:, counted]
    least, most = (
        chosen.new_zeros(n_heads, int(where.max()) + 1).scatter_reduce(1, where, chosen, end, include_self=False)
        for end in ("amin", "amax")
    )
    return float((most - least).max()) <= TOLERANCE * (float(chosen.abs().max()) + 1e-30)
