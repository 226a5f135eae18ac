"""How a network of ``transformers`` is built, inferred from the numbers of one trial pass.

Nothing depends on the name of a family. A part gets a name only if the numbers confirm it: the residual stream if the
sums agree, a matrix if its product is what the next module received.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from transformer.errors import CheckpointError
from transformer.feed_forward import ACTIVATION_FUNCTIONS
from transformer.guests.attention_function import AttentionCall
from transformer.guests.described_layers import HalvedSinusoids
from transformer.guests.trial_pass import Event, Trial, close, same
from transformer.positions import sinusoidal_encoding

Factor: TypeAlias = float | Tensor


@dataclass(frozen=True)
class FoundNorm:
    """A norm of a network.

    Attributes:
        kind: "layer", "rms", or "" if it is neither.
        gain: Our norms' γ; None means 1.
        bias: Our norms' β; None means 0.
    """

    module: nn.Module
    kind: str
    epsilon: float
    offset: float  # number that is added to the stored gain


@dataclass(frozen=True)
class FoundProjection:
    """Rows of a linear layer of a network, in the order of our heads, times ``factor``."""

    module: nn.Module
    rows: Tensor | None  # None: all rows
    factor: float = 1.0


@dataclass
class FoundAttention:
    """The attention of one layer.

    Attributes:
        call: The call of the attention function; None if the attention calls none.
        output: The linear layer W_O.
        update: The module whose output is added to the residual stream.
    """

    module: nn.Module
    call: AttentionCall | None
    query: FoundProjection | None = None
    key: FoundProjection | None = None
    value: FoundProjection | None = None
    output: nn.Module | None = None
    query_norm: FoundNorm | None = None
    key_norm: FoundNorm | None = None
    unturned: Tensor | None = None  # queries before rotary positions: [position, head · channel]


@dataclass
class FoundFeedForward:
    """A feed-forward layer.

    Attributes:
        experts: The module of a mixture of experts, whose units are not exposed.
        router: The linear layer that chooses the experts.
    """

    first: nn.Module | None = None  # W₁ of a plain layer, W_g of a gated one, or both in one
    second: nn.Module | None = None  # W₁ of a gated layer
    down: nn.Module | None = None
    gated: bool = False
    fused: bool = False
    activation: str = ""
    activation_module: nn.Module | None = None
    reader: nn.Module | None = None  # the module whose input is the layer's input
    experts: nn.Module | None = None
    router: nn.Module | None = None
    width: int = 0


@dataclass
class FoundLayer:
    """One layer.

    Attributes:
        order: "pre", "post", "parallel", or "" if no sum of the parts reproduces the output of the block.
        norms: Norms by our names.
        factor: Factor of each sub-layer's output before it is added.
        unexplained: What is not known of the sums, where ``order`` is "".
    """

    block: nn.Module
    self_attention: FoundAttention
    cross_attention: FoundAttention | None
    feed_forward: FoundFeedForward | None
    order: str = ""
    factors: tuple[Factor, Factor] = (1.0, 1.0)
    norms: dict[str, FoundNorm] = field(default_factory=dict)
    shares_norm: bool = False  # one norm for attention and feed-forward
    unexplained: str = "what its layers add to the residual stream"


@dataclass
class FoundStack:
    """One stack of layers.

    Attributes:
        carrier: The smallest module whose output is the stack's.
        settles: Whether that output comes from the final norm rather than from the last layer.
        position_rows: What is added to each patch of an image and to the tokens before them, [position, model].
        added: Kind of the rows that are added to the tokens: "learned", "sinusoidal", "unknown", or "" for none.
        sines: The row of position 0 and the number of steps of a table of sines, then cosines (``HalvedSinusoids``).
    """

    layers: list[FoundLayer]
    carrier: nn.Module | None
    carries: type | None  # the class of the carrier's output
    final_norm: FoundNorm | None
    settles: bool
    token_table: nn.Module | None
    token_scale: float | None  # factor of what this module looks up
    table_scale: float  # factor of a row of the table in what it looks up (Gemma: √d)
    position_module: nn.Module | None  # looks up the rows that are added to the tokens
    position_name: str  # the name of its table
    position_offset: int
    embedding_norm: FoundNorm | None
    segment: Tensor | None  # a constant that is added to each token (BERT)
    segment_module: nn.Module | None  # looks up this constant, the row of the first segment
    sums: bool  # whether token + position is the input of the first layer or of the embedding's norm
    overwritten: set[int]  # modules whose output is later changed in place
    position_rows: Tensor | None = None
    added: str = ""
    sines: tuple[int, float] | None = None

    @property
    def position_table(self) -> Tensor | None:
        """The table of the rows that are added to the tokens, [position, model]."""
        return None if self.position_module is None else getattr(self.position_module, self.position_name)


def find_stacks(
    network: nn.Module, trial: Trial, *, ids: dict[str, Tensor], factors: Sequence[float]
) -> dict[str, FoundStack]:
    """Return the stacks of a network by our names.

    Args:
        network: The network.
        trial: A trial pass over it.
        ids: The token ids that each stack read.
        factors: Multipliers of the residual stream that the configuration names.
    """
    attentions = _attention_events(trial)
    found: dict[str, FoundStack] = {}
    since = -1
    for stack in ids:
        prefix = _prefix(network, stack) if len(ids) == 2 else ""
        own = [event for event in attentions if event.name.startswith(prefix)]
        if blocks := _blocks(trial, own):
            found[stack] = _stack(network, trial, blocks, own, ids[stack], factors, since)
            since = blocks[-1].ended
    return found


def check_layers(network: nn.Module, stacks: Mapping[str, FoundStack], trial: Trial) -> None:
    """Refuse a network whose layers are not each a module with one attention.

    Raises:
        CheckpointError: A list of layers has one without attention, such as linear attention or a state space, so that
            its layers would be counted wrongly; a layer has several maps per head, several attentions, or other axes
            than [text, position, model]; or layers share a module.
    """
    runs = Counter(id(event.module) for event in trial.events)
    if any(count > runs[module] for module, count in Counter(id(call.module) for call in trial.calls).items()):
        raise CheckpointError(
            "its layers combine several attention maps per head, as differential attention does; only models with one "
            "map per head can be shown"
        )
    inputs = {id(event.module): event.input for event in trial.events if event.inputs}
    names = {id(module): name for name, module in network.named_modules()}
    for name, stack in stacks.items():
        for layer in stack.layers:
            stream = inputs.get(id(layer.block))
            if stream is not None and (stream.ndim > 3 or (stream.ndim == 3 and len(stream) != 1)):
                raise CheckpointError(
                    f"its layers pass on numbers with the axes {list(stream.shape)} instead of [text, token, channel], "
                    "which cannot be shown"
                )
            if layer.cross_attention is not None and not (name == "decoder" and "encoder" in stacks):
                raise CheckpointError("its layers compute attention twice; only layers with one can be shown")
        if len({id(layer.block) for layer in stack.layers}) < len(stack.layers):
            raise CheckpointError(
                "its layers share their weights: one block runs several times. Only models whose layers are different "
                "modules can be shown"
            )
    for stack in stacks.values():
        found = {names[id(layer.block)] for layer in stack.layers}
        holder = network.get_submodule(next(iter(found)).rsplit(".", 1)[0])
        if not isinstance(holder, nn.ModuleList):
            continue
        without = [index for index, layer in enumerate(holder) if names[id(layer)] not in found]
        if without:
            raise layers_without_maps(without)


def layers_without_maps(layers: Sequence[int]) -> CheckpointError:
    """Return the error for layers, counted from 0, in which no map was found."""
    numbers = ", ".join(str(layer + 1) for layer in layers[:8]) + (", …" if len(layers) > 8 else "")
    return CheckpointError(
        f"no attention map was found in these layers (counted from 1): {numbers}. Only models whose every "
        "layer has softmax attention can be shown"
    )


def _attention_events(trial: Trial) -> list[Event]:
    """Return the calls of modules that called the attention function, or else of modules named attention."""
    called = {id(call.module) for call in trial.calls}
    if called:
        return [event for event in trial.events if id(event.module) in called]
    named = [event for event in trial.events if "attention" in type(event.module).__name__.lower()]
    return [
        event
        for event in named
        if not any(other.within(event) for other in named) and any(part.isdigit() for part in event.name.split("."))
    ]


def _prefix(network: Any, stack: str) -> str:
    module = network.get_encoder() if stack == "encoder" else network.get_decoder()
    return next(name for name, each in network.named_modules() if each is module) + "."


def _blocks(trial: Trial, attentions: Sequence[Event]) -> list[Event]:
    """Return the modules of the layers, by their attention modules' ancestors in a list of layers."""
    names = []
    for event in attentions:
        parts = event.name.split(".")
        place = next((index for index, part in enumerate(parts) if part.isdigit()), None)
        if place is not None:
            names.append(".".join(parts[: place + 1]))
    return [event for event in trial.events if event.name in set(names)]


def _stack(
    network: nn.Module,
    trial: Trial,
    blocks: list[Event],
    attentions: Sequence[Event],
    ids: Tensor,
    factors: Sequence[float],
    since: int,
) -> FoundStack:
    names = (item for module in network.modules() for item in vars(module).items())
    scalings = {float(value) for name, value in names if name.endswith("attention_scaling")} - {1.0}
    layers = [_layer(trial, block, attentions, factors, sorted(scalings)) for block in blocks]
    last = blocks[-1]
    behind = [event for event in trial.events if event.started > last.ended and is_norm(event.module)]
    final = next((event for event in behind if same(event.input, last.output)), None)
    holder = blocks[0].name.rsplit(".", 1)[0]  # name of the list of layers
    name = holder.rsplit(".", 1)[0] if "." in holder else ""
    if final is not None:
        while name and not final.name.startswith(f"{name}."):
            name = name.rsplit(".", 1)[0] if "." in name else ""
    carrier = network.get_submodule(name) if name else None
    result = (final or last).output
    carried = [event for event in trial.events if event.module is carrier]
    settles = carrier is None or any(same(event.output, result) for event in carried)
    return FoundStack(
        layers=layers,
        carrier=carrier,
        carries=trial.kinds.get(id(carrier)),
        final_norm=None if final is None else find_norm(final),
        settles=settles,
        overwritten=trial.overwritten,
        **_embedding(trial, blocks[0], ids, since),
    )


def _embedding(trial: Trial, first: Event, ids: Tensor, since: int) -> dict[str, Any]:
    """Return what precedes the first layer: token table, learned positions, norm, and whether they add up."""
    before = [event for event in trial.events if event.ended < first.started and event.started > since]
    tables = [event for event in before if isinstance(event.module, nn.Embedding)]
    tokens = next(
        (event for event in tables if event.inputs and same(event.input, ids) and not _find_table(event)[0]), None
    )
    # A narrower table holds rotary positions, which are not added.
    width = first.input.shape[-1] if tokens is None else tokens.output.shape[-1]
    others = [event for event in before if event is not tokens and event.output.shape[-1] == width]
    positions = next((event for event in others if _find_table(event)[0]), None)
    position_name, position_offset = ("", 0) if positions is None else _find_table(positions)
    added_kind, sines = "", None
    if positions is not None:
        table = getattr(positions.module, position_name)
        added_kind, sines = kind_of_rows(table.detach(), position_offset, trained=table.requires_grad)
    norm = next(
        (event for event in reversed(before) if is_norm(event.module) and same(event.output, first.input)), None
    )
    total = first.input if norm is None else norm.input
    scale, sums, segment, segments = None, False, None, None
    if tokens is not None and tokens.output.shape == total.shape:
        added = total - (positions.output if positions is not None else 0.0)
        # A constant term (BERT's first segment) is the same at each position, so differences of rows are compared.
        own, wanted = tokens.output - tokens.output[:, :1], added - added[:, :1]
        ratio = float((own * wanted).sum() / own.square().sum())
        if close(own * ratio, wanted):
            scale, sums = ratio, close(tokens.output * ratio, added)
            if abs(scale - round(scale, 4)) < 1e-6:
                scale = round(scale, 4)
            if not sums:
                segment = (added - tokens.output * scale)[0, 0].clone()
                segments = next((each.module for each in tables if _is_row(each, segment)), None)
    if scale is None and positions is None:
        added_kind = "unknown"  # the first vectors are not those of the tokens
    return {
        "token_table": None if tokens is None else tokens.module,
        "token_scale": scale,
        "table_scale": 1.0 if tokens is None else _table_scale(tokens, ids),
        "position_module": None if positions is None else positions.module,
        "position_name": position_name,
        "position_offset": position_offset,
        "embedding_norm": None if norm is None else find_norm(norm),
        "segment": segment,
        "segment_module": segments,
        "sums": sums,
        "added": added_kind,
        "sines": sines,
    }


def _table_scale(lookup: Event, ids: Tensor) -> float:
    """Return the factor of the rows of E in what an embedding looks up; 1 if it is not one."""
    rows = dict(lookup.module.named_parameters())["weight"].detach()[ids].float()
    if rows.shape != lookup.output.shape or close(rows, lookup.output):
        return 1.0
    factor = float((rows * lookup.output).sum() / rows.square().sum())
    return round(factor, 4) if close(rows * factor, lookup.output) else 1.0


def _is_row(table: Event, row: Tensor) -> bool:
    """Whether a table looked up the same row at each position."""
    found = table.output.reshape(-1, table.output.shape[-1])
    return found.shape[-1] == len(row) and close(found, row.expand_as(found))


def kind_of_rows(table: Tensor, offset: int, *, trained: bool) -> tuple[str, tuple[int, float] | None]:
    """Return the kind of the rows from ``offset`` on, and how many sines precede the cosines, if they do."""
    rows, width = table[offset : offset + 256], table.shape[-1]
    if offset == 0 and width % 2 == 0 and close(rows, sinusoidal_encoding(len(rows), width)):
        return "sinusoidal", None
    half = width // 2
    for steps in (float(half), float(half - 1)):
        if (
            width % 2 == 0
            and steps > 0
            and close(rows, HalvedSinusoids(width, offset=offset, steps=steps)(len(rows))[0])
        ):
            return "sinusoidal", (offset, steps)
    return ("learned" if trained else "unknown"), None


def _find_table(event: Event) -> tuple[str, int]:
    """Return the name of a module's table and the row for position 0; "" if no rows were read in sequence."""
    rows = event.output.reshape(-1, event.output.shape[-1])
    module = event.module
    for name, table in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        if table.ndim != 2 or rows.shape[-1] != table.shape[-1] or len(rows) > len(table):
            continue
        starts = (table == rows[0]).all(dim=-1).nonzero().flatten().tolist()
        for start in starts:
            if torch.equal(table[start : start + len(rows)], rows):
                return name, start
    return "", 0


def _layer(
    trial: Trial, block: Event, attentions: Sequence[Event], factors: Sequence[float], scalings: Sequence[float]
) -> FoundLayer:
    inside = trial.inside(block)
    own = [event for event in attentions if event.within(block) or event is block]
    found = [_attention(inside, event, _call_of(trial, event), scalings) for event in own[:2]]
    outputs = {id(each.output) for each in found if each.output is not None}
    parts = {id(part) for event in own for part in event.module.modules()} | outputs
    rest = [event for event in inside if id(event.module) not in parts]
    rest = [event for event in rest if not any(other.within(event) for other in own)]
    fed = _feed_forward(rest, block.output.shape[-1])
    layer = FoundLayer(block.module, found[0], found[1] if len(found) > 1 else None, fed)
    _order(layer, block, inside, own, factors)
    return layer


def _call_of(trial: Trial, event: Event) -> AttentionCall | None:
    """Return the call of the attention function within ``event``, counting the module's earlier calls."""
    calls = [call for call in trial.calls if call.module is event.module]
    runs = [each for each in trial.events if each.module is event.module]
    return calls[runs.index(event)] if len(calls) == len(runs) else None


def _attention(
    inside: Sequence[Event], event: Event, call: AttentionCall | None, scalings: Sequence[float]
) -> FoundAttention:
    found = FoundAttention(event.module, call)
    if call is None:
        behind = [each for each in inside if each.within(event) and _is_linear(each.module)]
        last = behind[-1] if len(behind) > 1 and not same(behind[-1].input, behind[0].input) else None
        if last is None or not last.output.shape == last.input.shape == event.output.shape:
            after = (each for each in inside if each.started > event.ended and _is_linear(each.module))
            last = next((each for each in after if same(each.input, event.output)), None)  # W_O follows the attention
        found.output = None if last is None else last.module
        return found
    linear = [each for each in inside if _is_linear(each.module)]
    found.output = next((each.module for each in linear if same(each.input, call.context)), None)
    own = [each for each in linear if each.within(event) and each.module is not found.output]
    norms = [each for each in inside if each.within(event) and is_norm(each.module)]
    value = _heads_as_columns(call.value)
    found.value = next((p for each in own if (p := _columns(each, each.output, value, rows=None))), None)
    first = slice(0, 1)  # position 0, where rotary positions change nothing
    for name, heads in (("query", call.query), ("key", call.key)):
        wanted = _heads_as_columns(heads)
        projection = next(
            (p for scaling in (1.0, *scalings) for factor in (1.0, heads.shape[-1] ** -0.5) for each in own
             if (p := _columns(each, each.output * factor, wanted, rows=first, factor=factor, scaling=scaling))),
            None,
        )  # fmt: skip
        if projection is None:
            for norm in norms:
                given, gave = _rows(norm.input, wanted.shape[0]), _rows(norm.output, wanted.shape[0])
                if gave is None or given is None or gave.shape[1] != wanted.shape[1]:
                    continue
                if any(_same_values(gave[first] * scaling, wanted[first]) for scaling in (1.0, *scalings)):
                    projection = next((p for each in own if (p := _columns(each, each.output, given, rows=None))), None)
                    setattr(found, f"{name}_norm", find_norm(norm))
                    if name == "query":
                        found.unturned = gave
                    break
        setattr(found, name, projection)
        if name == "query" and projection is not None and found.query_norm is None:
            found.unturned = _applied(projection, own)
    return found


def _applied(projection: FoundProjection, events: Sequence[Event]) -> Tensor | None:
    output = next(each.output for each in events if each.module is projection.module)[0]
    chosen = output if projection.rows is None else output[:, projection.rows]
    return chosen * projection.factor


def _same_values(one: Tensor, other: Tensor) -> bool:
    """Whether each row of one tensor has the numbers of the other's, in any order."""
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


def _columns(
    event: Event,
    output: Tensor,
    wanted: Tensor,
    *,
    rows: slice | None,
    factor: float = 1.0,
    scaling: float = 1.0,
) -> FoundProjection | None:
    """Return which columns of a linear layer's output are the columns ``wanted``, in any order.

    A rotation may multiply those that rotate by ``scaling``.
    """
    if output.ndim != 3 or output.shape[1] != wanted.shape[0] or output.shape[2] < wanted.shape[1]:
        return None
    given, wanted = (output[0], wanted) if rows is None else (output[0, rows], wanted[rows])
    if given.shape == wanted.shape and torch.equal(given, wanted):
        return FoundProjection(event.module, None, factor)
    places: dict[tuple[float, ...], int] = {}
    for columns in (given, given * scaling):
        places |= {tuple(column): place for place, column in enumerate(columns.T.tolist())}
    found = [places.get(tuple(column), -1) for column in wanted.T.tolist()]
    if min(found) < 0 or len(set(found)) < len(found):
        return None
    whole = found == list(range(given.shape[1]))
    return FoundProjection(event.module, None if whole else torch.tensor(found), factor)


def _feed_forward(rest: Sequence[Event], width: int) -> FoundFeedForward | None:
    """Return the linear layers outside of attention: two or three of them, or a mixture of experts."""
    experts = next((event for event in rest if _is_mixture(event.module)), None)
    linear = [event for event in rest if _is_linear(event.module)]
    if experts is not None:
        outer = next((event for event in rest if experts.within(event)), experts)
        inside = [event for event in rest if event.within(outer)]
        router = next((event for event in inside if _names(event.module, "router", "gate")), None)
        return FoundFeedForward(
            experts=outer.module,
            reader=outer.module,
            router=None if router is None else router.module,
        )
    downs = [event for event in linear if event.output.shape[-1] == width]
    if not downs or len(linear) < 2:
        return None
    down = downs[-1]
    hidden, n_units = down.input, down.input.shape[-1]
    ups = [event for event in linear if event.ended < down.started]
    found = FoundFeedForward(down=down.module, width=n_units)
    for first in ups:
        if first.output.shape[-1] == n_units:
            for second in (each for each in ups if each is not first and each.output.shape[-1] == n_units):
                if name := _activation(first.output, hidden, second.output):
                    found.first, found.second, found.gated = first.module, second.module, True
                    found.activation = name
        if first.output.shape[-1] == 2 * n_units:
            gate, up = first.output.chunk(2, dim=-1)
            if name := _activation(gate, hidden, up):
                found.first, found.fused, found.gated, found.activation = first.module, True, True, name
    if found.first is None:
        alone = [event for event in ups if event.output.shape[-1] == n_units]
        for first in alone:
            if (name := _activation(first.output, hidden, None)) or len(alone) == 1:
                found.first, found.activation = first.module, name
                break
    if found.first is None:
        return found
    begin = next(event for event in ups if event.module is found.first)
    found.reader = begin.module
    between = [event for event in rest if begin.ended < event.started < down.started and event.inputs]
    leaves = [event for event in between if not list(event.module.children()) and not _is_linear(event.module)]
    same_function = (each for each in leaves if _activation(each.input, each.output, None) == found.activation)
    found.activation_module = next((each.module for each in same_function), None)
    return found


def _activation(given: Tensor, hidden: Tensor, other: Tensor | None) -> str:
    """Return the name of our activation function f with hidden = f(given) or f(given) ⊙ other."""
    if given.shape != hidden.shape:
        return ""
    for name, function in ACTIVATION_FUNCTIONS.items():
        value = function(given) if other is None else function(given) * other
        if close(value, hidden):
            return name
    return ""


def _order(
    layer: FoundLayer, block: Event, inside: Sequence[Event], own: Sequence[Event], factors: Sequence[float]
) -> None:
    """Set the order of norms and the sums of the residual stream by trying each order on the numbers."""
    stream, total = block.input, block.output
    inside = [event.shaped_like(stream) for event in inside]
    norms = [event for event in inside if is_norm(event.module) and event.output.shape == stream.shape]
    first = _attention_update(layer.self_attention, inside, own[0])
    fed = None
    reads = None
    if layer.feed_forward is not None:
        last = layer.feed_forward.down or layer.feed_forward.experts
        fed = next(event.output for event in reversed(inside) if event.module is last)
        if layer.feed_forward.reader is not None:
            reads = next(event.input for event in inside if event.module is layer.feed_forward.reader)
    if first is None or fed is None or reads is None or not first.shape == fed.shape == stream.shape:
        return
    attended = _attention_input(layer.self_attention, inside, own[0], stream)
    reader_norm = _giving(norms, attended)
    fed_norm = _giving(norms, reads)
    second = None
    cross_norm = None
    if layer.cross_attention is not None:
        second = _attention_update(layer.cross_attention, inside, own[1])
        cross_norm = _giving(norms, _attention_input(layer.cross_attention, inside, own[1], stream))
        if second is None:
            return
    behind = {"self_attention": _taking(norms, first), "feed_forward": _taking(norms, fed)}
    a, f = (
        update if norm is None else norm.output
        for update, norm in ((first, behind["self_attention"]), (fed, behind["feed_forward"]))
    )
    scales = tuple(_channel_factors(inside, update) for update in (first, fed))
    tried = [(*(factor if scale is None else scale for scale in scales), factor) for factor in (1.0, *factors)]
    for own_factor, fed_factor, factor in tried:
        middle = stream + a * own_factor
        after = middle if second is None else middle + second * factor
        if not close(after + f * fed_factor, total):
            continue
        source = reads if fed_norm is None else fed_norm.input
        layer.factors = (own_factor, fed_factor)
        layer.order = "pre" if close(source, after) else "parallel"
        layer.norms = _found(
            self_attention_norm=reader_norm,
            cross_attention_norm=cross_norm,
            feed_forward_norm=fed_norm,
            self_attention_output_norm=behind["self_attention"],
            feed_forward_output_norm=behind["feed_forward"],
        )
        layer.shares_norm = fed_norm is not None and fed_norm is reader_norm
        return
    one = next((norm for norm in norms if close(norm.input, stream + first)), None)
    two, three = one, None
    if one is not None and second is not None:
        two = next((norm for norm in norms if close(norm.input, one.output + second)), None)
    if two is not None:
        three = next((norm for norm in norms if close(norm.input, two.output + fed) and same(norm.output, total)), None)
    if one is not None and three is not None:
        layer.order = "post"
        layer.norms = _found(self_attention_norm=one, feed_forward_norm=three)
        if second is not None:
            layer.norms |= _found(cross_attention_norm=two)
        return
    layer.unexplained = "the sums of its layers: input + attention + feed-forward layer is not their output"
    for own_factor, fed_factor, factor in tried:
        rest = total - stream - a * own_factor - f * fed_factor - (0.0 if second is None else second * factor)
        third = next((each for each in inside if close(each.output * factor, rest)), None)
        if third is not None:
            layer.unexplained += f", because they also add that of {type(third.module).__name__}"
            return


def _channel_factors(inside: Iterable[Event], update: Tensor) -> Tensor | None:
    """Return what a module multiplies each channel of ``update`` by (LayerScale), or None if none does."""
    for event in inside:
        own = [each.detach() for each in event.module.parameters() if each.shape == update.shape[-1:]]
        if len(own) == 1 and event.inputs and same(event.input, update) and close(update * own[0], event.output):
            return own[0]
    return None


def _found(**norms: Event | None) -> dict[str, FoundNorm]:
    return {name: find_norm(event) for name, event in norms.items() if event is not None}


def _attention_update(attention: FoundAttention, inside: Sequence[Event], event: Event) -> Tensor | None:
    """Return the output of attention before a norm that follows it."""
    if attention.output is not None:
        return next(each.output for each in inside if each.module is attention.output and each.ended > event.started)
    return event.output if event.output.ndim == 3 else None


def _attention_input(attention: FoundAttention, inside: Sequence[Event], event: Event, stream: Tensor) -> Tensor:
    """Return the input of the projections of attention."""
    linear = (each for each in inside if each.within(event) and _is_linear(each.module))
    return next((each.input for each in linear if each.input.shape == stream.shape), event.input)


def _giving(norms: Iterable[Event], tensor: Tensor) -> Event | None:
    return next((norm for norm in norms if same(norm.output, tensor)), None)


def _taking(norms: Iterable[Event], tensor: Tensor) -> Event | None:
    return next((norm for norm in norms if same(norm.input, tensor)), None)


def find_norm(event: Event) -> FoundNorm:
    """Return the norm that a module computes, inferred from its input and output."""
    module, x, y = event.module, event.input.float(), event.output.float()
    epsilon = next(
        (float(found) for name in ("eps", "variance_epsilon", "epsilon")
         if isinstance(found := getattr(module, name, None), (int, float))),
        1e-5,
    )  # fmt: skip
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    for offset in (0.0, 1.0):
        gain = 1.0 if weight is None else weight + offset
        shift = 0.0 if bias is None else bias
        centred = x - x.mean(dim=-1, keepdim=True)
        layer = centred / torch.sqrt(centred.square().mean(dim=-1, keepdim=True) + epsilon) * gain + shift
        if close(layer, y):
            return FoundNorm(module, "layer", epsilon, offset if weight is not None else 0.0)
        rms = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + epsilon) * gain
        if bias is None and close(rms, y):
            return FoundNorm(module, "rms", epsilon, offset if weight is not None else 0.0)
    return FoundNorm(module, "", epsilon, 0.0)


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm, by its name."""
    return "norm" in type(module).__name__.lower() and not any(True for _ in module.children())


def _is_linear(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) or type(module).__name__.endswith("Conv1D")


def _names(module: nn.Module, *parts: str) -> bool:
    return any(part in type(module).__name__.lower() for part in parts)


def _is_mixture(module: nn.Module) -> bool:
    return _names(module, "expert", "sparsemoe") or any(p.ndim == 3 for p in module.parameters(recurse=False))
