"""How a network of ``transformers`` is built, inferred from the numbers of one trial pass.

Nothing depends on the name of a family. A part gets a name only if the numbers confirm it: the residual stream if the
sums agree, a matrix if its product is what the next module received. Each part becomes one of our modules where it is
found: ``found_embedding``, ``found_layers``, ``found_attention``, ``found_feed_forward``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from transformer.errors import CheckpointError
from transformer.guests.described_parts import NotExposed
from transformer.guests.found_embedding import find_embedding
from transformer.guests.found_layers import find_layer
from transformer.guests.guest_config import GuestConfig
from transformer.guests.hooks import StackHooks
from transformer.guests.rotary_positions import frequencies_of
from transformer.guests.search import Search
from transformer.guests.trial_pass import Event, Trial, same


class GuestStack(nn.Module):
    """The encoder or the decoder of a guest, described with this library's modules.

    Attributes:
        hooks: The hooks between these modules and those of the network.
        pad_id: The token that attention masks, if any.
    """

    def __init__(self, hooks: StackHooks, embedding: nn.Module, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.hooks = hooks
        self.pad_id: int | None = None
        self.embedding: Any = embedding
        self.position_bias: nn.Module | None = None
        self.layers: Any = nn.ModuleList(layers)
        self.final_norm: nn.Module | None = None


def find_stacks(
    network: Any, trial: Trial, config: GuestConfig, ids: Mapping[str, Tensor | None]
) -> dict[str, GuestStack]:
    """Return the stacks of a network, described with this library's modules and connected with them.

    Args:
        network: The network.
        trial: A trial pass over it.
        config: The config of the guest, as far as it is known before.
        ids: The token ids that each stack read; None for an image, whose embedding is not described here.

    Raises:
        CheckpointError: If a layer has several maps per head or other axes, or layers share a module. Any other problem
            is found by the comparison with the network's own maps (``transformer.guests.agreement``).
    """
    _check_calls(trial)
    multiplier = getattr(network.config, "residual_multiplier", None)
    multipliers = (float(multiplier),) if isinstance(multiplier, (int, float)) and multiplier else ()
    frequencies, hook_ids, since = tuple(frequencies_of(network)), set[int](), -1
    attentions = _attention_events(trial)
    found: dict[str, GuestStack] = {}
    for name, read in ids.items():
        prefix = _prefix(network, name) if len(ids) == 2 else ""
        own = [event for event in attentions if event.name.startswith(prefix)]
        if blocks := _blocks(trial, own):
            _check_blocks(blocks)
            hooks = StackHooks(name, trial.overwritten, hook_ids)
            sized = replace(config, d_model=config.d_model or blocks[0].output.shape[-1])
            search = Search(trial, sized, frequencies, multipliers, hooks)
            embedding = nn.Module() if read is None else find_embedding(search, blocks[0], read, since)
            layers = [find_layer(search, block, own, index) for index, block in enumerate(blocks)]
            found[name] = GuestStack(hooks, embedding, layers)
            _complete(network, trial, found[name], blocks)
            since = blocks[-1].ended
    return found


def layers_without_maps(layers: Sequence[int]) -> CheckpointError:
    """Return the error for layers, counted from 0, in which no map was found."""
    numbers = ", ".join(str(layer + 1) for layer in layers[:8]) + (", …" if len(layers) > 8 else "")
    return CheckpointError(
        f"no attention map was found in these layers (counted from 1): {numbers}. Only models whose every "
        "layer has softmax attention can be shown"
    )


def _check_calls(trial: Trial) -> None:
    """Refuse attention modules that call the attention function several times."""
    runs = Counter(id(event.module) for event in trial.events)
    if any(count > runs[module] for module, count in Counter(id(call.module) for call in trial.calls).items()):
        raise CheckpointError(
            "its layers combine several attention maps per head, as differential attention does; only models with one "
            "map per head can be shown"
        )


def _check_blocks(blocks: Sequence[Event]) -> None:
    """Refuse layers that read something else than one text, and layers that are one module."""
    for stream in (block.input for block in blocks if block.inputs):
        if stream.ndim > 3 or (stream.ndim == 3 and len(stream) != 1):
            raise CheckpointError(
                f"its layers pass on numbers with the axes {list(stream.shape)} instead of [text, token, channel], "
                "which cannot be shown"
            )
    if len({id(block.module) for block in blocks}) < len(blocks):
        raise CheckpointError(
            "its layers share their weights: one block runs several times. Only models whose layers are different "
            "modules can be shown"
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


def _complete(network: nn.Module, trial: Trial, stack: GuestStack, blocks: Sequence[Event]) -> None:
    """Describe the final norm, and find the smallest module whose output is the stack's."""
    hooks, last = stack.hooks, blocks[-1]
    after = (event for event in trial.events if event.started > last.ended and event.is_norm)
    final = next((event for event in after if same(event.input, last.output)), None)
    holder = blocks[0].name.rsplit(".", 1)[0]  # name of the list of layers
    name = holder.rsplit(".", 1)[0] if "." in holder else ""
    if final is not None:
        while name and not final.name.startswith(f"{name}."):
            name = name.rsplit(".", 1)[0] if "." in name else ""
    carrier = network.get_submodule(name) if name else None
    carried = [event.output for event in trial.events if event.module is carrier]
    hooks.blocks, hooks.carrier = [block.module for block in blocks], carrier
    hooks.carries = trial.kinds.get(id(carrier))
    if carrier is not None and not any(same(output, (final or last).output) for output in carried):
        stack.final_norm = NotExposed("the layers after its last layer")
    elif final is not None:
        stack.final_norm = hooks.norm(final)
    if final is not None:
        hooks.parts["final_norm"] = final.module
    table = getattr(stack.embedding, "table", None)
    above = next((each for each in network.modules() if table in each.children()), None)
    if above is not None and hooks.blocks[0] not in above.modules():
        hooks.parts["embedding"] = above
