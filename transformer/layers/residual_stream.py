"""The residual stream: what every sub-layer adds, the length of its vectors, and the parts it sums.

The residual stream at one position is the sum of what was written into it (Elhage et al. 2021, "The residual stream").
A norm is linear as long as its σ is held fixed, and β is a summand of its own (Kobayashi et al. 2021, "Incorporating
Residual and Normalization Layers", §3): ``direct_logit_attribution`` carries a row of W backwards through the norms.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import Tensor

from transformer.runs.edits import SUBLAYERS
from transformer.runs.traces import Trace


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
    def label(self) -> str:
        """Label of the sub-layer."""
        return {
            "self_attention": f"{self.layer} self-attention",
            "cross_attention": f"{self.layer} cross-attention",
            "feed_forward": f"{self.layer} feed-forward",
        }[self.kind]


_SENTENCES = {  # forms of labels, and what a sentence says for them
    r"embedding: (token|position)": r"the embedding of the \1",
    r"(\d+) β of (.+)": r"β of \2 in layer \1",
    r"(\d+) bias of (.+)": r"the bias of \2 in layer \1",
    r"(\d+) (self-attention|cross-attention|feed-forward)": r"the \2 of layer \1",
    r"(self|cross)-attention (\d+)\.(\d+)": r"\1-attention, layer \2, head \3",
}


def label_in_sentence(label: str) -> str:
    """Return the label of a step or a part in the form that a sentence uses.

    "2 cross-attention" becomes "the cross-attention of layer 2", "embedding: token" becomes "the embedding of the
    token".
    """
    for form, sentence in _SENTENCES.items():
        if found := re.fullmatch(form, label):
            return found.expand(sentence)
    return label


def sublayers(trace: Trace, stack: str) -> tuple[SubLayer, ...]:
    """Return all sub-layers of a stack in the order of the forward pass."""
    found = []
    for layer in range(trace.n_layers(stack)):
        prefix = f"{stack}.layers.{layer}"
        kinds = [kind for kind in SUBLAYERS if f"{prefix}.{kind}.output" in trace]
        stages = ["residual.in", *(f"residual.after_{kind}" for kind in kinds[:-1]), "residual.out"]
        updates = {kind: f"{kind}.output" for kind in kinds}
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


def summands(trace: Trace, sublayer: SubLayer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return before, update and their sum of one sub-layer as recorded, [position, model] each.

    The sum is the new stream (pre-norm), or the input of the norm (post-norm).
    """
    total = sublayer.after if trace.checkpoint.config.norm == "pre" else f"{sublayer.norm}.input"
    return trace.values(sublayer.before), trace.values(sublayer.update), trace.values(total)


@dataclass(frozen=True)
class Addition:
    """The sum in + update = out of a sub-layer: lengths ‖·‖ at one position, error over all positions."""

    sublayer: str
    before: float
    update: float
    total: float
    largest_deviation: float


def additions(trace: Trace, stack: str, position: int) -> tuple[Addition, ...]:
    """Return the sums of every sub-layer of a stack, with the lengths at one position."""
    found = []
    for step in sublayers(trace, stack):
        before, update, total = summands(trace, step)
        lengths = (float(np.linalg.norm(part[position])) for part in (before, update, total))
        found.append(Addition(step.label, *lengths, float(np.abs(before + update - total).max())))
    return tuple(found)


def stream_lengths(trace: Trace, stack: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the steps and ‖x‖, [step, position]: before layer 0 and after each sub-layer."""
    steps = sublayers(trace, stack)
    names = [steps[0].before, *(step.after for step in steps)]
    lengths = np.stack([np.linalg.norm(trace.values(name), axis=-1) for name in names])
    return ("embedding", *(step.label for step in steps)), lengths


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


class Part(NamedTuple):
    """One summand of a logit.

    Attributes:
        kind: "token", "position" or "segment" of the embedding; "self_attention" or "cross_attention", of which each
            head is a part; "feed_forward"; "…_bias" for b_O of an attention; "…_norm" for the β of a
            norm; "logit_bias"; "head_bias" and "head_norm" of a final step with its own layer; "edits" for what an edit
            of the run added.
        layer: Index of the layer; −1 outside the layers.
        head: Index of the head; −1 for everything but a head.
    """

    kind: str
    layer: int = -1
    head: int = -1

    @property
    def label(self) -> str:
        """Label for this part's row in a figure."""
        labels = {
            "token": "embedding: token",
            "position": "embedding: position",
            "segment": "embedding: segment",
            "embedding_norm": "embedding: β of its norm",
            "final_norm": "β of the final norm",
            "logit_bias": "bias of the logit",
            "head_bias": "bias of the last step",
            "head_norm": "β of the last step",
            "edits": "the edits",
            "self_attention": f"self-attention {self.layer}.{self.head}",
            "cross_attention": f"cross-attention {self.layer}.{self.head}",
            "feed_forward": f"{self.layer} feed-forward",
        }
        if self.kind in labels:
            return labels[self.kind]
        if self.kind.endswith("_norm"):
            return f"{self.layer} β of {self.kind}"
        return f"{self.layer} bias of {self.kind.removesuffix('_bias')}"


def array(tensor: Tensor) -> np.ndarray:
    """Return the values in float64, since large summands of opposite signs cancel."""
    return tensor.numpy(force=True).astype(np.float64)
