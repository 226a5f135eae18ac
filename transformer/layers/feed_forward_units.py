"""Units of the feed-forward layer: which are active, and which words each of them promotes.

A unit is one column of W₁ and one row of W₂: "if the vector looks like this, add that" (Geva et al. 2021, "Transformer
Feed-Forward Layers Are Key-Value Memories"). What it adds can be read as words by multiplying it with the vocabulary
matrix (Geva et al. 2022, "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the Vocabulary
Space").
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from transformer.files.checkpoints import Checkpoint
from transformer.guests.read_out import ReadOut, read_out_of
from transformer.layers.norms import carry_through_norm, denominators
from transformer.runs.traces import Trace


def silent_share(trace: Trace, stack: str) -> np.ndarray:
    """Return the share of units whose pre-activation is at or below 0: [layer, position].

    After ReLU these units are exactly 0; after GELU they are small (−0.17 to 0).
    """
    names = [f"{stack}.layers.{layer}.feed_forward.pre_activation" for layer in range(trace.n_layers(stack))]
    return np.stack([(trace.values(name) <= 0).mean(axis=-1) for name in names])


def most_active_units(trace: Trace, stack: str, layer: int, *, count: int) -> np.ndarray:
    """Return the ``count`` units with the largest |hidden value| in the sentence, ordered by index."""
    hidden = np.abs(trace.values(f"{stack}.layers.{layer}.feed_forward.hidden"))
    return np.sort(np.argsort(-hidden.max(axis=0), kind="stable")[:count])


def strongest_units(trace: Trace, stack: str, layer: int, position: int, *, count: int) -> tuple[int, ...]:
    """Return the units with the largest |hidden value| at one token, strongest first."""
    hidden = np.abs(trace.values(f"{stack}.layers.{layer}.feed_forward.hidden")[position])
    return tuple(int(unit) for unit in np.argsort(-hidden, kind="stable")[:count])


@dataclass(frozen=True)
class Effect:
    """One word and what a unit adds to its logit, or, if ``UnitWords.logits`` is false, to its similarity."""

    id: int
    piece: str
    effect: float


@dataclass(frozen=True)
class UnitWords:
    """Words that one unit promotes and suppresses at one token.

    Attributes:
        hidden: Value of the unit.
        length: ‖hidden · w‖, the length of the vector that it adds to the residual stream.
        up: Words that it promotes most, strongest first.
        down: Words that it suppresses most, strongest first.
        logits: Whether effects are contributions to the logits.
    """

    unit: int
    pre_activation: float
    hidden: float
    length: float
    up: tuple[Effect, ...]
    down: tuple[Effect, ...]
    logits: bool


def why_no_words(checkpoint: Checkpoint, stack: str) -> str | None:
    """Return why the output of units cannot be read as words in this stack; ``None`` if it can."""
    found = _words_of(checkpoint, stack)
    if found is not None and found.kind == "token head":
        return (
            "In this model, a separate head, norm(f(x W + b)), lies between the residual stream and the "
            "words. It is not linear: the effect of one unit on a logit depends on all others and cannot be "
            "given alone."
        )
    if found is None and checkpoint.model.get_submodule(stack).embedding.projection is not None:
        return (
            "In this model, the rows of the embedding matrix are shorter than the vectors of the residual "
            "stream, so a unit cannot be compared with a row."
        )
    return None


def unit_words(
    trace: Trace,
    stack: str,
    layer: int,
    position: int,
    *,
    units: Sequence[int],
    words: int = 5,
) -> tuple[UnitWords, ...]:
    """Return the words that each of ``units`` makes more and less likely at one token, by the direct path.

    h · w, where w is the unit's column of W₂, passes through the LayerNorms between it and the vocabulary with their
    recorded σ (``direct_path``) and is multiplied by every row of the vocabulary matrix. The effect through later
    layers is left out. In a stack without an output vocabulary (a translation encoder, a classifier) the vector is
    compared with the embedding rows: (h · w) · E[id] / ‖E[id]‖. If a model scales or caps its logits, effects are
    scaled but not capped. Requires that ``why_no_words`` returns ``None``.
    """
    checkpoint, prefix = trace.checkpoint, f"{stack}.layers.{layer}.feed_forward"
    units = list(units)
    pre = trace.values(f"{prefix}.pre_activation")[position, units]
    hidden = trace.values(f"{prefix}.hidden")[position, units]
    added = hidden[:, None] * output_vectors(checkpoint, stack, layer, units)  # [unit, model]
    lengths = [float(length) for length in np.linalg.norm(added, axis=-1)]
    matrix, writes = vocabulary_matrix(checkpoint, stack)
    if writes:
        added = direct_path(trace, stack, layer, position, added)
    effects = added @ matrix.T
    return tuple(
        UnitWords(
            unit=unit,
            pre_activation=float(pre[row]),
            hidden=float(hidden[row]),
            length=lengths[row],
            up=_ends(checkpoint, effects[row], words, largest=True),
            down=_ends(checkpoint, effects[row], words, largest=False),
            logits=writes,
        )
        for row, unit in enumerate(units)
    )


def output_vectors(checkpoint: Checkpoint, stack: str, layer: int, units: Sequence[int]) -> np.ndarray:
    """Return what each unit adds to the residual stream when its value is 1, its row of W₂: [unit, model]."""
    module = checkpoint.model.get_submodule(f"{stack}.layers.{layer}.feed_forward.output_projection")
    return module.weight.detach().cpu().numpy().T[list(units)]


def vocabulary_matrix(checkpoint: Checkpoint, stack: str) -> tuple[np.ndarray, bool]:
    """Return the vocabulary matrix, [vocabulary, model], and whether this stack projects onto it.

    If it does not, these are the rows of the embedding, normalised to length 1. The matrix includes the factor by which
    some families first multiply the residual stream (T5).
    """
    if (found := _words_of(checkpoint, stack)) is not None:
        return found.head.weight.detach().cpu().numpy() * found.scale, True
    weight = checkpoint.model.get_submodule(stack).embedding.table.weight.detach().cpu().numpy()
    return weight / np.maximum(np.linalg.norm(weight, axis=-1, keepdims=True), 1e-12), False


def _words_of(checkpoint: Checkpoint, stack: str) -> ReadOut | None:
    """Return how a stack's logits of words are computed; ``None`` for a stack without any."""
    return None if checkpoint.config.n_classes else read_out_of(checkpoint.model, stack)


def direct_path(trace: Trace, stack: str, layer: int, position: int | np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Carry vectors [n, model] that a feed-forward layer adds along the direct path to the vocabulary.

    ``position`` is that of all vectors, or one per vector.

    Each norm on the path is linear if the σ of this run is held fixed (``carry_through_norm``):

    - Pre-norm: the norm after this layer's feed-forward, if any (Gemma 2), and the final norm.
    - Post-norm: this layer's feed-forward norm and all norms of later layers.

    All parts of the residual stream together give exactly the logits, except for the β of the norms, which belong to no
    part.
    """
    for name in norms_on_the_way(trace, stack, layer):
        norm = trace.checkpoint.model.get_submodule(name)
        sigma = np.reshape(denominators(norm, name, trace.values)[position], (-1, 1)).astype(vectors.dtype)
        vectors = carry_through_norm(vectors, norm, sigma)
    return vectors


def norms_on_the_way(trace: Trace, stack: str, layer: int) -> tuple[str, ...]:
    """Return the norms between a layer's feed-forward output and the vocabulary, in order."""
    final, behind = f"{stack}.final_norm", f"{stack}.layers.{layer}.feed_forward_output_norm"
    if f"{final}.input" in trace:  # pre-norm: the norms of later layers are not on the residual path
        return (behind, final) if f"{behind}.input" in trace else (final,)
    first = f"{stack}.layers.{layer}.feed_forward_norm"
    norms = [name.removesuffix(".input") for name in trace.names() if name.endswith("_norm.input")]
    norms = [name for name in norms if name.startswith(f"{stack}.")]
    return tuple(norms[norms.index(first) :])


def _ends(checkpoint: Checkpoint, effects: np.ndarray, count: int, *, largest: bool) -> tuple[Effect, ...]:
    """Return the ``count`` words with the largest or smallest effect, of those that can be generated."""
    never = checkpoint.framing.never
    signed, most = -effects if largest else effects, min(len(effects), count + len(never))
    ends = np.flatnonzero(signed <= np.partition(signed, most - 1)[most - 1])  # sorting the whole vocabulary is slow
    order = ends[np.argsort(signed[ends], kind="stable")]
    ids = [int(id) for id in order if id not in never][:count]
    return tuple(Effect(id, checkpoint.tokenizer.display(id), float(effects[id])) for id in ids)


def unit_value(trace: Trace, stack: str, layer: int, position: int, unit: int) -> float:
    """Return one hidden value computed from the weights, which ``trace`` has recorded as well.

    h = f(x · w + b)                     w, b: the unit's column of W₁ and its bias
    h = f(x · w_g + b_g) · (x · w + b)   in a gated layer (Shazeer 2020)
    """
    name = f"{stack}.layers.{layer}.feed_forward"
    module, x = trace.checkpoint.model.get_submodule(name), torch.tensor(trace.values(_read(trace, name))[position])

    def product(projection: nn.Linear) -> Tensor:
        value = projection.weight[unit].float() @ x
        return value if projection.bias is None else value + projection.bias[unit].float()

    with torch.no_grad():
        value = product(module.input_projection)
        if f"{name}.gate" in trace:
            return float(module.activation(product(module.gate_projection)) * value)
        return float(module.activation(value))


def _read(trace: Trace, name: str) -> str:
    """Return the activation that the layer reads: the normalised residual stream in a pre-norm model."""
    if trace.checkpoint.config.norm != "post":
        return f"{name}_norm.output"
    layer = name.rsplit(".", 1)[0]
    sublayer = "cross" if f"{layer}.residual.after_cross_attention" in trace else "self"
    return f"{layer}.residual.after_{sublayer}_attention"
