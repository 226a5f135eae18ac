"""The residual stream: what every sub-layer adds to it, and how long its vectors grow (Elhage et al. 2021, "The
residual stream")."""

from dataclasses import dataclass

import numpy as np

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
