"""The numbers of the living picture: a sentence on its way through the model.

What every token carries between the sub-layers, what each sub-layer adds, which tokens attend to which, which units are
active, and which tokens are predicted.

Vectors are given as *threads*: means of neighbouring channels, as many as a narrow column of a picture has room for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.layers.residual_stream import SubLayer, sublayers
from transformer.predictions.answer_probabilities import asked
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

THREADS = 16
UNITS = 12
CANDIDATES = 5


@dataclass(frozen=True)
class PictureStack:
    """What one stack does to its tokens.

    ``stream``: [step + 1, position, thread]: the residual stream behind the embedding, then behind each of ``steps``.
    ``update``: [step, position, thread]: what each of them adds; ``growth``: [step, position]: ‖update‖ / ‖before‖.
    ``token`` and ``place``: [position, thread]: the row of the embedding and what positions add to it (``None`` where
    they add nothing). ``final``: [position, thread], behind the stack's last norm, where it has one. ``units``,
    ``before_activation``, ``after_activation``: [layer, position, unit] of the feed-forward units that answer
    strongest, the strongest first; ``n_units``: how many there are. ``adds``: whether the stream behind a step *is*
    before + update (pre-norm); otherwise a norm stands behind the sum.
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
    """All layers of one attention: ``weights`` [layer, head, query, key] and ``allowed`` [layer, query, key]."""

    stack: str
    kind: str
    weights: np.ndarray
    allowed: np.ndarray


@dataclass(frozen=True)
class Written:
    """What came out at one position: ``names`` of the likeliest tokens (or of all classes) with their ``logits`` and
    ``probabilities``; number ``chosen`` of them came. ``log_sum``: ln Σ exp(logit) over all that could have come."""

    position: int
    names: tuple[str, ...]
    logits: np.ndarray
    log_sum: float
    probabilities: np.ndarray
    chosen: int


@dataclass(frozen=True)
class InsideLayer:
    """One layer of a stack, number by number.

    ``arrays``: by the name of the activation within the layer ("self_attention.query"), in full, [head, position,
    channel] or [head, query, key]; vectors of the model's width as threads. ``scale``: by attention, what q · k is
    multiplied by; a cap or what is added to a score is in ``plain`` as ``False``: then scores are not that product.
    """

    stack: str
    layer: int
    arrays: Mapping[str, np.ndarray]
    scale: Mapping[str, float]
    plain: Mapping[str, bool]


@dataclass(frozen=True)
class LivingPicture:
    """The whole run. ``writes``: whether tokens are written one after the other (a decoder); otherwise ``written``
    holds the blanks, or the one verdict of a classifier. ``classes``: whether it is one. ``edits``: whether something
    in the model was changed. ``vocabulary``: how many tokens there are to choose from."""

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


def threads(values: np.ndarray, count: int = THREADS) -> np.ndarray:
    """Means of neighbouring channels, in float64: [..., channel] → [..., thread].

    >>> threads(np.array([1.0, 3.0, 5.0, 7.0]), 2)
    array([2., 6.])
    """
    n_channels = values.shape[-1]
    count = min(count, n_channels)
    edges = np.arange(count + 1) * n_channels // count
    sums = np.add.reduceat(values.astype(np.float64), edges[:-1], axis=-1)
    return sums / np.diff(edges)


def living_picture_numbers(trace: Trace, *, inside: Iterable[tuple[str, int]] = ()) -> LivingPicture:
    """The numbers of ``trace``; ``inside``: (stack, layer) of the layers that are wanted number by number.

    Raises ``ValueError`` for a trace that does not know its model, and for a layer that there is not.
    """
    checkpoint = trace.checkpoint
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
    question = asked(trace)
    return LivingPicture(
        checkpoint=checkpoint.name,
        stacks=tuple(stacks),
        attentions=tuple(attentions),
        written=_written(trace),
        writes=config.has_decoder,
        classes=bool(config.n_classes),
        asked=not question.everywhere,
        edited=bool(trace.run and trace.run.edits),
        vocabulary=len(config.class_names) or config.vocabulary_size,
        text=trace.text,
        inside=tuple(layers),
    )


def layers_within(trace: Trace, most: int) -> tuple[tuple[str, int], ...]:
    """The (stack, layer) pairs from the first ones on whose insides together have at most ``most`` numbers."""
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
    """Layer by layer, as a long trace computes the inside of a layer anew when it is asked for the next one."""
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
            inner.append(_inside(trace, stack, step.layer, kinds))
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
    """Whether the stream behind a step is the sum itself: read from the numbers."""
    total = trace.values(step.before) + trace.values(step.update)
    return bool(np.allclose(total, trace.values(step.after), rtol=1e-3, atol=1e-3, equal_nan=True))


def _strongest(trace: Trace, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The units with the largest |value| at each position: [position, unit] of numbers, and of values before and
    behind the activation."""
    hidden, before = trace.values(f"{name}.hidden"), trace.values(f"{name}.pre_activation")
    size = np.nan_to_num(np.abs(hidden), nan=np.inf)
    order = np.argsort(-size, axis=-1, kind="stable")[:, :UNITS]
    return order, np.take_along_axis(before, order, -1), np.take_along_axis(hidden, order, -1)


def _inside(trace: Trace, stack: str, layer: int, kinds: list[str]) -> InsideLayer:
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


def _written(trace: Trace) -> tuple[Written, ...]:
    question, checkpoint = asked(trace), trace.checkpoint
    logs = question.log_probabilities(trace)
    logits = np.atleast_2d(trace.values(question.logits))[list(question.rows)].astype(np.float64)
    chances = np.exp(logs)
    names = checkpoint.config.class_names
    found = []
    for row, (position, chosen) in enumerate(zip(question.rows, question.ids, strict=True)):
        likely = np.argsort(-np.nan_to_num(chances[row]), kind="stable")
        listed = list(range(len(names))) if names else likely[:CANDIDATES].tolist()
        if chosen not in listed:
            listed[-1] = chosen
        shown = names if names else tuple(checkpoint.tokenizer.display(id) for id in listed)
        places = np.array(listed)
        log_sum = float(logits[row][chosen] - logs[row][chosen])
        values = logits[row][places], log_sum, chances[row][places]
        found.append(Written(position, tuple(shown), *values, chosen=listed.index(chosen)))
    return tuple(found)
