"""The residual stream: what every sub-layer adds to it, how long its vectors grow, and what it is the sum of.

The parts of the stream at one position (``stream_parts``): the stream is a sum of what was written into it. A norm on
the way is linear as long as the σ that it divided by is held fixed, so each summand can be carried *forward* through it
alone, and β comes as a summand of its own (Elhage et al. 2021, "The residual stream"; Kobayashi et al. 2021,
"Incorporating Residual and Normalization Layers", §3). Nothing is left over but rounding. ``direct_logit_attribution``
carries a row of W *backwards* through the same norms.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from transformer.layer_norm import RMSNorm
from transformer.runs.traces import Trace
from transformer.text.message import Message

SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")
CONVOLUTION = "convolution"  # of DeBERTa-v2's first layer


@dataclass(frozen=True)
class SubLayer:
    """One sub-layer of one layer, by the names of the activations around it.

    ``before`` and ``after``: the residual stream; ``update``: what is added to it, i.e. what the sub-layer gave out, or
    what the norm behind it made of that (Gemma 2); ``norm``: its norm.
    """

    stack: str
    layer: int
    kind: str
    before: str
    update: str
    norm: str
    after: str

    @property
    def label(self) -> Message:
        return {
            "self_attention": Message("{layer} self-attention", layer=self.layer),
            "cross_attention": Message("{layer} cross-attention", layer=self.layer),
            "feed_forward": Message("{layer} feed-forward", layer=self.layer),
            "convolution": Message("{layer} convolution", layer=self.layer),
        }[self.kind]


def in_a_sentence(label: str) -> str:
    """The label of a step or of a part of it, as it stands in a sentence: "2 cross-attention" is "the cross-attention
    of layer 2", "embedding: token" is "the embedding of the token"."""
    if not isinstance(label, Message):
        return label
    layer, head, name = (label.values.get(key) for key in ("layer", "head", "name"))
    sentences = {
        "embedding: token": Message("the embedding of the token"),
        "embedding: position": Message("the embedding of the position"),
        "{layer} β of {name}": Message("β of {name} in layer {layer}", layer=layer, name=name),
        "{layer} bias of {name}": Message("the bias of {name} in layer {layer}", layer=layer, name=name),
        "{layer} self-attention": Message("the self-attention of layer {layer}", layer=layer),
        "{layer} cross-attention": Message("the cross-attention of layer {layer}", layer=layer),
        "{layer} feed-forward": Message("the feed-forward of layer {layer}", layer=layer),
        "{layer} convolution": Message("the convolution of layer {layer}", layer=layer),
        "{layer} self-attention, head {head}": Message(
            "head {head} of the self-attention of layer {layer}", layer=layer, head=head
        ),
        "{layer} cross-attention, head {head}": Message(
            "head {head} of the cross-attention of layer {layer}", layer=layer, head=head
        ),
    }
    return sentences.get(label.template, label)


def sublayers(trace: Trace, stack: str) -> tuple[SubLayer, ...]:
    """All sub-layers of a stack in the order of the forward pass."""
    found = []
    for layer in range(trace.n_layers(stack)):
        prefix = f"{stack}.layers.{layer}"
        kinds = [kind for kind in SUBLAYERS if f"{prefix}.{kind}.output" in trace]
        stages = ["residual.in", *(f"residual.after_{kind}" for kind in kinds[:-1]), "residual.out"]
        updates = {kind: f"{kind}.output" for kind in kinds}
        if f"{prefix}.{CONVOLUTION}" in trace:
            stages.insert(-1, "before_convolution")
            updates[CONVOLUTION] = CONVOLUTION
        for index, (kind, update) in enumerate(updates.items()):
            behind = f"{kind}_output_norm.output"
            found.append(
                SubLayer(
                    stack=stack,
                    layer=layer,
                    kind=kind,
                    before=f"{prefix}.{stages[index]}",
                    update=f"{prefix}.{behind if f'{prefix}.{behind}' in trace else update}",
                    norm=f"{prefix}.{kind}_norm",
                    after=f"{prefix}.{stages[index + 1]}",
                )
            )
    return tuple(found)


@dataclass(frozen=True)
class Identity:
    """in + update = out for one sub-layer: the three arrays [position, model], and the largest |in + update − out|.

    ``total`` is what the addition gave: the new stream (pre-norm), or what goes into the LayerNorm (post-norm).
    """

    before: np.ndarray
    update: np.ndarray
    total: np.ndarray
    largest_deviation: float


def residual_identity(trace: Trace, sublayer: SubLayer, *, norm: str) -> Identity:
    """Check the residual connection of one sub-layer on recorded numbers; ``norm`` is the config's "pre" or "post".

    pre-norm: after = before + update. post-norm: norm.input = before + update, and after = LayerNorm of that.
    """
    name = sublayer.after if norm == "pre" else f"{sublayer.norm}.input"
    before, update, total = (trace.values(key) for key in (sublayer.before, sublayer.update, name))
    layer = f"{sublayer.stack}.layers.{sublayer.layer}"
    if f"{layer}.{CONVOLUTION}" in trace and sublayer.before.endswith(".residual.in"):
        before = before * ~padded(trace, sublayer.stack)[:, None]  # this layer blanks what stands at padding
    return Identity(before, update, total, float(np.abs(before + update - total).max()))


def padded(trace: Trace, stack: str) -> np.ndarray:
    return np.array([token.is_padding for token in trace.tokens(stack)], dtype=bool)  # [position]


@dataclass(frozen=True)
class Addition:
    """in + update = out of one sub-layer at one position, as lengths ‖·‖, and how well it holds everywhere."""

    sublayer: str
    before: float
    update: float
    total: float
    largest_deviation: float


def additions(trace: Trace, stack: str, position: int, *, norm: str) -> tuple[Addition, ...]:
    """``residual_identity`` of every sub-layer of a stack, with the lengths at one position."""
    found = []
    for step in sublayers(trace, stack):
        identity = residual_identity(trace, step, norm=norm)
        lengths = (np.linalg.norm(part[position]) for part in (identity.before, identity.update, identity.total))
        found.append(Addition(step.label, *map(float, lengths), identity.largest_deviation))
    return tuple(found)


def stream_lengths(trace: Trace, stack: str) -> tuple[tuple[str, ...], np.ndarray]:
    """(names of the steps, ‖x‖ [step, position]): the stream as it enters layer 0, then after each sub-layer."""
    steps = sublayers(trace, stack)
    names = [steps[0].before, *(step.after for step in steps)]
    lengths = np.stack([np.linalg.norm(trace.values(name), axis=-1) for name in names])
    return (Message("embedding"), *(step.label for step in steps)), lengths


def contributions(trace: Trace, stack: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """(names of the sub-layers, ‖update‖ / ‖before‖, cosine of update and before): both [sub-layer, position].

    A vector of length 0 has no direction: its cosine is 0, and so is the ratio to it.
    """
    steps = sublayers(trace, stack)
    before = np.stack([trace.values(step.before) for step in steps])
    update = np.stack([trace.values(step.update) for step in steps])
    before_length, update_length = np.linalg.norm(before, axis=-1), np.linalg.norm(update, axis=-1)
    product = before_length * update_length
    dot = (before * update).sum(axis=-1)
    ratio = np.divide(update_length, before_length, out=np.zeros_like(update_length), where=before_length > 0)
    cosine = np.divide(dot, product, out=np.zeros_like(dot), where=product > 0)
    return tuple(step.label for step in steps), ratio, np.clip(cosine, -1.0, 1.0)


Values = Callable[[str], np.ndarray]  # a recorded activation by its name
Reader = tuple[int, str]  # the attention that reads: its layer, and "self_attention" or "cross_attention"


class Part(NamedTuple):
    """One summand of a logit. ``layer`` is −1 outside of the layers, ``head`` −1 for everything but a head.

    ``kind``: "token", "position" or "segment" of the embedding; "self_attention" or "cross_attention", of which each
    head is a part; "feed_forward", "convolution"; "…_bias" for b_O behind an attention; "…_norm" for the β of a norm;
    "logit_bias"; "head_bias" and "head_norm" of a last step with a layer of its own; "edits" for what an edit of the
    run put in between.
    """

    kind: str
    layer: int = -1
    head: int = -1

    @property
    def label(self) -> Message:
        """As a row of a picture is named."""
        place = {"layer": self.layer, "head": self.head}
        labels = {
            "token": Message("embedding: token"),
            "position": Message("embedding: position"),
            "segment": Message("embedding: segment"),
            "embedding_norm": Message("embedding: β of its norm"),
            "final_norm": Message("β of the final norm"),
            "logit_bias": Message("bias of the logit"),
            "head_bias": Message("bias of the last step"),
            "head_norm": Message("β of the last step"),
            "edits": Message("the edits"),
            "self_attention": Message("{layer} self-attention, head {head}", **place),
            "cross_attention": Message("{layer} cross-attention, head {head}", **place),
            "feed_forward": Message("{layer} feed-forward", layer=self.layer),
            "convolution": Message("{layer} convolution", layer=self.layer),
        }
        if self.kind in labels:
            return labels[self.kind]
        if self.kind.endswith("_norm"):
            return Message("{layer} β of {name}", layer=self.layer, name=self.kind)
        return Message("{layer} bias of {name}", layer=self.layer, name=self.kind.removesuffix("_bias"))


def stream_parts(trace: Trace, stack: str, row: int, *, reader: Reader | None = None) -> dict[Part, np.ndarray]:
    """The parts of what ``reader`` reads at position ``row``, as its projections get it: {part: [model]}, in float64.

    Without a ``reader``: the parts of the stack's output, behind its final norm. The names are those of ``attribute``;
    "edits" is what an edit of the run put in between. In the order of the forward pass.
    """
    module = trace.checkpoint.model.get_submodule(stack)
    carried = _Carried(trace.values, row)
    _embedding(carried, module.embedding, f"{stack}.embedding")
    for index, layer in enumerate(module.layers):
        name = f"{stack}.layers.{index}"
        for kind in SUBLAYERS:
            if reader == (index, kind):
                if layer.pre_norm:
                    carried.through(getattr(layer, f"{kind}_norm"), f"{name}.{kind}_norm", Part(f"{kind}_norm", index))
                return carried.found(trace, _read_by(layer, name, kind))
            if (sublayer := getattr(layer, kind, None)) is not None:
                _sublayer(carried, layer, sublayer, name, Part(kind, index))
        if hasattr(layer, CONVOLUTION):
            carried.add(Part(CONVOLUTION, index), trace.values(f"{name}.{CONVOLUTION}")[row])
            carried.through(layer.convolution_norm, f"{name}.convolution_norm", Part("convolution_norm", index))
    if reader is not None:
        raise ValueError(f"the {stack} has no {reader[1]} in layer {reader[0]}")
    last = f"{stack}.layers.{len(module.layers) - 1}.residual.out"
    if module.final_norm is None:
        return carried.found(trace, last)
    carried.through(module.final_norm, f"{stack}.final_norm", Part("final_norm"))
    return carried.found(trace, f"{stack}.final_norm.output")


class _Carried:
    """The summands that have been written so far, each as it stands after the norms that came behind it."""

    def __init__(self, values: Values, row: int) -> None:
        self.values, self.row = values, row
        self.parts: list[Part] = []
        self.vectors: list[np.ndarray] = []

    def add(self, part: Part, vector: np.ndarray) -> None:
        self.parts.append(part)
        self.vectors.append(np.asarray(vector, dtype=np.float64))

    def through(self, norm: nn.Module, name: str, part: Part) -> None:
        self.vectors = list(self.after_norm(norm, name, np.stack(self.vectors)))
        if (bias := getattr(norm, "bias", None)) is not None:
            self.add(part, array(bias))

    def after_norm(self, norm: nn.Module, name: str, vectors: np.ndarray) -> np.ndarray:
        """γ (x − mean(x)) / σ for each summand x of ``vectors`` [part, model], with the σ of the whole; RMSNorm takes
        no mean away."""
        if isinstance(norm, RMSNorm):
            mean_square = float(self.values(f"{name}.mean_square")[self.row])
            return vectors * array(norm.weight) / np.sqrt(mean_square + norm.epsilon)
        centred = vectors - vectors.mean(axis=-1, keepdims=True)
        return centred * array(norm.weight) / float(self.values(f"{name}.std")[self.row])

    def found(self, trace: Trace, name: str) -> dict[Part, np.ndarray]:
        if trace.run.edits:  # what an edit put between two parts is nobody's work
            self.add(Part("edits"), trace.values(name)[self.row] - np.sum(self.vectors, axis=0))
        return dict(zip(self.parts, self.vectors, strict=True))


def _embedding(carried: _Carried, embedding: nn.Module, name: str) -> None:
    """x = norm((token + segment + position) W), of which a model has what it has."""
    carried.add(Part("token"), carried.values(f"{name}.token")[carried.row])
    if getattr(embedding, "segment", None) is not None:
        carried.add(Part("segment"), array(embedding.segment))
    if embedding.position_encoding is not None:
        carried.add(Part("position"), carried.values(f"{name}.position")[carried.row])
    if getattr(embedding, "projection", None) is not None:
        carried.vectors = list(np.stack(carried.vectors) @ array(embedding.projection.weight).T)
    if getattr(embedding, "norm", None) is not None:
        carried.through(embedding.norm, f"{name}.norm", Part("embedding_norm"))


def _sublayer(carried: _Carried, layer: nn.Module, sublayer: nn.Module, name: str, part: Part) -> None:
    """What one sub-layer writes: each head with its columns of W_O, and b_O; or the feed-forward layer as a whole."""
    kind, row, written = part.kind, carried.row, {}
    if kind == "feed_forward":
        written[part] = carried.values(f"{name}.{kind}.output")[row].astype(np.float64)
    else:
        context = carried.values(f"{name}.{kind}.context")[:, row].astype(np.float64)  # [head, channel]
        matrix = array(sublayer.output_projection.weight)
        matrix = matrix.reshape(len(matrix), *context.shape)  # [model, head, channel]
        for head, vector in enumerate(np.einsum("hc,mhc->hm", context, matrix, optimize=True)):
            written[part._replace(head=head)] = vector
        if sublayer.output_projection.bias is not None:
            written[part._replace(kind=f"{kind}_bias")] = array(sublayer.output_projection.bias)
    if hasattr(layer, f"{kind}_output_norm"):  # out = x + norm(sublayer(norm(x)))
        norm = getattr(layer, f"{kind}_output_norm")
        vectors = carried.after_norm(norm, f"{name}.{kind}_output_norm", np.stack(list(written.values())))
        written = dict(zip(written, vectors, strict=True))
        if getattr(norm, "bias", None) is not None:
            written[Part(f"{kind}_output_norm", part.layer)] = array(norm.bias)
    for own, vector in written.items():
        carried.add(own, vector)
    if not layer.pre_norm:  # out = norm(x + sublayer(x)): everything before goes through this norm, too
        carried.through(getattr(layer, f"{kind}_norm"), f"{name}.{kind}_norm", Part(f"{kind}_norm", part.layer))


def _read_by(layer: nn.Module, name: str, kind: str) -> str:
    """The activation that an attention's projections get."""
    if layer.pre_norm:
        return f"{name}.{kind}_norm.output"
    return f"{name}.residual.{'in' if kind == 'self_attention' else 'after_self_attention'}"


def array(tensor: Tensor) -> np.ndarray:
    """In float64: large summands of both signs cancel."""
    return tensor.numpy(force=True).astype(np.float64)
