"""Trial passes that compare a guest with its own ``output_attentions`` and ``output_hidden_states``.

A guest is opened only if every map and every hidden state that pages would show is the one that its own code returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.errors import CheckpointError
from transformer.guests.guest_model import GuestModel
from transformer.guests.structure import layers_without_maps
from transformer.guests.trial_pass import TOLERANCE, close
from transformer.probes import record


@dataclass(frozen=True)
class Agreement:
    """The largest differences between recorded passes and the same passes in the model's own code.

    Attributes:
        lengths: Number of tokens of each pass.
        n_maps: Number of attention maps that were compared per pass, one per head.
        attention: The largest difference between two attention weights.
        hidden: The largest difference between two hidden states, as a share of the largest number.
    """

    lengths: tuple[int, ...]
    n_maps: int
    attention: float
    hidden: float


def compare_passes(model: GuestModel, inputs: Sequence[Mapping[str, Tensor]]) -> Agreement:
    """Record ``model`` as pages do, and compare each layer with what its own code returns.

    Args:
        model: The guest.
        inputs: What its network receives in each pass: token ids of its stacks, or the pixels of an image.

    Raises:
        CheckpointError: If a pass fails, if the model's own code returns no maps or other maps, or if a layer, a hidden
            state or an output differs.
    """
    found = [_compare_pass(model, given) for given in inputs]
    lengths, counts, attention, hidden = zip(*found, strict=True)
    return Agreement(lengths, counts[0], max(attention), max(hidden))


def _compare_pass(model: GuestModel, given: Mapping[str, Tensor]) -> tuple[int, int, float, float]:
    theirs = _their_pass(model, given)
    ours, ends = _recorded_pass(model, given)
    attention, hidden, n_maps = 0.0, 0.0, 0
    for stack, end in ends.items():
        front = f"{stack}_" if len(ends) == 2 else ""
        n_layers = len(getattr(model, stack).layers)
        kinds = {"self": f"{front}attentions"} | ({"cross": "cross_attentions"} if front == "decoder_" else {})
        for kind, name in kinds.items():
            maps = _returned(model, theirs, name, n_layers)
            shown_maps = [ours.get(f"{stack}.layers.{layer}.{kind}_attention.weights") for layer in range(n_layers)]
            if without := [layer for layer, shown in enumerate(shown_maps) if shown is None]:
                raise layers_without_maps(without)
            for layer, (shown, expected) in enumerate(zip(shown_maps, maps, strict=True)):
                assert shown is not None
                if not bool(shown.isfinite().all()):
                    raise CheckpointError(f"{model.config.architecture} computes numbers that are not finite")
                if model.config.kind == "decoder-only" and bool(shown.triu(1).any()):
                    raise CheckpointError(
                        f"{model.config.architecture} attends to later tokens, so it does not continue a text; only "
                        "models that do can be opened by this class"
                    )
                attention = max(attention, _difference(shown, expected, f"the attention map of layer {layer + 1}"))
                n_maps += shown.shape[1]
        states = _returned(model, theirs, f"{front}hidden_states", n_layers + 1)
        for layer in range(n_layers):
            shown = ours[f"{stack}.layers.{layer}.residual.in"]
            hidden = max(hidden, _difference(shown, states[layer], f"the input of layer {layer + 1}"))
        last = ours[f"{stack}.layers.{n_layers - 1}.residual.out"]
        ours_last = (
            last if close(states[-1], last, TOLERANCE) else end
        )  # some return it before the final norm, others after
        hidden = max(hidden, _difference(ours_last, states[-1], f"the output of layer {n_layers}"))
    if (logits := theirs.get("logits")) is not None and not model.config.pooling:
        hidden = max(hidden, _difference(_read_out(model, ends, given), logits, "its output"))
    return next(iter(ends.values())).shape[1], n_maps, attention, hidden


def _their_pass(model: GuestModel, given: Mapping[str, Tensor]) -> Any:
    """Return what the network's own eager code returns, with all maps and hidden states."""
    caching = {"use_cache": False} if model.config.has_decoder else {}
    fails = "fails when it is asked for its attention maps, so what a page would show cannot be compared with them"
    with torch.inference_mode(), _own_code(model.network), _explain_errors(model, fails):
        return model.network(**given, **caching, output_attentions=True, output_hidden_states=True)


@contextmanager
def _own_code(network: Any) -> Iterator[None]:
    """Let ``network`` compute attention by its eager code, without the hooks that collect its maps."""
    registered, modules = network.config._attn_implementation, list(network.modules())
    before = [set(module._forward_hooks) for module in modules]
    can_change = registered != "eager" and network._can_set_attn_implementation()  # the others are always eager
    if can_change:
        network.set_attn_implementation("eager")
    try:
        yield
    finally:
        if can_change:
            network.set_attn_implementation(registered)
        for module, kept in zip(modules, before, strict=True):
            for added in module._forward_hooks.keys() - kept:
                del module._forward_hooks[added]
            module.__dict__.pop("_output_capturing_hooks_installed", None)


def _recorded_pass(model: GuestModel, given: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the maps and residual streams of a pass as pages record it, and the output of each stack."""
    ends = ("attention.weights", "residual.in", "residual.out")
    names = {name for name in model.probes if name.endswith(ends)}
    alone = "runs, but not when its stacks are computed one after the other, as the pages need"
    with torch.inference_mode(), _explain_errors(model, alone), record(names=names) as recording:
        return recording.tensors, model.stack_outputs(given)


def _read_out(model: GuestModel, ends: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> Tensor:
    end = list(ends.values())[-1]
    ids = given.get("input_ids", end.new_zeros(end.shape[:2], dtype=torch.long))
    in_steps = "runs, but not when its output is computed in two steps, as the pages need"
    with torch.inference_mode(), _explain_errors(model, in_steps):
        return model.read_out(end, ids)


@contextmanager
def _explain_errors(model: GuestModel, what: str) -> Iterator[None]:
    """Turn an error of the network's code into one that says ``what`` went wrong."""
    try:
        yield
    except Exception as error:
        raise CheckpointError(f"{model.config.architecture} {what}: {repr(str(error))[:200]}") from error


def _returned(model: GuestModel, theirs: Any, name: str, count: int) -> Sequence[Tensor]:
    """Return a tuple of tensors that the model's own code returned, which must have ``count`` entries."""
    found = theirs.get(name)
    tensors = [] if found is None else [each for each in found if isinstance(each, Tensor)]
    if len(tensors) != count:
        what = name.replace("_", " ")
        raise CheckpointError(
            f"{model.config.architecture} itself returns {len(tensors)} {what} where {count} were found, so a page "
            "would not show the whole model; every layer must have softmax attention"
        )
    return tensors


def _difference(shown: Tensor, expected: Tensor, what: str) -> float:
    """Return the largest difference as a share of the largest number; raise an error if it is too large."""
    if shown.shape != expected.shape:
        raise CheckpointError(
            f"{what} has the axes {list(shown.shape)}, but in the model's own code they are {list(expected.shape)}"
        )
    difference = float((shown - expected).abs().max())
    if not close(expected, shown, TOLERANCE):
        raise CheckpointError(
            f"{what} differs by up to {difference:.2g} from what the model's own code returns for the same "
            f"{shown.shape[-2]} tokens, so a page would show another model"
        )
    return difference / max(1e-30, float(expected.abs().max()))
