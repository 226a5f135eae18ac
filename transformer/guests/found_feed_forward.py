"""The feed-forward layer, found by the numbers of a trial pass and described by ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transformer.feed_forward import ACTIVATION_FUNCTIONS, FeedForward
from transformer.guests.attention_function import GuestPass
from transformer.guests.described_layers import GatedFeedForward
from transformer.guests.described_parts import NotExposed, linear, not_exposed
from transformer.guests.hooks import StackHooks
from transformer.guests.search import Search, SubLayer
from transformer.guests.trial_pass import Event, close
from transformer.probes import Probe


def find_feed_forward(search: Search, rest: Sequence[Event], width: int) -> SubLayer | None:
    """Return our feed-forward layer with the matrices of a network's; for experts, only output and router.

    Args:
        search: What is searched.
        rest: The calls that a layer made outside of attention.
        width: Width of the residual stream.
    """
    hooks = search.hooks
    if (experts := next((event for event in rest if _is_mixture(event.module)), None)) is not None:
        return _find_experts(rest, experts, hooks)
    linears = [event for event in rest if event.is_linear]
    downs = [event for event in linears if event.output.shape[-1] == width]
    if not downs or len(linears) < 2:
        return None
    down = downs[-1]
    first, second, activation = _find_matrices([each for each in linears if each.ended < down.started], down.input)
    if first is None:
        probes = {"hidden": Probe("position", "hidden"), "output": Probe("position", "model")}
        layer: Any = NotExposed("the weights of its feed-forward units", **probes)
    else:
        with torch.device("meta"):
            layer = FeedForward(search.config) if second is None else GatedFeedForward(search.config)
        layer.activation = ACTIVATION_FUNCTIONS.get(activation, _unknown_activation)
        _describe_first(layer, first, second, hooks)
    if first is not None and second is not None:
        between = (event for event in rest if first.ended < event.started < down.started and event.inputs)
        leaves = (event for event in between if not list(event.module.children()) and not event.is_linear)
        gate = next((event.module for event in leaves if activation_of(event.input, event.output) == activation), None)
        if gate is None:
            layer.gate = NotExposed("the gates of its feed-forward units")
        else:
            hooks.after(gate, lambda _, __, y: layer.gate(y))
    hooks.before(down.module, lambda _, x: layer.hidden(x))
    return SubLayer(layer, first, down)


def _find_matrices(ups: Sequence[Event], hidden: Tensor) -> tuple[Event | None, Event | None, str]:
    """Return the calls of the matrices before W₂, and the name of f: "" if it is unknown.

    Args:
        ups: The calls of linear layers before W₂.
        hidden: The input of W₂.

    Returns:
        W₁ and None in f(x W₁); W_g and W₁ in f(x W_g) ⊙ x W₁, the same call twice if both are one matrix.
    """
    wide = [event for event in ups if event.output.shape[-1] == hidden.shape[-1]]
    for first in wide:
        for second in (each for each in wide if each is not first):
            if name := activation_of(first.output, hidden, second.output):
                return first, second, name
    for both in (each for each in ups if each.output.shape[-1] == 2 * hidden.shape[-1]):
        gate, up = both.output.chunk(2, dim=-1)
        if name := activation_of(gate, hidden, up):
            return both, both, name
    for first in wide:
        if (name := activation_of(first.output, hidden)) or len(wide) == 1:
            return first, None, name
    return None, None, ""


def _describe_first(layer: Any, first: Event, second: Event | None, hooks: StackHooks) -> None:
    """Describe the matrices before W₂ and connect what precedes the activation function."""
    if first is not second:
        hooks.after(first.module, lambda _, __, y: layer.pre_activation(y))
        layer.input_projection = linear((second or first).module)
        if second is not None:
            layer.gate_projection = linear(first.module)
        return
    half = torch.arange(first.output.shape[-1] // 2)
    layer.gate_projection = linear(first.module, half)
    layer.input_projection = linear(first.module, half + len(half))

    def open_gates(_: GuestPass, __: Tensor, y: Tensor) -> Tensor:
        given, up = y.chunk(2, dim=-1)
        shown = layer.pre_activation(given)
        return y if shown is given else torch.cat((shown, up), dim=-1)

    hooks.after(first.module, open_gates)


def _unknown_activation(_: Tensor) -> Tensor:
    raise not_exposed("its activation function")


def activation_of(given: Tensor, hidden: Tensor, other: Tensor | None = None) -> str:
    """Return the name of our function f with hidden = f(given), or f(given) ⊙ other; "" if there is none."""
    if given.shape != hidden.shape:
        return ""
    factor = 1.0 if other is None else other
    functions = ACTIVATION_FUNCTIONS.items()
    return next((name for name, function in functions if close(function(given) * factor, hidden)), "")


def _find_experts(rest: Sequence[Event], experts: Event, hooks: StackHooks) -> SubLayer:
    """Return a placeholder for a mixture of experts, which shows its output and the weights of its router."""
    outer = next((event for event in rest if experts.within(event)), experts)
    inside = (event for event in rest if event.within(outer))
    router = next((event for event in inside if _names(event.module, "router", "gate")), None)
    probes = {"output": Probe("position", "model")}
    if router is not None:
        shown = probes["router"] = Probe("position", "expert")
        hooks.after_all(router.module, lambda guest_pass, output: _routed(guest_pass, shown, output))
    what = "the units of its feed-forward layers, which are mixtures of experts"
    return SubLayer(NotExposed(what, **probes), outer, outer)


def _routed(guest_pass: GuestPass, probe: Probe, output: Any) -> Any:
    """Record the weight of each expert at each position, and route by the edited weights."""
    if isinstance(output, Tensor):
        return probe(guest_pass.shaped(output)).reshape(output.shape)
    chosen = next((each for each in output if isinstance(each, Tensor) and not each.is_floating_point()), None)
    place = next((i for i, each in enumerate(output) if chosen is not None and each.shape == chosen.shape), None)
    if chosen is None or place is None:
        return (probe(guest_pass.shaped(output[0])).reshape(output[0].shape), *output[1:])
    weights = output[place]
    whole = weights.new_zeros(*output[0].shape).scatter(-1, chosen, weights)
    given = guest_pass.shaped(whole)
    shown = probe(given)
    routed = weights if shown is given else shown.reshape(whole.shape).gather(-1, chosen)
    return (*output[:place], routed, *output[place + 1 :])


def _names(module: nn.Module, *parts: str) -> bool:
    return any(part in type(module).__name__.lower() for part in parts)


def _is_mixture(module: nn.Module) -> bool:
    return _names(module, "expert", "sparsemoe") or any(p.ndim == 3 for p in module.parameters(recurse=False))
