"""Numbers of the living picture, in which a sentence moves through the model.

They cover what every token carries between the sub-layers, what each sub-layer adds, which tokens attend to which,
which units are active, and which tokens are predicted.

Vectors are given as *threads*: means of neighbouring channels, so few that they fit into a narrow column of a figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from transformer.attention_maps.attention_arithmetic import score_rule
from transformer.guests.read_out import read_out_of
from transformer.layers.residual_stream import SubLayer, sublayers
from transformer.predictions.answer_probabilities import MAX_CLASSES, prediction_rows
from transformer.predictions.target import shown_word
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
        arrays: "stream", the residual stream after the embedding and after each of ``steps``, [step + 1, position,
            thread]; "update", what each step adds, [step, position, thread], and its "growth", ‖update‖ / ‖before‖,
            [step, position]; the row of the embedding ("token") and, where there are such, what positions add to it
            ("place") and the output of the stack's last norm ("final"), [position, thread] each; the feed-forward
            "units" with the largest values, largest first, and their values "before_activation" and
            "after_activation", [layer, position, unit] each.
        n_units: Number of units per layer.
        adds: Whether the stream after a step *is* before + update (pre-norm); otherwise a norm follows the sum.
    """

    name: str
    tokens: TokenSequence
    steps: tuple[SubLayer, ...]
    arrays: Mapping[str, np.ndarray]
    n_units: int
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
        arrays: Activations by their name within the layer ("self_attention.query"): [head, position, channel] or
            [head, query, key] in full; vectors as wide as the model are averaged by ``threads``.
        scale: Factor of q · k, by attention.
        plain: ``False`` if there is a cap or an added term, so that scores are not simply scale · q · k.
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
        asked: Whether there is an output. Otherwise ``written`` holds the prediction at every token, and in a
            decoder-only model ``chosen`` is the token that was typed next.
        classes: Whether the model is a classifier.
        pooling: What its head reads: the "mean" of all positions or the "first" one.
        edits: Whether the run was edited.
        vocabulary: Number of tokens to choose from.
        opening: Position in the last stack whose prediction is shown first.
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
    opening: int | None = None


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
        pooling="first" if config.n_classes and read_out_of(checkpoint.model, "encoder").kind == "first" else "mean",
        opening=question.opening,
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
    arrays = {name: np.stack(rows) for name, rows in (("stream", stream), ("update", update), ("growth", growth))}
    ends = {"token": "embedding.token", "place": "embedding.position", "final": "final_norm.output"}
    for name, probe in ends.items():
        if f"{stack}.{probe}" in trace:
            arrays[name] = threads(trace.values(f"{stack}.{probe}"))
    named = ("units", "before_activation", "after_activation")
    arrays |= {name: np.stack(part) for name, part in zip(named, zip(*units, strict=True), strict=True)}
    sizes = trace[f"{stack}.layers.0.feed_forward.hidden"].shape[-1], trace[steps[0].before].shape[-1]
    found = PictureStack(stack, trace.tokens(stack), steps, arrays, *sizes, _adds(trace, steps[0]))
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
        for part in ("input", "normalized", "output", "mean", "std"):
            if (probe := f"{prefix}.{name}_norm.{part}") in trace:
                values = trace.values(probe)
                arrays[f"{name}_norm.{part}"] = values if part in ("mean", "std") else threads(values)
    return InsideLayer(stack, layer, arrays, scale, plain)


def _written_steps(trace: Trace) -> tuple[Written, ...]:
    question, checkpoint = prediction_rows(trace), trace.checkpoint
    logs = question.log_probabilities(trace)
    logits = np.atleast_2d(trace.values(question.logits))[list(question.rows)].astype(np.float64)
    n_classes, found = len(checkpoint.config.class_names), []
    for row, (position, chosen) in enumerate(zip(question.rows, question.ids, strict=True)):
        chances = np.exp(logs[row])
        listed = np.argsort(-chances, kind="stable")[:CANDIDATES].tolist()
        if 0 < n_classes <= MAX_CLASSES:
            listed = list(range(n_classes))
        elif chosen not in listed:
            listed[-1] = chosen
        log_sum = float(logits[row][chosen] - logs[row][chosen])
        shown = tuple(shown_word(checkpoint, id) for id in listed)
        found.append(Written(position, shown, logits[row][listed], log_sum, chances[listed], listed.index(chosen)))
    return tuple(found)
