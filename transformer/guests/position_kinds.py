"""How a network encodes positions, established by trial passes and not by the name of its family.

Three facts are measured: what is added to the tokens; whether queries and keys depend on their position when every
token is the same; and whether the scores then do. A kind that no measurement confirms is "unknown", and the pages say
so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer.guests.attention_function import PRODUCTS, SOFTMAXES, AttentionCall, trial
from transformer.guests.described_layers import HalvedSinusoids
from transformer.guests.structure import FoundStack
from transformer.positions import alibi_slopes, sinusoidal_encoding

KINDS = ("learned", "sinusoidal", "rotary", "relative", "alibi")
UNKNOWN = "unknown"
_TOLERANCE = 1e-4  # of the largest number that is compared


class _Enough(Exception):
    """Signal that the rest of a pass is not needed."""


@dataclass
class _Scores:
    """The scores of one attention over equal tokens, and the queries and keys that they are products of."""

    module: nn.Module
    query: Tensor | None  # [text, head, query, channel]
    key: Tensor | None  # [text, head, channel, key]
    scores: Tensor  # [text, head, query, key]

    def of(self, text: int) -> _Scores:
        """Return the scores of one of the two texts: [head, query, key]."""
        query, key = (None if each is None else each[text] for each in (self.query, self.key))
        return _Scores(self.module, query, key, self.scores[text])


@dataclass
class _LevelPass:
    """A pass over two texts of one token each, in which a layer reads one vector at all positions.

    Attributes:
        scores: The scores of every self-attention in the order of the calls.
        read: What the first layer of each stack read of the first text, or the norm before it: [position, model].
    """

    scores: list[_Scores]
    read: dict[int, Tensor]


def find_positions(
    network: nn.Module,
    stacks: Collection[FoundStack],
    inputs: Mapping[str, Tensor],
    *,
    n_before: int = 0,
    columns: int = 0,
) -> None:
    """Set how ``stacks`` encode positions, and which of their layers rotate queries and keys.

    Args:
        network: The network.
        stacks: All of its stacks.
        inputs: The inputs of the trial pass that found them.
        n_before: Number of tokens before the patches of an image.
        columns: Number of patches in a row of an image; 0 for a text.
    """
    level = _level_pass(network, stacks, inputs)
    for stack in stacks:
        modules = {id(layer.self_attention.module) for layer in stack.layers}
        added, stack.sines = _added(network, stack, inputs, level, n_before, columns)
        found = [each for each in level.scores if id(each.module) in modules]
        kinds, turned = set(added), dict[int, bool]()
        for each in found:
            is_rotated, others = _of_scores(each.of(0), each.of(1), n_before, columns)
            turned[id(each.module)] = turned.get(id(each.module), False) or is_rotated
            kinds |= others | ({"rotary"} if is_rotated else set())
        if not found:
            kinds.add(UNKNOWN)
        stack.kinds = (UNKNOWN,) if UNKNOWN in kinds else tuple(kind for kind in KINDS if kind in kinds)
        for layer in stack.layers:
            layer.self_attention.rotated = turned.get(id(layer.self_attention.module), False)


def _added(
    network: nn.Module,
    stack: FoundStack,
    inputs: Mapping[str, Tensor],
    level: _LevelPass,
    n_before: int,
    columns: int,
) -> tuple[set[str], tuple[int, float] | None]:
    """Return the kind of rows that are added to the tokens, and the numbers of their sines, if any."""
    if stack.position_rows is not None:  # patches of an image
        if not columns:
            return _kind_of_rows(stack.position_rows, 0, trained=False)
        rows = stack.position_rows[n_before:]
        if float((rows - rows[:1]).abs().max()) <= _TOLERANCE:
            return set(), None
        return ({"learned"} if _depends_on_weights(network, stack, inputs) else {UNKNOWN}), None
    read = level.read.get(id(stack))
    if read is None:
        return {UNKNOWN}, None
    if stack.position_table is None:
        return (set() if _same(read, read[:1].expand_as(read)) else {UNKNOWN}), None
    table, offset = stack.position_table, stack.position_offset
    added = table[offset : offset + len(read)]
    tokens = read - added if read.shape == added.shape else read[:1]  # a layer may follow the sum
    if not _same(tokens, tokens[:1].expand_as(tokens)):
        return {UNKNOWN}, None
    return _kind_of_rows(table.detach(), offset, trained=table.requires_grad)


def _kind_of_rows(table: Tensor, offset: int, *, trained: bool) -> tuple[set[str], tuple[int, float] | None]:
    """Return whether the rows from ``offset`` on are sines and cosines, or else trained."""
    rows, width = table[offset : offset + 256], table.shape[-1]
    if offset == 0 and width % 2 == 0 and _same(rows, sinusoidal_encoding(len(rows), width)):
        return {"sinusoidal"}, None
    half = width // 2
    for steps in (float(half), float(half - 1)):
        if width % 2 or steps <= 0:
            break
        sines = HalvedSinusoids(width, offset=offset, steps=steps)
        if _same(rows, sines(len(rows))[0]):
            return {"sinusoidal"}, (offset, steps)
    return ({"learned"} if trained else {UNKNOWN}), None


def _depends_on_weights(network: nn.Module, stack: FoundStack, inputs: Mapping[str, Tensor]) -> bool:
    """Return whether what is added to the patches of an image changes with a weight: a gradient is not 0."""
    seen: dict[str, Tensor] = {}

    def project(_: nn.Module, __: Any, output: Tensor) -> None:
        seen.setdefault("patches", output.flatten(2)[0].T)

    def read(_: nn.Module, args: tuple, kwargs: dict) -> None:
        seen["read"] = (args[0] if args else kwargs["hidden_states"])[0]
        raise _Enough

    first = stack.layers[0].block if stack.embedding_norm is None else stack.embedding_norm.module
    with ExitStack() as hooks, torch.enable_grad():
        convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
        for module in convolutions:
            hooks.callback(module.register_forward_hook(project).remove)
        hooks.callback(first.register_forward_pre_hook(read, with_kwargs=True).remove)
        with suppress(_Enough):
            network(**inputs)
        rows = seen["read"][-len(seen["patches"]) :] - seen["patches"]
        drawn = torch.randn(rows.shape, generator=torch.Generator().manual_seed(0))
        projections = {id(each) for module in convolutions for each in module.parameters()}
        weights = [each for each in network.parameters() if id(each) not in projections and each.requires_grad]
        gradients = torch.autograd.grad((rows * drawn).sum(), weights, allow_unused=True)
    return any(each is not None and bool(each.any()) for each in gradients)


def _two_texts(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the inputs for two texts of one token each; other inputs are repeated."""
    doubled = {}
    for name, value in inputs.items():
        whole = value.expand(2, *value.shape[1:])
        if name.endswith("input_ids"):
            others = value[value != value[0, 0]]
            tokens = torch.stack((value[0, 0], others[-1] if len(others) else value[0, 0]))
            whole = tokens[:, None].expand_as(whole)
        doubled[name] = whole.clone()
    return doubled


def _level_pass(network: nn.Module, stacks: Collection[FoundStack], inputs: Mapping[str, Tensor]) -> _LevelPass:
    """Run two texts of equal tokens; every layer reads the first vector of one and the last of the other."""
    read: dict[int, Tensor] = {}

    def keep(_: nn.Module, args: tuple, kwargs: dict, *, stack: FoundStack) -> None:
        given = args[0] if args else kwargs.get("hidden_states")
        if isinstance(given, Tensor) and given.ndim == 3:
            read.setdefault(id(stack), given[0])

    def level(_: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        given = args[0] if args else kwargs.get("hidden_states")
        if not isinstance(given, Tensor) or len(given) % 2:
            return args, kwargs
        texts = given if given.ndim == 3 else given.unflatten(0, (2, -1))  # some have one row per position
        if len(texts) != 2:
            return args, kwargs
        rows = torch.stack((texts[0, 0], texts[1, -1]))[:, None]  # [text, 1, model]
        same = rows.expand_as(texts).contiguous().reshape(given.shape)
        return ((same, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": same})

    recorder = _ScoresRecorder()
    layers = [layer for stack in stacks for layer in stack.layers]
    with ExitStack() as hooks, torch.inference_mode():
        for stack in stacks:  # before the vectors are levelled
            first = stack.layers[0].block if stack.embedding_norm is None else stack.embedding_norm.module
            keeps = partial(keep, stack=stack)
            hooks.callback(first.register_forward_pre_hook(keeps, with_kwargs=True).remove)
        for block in {id(layer.block): layer.block for layer in layers}.values():
            hooks.callback(block.register_forward_pre_hook(level, with_kwargs=True).remove)
        for module in {id(each): each for each in (layer.self_attention.module for layer in layers)}.values():
            hooks.callback(module.register_forward_pre_hook(recorder.begin).remove)
            hooks.callback(module.register_forward_hook(recorder.end).remove)
        recorder.calls = hooks.enter_context(trial())
        hooks.enter_context(recorder)
        network(**_two_texts(inputs))
    return _LevelPass(recorder.found, read)


class _ScoresRecorder(TorchFunctionMode):
    """Mode that records what the softmax of an attention reads, and the product before it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[_Scores] = []
        self.calls: list[AttentionCall] = []
        self.module: nn.Module | None = None
        self.products: list[tuple[Tensor, Tensor]] = []

    def begin(self, module: nn.Module, _: Any) -> None:
        self.module = module
        self.products.clear()

    def end(self, module: nn.Module, _: Any, output: Any) -> None:
        if self.module is module and self.calls and self.calls[-1].module is module and self.found:
            call, last = self.calls[-1], self.found[-1]
            if last.module is module and call.cap:  # undo the soft cap, after which scores are no products
                last.scores = torch.atanh((last.scores / call.cap).clamp(-0.999999, 0.999999)) * call.cap
        self.module = None

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self.module is not None and func in SOFTMAXES and args and args[0].ndim in (3, 4):
            self._keep(args[0])
        elif self.module is not None and func in PRODUCTS:
            self.products.append(tuple(args[:2]))  # type: ignore[arg-type]
        elif self.module is not None and func in (torch.baddbmm, Tensor.baddbmm):
            given = {**(kwargs or {})}
            first = given.get("batch1", args[1] if len(args) > 1 else None)
            second = given.get("batch2", args[2] if len(args) > 2 else None)
            if isinstance(first, Tensor) and isinstance(second, Tensor):
                self.products.append((first, second))
        return func(*args, **(kwargs or {}))

    def _keep(self, scores: Tensor) -> None:
        module, self.module = self.module, None  # a second softmax is another computation
        assert module is not None
        scores = _by_text(scores)
        query = key = None
        for first, second in reversed(self.products):
            if first.shape[-2] == scores.shape[-2] and second.shape[-1] <= scores.shape[-1]:
                query, key = _by_text(first), _by_text(second)
                scores = scores[..., : key.shape[-1]]  # a column of sinks has no key
                break
        self.module = module
        self.products.clear()
        self.found.append(_Scores(module, query, key, scores))


def _by_text(tensor: Tensor) -> Tensor:
    """Return [text, head, …] of a tensor that may have one axis for texts and heads together."""
    return tensor.detach().float().flatten(0, -3).clone().unflatten(0, (2, -1))


def _of_scores(first: _Scores, second: _Scores, n_before: int, columns: int) -> tuple[bool, set[str]]:
    """Return whether queries and keys are rotated, and the other kinds, from scores over equal tokens."""
    query, key = first.query, first.key
    if query is None or key is None:
        return False, {UNKNOWN}
    key = key.transpose(1, 2)
    still = all(_same(each, each[:, :1].expand_as(each)) for each in (query, key))
    if still:
        return False, _of_bias(first, second, n_before, columns)
    lengths = all(_same(norms, norms[:, :1].expand_as(norms)) for norms in (query.norm(dim=-1), key.norm(dim=-1)))
    if not lengths or len(query) % len(key) or max(len(query), len(key)) != len(first.scores):
        return False, {UNKNOWN}
    allowed = _allowed(first.scores)
    product, scores = (
        _without_constants(each) for each in (query @ key.repeat_interleave(len(query) // len(key), 0).mT, first.scores)
    )
    if not all(_depends_on_distance(each, allowed, n_before, columns) for each in (product, scores)):
        return False, {UNKNOWN}
    x, y = product[allowed], scores[allowed]
    slope = (x * y).sum() / x.square().sum()
    alone = bool((y - slope * x).abs().max() <= _TOLERANCE * y.abs().max())
    return True, (set() if alone else {UNKNOWN})


def _of_bias(first: _Scores, second: _Scores, n_before: int, columns: int) -> set[str]:
    """Return the kind of what is added to the scores of equal tokens."""
    allowed = _allowed(first.scores)
    one, other = (_without_constants(each.scores) for each in (first, second))
    size = float(first.scores[allowed].abs().max()) + 1e-30
    if float(one[allowed].abs().max()) <= _TOLERANCE * size:
        return set()
    if float((one - other)[allowed].abs().max()) > _TOLERANCE * size:
        return {UNKNOWN}  # it depends on what the tokens are
    if not _depends_on_distance(one, allowed, n_before, columns):
        return {UNKNOWN}
    n_heads, n_queries, n_keys = one.shape
    if not columns and n_queries == n_keys:
        away = (torch.arange(n_keys) - torch.arange(n_queries)[:, None]).abs().float()
        expected = -alibi_slopes(n_heads).float()[:, None, None] * away
        if float((one - expected)[allowed].abs().max()) <= _TOLERANCE * size:
            return {"alibi"}
        step = one[:, 1:2, :1] if n_queries > 1 else one[:, :1, :1]
        if float((one - step * away)[allowed].abs().max()) <= _TOLERANCE * size and n_queries > 3:
            return {UNKNOWN}  # a straight line that is not ALiBi's
    return {"relative"}


def _allowed(scores: Tensor) -> Tensor:
    """Return which keys have a weight: some families mask with −10,000 instead of the lowest number."""
    return torch.softmax(scores, dim=-1) > 0


def _without_constants(scores: Tensor) -> Tensor:
    """Return the scores less that of each query with itself: a constant of a row changes no weight."""
    return scores - scores.diagonal(dim1=1, dim2=2)[..., None] if scores.shape[1] == scores.shape[2] else scores


def _depends_on_distance(values: Tensor, allowed: Tensor, n_before: int, columns: int) -> bool:
    """Return whether [head, query, key] depends on the distance alone.

    The distance in an image is that in rows and that in columns.
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
    return float((most - least).max()) <= _TOLERANCE * (float(chosen.abs().max()) + 1e-30)


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    return float((one - other).detach().abs().max()) <= _TOLERANCE * (float(one.detach().abs().max()) + 1e-30)
