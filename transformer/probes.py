"""How the model shows itself: probes, recordings and edits.

A :class:`Probe` is an identity module around an interesting tensor. Its name is its module path
(``decoder.layers.0.cross_attention.weights``), so there is no second table of names. Every probe carries one
ordinary forward hook that stays for the life of the model. What the hook does depends on the recording
that is active *in the calling context*: one model may serve many threads at once, each with its own
recording, and a forward pass without one is untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import Tensor, nn

from transformer.errors import did_you_mean

_active: ContextVar[Recording | None] = ContextVar("glassformer_recording", default=None)
_fast: ContextVar[bool] = ContextVar("glassformer_fast_path", default=False)


class Probe(nn.Module):
    """Passes its tensor through unchanged and names the tensor's axes (the batch axis is not named)."""

    def __init__(self, *axes: str) -> None:
        super().__init__()
        self.axes = axes
        self.name = ""  # set by name_probes, when the whole model exists
        self.register_forward_hook(_observe)

    def forward(self, tensor: Tensor) -> Tensor:
        return tensor

    def __call__(self, tensor: Tensor) -> Tensor:
        """What ``nn.Module.__call__`` does for an identity: nothing but the forward hooks.

        It also looks for kinds of hooks that a probe does not have; a model calls hundreds of probes, so that counts.
        """
        for hook in self._forward_hooks.values():
            changed = hook(self, (tensor,), tensor)
            if changed is not None:
                tensor = changed
        return tensor

    def extra_repr(self) -> str:
        return ", ".join(self.axes)


@dataclass(frozen=True)
class Edit:
    """Replace the tensor at the probe ``name`` by ``function(tensor)``, of the same shape.

    The function receives the tensor with its batch axis, e.g. [batch, head, query, key], and must
    return a new one: changing a probed tensor in place is an error that shows only elsewhere.
    """

    name: str
    function: Callable[[Tensor], Tensor]
    description: str = ""


class Recording:
    """What one forward pass leaves behind: ``tensors``, by probe name, after all edits."""

    def __init__(self, edits: Iterable[Edit] = ()) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.edits: dict[str, list[Edit]] = {}
        for edit in edits:
            self.edits.setdefault(edit.name, []).append(edit)

    def apply_edits(self, name: str, tensor: Tensor) -> Tensor:
        for edit in self.edits[name]:
            edited = edit.function(tensor)
            if edited.shape != tensor.shape:
                raise ValueError(
                    f"the edit of {name} returned shape {tuple(edited.shape)} for a tensor of shape "
                    f"{tuple(tensor.shape)}; an edit must keep the shape"
                )
            tensor = edited
        return tensor


def _observe(probe: Probe, _inputs: tuple, tensor: Tensor) -> Tensor | None:
    recording = _active.get()
    if recording is None:
        return None
    name = probe.name
    if name not in recording.edits:
        recording.tensors[name] = tensor
        return None
    recording.tensors[name] = edited = recording.apply_edits(name, tensor)
    return edited


@contextmanager
def record(edits: Iterable[Edit] = ()) -> Iterator[Recording]:
    """Record (and edit) every forward pass that this context makes; nothing of it outlives the block."""
    recording = Recording(edits)
    token = _active.set(recording)
    try:
        yield recording
    finally:
        _active.reset(token)


@contextmanager
def fast_path() -> Iterator[None]:
    """Let layers take torch's fused kernels, which hide the attention weights.

    Same results up to rounding (a test holds the two equal). A recording always takes the readable path.
    """
    token = _fast.set(True)
    try:
        yield
    finally:
        _fast.reset(token)


def recorded_so_far(name: str) -> Tensor:
    """What the call that runs has recorded at ``name``, for an edit that needs another tensor than its own.

    Raises ``RuntimeError`` outside of a recording, or where the pass has not come there yet.
    """
    recording = _active.get()
    if recording is None or name not in recording.tensors:
        raise RuntimeError(f"nothing has been recorded at {name!r} in this call yet")
    return recording.tensors[name]


def takes_fast_path() -> bool:
    return _fast.get() and _active.get() is None


def name_probes(model: nn.Module) -> dict[str, Probe]:
    """Give every probe of ``model`` its module path as a name; return them in order."""
    probes = {name: module for name, module in model.named_modules() if isinstance(module, Probe)}
    for name, probe in probes.items():
        probe.name = name
    return probes


def check_edits(probes: dict[str, Probe], edits: Iterable[Edit]) -> None:
    """Refuse an edit of a probe that does not exist: it would silently do nothing."""
    for edit in edits:
        if edit.name not in probes:
            hint = did_you_mean(edit.name, probes, otherwise="model.probes has all names")
            raise ValueError(f"there is no activation {edit.name!r} to edit; {hint}")
