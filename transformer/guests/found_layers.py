"""One layer: the order of its norms and sums, found by trying each on the numbers of a trial pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer.decoder import DecoderLayer
from transformer.encoder import EncoderLayer
from transformer.errors import CheckpointError
from transformer.guests.attention_function import GuestPass, keep_layer_call
from transformer.guests.described_layers import ParallelLayer, SandwichLayer
from transformer.guests.described_parts import Factor, NotExposed, find_norm, linear
from transformer.guests.found_attention import find_attention
from transformer.guests.found_feed_forward import find_feed_forward
from transformer.guests.hooks import norm_steps, probe_scaled, without_probes
from transformer.guests.search import Search, SubLayer
from transformer.guests.trial_pass import Event, close, same
from transformer.layer_norm import LayerNorm, RMSNorm


@dataclass(frozen=True)
class Sums:
    """How a layer adds what its sub-layers compute to the residual stream.

    Attributes:
        order: "pre", "post", "parallel", or "" if no sum of the parts reproduces the output of the layer.
        norms: The calls of its norms, under this library's names.
        factors: Factor of each sub-layer's output before it is added, where it is not 1.
        unexplained: What is not known about the sums if ``order`` is "".
    """

    order: str = ""
    norms: Mapping[str, Event] = field(default_factory=dict)
    factors: Mapping[str, Factor] = field(default_factory=dict)
    unexplained: str = "what its layers add to the residual stream"

    @property
    def share_norm(self) -> bool:
        """Return whether attention and feed-forward layer read the output of one norm."""
        norm = self.norms.get("feed_forward_norm")
        return norm is not None and norm is self.norms.get("self_attention_norm")


def find_layer(search: Search, block: Event, attentions: Sequence[Event], index: int) -> nn.Module:
    """Return our layer with the sub-layers of a network's, in the order of norms and sums that was found.

    Args:
        search: What is searched.
        block: The call of the layer.
        attentions: The calls of all attention modules.
        index: Its place in the stack.

    Raises:
        CheckpointError: If it has two attentions, but reads no other stack.
    """
    inside = [event.shaped_like(block.input) for event in search.trial.inside(block)]
    own = [event.shaped_like(block.input) for event in attentions if event.within(block) or event is block]
    found = [find_attention(search, block.input, inside, event) for event in own[:2]]
    parts = dict(zip(("self_attention", "cross_attention"), found, strict=False))
    taken = {id(part) for event in own for part in event.module.modules()} | {id(each.writer.module) for each in found}
    rest = [event for event in inside if id(event.module) not in taken]
    rest = [event for event in rest if not any(other.within(event) for other in own)]
    if (fed := find_feed_forward(search, rest, block.output.shape[-1])) is not None:
        parts["feed_forward"] = fed
    sums = _find_sums(block, inside, parts, search.multipliers)
    layer = _describe(search, parts, sums)
    _connect(search, index, block.module, layer, parts, sums)
    named = [(name, event.module) for name, event in zip(parts, own[:2], strict=False)]
    named += [(name, norm.module) for name, norm in sums.norms.items()]
    search.hooks.parts |= {f"layers.{index}.{name}": module for name, module in named}
    return layer


def _find_sums(
    block: Event, inside: Sequence[Event], parts: Mapping[str, SubLayer], multipliers: Sequence[float]
) -> Sums:
    """Return the order of norms and sums whose numbers are those of a layer.

    Args:
        block: The call of the layer.
        inside: The calls that it made.
        parts: Its sub-layers under this library's names.
        multipliers: Factors of what is added that the configuration names.
    """
    stream, total = block.input, block.output
    reads = {name: part.reader.input for name, part in parts.items() if part.reader is not None}
    written = {name: part.writer.output for name, part in parts.items()}
    if "feed_forward" not in reads or any(each.shape != stream.shape for each in written.values()):
        return Sums()
    norms = [event for event in inside if event.is_norm and event.output.shape == stream.shape]
    before = {name: next((n for n in norms if same(n.output, read)), None) for name, read in reads.items()}
    behind = {name: next((n for n in norms if same(n.input, written[name])), None)
              for name in ("self_attention", "feed_forward")}  # fmt: skip
    added = written | {name: norm.output for name, norm in behind.items() if norm is not None}
    scales = {name: scale for name in behind if (scale := _channel_factors(inside, written[name])) is not None}
    tried = [dict.fromkeys(parts, factor) | scales for factor in (1.0, *multipliers)]
    for factors in tried:
        *_, after, end = _partial_sums(stream, added, factors)
        if close(end, total):
            norm = before["feed_forward"]
            source = reads["feed_forward"] if norm is None else norm.input
            found = {f"{name}_norm": norm for name, norm in before.items()}
            found |= {f"{name}_output_norm": norm for name, norm in behind.items()}
            known = {name: norm for name, norm in found.items() if norm is not None}
            if (is_pre := close(source, after)) or not any(behind.values()):
                return Sums("pre" if is_pre else "parallel", known, factors)
    place, post = stream, {}
    for name, update in written.items():
        norm = next((norm for norm in norms if close(norm.input, place + update)), None)
        if norm is None:
            break
        place, post[f"{name}_norm"] = norm.output, norm
    else:
        if same(place, total):
            return Sums("post", post)
    unexplained = "the sums of its layers: input + attention + feed-forward layer is not their output"
    for factor, factors in zip((1.0, *multipliers), tried, strict=True):
        rest = total - _partial_sums(stream, added, factors)[-1]
        third = next((each for each in inside if close(each.output * factor, rest)), None)
        if third is not None:
            unexplained += f", because they also add that of {type(third.module).__name__}"
            break
    return Sums(unexplained=unexplained)


def _partial_sums(stream: Tensor, added: Mapping[str, Tensor], factors: Mapping[str, Factor]) -> list[Tensor]:
    """Return the residual stream after each sub-layer."""
    sums = []
    for name, update in added.items():
        stream = stream + update * factors[name]
        sums.append(stream)
    return sums


def _channel_factors(inside: Sequence[Event], update: Tensor) -> Tensor | None:
    """Return what a module multiplies each channel of ``update`` by (LayerScale), or None if none does."""
    for event in inside:
        own = [each.detach() for each in event.module.parameters() if each.shape == update.shape[-1:]]
        if len(own) == 1 and event.inputs and same(event.input, update) and close(update * own[0], event.output):
            return own[0]
    return None


def _describe(search: Search, parts: Mapping[str, SubLayer], sums: Sums) -> Any:
    """Return our layer of the kind that was found, with these sub-layers."""
    config, is_decoder = search.config, search.hooks.stack == "decoder"
    with torch.device("meta"):
        if sums.order == "parallel":
            layer: Any = ParallelLayer(config)
        elif sums.order == "pre" and {"self_attention_output_norm", "feed_forward_output_norm"} & sums.norms.keys():
            layer = SandwichLayer(config)
        elif is_decoder:
            layer = DecoderLayer(config, cross=config.has_encoder)
        else:
            layer = EncoderLayer(config)
    layer.pre_norm = sums.order != "post"
    for name in ("self_attention", "cross_attention", "feed_forward"):
        part, usual = parts.get(name), getattr(layer, name, None)
        if part is not None and usual is None:
            raise CheckpointError("its layers have two attentions, where a page would show one")
        if part is not None:
            setattr(layer, name, part.described)
            if part.writer.is_linear and not isinstance(part.described, NotExposed):
                part.described.output_projection = linear(part.writer.module, None, sums.factors.get(name, 1.0))
        elif usual is not None:
            what = "feed-forward layers" if name == "feed_forward" else "cross-attention"
            setattr(layer, name, NotExposed(f"its {what}"))
    for name, child in list(layer.named_children()):
        if isinstance(child, LayerNorm | RMSNorm):
            what = "a norm at this location: there is none" if sums.order else sums.unexplained
            setattr(layer, name, NotExposed(what))  # until it is connected
    if not sums.order:
        for stage in (stage for stage in list(layer.residual) if stage.startswith("after")):
            layer.residual[stage] = NotExposed(sums.unexplained)
    return layer


def _connect(
    search: Search, index: int, block: nn.Module, layer: Any, parts: Mapping[str, SubLayer], sums: Sums
) -> None:
    """Connect a layer with ours: its stream, what its sub-layers add to it, and its norms."""
    hooks, is_parallel = search.hooks, sums.order == "parallel"

    def begin(guest_pass: GuestPass, stream: Tensor) -> Tensor:
        guest_pass.depth = index
        guest_pass.kept.clear()
        guest_pass.kept["stream"] = layer.residual["in"](stream)
        return guest_pass.kept["stream"]

    def end(guest_pass: GuestPass, _: Tensor, stream: Tensor) -> Tensor:
        kept = guest_pass.kept
        if is_parallel and "after" in kept:
            after = kept["after"]
            shown = layer.residual["after_self_attention"](after)
            stream = stream if shown is after else stream + (shown - after)
        for moved in ("moved", "moved again"):
            stream = stream + kept[moved] if moved in kept else stream
        return layer.residual["out"](stream)

    def write(name: str, factor: Factor, guest_pass: GuestPass, _: Tensor, output: Tensor) -> Tensor:
        shown, changed = probe_scaled(getattr(layer, name).output, output, factor)
        if name == "self_attention" and is_parallel:
            guest_pass.kept["after"] = guest_pass.kept["stream"] + shown
        return changed

    def read(guest_pass: GuestPass, x: Tensor) -> Tensor:
        norm, stream = layer.feed_forward_norm, guest_pass.kept["stream"]
        given = norm.input(stream)
        return norm_steps(norm, given, x if given is stream else without_probes(norm, given))

    def show_sum(stage: str, key: str, guest_pass: GuestPass, stream: Tensor) -> Tensor:
        shown = layer.residual[stage](stream)
        if shown is not stream:  # the block keeps its own sum; the edit is added at its end
            guest_pass.kept[key] = shown - stream
        return shown

    keep = partial(keep_layer_call, f"{hooks.stack}.layers.{index}")
    hooks.ids.add(block.register_forward_pre_hook(keep, with_kwargs=True).id)
    hooks.let_skip(block, index, search.trial.kinds[id(block)])
    hooks.before(block, begin)
    hooks.after(block, end)
    for name, part in parts.items():
        hooks.after(part.writer.module, partial(write, name, sums.factors.get(name, 1.0)))
    for name, norm in sums.norms.items():
        reader = parts["feed_forward"].reader
        if name == "feed_forward_norm" and sums.share_norm and reader is not None:
            layer.feed_forward_norm = find_norm(norm)
            hooks.before(reader.module, read)
        else:
            setattr(layer, name, hooks.norm(norm))
    for name, following, key in zip(parts, list(parts)[1:], ("moved", "moved again"), strict=False):
        stage = f"after_{name}"
        if sums.order == "pre" and (reader := sums.norms.get(f"{following}_norm", parts[following].reader)) is not None:
            hooks.before(reader.module, partial(show_sum, stage, key))
        elif sums.order == "post":
            hooks.after(sums.norms[f"{name}_norm"].module, lambda _, __, y, stage=stage: layer.residual[stage](y))
