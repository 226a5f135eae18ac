"""The residual stream: what every sub-layer adds, the length of its vectors, and the parts it sums.

The residual stream at one position is the sum of what was written into it (``stream_parts``). A norm is linear as long
as its σ is held fixed, so each summand can be carried *forward* through it alone, and β becomes a summand of its own
(Elhage et al. 2021, "The residual stream"; Kobayashi et al. 2021, "Incorporating Residual and Normalization Layers",
§3). Only rounding is left over. ``direct_logit_attribution`` carries a row of W *backwards* through the same norms.
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
CONVOLUTION = "convolution"  # part of DeBERTa-v2's first layer


@dataclass(frozen=True)
class SubLayer:
    """One sub-layer of one layer, by the names of the activations around it.

    Attributes:
        before: The residual stream before the sub-layer.
        after: The residual stream after it.
        update: What is added to the residual stream: the output of the sub-layer, or of a norm after it (Gemma 2).
        norm: The norm of the sub-layer.
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
        """Label of the sub-layer."""
        return {
            "self_attention": Message("{layer} self-attention", layer=self.layer),
            "cross_attention": Message("{layer} cross-attention", layer=self.layer),
            "feed_forward": Message("{layer} feed-forward", layer=self.layer),
            "convolution": Message("{layer} convolution", layer=self.layer),
        }[self.kind]


def label_in_sentence(label: str) -> str:
    """Return the label of a step or a part in the form that it has within a sentence.

    "2 cross-attention" becomes "the cross-attention of layer 2", "embedding: token" becomes "the embedding of the
    token".
    """
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
        "self-attention {layer}.{head}": Message("self-attention, layer {layer}, head {head}", layer=layer, head=head),
        "cross-attention {layer}.{head}": Message(
            "cross-attention, layer {layer}, head {head}", layer=layer, head=head
        ),
    }
    return sentences.get(label.template, label)


def sublayers(trace: Trace, stack: str) -> tuple[SubLayer, ...]:
    """Return all sub-layers of a stack in the order of the forward pass."""
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
    """The sum in + update = out of one sub-layer: three arrays, [position, model], and the largest error.

    ``total`` is the result of the addition: the new stream (pre-norm), or the input of the norm (post-norm).
    """

    before: np.ndarray
    update: np.ndarray
    total: np.ndarray
    largest_deviation: float


def residual_identity(trace: Trace, sublayer: SubLayer, *, norm: str) -> Identity:
    """Check the residual connection of one sub-layer on recorded numbers.

    Pre-norm: after = before + update. Post-norm: norm.input = before + update, and after = LayerNorm of that.

    ``norm`` is the config's "pre" or "post".
    """
    name = sublayer.after if norm == "pre" else f"{sublayer.norm}.input"
    before, update, total = (trace.values(key) for key in (sublayer.before, sublayer.update, name))
    layer = f"{sublayer.stack}.layers.{sublayer.layer}"
    if f"{layer}.{CONVOLUTION}" in trace and sublayer.before.endswith(".residual.in"):
        before = before * ~padding_mask_of(trace, sublayer.stack)[:, None]  # this layer sets padding to 0
    return Identity(before, update, total, float(np.abs(before + update - total).max()))


def padding_mask_of(trace: Trace, stack: str) -> np.ndarray:
    """Return a mask of the padding tokens, [position]."""
    return np.array([token.is_padding for token in trace.tokens(stack)], dtype=bool)  # [position]


@dataclass(frozen=True)
class Addition:
    """The sum in + update = out of a sub-layer at one position, as lengths ‖·‖, and its error everywhere."""

    sublayer: str
    before: float
    update: float
    total: float
    largest_deviation: float


def additions(trace: Trace, stack: str, position: int, *, norm: str) -> tuple[Addition, ...]:
    """Return ``residual_identity`` of every sub-layer of a stack, with the lengths at one position."""
    found = []
    for step in sublayers(trace, stack):
        identity = residual_identity(trace, step, norm=norm)
        lengths = (np.linalg.norm(part[position]) for part in (identity.before, identity.update, identity.total))
        found.append(Addition(step.label, *map(float, lengths), identity.largest_deviation))
    return tuple(found)


def stream_lengths(trace: Trace, stack: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the steps and ‖x‖, [step, position]: before layer 0 and after each sub-layer."""
    steps = sublayers(trace, stack)
    names = [steps[0].before, *(step.after for step in steps)]
    lengths = np.stack([np.linalg.norm(trace.values(name), axis=-1) for name in names])
    return (Message("embedding"), *(step.label for step in steps)), lengths


def contributions(trace: Trace, stack: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return the names of the sub-layers, ‖update‖ / ‖before‖ and the cosine of update and before.

    Both arrays are [sub-layer, position]. A vector of length 0 has no direction: its cosine is 0, and so is the
    ratio to it.
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
    """One summand of a logit.

    Attributes:
        kind: "token", "position" or "segment" of the embedding; "self_attention" or "cross_attention", of which each
            head is a part; "feed_forward", "convolution"; "…_bias" for b_O of an attention; "…_norm" for the β of a
            norm; "logit_bias"; "head_bias" and "head_norm" of a final step with its own layer; "edits" for what an edit
            of the run added.
        layer: Index of the layer; −1 outside the layers.
        head: Index of the head; −1 for everything but a head.
    """

    kind: str
    layer: int = -1
    head: int = -1

    @property
    def label(self) -> Message:
        """Label for this part's row in a figure."""
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
            "self_attention": Message("self-attention {layer}.{head}", **place),
            "cross_attention": Message("cross-attention {layer}.{head}", **place),
            "feed_forward": Message("{layer} feed-forward", layer=self.layer),
            "convolution": Message("{layer} convolution", layer=self.layer),
        }
        if self.kind in labels:
            return labels[self.kind]
        if self.kind.endswith("_norm"):
            return Message("{layer} β of {name}", layer=self.layer, name=self.kind)
        return Message("{layer} bias of {name}", layer=self.layer, name=self.kind.removesuffix("_bias"))


def stream_parts(trace: Trace, stack: str, row: int, *, reader: Reader | None = None) -> dict[Part, np.ndarray]:
    """Return the parts of what ``reader`` reads at position ``row``: {part: [model]}, in float64.

    They are in the order of the forward pass, with the names of ``attribute``; "edits" is what an edit of the run
    added. Without a ``reader``, they are the parts of the stack's output, after its final norm.
    """
    module = trace.checkpoint.model.get_submodule(stack)
    summands = _Summands(trace.values, row)
    _embedding(summands, module.embedding, f"{stack}.embedding")
    for index, layer in enumerate(module.layers):
        name = f"{stack}.layers.{index}"
        for kind in SUBLAYERS:
            if reader == (index, kind):
                if layer.pre_norm:
                    summands.through(getattr(layer, f"{kind}_norm"), f"{name}.{kind}_norm", Part(f"{kind}_norm", index))
                return summands.found(trace, _input_of(layer, name, kind))
            if (sublayer := getattr(layer, kind, None)) is not None:
                _sublayer(summands, layer, sublayer, name, Part(kind, index))
        if hasattr(layer, CONVOLUTION):
            summands.add(Part(CONVOLUTION, index), trace.values(f"{name}.{CONVOLUTION}")[row])
            summands.through(layer.convolution_norm, f"{name}.convolution_norm", Part("convolution_norm", index))
    if reader is not None:
        raise ValueError(f"the {stack} has no {reader[1]} in layer {reader[0]}")
    last = f"{stack}.layers.{len(module.layers) - 1}.residual.out"
    if module.final_norm is None:
        return summands.found(trace, last)
    summands.through(module.final_norm, f"{stack}.final_norm", Part("final_norm"))
    return summands.found(trace, f"{stack}.final_norm.output")


class _Summands:
    """Summands written so far, each carried through the norms that came after it."""

    def __init__(self, values: Values, row: int) -> None:
        self.values, self.row = values, row
        self.parts: list[Part] = []
        self.vectors: list[np.ndarray] = []

    def add(self, part: Part, vector: np.ndarray) -> None:
        """Add ``vector`` to the summand ``part``."""
        self.parts.append(part)
        self.vectors.append(np.asarray(vector, dtype=np.float64))

    def through(self, norm: nn.Module, name: str, part: Part) -> None:
        """Carry all summands through ``norm``, whose β becomes the summand ``part``."""
        self.vectors = list(self.after_norm(norm, name, np.stack(self.vectors)))
        if (bias := getattr(norm, "bias", None)) is not None:
            self.add(part, array(bias))

    def after_norm(self, norm: nn.Module, name: str, vectors: np.ndarray) -> np.ndarray:
        """Return γ (x − mean(x)) / σ for each summand x of ``vectors``, [part, model], with the total's σ.

        RMSNorm does not subtract the mean.
        """
        if isinstance(norm, RMSNorm):
            mean_square = float(self.values(f"{name}.mean_square")[self.row])
            return vectors * array(norm.weight) / np.sqrt(mean_square + norm.epsilon)
        centred = vectors - vectors.mean(axis=-1, keepdims=True)
        return centred * array(norm.weight) / float(self.values(f"{name}.std")[self.row])

    def found(self, trace: Trace, name: str) -> dict[Part, np.ndarray]:
        """Return the summands; an edited run has the part "edits", the rest of the recorded stream."""
        if trace.run.edits:  # what an edit added between two parts belongs to no part
            self.add(Part("edits"), trace.values(name)[self.row] - np.sum(self.vectors, axis=0))
        return dict(zip(self.parts, self.vectors, strict=True))


def _embedding(summands: _Summands, embedding: nn.Module, name: str) -> None:
    """Add the parts of x = norm((token + segment + position) W); a model may lack some of these steps."""
    summands.add(Part("token"), summands.values(f"{name}.token")[summands.row])
    if getattr(embedding, "segment", None) is not None:
        summands.add(Part("segment"), summands.values(f"{name}.segment")[summands.row])
    if embedding.position_encoding is not None:
        summands.add(Part("position"), summands.values(f"{name}.position")[summands.row])
    if getattr(embedding, "projection", None) is not None:
        summands.vectors = list(np.stack(summands.vectors) @ array(embedding.projection.weight).T)
    if getattr(embedding, "norm", None) is not None:
        summands.through(embedding.norm, f"{name}.norm", Part("embedding_norm"))


def _sublayer(summands: _Summands, layer: nn.Module, sublayer: nn.Module, name: str, part: Part) -> None:
    """Add the output of one sub-layer: each head and b_O, or the feed-forward layer."""
    kind, row, written = part.kind, summands.row, {}
    if kind == "feed_forward":
        written[part] = summands.values(f"{name}.{kind}.output")[row].astype(np.float64)
    else:
        context = summands.values(f"{name}.{kind}.context")[:, row].astype(np.float64)  # [head, channel]
        matrix = array(sublayer.output_projection.weight)
        matrix = matrix.reshape(len(matrix), *context.shape)  # [model, head, channel]
        for head, vector in enumerate(np.einsum("hc,mhc->hm", context, matrix, optimize=True)):
            written[part._replace(head=head)] = vector
        if sublayer.output_projection.bias is not None:
            written[part._replace(kind=f"{kind}_bias")] = array(sublayer.output_projection.bias)
    if hasattr(layer, f"{kind}_output_norm"):  # out = x + norm(sublayer(norm(x)))
        norm = getattr(layer, f"{kind}_output_norm")
        vectors = summands.after_norm(norm, f"{name}.{kind}_output_norm", np.stack(list(written.values())))
        written = dict(zip(written, vectors, strict=True))
        if getattr(norm, "bias", None) is not None:
            written[Part(f"{kind}_output_norm", part.layer)] = array(norm.bias)
    for own, vector in written.items():
        summands.add(own, vector)
    if not layer.pre_norm:  # out = norm(x + sublayer(x)): everything before passes through this norm, too
        summands.through(getattr(layer, f"{kind}_norm"), f"{name}.{kind}_norm", Part(f"{kind}_norm", part.layer))


def _input_of(layer: nn.Module, name: str, kind: str) -> str:
    """Return the name of the activation that an attention's projections read."""
    if layer.pre_norm:
        return f"{name}.{kind}_norm.output"
    return f"{name}.residual.{'in' if kind == 'self_attention' else 'after_self_attention'}"


def array(tensor: Tensor) -> np.ndarray:
    """Return the values in float64, since large summands of opposite signs cancel."""
    return tensor.numpy(force=True).astype(np.float64)
