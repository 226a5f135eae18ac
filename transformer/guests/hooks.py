"""Hooks in a network of ``transformers`` that pass its activations through the probes of our modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer.guests.attention_function import GuestPass, current_pass, watched
from transformer.guests.described_parts import Factor, find_norm, is_one
from transformer.guests.trial_pass import Event
from transformer.layer_norm import LayerNorm, RMSNorm
from transformer.probes import Probe, current_recording, first_layer, is_watched, record


class StackHooks:
    """Hooks between the modules of a network and one of our stacks, which act only in recorded passes.

    Attributes:
        stack: Name of the stack; "head" for what follows the last one.
        overwritten: Ids of modules whose output is later changed in place.
        ids: Ids of all hooks of the guest.
        parts: The modules of the network under this library's names of parts, even if their steps are not exposed.
        blocks: The modules of its layers.
        carrier: The smallest module whose output is the stack's; None if it is the network.
        carries: The class of the carrier's output.
    """

    def __init__(self, stack: str, overwritten: set[int], ids: set[int]) -> None:
        self.stack, self.overwritten, self.ids = stack, overwritten, ids
        self.parts: dict[str, nn.Module] = {}
        self.blocks: list[nn.Module] = []
        self.carrier: nn.Module | None = None
        self.carries: Any = None

    def before(self, module: nn.Module, change: Callable[[GuestPass, Tensor], Tensor], *, first: bool = False) -> None:
        """Apply ``change`` to the input of ``module`` in recorded passes, ahead of earlier hooks if ``first``."""

        def hook(_: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
            if (guest_pass := self._current()) is None:
                return None
            given = args[0] if args else kwargs["hidden_states"]
            changed = change(guest_pass, guest_pass.shaped(given))
            if changed is given:
                return None
            changed = changed.reshape(given.shape)
            if args:
                return (changed, *args[1:]), kwargs
            return args, {**kwargs, "hidden_states": changed}

        self.ids.add(module.register_forward_pre_hook(hook, with_kwargs=True, prepend=first).id)

    def after(self, module: nn.Module, change: Callable[[GuestPass, Tensor, Tensor], Tensor]) -> None:
        """Replace the output of ``module`` by ``change(pass, input, output)`` in recorded passes."""
        copies = id(module) in self.overwritten

        def hook(_: nn.Module, args: tuple, kwargs: dict, output: Any) -> Any:
            if (guest_pass := self._current()) is None:
                return None
            whole = isinstance(output, Tensor)
            first = output if whole else output[0]
            given = args[0] if args else next(iter(kwargs.values()))
            given = guest_pass.shaped(given) if isinstance(given, Tensor) else first
            changed = change(guest_pass, given, guest_pass.shaped(first))
            if changed is first and not copies:
                return None
            changed = changed.reshape(first.shape)
            changed = changed.clone() if copies else changed
            return changed if whole else (changed, *output[1:])

        self.ids.add(module.register_forward_hook(hook, with_kwargs=True).id)

    def after_all(self, module: nn.Module, change: Callable[[GuestPass, Any], Any]) -> None:
        """Replace the complete output of ``module`` by ``change(pass, output)`` in recorded passes."""

        def hook(_: nn.Module, args: tuple, output: Any) -> Any:
            guest_pass = self._current()
            return None if guest_pass is None else change(guest_pass, output)

        self.ids.add(module.register_forward_hook(hook).id)

    def let_skip(self, block: Any, index: int, kind: type) -> None:
        """Let a recording skip a layer (``first_layer``), the output of which is of this ``kind``."""
        block.forward = partial(_run_or_skip, block.forward, index, kind)

    def norm(self, event: Event) -> nn.Module:
        """Return our norm for that of a network, connected with it."""
        described: Any = find_norm(event)
        self.before(event.module, lambda _, x: described.input(x))
        self.after(event.module, lambda _, x, y: norm_steps(described, x, y))
        return described

    def _current(self) -> GuestPass | None:
        """Return the recorded pass over this stack; None outside of one."""
        guest_pass = current_pass()
        return None if guest_pass is None or guest_pass.stack != self.stack else guest_pass


def _run_or_skip(run: Callable, index: int, kind: type, *args: Any, **kwargs: Any) -> Any:
    """Return the output of a layer, or its input in the form of an output if the layer is skipped."""
    if index >= first_layer():
        return run(*args, **kwargs)
    stream = args[0] if args else kwargs["hidden_states"]
    return stream if issubclass(kind, Tensor) else (stream,)


def probe_scaled(probe: Probe, output: Tensor, factor: Factor) -> tuple[Tensor, Tensor]:
    """Return ``output`` · ``factor`` behind a probe, and the output that gives this product."""
    update = output if is_one(factor) else output * factor
    shown = probe(update)
    return shown, output if shown is update else shown / factor


def norm_steps(norm: Any, x: Tensor, y: Tensor) -> Tensor:
    """Record the steps of a norm with the output ``y``; return its output after edits of them."""
    if not isinstance(norm, LayerNorm | RMSNorm):
        return norm.output(y)
    if not is_watched(*norm.step_probes) or _is_derived(norm, x):
        return norm.output(y)
    shown = norm.steps(x)
    return norm.output(y if torch.equal(shown, without_probes(norm, x)) else shown)


def without_probes(norm: Any, x: Tensor) -> Tensor:
    """Return what a norm computes from ``x``, unrecorded and without edits."""
    with watched(None), record(names=()):
        return norm.steps(x)


def _is_derived(norm: LayerNorm | RMSNorm, x: Tensor) -> bool:
    """Let the reader of a recording compute the steps of a norm, and return whether this is possible."""
    recording = current_recording()
    if recording is None or x.requires_grad:
        return False
    return recording.derive(norm.input, {probe: partial(_step, norm, x, probe.name) for probe in norm.step_probes})


def _step(norm: Any, x: Tensor, name: str) -> Tensor:
    with watched(None), record(names={name}) as recording:
        norm.steps(x)
    return recording.tensors[name]
