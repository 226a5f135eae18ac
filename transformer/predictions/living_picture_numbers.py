"""Numbers of the living picture, in which a sentence moves through the model.

They cover what every token carries between the sub-layers, what each sub-layer adds, which tokens attend to which,
which units are active, and which tokens are predicted.

Vectors are given as *threads*: means of neighbouring channels, as many as fit into a narrow column of a figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.layers.residual_stream import SubLayer, sublayers
from transformer.models import FirstTokenClassifier
from transformer.predictions.answer_probabilities import MAX_CLASSES, prediction_rows
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

THREADS = 16
UNITS = 12
CANDIDATES = 5


@dataclass(frozen=True)
class PictureStack:
    """What one stack does to its tokens.

    Attributes:
        stream: Residual stream after the embedding and after each of ``steps``, [step + 1, position, thread].
        update: What each step adds, [step, position, thread].
        growth: ‖update‖ / ‖before‖, [step, position].
        token: Row of the embedding, [position, thread].
        place: What positions add to it, [position, thread]; ``None`` if nothing.
        final: Output of the stack's last norm, [position, thread]; ``None`` if it has none.
        units: Feed-forward units with the largest values, largest first, [layer, position, unit].
        before_activation: Their values before the activation, [layer, position, unit].
        after_activation: Their values after the activation, [layer, position, unit].
        n_units: Number of units per layer.
        adds: Whether the stream after a step *is* before + update (pre-norm); otherwise a norm follows the sum.
    """

    name: str
    tokens: TokenSequence
    steps: tuple[SubLayer, ...]
    stream: np.ndarray
    update: np.ndarray
    growth: np.ndarray
    token: np.ndarray
    place: np.ndarray | None
    final: np.ndarray | None
    units: np.ndarray
    before_activation: np.ndarray
    after_activation: np.ndarray
    n_units: int
    n_layers: int
    d_model: int
    adds: bool


@dataclass(frozen=True)
class PictureAttention:
    """One kind of attention: ``weights`` [layer, head, query, key], ``allowed`` [layer, query, key]."""

    stack: str
    kind: str
    weights: np.ndarray
    allowed: np.ndarray


@dataclass(frozen=True)
class Written:
    """Prediction at one position.

    Attributes:
        names: Most likely tokens or classes; all classes if there are at most ``MAX_CLASSES``.
        logits: Their logits.
        probabilities: Their probabilities.
        chosen: Index of the one that was chosen.
        log_sum: log Σ exp(logit) over everything possible.
    """

    position: int
    names: tuple[str, ...]
    logits: np.ndarray
    log_sum: float
    probabilities: np.ndarray
    chosen: int


@dataclass(frozen=True)
class InsideLayer:
    """One layer of a stack, number by number.

    Attributes:
        arrays: By name of the activation within the layer ("self_attention.query"), in full: [head, position, channel]
            or [head, query, key]; vectors of the model's width as threads.
        scale: Factor of q · k, by attention.
        plain: ``False`` if there is a cap or an added term, so that scores are not simply that product.
    """

    stack: str
    layer: int
    arrays: Mapping[str, np.ndarray]
    scale: Mapping[str, float]
    plain: Mapping[str, bool]


@dataclass(frozen=True)
class LivingPicture:
    """The whole run.

    Attributes:
        writes: Whether tokens are generated one after the other (a decoder); otherwise ``written`` holds the blanks, or
            the one prediction of a classifier.
        asked: Whether there is an output. Otherwise ``written`` holds what is expected at every token; in a
            decoder-only model, ``chosen`` is then the token that was typed next.
        classes: Whether the model is a classifier.
        pooling: What its head reads: the "mean" of all positions or the "first" one.
        edits: Whether the run was edited.
        vocabulary: Number of tokens to choose from.
    """

    checkpoint: str
    stacks: tuple[PictureStack, ...]
    attentions: tuple[PictureAttention, ...]
    written: tuple[Written, ...]
    writes: bool
    classes: bool
    asked: bool
    edited: bool
    vocabulary: int
    text: str
    inside: tuple[InsideLayer, ...] = field(default=())
    pooling: str = "mean"


def threads(values: np.ndarray, count: int = THREADS) -> np.ndarray:
    """Average neighbouring channels in float64: [..., channel] → [..., thread].

    >>> threads(np.array([1.0, 3.0, 5.0, 7.0]), 2)
    array([2., 6.])
    """
    n_channels = values.shape[-1]
    count = min(count, n_channels)
    edges = np.arange(count + 1) * n_channels // count
    sums = np.add.reduceat(values.astype(np.float64), edges[:-1], axis=-1)
    return sums / np.diff(edges)


def living_picture_numbers(trace: Trace, *, inside: Iterable[tuple[str, int]] = ()) -> LivingPicture:
    """Return the numbers of ``trace``, with every number of the layers ``inside``, (stack, layer) each.

    Raises:
        ValueError: If the trace has no model, or a layer does not exist.
        NotFiniteError: If the trace holds NaN or infinite numbers, which the picture cannot put into words.
    """
    checkpoint = trace.checkpoint
    trace.check_finite()
    config, wanted = checkpoint.config, set(inside)
    for stack, layer in wanted:
        if not 0 <= layer < trace.n_layers(stack):
            raise ValueError(f"there is no layer {layer} of {stack!r}; it has {trace.n_layers(stack)}")
    stacks, layers, attentions = [], [], []
    for stack in trace.stacks:
        found, inner, looks = _stack(trace, stack, wanted)
        stacks.append(found)
        layers += inner
        attentions += looks
    question = prediction_rows(trace)
    return LivingPicture(
        checkpoint=checkpoint.name,
        stacks=tuple(stacks),
        attentions=tuple(attentions),
        written=_written_steps(trace),
        writes=config.has_decoder and not question.everywhere,
        classes=bool(config.n_classes),
        asked=not question.everywhere,
        edited=bool(trace.run and trace.run.edits),
        vocabulary=len(config.class_names) or config.vocabulary_size,
        text=trace.text,
        inside=tuple(layers),
        pooling="first" if isinstance(getattr(checkpoint.model, "classifier", None), FirstTokenClassifier) else "mean",
    )


def layers_within(trace: Trace, most: int) -> tuple[tuple[str, int], ...]:
    """Return the first (stack, layer) pairs whose insides together have at most ``most`` numbers."""
    found: list[tuple[str, int]] = []
    count = 0
    for stack in trace.stacks:
        for layer in range(trace.n_layers(stack)):
            for kind in ("self", "cross"):
                if (stack, kind) in trace.attention_kinds():
                    view = trace.attention(stack, layer, kind)
                    width = trace[f"{view.name}.value"].shape[-1]
                    count += view.scores.size + 2 * view.n_heads * width * (len(view.query) + len(view.key))
            if count > most:
                return tuple(found)
            found.append((stack, layer))
    return tuple(found)


def _stack(
    trace: Trace, stack: str, wanted: set[tuple[str, int]]
) -> tuple[PictureStack, list[InsideLayer], list[PictureAttention]]:
    """Collect one stack layer by layer, since a long trace recomputes each layer's inside."""
    steps = sublayers(trace, stack)
    kinds = [kind for where, kind in trace.attention_kinds() if where == stack]
    stream, update, growth, inner = [threads(trace.values(steps[0].before))], [], [], []
    units: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    views: dict[str, list[AttentionView]] = {kind: [] for kind in kinds}
    for step in steps:
        before, added = trace.values(step.before), trace.values(step.update)
        lengths = np.linalg.norm(before, axis=-1)
        update.append(threads(added))
        growth.append(np.divide(np.linalg.norm(added, axis=-1), lengths, out=np.zeros_like(lengths), where=lengths > 0))
        stream.append(threads(trace.values(step.after)))
        if step.kind == "feed_forward":
            units.append(_strongest(trace, f"{stack}.layers.{step.layer}.feed_forward"))
        if step.kind.endswith("_attention"):
            kind = step.kind.removesuffix("_attention")
            views[kind].append(trace.attention(stack, step.layer, kind))
        if step.kind == "feed_forward" and (stack, step.layer) in wanted:
            inner.append(_inside_layer(trace, stack, step.layer, kinds))
    embedding = f"{stack}.embedding"
    place = f"{embedding}.position"
    final = f"{stack}.final_norm.output"
    indices, before_activation, after_activation = (np.stack(part) for part in zip(*units, strict=True))
    found = PictureStack(
        name=stack,
        tokens=trace.tokens(stack),
        steps=steps,
        stream=np.stack(stream),
        update=np.stack(update),
        growth=np.stack(growth),
        token=threads(trace.values(f"{embedding}.token")),
        place=threads(trace.values(place)) if place in trace else None,
        final=threads(trace.values(final)) if final in trace else None,
        units=indices,
        before_activation=before_activation,
        after_activation=after_activation,
        n_units=trace[f"{stack}.layers.0.feed_forward.hidden"].shape[-1],
        n_layers=trace.n_layers(stack),
        d_model=trace[steps[0].before].shape[-1],
        adds=_adds(trace, steps[0]),
    )
    looks = [
        PictureAttention(
            stack,
            kind,
            np.stack([view.weights for view in views[kind]]),
            np.stack([view.allowed for view in views[kind]]),
        )
        for kind in kinds
    ]
    return found, inner, looks


def _adds(trace: Trace, step: SubLayer) -> bool:
    """Return whether the residual stream after a step is the sum itself, judged from the numbers."""
    total = trace.values(step.before) + trace.values(step.update)
    return bool(np.allclose(total, trace.values(step.after), rtol=1e-3, atol=1e-3, equal_nan=True))


def _strongest(trace: Trace, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the units with the largest |value| at each position, [position, unit].

    Returns:
        Indices of the units, and their values before and after the activation.
    """
    hidden, before = trace.values(f"{name}.hidden"), trace.values(f"{name}.pre_activation")
    size = np.nan_to_num(np.abs(hidden), nan=np.inf)
    order = np.argsort(-size, axis=-1, kind="stable")[:, :UNITS]
    return order, np.take_along_axis(before, order, -1), np.take_along_axis(hidden, order, -1)


def _inside_layer(trace: Trace, stack: str, layer: int, kinds: list[str]) -> InsideLayer:
    prefix = f"{stack}.layers.{layer}"
    arrays, scale, plain = {}, {}, {}
    for kind in kinds:
        name = f"{kind}_attention"
        for part in ("query", "key", "value", "context", "scores"):
            arrays[f"{name}.{part}"] = trace.values(f"{prefix}.{name}.{part}")
        arrays[f"{name}.output"] = threads(trace.values(f"{prefix}.{name}.output"))
        rule = score_rule(trace.checkpoint, stack, layer, kind)
        scale[name], plain[name] = rule.scale, rule.cap is None and not rule.added
    arrays["feed_forward.output"] = threads(trace.values(f"{prefix}.feed_forward.output"))
    for name in (*(f"{kind}_attention" for kind in kinds), "feed_forward"):
        for part in ("input", "normalized", "output"):
            if f"{prefix}.{name}_norm.{part}" in trace:
                arrays[f"{name}_norm.{part}"] = threads(trace.values(f"{prefix}.{name}_norm.{part}"))
        for part in ("mean", "std"):
            if f"{prefix}.{name}_norm.{part}" in trace:
                arrays[f"{name}_norm.{part}"] = trace.values(f"{prefix}.{name}_norm.{part}")
    return InsideLayer(stack, layer, arrays, scale, plain)


def _written_steps(trace: Trace) -> tuple[Written, ...]:
    question, checkpoint = prediction_rows(trace), trace.checkpoint
    logs = question.log_probabilities(trace)
    logits = np.atleast_2d(trace.values(question.logits))[list(question.rows)].astype(np.float64)
    chances = np.exp(logs)
    names = checkpoint.config.class_names
    found = []
    for row, (position, chosen) in enumerate(zip(question.rows, question.ids, strict=True)):
        likely = np.argsort(-chances[row], kind="stable")
        few = 0 < len(names) <= MAX_CLASSES
        listed = list(range(len(names))) if few else likely[:CANDIDATES].tolist()
        if chosen not in listed:
            listed[-1] = chosen
        shown = tuple(names[id] if names else checkpoint.tokenizer.display(id) for id in listed)
        places = np.array(listed)
        log_sum = float(logits[row][chosen] - logs[row][chosen])
        values = logits[row][places], log_sum, chances[row][places]
        found.append(Written(position, tuple(shown), *values, chosen=listed.index(chosen)))
    return tuple(found)
