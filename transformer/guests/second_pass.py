"""A second, recorded pass at the opening of a guest, which finds what pages would fail on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from transformer.errors import CheckpointError
from transformer.guests.guest_model import GuestModel
from transformer.guests.structure import FoundStack
from transformer.guests.trial_pass import Trial
from transformer.probes import record

_TOLERANCE = 1e-3  # of the largest logit; another order of sums gives less


def check_layers(network: nn.Module, stacks: Mapping[str, FoundStack], trial: Trial) -> None:
    """Refuse a network with layers that have no attention, more than one, or other axes.

    Raises:
        CheckpointError: If a list of layers has one without attention, such as linear attention or a state space, so
            that its layers would be counted wrongly, if a layer has several maps per head, or if its first axis is
            not that of texts.
    """
    runs = Counter(id(event.module) for event in trial.events)
    if any(count > runs[module] for module, count in Counter(id(call.module) for call in trial.calls).items()):
        raise CheckpointError(
            "its layers combine several attention maps per head, as differential attention does; only models with one "
            "map per head can be shown"
        )
    inputs = {id(event.module): event.input for event in trial.events if event.inputs}
    names = {id(module): name for name, module in network.named_modules()}
    for layer in (layer for stack in stacks.values() for layer in stack.layers):
        stream = inputs.get(id(layer.block))
        if stream is not None and stream.ndim == 3 and len(stream) != 1:
            raise CheckpointError(
                "the first axis of its layers is not that of texts but that of positions, which cannot be shown"
            )
    for stack in stacks.values():
        found = {names[id(layer.block)] for layer in stack.layers}
        holder = network.get_submodule(next(iter(found)).rsplit(".", 1)[0])
        if not isinstance(holder, nn.ModuleList):
            continue
        without = [index for index, layer in enumerate(holder) if names[id(layer)] not in found]
        if without:
            _refuse_layers(without)


def check_second_pass(model: GuestModel, ids: Mapping[str, Tensor], trial: Trial) -> Tensor:
    """Run ``model`` once more as pages do, and refuse it if that fails or does not record every map.

    Returns:
        The output of its last stack, [1, position, model].

    Raises:
        CheckpointError: If the pass fails, a layer has no map, a decoder attends to later tokens, or the logits are
            not those of the trial.
    """
    names = {name for name in model.probes if name.endswith("attention.weights")}
    try:
        with torch.inference_mode(), record(names=names) as recording:
            hidden = model.last_hidden(*ids.values())
            output = model.read_out(hidden, next(iter(ids.values())))
    except Exception as error:
        raise CheckpointError(
            f"{model.config.architecture} runs, but not when its output is computed in two steps, as the "
            f"pages need: {repr(str(error))[:200]}"
        ) from error
    for stack in ids:
        kinds = ["self_attention", *(["cross_attention"] if stack == "decoder" and "encoder" in ids else [])]
        layers = range(len(getattr(model, stack).layers))
        maps = {layer: [f"{stack}.layers.{layer}.{kind}.weights" for kind in kinds] for layer in layers}
        if without := [layer for layer in layers if not recording.tensors.keys() >= set(maps[layer])]:
            _refuse_layers(without)
    if model.config.kind == "decoder-only" and any(bool(each.triu(1).any()) for each in recording.tensors.values()):
        raise CheckpointError(
            f"{model.config.architecture} attends to later tokens, so it does not continue a text; only "
            "models that do can be opened by this class"
        )
    expected = trial.logits
    if model.images is not None and model.config.n_classes:
        with torch.inference_mode():
            expected = model.network(pixel_values=model.images.pixels(ids["encoder"]))["logits"]
    if expected is None or model.config.pooling:
        return hidden
    same_shape = output.shape == expected.shape
    if not same_shape or float((output - expected).abs().max()) > _TOLERANCE * float(expected.abs().max()):
        raise CheckpointError(
            f"{model.config.architecture} computes other logits when its output is computed in two steps, as "
            "the pages need"
        )
    return hidden


def _refuse_layers(layers: list[int]) -> None:
    numbers = ", ".join(str(layer + 1) for layer in layers[:8]) + (", …" if len(layers) > 8 else "")
    raise CheckpointError(
        f"no attention map was found in these layers (counted from 1): {numbers}. Only models whose every "
        "layer has softmax attention can be shown"
    )
