"""Probes, recordings and edits: how the inside of a model is read and changed.

A ``Probe`` is an identity module through which an interesting tensor passes. Its name is its module path
(``decoder.layers.0.cross_attention.weights``), so there is no second table of names. What it does with the tensor
depends on the recording that is active *in the calling context*: one model can serve many threads at once, each with
its own recording, and a forward pass without a recording is left alone. Forward hooks work on a probe as on any module.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn


class Probe(nn.Module):
    """Identity module that names the axes of its tensor (the batch axis is not named)."""

    name = ""  # set by name_probes once the whole model exists
    begins_pass = False

    def __init__(self, *axes: str) -> None:
        super().__init__()
        self.axes = axes

    def forward(self, tensor: Tensor) -> Tensor:
        """Return the tensor unchanged."""
        return tensor

    def __call__(self, tensor: Tensor) -> Tensor:
        """Pass the tensor to the active recording, then to every registered forward hook.

        This replaces ``nn.Module.__call__``: a model calls hundreds of probes, and the original also looks for kinds of
        hooks that have no meaning for an identity.
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
        """Return the names of the axes, for ``repr``."""
        return ", ".join(self.axes)


@dataclass(frozen=True)
class Edit:
    """Replaces the tensor at the probe ``name`` by ``function(tensor)``, which must have the same shape.

    The function receives the tensor with its batch axis, e.g. [batch, head, query, key], and must return a new one:
    changing a probed tensor in place corrupts values elsewhere.
    """

    name: str
    function: Callable[[Tensor], Tensor]
    description: str = ""


class PassEnded(Exception):
    """Signal that a pass has reached the last probe that its recording needs."""


class Recording:
    """Tensors of one forward pass, recorded by probe name after all edits.

    Attributes:
        tensors: Recorded tensors, by probe name.
        names: Names of the probes to keep; ``None`` for all. Keeping only the tensor that a sweep needs saves memory.
        first: The layer with which a third-party model begins; those below it are skipped.
        last: The probe after which the pass ends, by raising ``PassEnded``.
        edits: Edits to apply, by probe name.
        derived: Functions that compute tensors which the pass itself did not need: for the name of a recorded tensor
            that they read, one function per probe name.
    """

    def __init__(
        self,
        edits: Iterable[Edit] = (),
        names: Collection[str] | None = None,
        first: int = 0,
        last: str | None = None,
    ) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.derived: dict[str, dict[str, Callable[[], Tensor]]] = {}
        self.names, self.first, self.last = names, first, last
        self.edits: dict[str, list[Edit]] = {}
        for edit in edits:
            self.edits.setdefault(edit.name, []).append(edit)

    def observe(self, name: str, tensor: Tensor) -> Tensor:
        """Apply the edits of the probe ``name`` in order, record the result, and return it.

        Raises:
            ValueError: If an edit changes the shape of the tensor.
        """
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
        if name == self.last:
            raise PassEnded
        return tensor

    def all_names(self) -> tuple[str, ...]:
        """Return the names of all tensors, recorded or derived, in the order of the pass."""
        return tuple(name for source in self.tensors for name in (source, *self.derived.get(source, ())))

    def derive(self, source: Probe, computed: dict[Probe, Callable[[], Tensor]]) -> bool:
        """Leave the computation of tensors to whoever reads them later, and return whether this is possible.

        Args:
            source: The recorded tensor that they are computed from.
            computed: A function for each probe that is not called.
        """
        if self.names is not None or any(probe.name in self.edits or probe._forward_hooks for probe in computed):
            return False
        self.derived[source.name] = {probe.name: function for probe, function in computed.items()}
        return True


@dataclass(frozen=True)
class Call:
    """Settings of the current call, as opposed to the model, which many threads share.

    Attributes:
        recording: Receives the tensors of all probes.
        shortcut: Computes some modules' results faster (``transformer.fast``).
        before_pass: Called before each forward pass of an encoder or decoder.
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
def record(
    edits: Iterable[Edit] = (), names: Collection[str] | None = None, *, first: int = 0, last: str | None = None
) -> Iterator[Recording]:
    """Record (and edit) every forward pass within this context; nothing outlives the block.

    Args:
        edits: Edits to apply.
        names: Names of the probes to record; all if ``None``.
        first: The layer with which a third-party model begins. Those below it are skipped, so an edit has to give its
            input.
        last: The probe after which a pass, and with it the block, ends; ``None`` for the end of the pass.

    Yields:
        The recording.
    """
    recording = Recording(edits, names, first, last)
    with _with(recording=recording), suppress(PassEnded):
        yield recording


def use_shortcut(shortcut: object) -> AbstractContextManager[None]:
    """Let modules use a faster way to compute their result (``transformer.fast.shortcut``)."""
    return _with(shortcut=shortcut)


def interruptible(before_pass: Callable[[], None]) -> AbstractContextManager[None]:
    """Call ``before_pass()`` before each forward pass of an encoder or decoder within this context.

    An exception that it raises ends the computation. Every analysis is a loop over forward passes, so each can be
    stopped without a "stop" parameter in its signature.
    """
    return _with(before_pass=before_pass)


def recorded_so_far(name: str) -> Tensor:
    """Return the tensor recorded at ``name`` in the current call, for an edit that needs another tensor.

    Raises:
        RuntimeError: If there is no recording, or the pass has not reached that probe yet.
    """
    recording = _call.get().recording
    if recording is None or name not in recording.tensors:
        raise RuntimeError(f"nothing has been recorded at {name!r} in this call yet")
    return recording.tensors[name]


def current_shortcut() -> Any:
    """Return the shortcut set by ``use_shortcut``; ``None`` if every module computes its formula."""
    return _call.get().shortcut


def current_recording() -> Recording | None:
    """Return the recording of the current call, if there is one."""
    return _call.get().recording


def first_layer() -> int:
    """Return the layer with which a third-party model begins in the current call (``record``)."""
    recording = _call.get().recording
    return 0 if recording is None else recording.first


def is_recording() -> bool:
    """Return whether the current call is recorded."""
    return _call.get().recording is not None


def is_watched(*probes: Probe) -> bool:
    """Return whether this call keeps or edits what passes one of ``probes``, or a forward hook sees it."""
    if any(probe._forward_hooks for probe in probes):
        return True
    recording = _call.get().recording
    if recording is None:
        return False
    return recording.names is None or any(p.name in recording.names or p.name in recording.edits for p in probes)


def has_forward_hooks(model: nn.Module) -> bool:
    """Return whether ``model`` has forward hooks, which fused kernels would bypass.

    The hooks with which a guest fills its own probes (``own_hooks``) do not count.
    """
    own: frozenset[object] = getattr(model, "own_hooks", frozenset())
    return any(
        own.isdisjoint(hooks) or len(own.intersection(hooks)) < len(hooks)
        for module in model.modules()
        for hooks in (module._forward_hooks, module._forward_pre_hooks)
        if hooks
    )


def name_probes(model: nn.Module) -> dict[str, Probe]:
    """Name each probe of ``model`` after its module path, and return the probes in order."""
    probes = {name: module for name, module in model.named_modules() if isinstance(module, Probe)}
    for name, probe in probes.items():
        probe.name = name
        if name.endswith("embedding.token"):
            probe.begins_pass = True
    return probes
