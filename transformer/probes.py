"""How the model shows itself: probes, recordings and edits.

A :class:`Probe` is an identity module around an interesting tensor. Its name is its module path
(``decoder.layers.0.cross_attention.weights``), so there is no second table of names. What it does with the tensor
depends on the recording that is active *in the calling context*: one model may serve many threads at once, each with
its own recording, and a forward pass without one is untouched. Forward hooks work on a probe as on every module.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn


class Probe(nn.Module):
    """Passes its tensor through unchanged and names the tensor's axes (the batch axis is not named)."""

    name = ""  # set by name_probes, when the whole model exists
    begins_pass = False

    def __init__(self, *axes: str) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, tensor: Tensor) -> Tensor:
        return tensor

    def __call__(self, tensor: Tensor) -> Tensor:
        """Shows the tensor to the call that runs, then to every forward hook that anybody has registered.

        A model calls hundreds of probes, and ``nn.Module.__call__`` also looks for kinds of hooks that have nothing to
        say about an identity.
        """
        call = _call.get()
        if self.begins_pass and call.before_pass is not None:
            call.before_pass()
        if call.recording is not None:
            tensor = call.recording.observe(self.name, tensor)
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
    """What one forward pass leaves behind: ``tensors``, by probe name, after all edits. ``names``: of the probes that
    are kept, if not all: a sweep over many texts that looks at one tensor needs no room for the others."""

    def __init__(self, edits: Iterable[Edit] = (), names: Collection[str] | None = None) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.names = names
        self.edits: dict[str, list[Edit]] = {}
        for edit in edits:
            self.edits.setdefault(edit.name, []).append(edit)

    def observe(self, name: str, tensor: Tensor) -> Tensor:
        """Apply the edits of the probe ``name`` in order, note the result, and return it."""
        for edit in self.edits.get(name, ()):
            edited = edit.function(tensor)
            if edited.shape != tensor.shape:
                raise ValueError(
                    f"the edit of {name} returned shape {tuple(edited.shape)} for a tensor of shape "
                    f"{tuple(tensor.shape)}; an edit must keep the shape"
                )
            tensor = edited
        if self.names is None or name in self.names:
            self.tensors[name] = tensor
        return tensor


@dataclass(frozen=True)
class Call:
    """What belongs to the call that runs, and not to the model, which many threads share.

    ``shortcut`` computes in the place of some modules (``transformer.fast``). ``before_pass`` is called before each
    stack's pass.
    """

    recording: Recording | None = None
    shortcut: object | None = None
    before_pass: Callable[[], None] | None = None


_NOTHING = Call()
_call: ContextVar[Call] = ContextVar("glassformer_call", default=_NOTHING)


@contextmanager
def _with(**changes: Any) -> Iterator[None]:
    token = _call.set(replace(_call.get(), **changes))
    try:
        yield
    finally:
        _call.reset(token)


@contextmanager
def record(edits: Iterable[Edit] = (), names: Collection[str] | None = None) -> Iterator[Recording]:
    """Record (and edit) every forward pass that this context makes, all probes or those called ``names``; nothing of it
    outlives the block."""
    recording = Recording(edits, names)
    with _with(recording=recording):
        yield recording


def taking(shortcut: object) -> AbstractContextManager[None]:
    """Let modules that know a shorter way to what they compute take it (``transformer.fast.shortcut``)."""
    return _with(shortcut=shortcut)


def interruptible(before_pass: Callable[[], None]) -> AbstractContextManager[None]:
    """Call ``before_pass()`` before every stack's pass that this context makes; what it raises ends the work there.

    An analysis is a loop over forward passes: so each can be stopped, and none takes a "stop" in its signature.
    """
    return _with(before_pass=before_pass)


def recorded_so_far(name: str) -> Tensor:
    """What the call that runs has recorded at ``name``, for an edit that needs another tensor than its own.

    Raises ``RuntimeError`` outside of a recording, or where the pass has not come there yet.
    """
    recording = _call.get().recording
    if recording is None or name not in recording.tensors:
        raise RuntimeError(f"nothing has been recorded at {name!r} in this call yet")
    return recording.tensors[name]


def current_shortcut() -> Any:
    """What ``taking`` was given; ``None`` where every module computes its formula."""
    return _call.get().shortcut


def is_recording() -> bool:
    return _call.get().recording is not None


def has_forward_hooks(model: nn.Module) -> bool:
    """Whether somebody has registered a forward hook in ``model``: fused kernels would pass it by."""
    return any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def name_probes(model: nn.Module) -> dict[str, Probe]:
    """Give every probe of ``model`` its module path as a name; return them in order."""
    probes = {name: module for name, module in model.named_modules() if isinstance(module, Probe)}
    for name, probe in probes.items():
        probe.name = name
        if name.endswith("embedding.token"):
            probe.begins_pass = True
    return probes
