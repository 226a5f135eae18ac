"""Direct logit attribution: one logit as a sum over the parts of the model (Elhage et al. 2021).

    logit = embedding + Σ heads + Σ feed-forward layers + biases

The sum is exact. It does not show why a part wrote what it wrote: if a head uses the output of another head, the sum
does not show that.

The output of the stack is a sum of the embedding and what every sub-layer wrote. A LayerNorm is linear as long as its σ
is held fixed, and so is the projection to the vocabulary. So the row of W can be carried *backwards* through them, and
its dot product with what a part wrote is the contribution of that part to the logit (Elhage et al. 2021, "Direct logit
attribution"; nostalgebraist 2020). ``ask_question`` defines the logit, ``last_step`` carries the row of W through the
projection and everything before it, ``Walk`` carries it through the layers.

``shares_of_keys`` splits a head's contribution by the keys that it attended to: context = Σ α_key · v_key, so the
contribution is the sum over the keys of α_key · ⟨v_key W_O, direction⟩. In cross-attention the keys are the words of
the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from transformer.guests.output_heads import TokenHead
from transformer.layer_norm import RMSNorm
from transformer.layers.residual_stream import SUBLAYERS, Part, Values, array
from transformer.masks import padding_mask
from transformer.models import Classifier, FirstTokenClassifier, Model
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.predictions.lens import lens_stack
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Question:
    """The logit in question and its position.

    Attributes:
        token: An id of the vocabulary, or a class.
        against: The alternative token, whose logit is subtracted; ``None`` for none.
        rows: Positions whose residual streams are read out: one, or all real ones in a classifier that averages them.
        position: Position of the prediction; ``None`` for a classifier.
    """

    stack: str
    position: int | None
    rows: tuple[int, ...]
    token: int
    against: int | None = None

    @property
    def logits(self) -> str:
        """Name of the activation that holds the prediction."""
        return "classifier.logits" if self.position is None else f"{self.stack}.logits"


def ask_question(
    trace: Trace, position: int | None = None, *, token: int | None = None, against: int | None = None
) -> Question:
    """Return the checked question about a trace; raises what ``attribute`` raises."""
    model, stack = trace.checkpoint.model, lens_stack(trace.checkpoint)
    tokens = trace.tokens(stack)
    if trace.checkpoint.config.n_classes:
        if position is not None:
            raise ValueError(f"position is {position}, but a classifier answers for the whole sentence; leave it out")
        rows, logits = (0,), trace.values("classifier.logits")
        if isinstance(model.classifier, Classifier):
            real = padding_mask(torch.tensor(tokens.ids), trace.checkpoint.config.pad_id)
            rows = tuple(torch.nonzero(real)[:, 0].tolist())
    else:
        if position is None or not 0 <= position < len(tokens):
            raise ValueError(f"position is {position}; the {stack} read the positions 0 to {len(tokens) - 1}")
        if stack == "encoder" and tokens[position].is_padding:
            raise ValueError(f"position {position} is padding, of which nothing is asked; choose a token")
        rows, logits = (position,), trace.values(f"{stack}.logits")[position]
    token = int(logits.argmax()) if token is None else token
    for id in (token, against):
        if id is not None and not 0 <= id < len(logits):
            raise ValueError(f"there is no token {id}; this model has {len(logits)}, counted from 0")
    return Question(stack, position, rows, token, against)


class Walk:
    """Walk back through one stack with ``direction``, [row, model], one row per position of ``rows``.

    Attributes:
        parts: Contribution of each part, summed over all rows.
        readings: For each attention, the vectors that the contexts of the heads are multiplied by, [row, head,
            channel]; they give the share of every key.
        feed_forward_readings: For each feed-forward layer, what its output is multiplied by, [row, model]; it gives the
            share of every unit.
    """

    def __init__(self, values: Values, stack: nn.Module, name: str, rows: list[int], direction: np.ndarray) -> None:
        self.values, self.rows, self.direction = values, rows, direction
        self.parts: dict[Part, float] = {}
        self.readings: dict[str, np.ndarray] = {}
        self.feed_forward_readings: dict[str, np.ndarray] = {}
        if stack.final_norm is not None:
            self.direction = self.before_norm(stack.final_norm, f"{name}.final_norm", Part("final_norm"))
        for index in reversed(range(len(stack.layers))):
            self.walk_layer(stack.layers[index], f"{name}.layers.{index}", index)
        self.walk_embedding(stack.embedding, f"{name}.embedding")
        self.parts = dict(reversed(self.parts.items()))  # in the order of the forward pass

    def walk_layer(self, layer: nn.Module, name: str, index: int) -> None:
        """Carry the direction back through one layer, and collect the contributions of its parts."""
        for kind in reversed(SUBLAYERS):
            if (sublayer := getattr(layer, kind, None)) is None:
                continue
            if not layer.pre_norm:  # out = norm(x + sublayer(x)): everything before passes through this norm, too
                norm = Part(f"{kind}_norm", index)
                self.direction = self.before_norm(getattr(layer, norm.kind), f"{name}.{norm.kind}", norm)
            written = self.direction
            if hasattr(layer, f"{kind}_output_norm"):  # out = x + norm(sublayer(norm(x)))
                norm = Part(f"{kind}_output_norm", index)
                written = self.before_norm(getattr(layer, norm.kind), f"{name}.{norm.kind}", norm)
            if kind == "feed_forward":
                self.feed_forward_readings[f"{name}.{kind}"] = written
                self.parts[Part(kind, index)] = self.product(f"{name}.{kind}.output", written)
            else:
                self.walk_heads(sublayer, f"{name}.{kind}", written, Part(kind, index))

    def walk_heads(self, attention: nn.Module, name: str, written: np.ndarray, part: Part) -> None:
        """Split Concat(head_1, …) W_O + b_O into heads, each with its own columns of W_O."""
        projection = attention.output_projection
        if projection.bias is not None:
            self.parts[part._replace(kind=f"{part.kind}_bias")] = float((written @ array(projection.bias)).sum())
        read = (written @ array(projection.weight)).reshape(len(self.rows), attention.n_heads, -1)
        self.readings[name] = read  # [row, head, channel]
        per_head = self.added(name, read)
        for head in reversed(range(attention.n_heads)):
            self.parts[part._replace(head=head)] = float(per_head[head])

    def added(self, name: str, read: np.ndarray) -> np.ndarray:
        """Return what the context of each head adds along its reading, over the rows: [head]."""
        context = self.values(f"{name}.context")[:, self.rows]  # [head, row, channel]
        return np.einsum("hrc,rhc->h", context, read)

    def walk_embedding(self, embedding: nn.Module, name: str) -> None:
        """Split x = norm((token + segment + position) W); a model may lack some of these steps."""
        if getattr(embedding, "norm", None) is not None:
            self.direction = self.before_norm(embedding.norm, f"{name}.norm", Part("embedding_norm"))
        if getattr(embedding, "projection", None) is not None:
            self.direction = self.direction @ array(embedding.projection.weight)
        if embedding.position_encoding is not None:
            self.parts[Part("position")] = self.product(f"{name}.position", self.direction)
        if getattr(embedding, "segment", None) is not None:
            self.parts[Part("segment")] = self.product(f"{name}.segment", self.direction)
        self.parts[Part("token")] = self.product(f"{name}.token", self.direction)

    def before_norm(self, norm: nn.Module, name: str, part: Part) -> np.ndarray:
        """Carry the direction back through a norm, whose β becomes a part of its own."""
        if (bias := getattr(norm, "bias", None)) is not None:
            self.parts[part] = float((self.direction @ array(bias)).sum())
        return before_norm(norm, name, self.values, self.rows, self.direction)

    def product(self, name: str, direction: np.ndarray) -> float:
        """Return the sum over the rows of what was written there, along the direction."""
        return float((self.values(name)[self.rows] * direction).sum())


def before_norm(norm: nn.Module, name: str, values: Values, rows: list[int], direction: np.ndarray) -> np.ndarray:
    """Return the direction, [row, model], before a norm whose σ is held fixed.

    ⟨d, γ (x − μ)/σ⟩ = ⟨(γd − mean(γd))/σ, x⟩, because subtracting the mean is symmetric. RMSNorm does not subtract it.
    """
    scaled = direction * array(norm.weight)
    if isinstance(norm, RMSNorm):
        mean_square = values(f"{name}.mean_square")[rows].astype(np.float64)
        return scaled / np.sqrt(mean_square + norm.epsilon)[:, None]
    return (scaled - scaled.mean(axis=-1, keepdims=True)) / values(f"{name}.std")[rows].astype(np.float64)[:, None]


_SMALLEST = 1e-6  # below it, f(z)/z is evaluated at this value: 0/0 is undefined, its limit is not


@dataclass(frozen=True)
class LastStep:
    """The final steps of a model.

    Attributes:
        direction: What the output of the stack is multiplied by, [row, model].
        parts: What is added after it.
        logit: The logit before a ``cap``.
        gated: Whether a layer with an activation comes in between.
    """

    direction: np.ndarray
    parts: dict[Part, float]
    logit: float
    cap: float | None
    gated: bool


def last_step(model: Model, values: Values, question: Question) -> LastStep:
    """Return the row of W that reads the token's logit, carried back before the head.

    The row of the alternative token, if any, is subtracted. A head with its own layer, f(x W + b), is linear once every
    unit passes on the share f(z)/z that it passed on in this run (Ali et al. 2022, "XAI for Transformers", §3, do so
    with the gates of attention).
    """
    stack, rows = model.get_submodule(question.stack), list(question.rows)
    head = model.classifier if question.position is None else stack.vocabulary_projection
    gated = isinstance(head, TokenHead | FirstTokenClassifier)
    projection = head if isinstance(head, nn.Linear) else head.projection
    ids = [id for id in (question.token, question.against) if id is not None]
    signs = np.array([1.0, -1.0])[: len(ids)]
    direction = signs @ array(projection.weight[ids]) * getattr(projection, "scale", 1.0)
    direction = np.tile(direction / len(rows), (len(rows), 1))  # a classifier averages its rows
    parts: dict[Part, float] = {}
    if projection.bias is not None:
        parts[Part("logit_bias")] = float(signs @ array(projection.bias[ids]))
    cap = getattr(projection, "cap", None)
    hidden = read_out(model, question.stack)
    if cap is None:
        given = values(question.logits)
        given = given if question.position is None else given[question.position]
        logit = float(signs @ given[ids].astype(np.float64))
    else:  # the recorded ones are capped already
        logit = float((values(hidden)[rows] * direction).sum()) + sum(parts.values())
    if isinstance(head, TokenHead):
        norm = f"{question.stack}.vocabulary_projection.norm"
        parts[Part("head_norm")] = float((direction @ array(head.norm.bias)).sum())
        direction = before_norm(head.norm, norm, values, rows, direction)
    if gated:
        before = torch.from_numpy(values(hidden)[rows].astype(np.float64)) @ _double(head.dense.weight).T
        if head.dense.bias is not None:
            before = before + _double(head.dense.bias)
        before = torch.where(before.abs() < _SMALLEST, _SMALLEST, before)
        direction = direction * (head.activation(before) / before).numpy()
        if head.dense.bias is not None:  # ModernBERT has none
            parts[Part("head_bias")] = float((direction @ array(head.dense.bias)).sum())
        direction = direction @ array(head.dense.weight)
    return LastStep(direction, parts, logit, cap, gated)


def read_out(model: Model, stack: str) -> str:
    """Return the name of the activation that the final step reads."""
    module = model.get_submodule(stack)
    last = f"{stack}.layers.{len(module.layers) - 1}.residual.out"
    return last if module.final_norm is None else f"{stack}.final_norm.output"


def _double(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().double()


@dataclass(frozen=True)
class Attribution:
    """A logit as a sum of contributions.

    Attributes:
        values: Contribution of each of ``parts`` to the logit, [part], in the order of the forward pass.
        logit: The model's logit (the difference of two, with an alternative token), before the ``cap`` if there is one.
        gated: Whether a layer with an activation precedes the logits. Each of its units then counts with the share that
            it passes on in this run.
        readings, feed_forward_readings: See ``Walk``.
    """

    question: Question
    parts: tuple[Part, ...]
    values: np.ndarray
    logit: float
    cap: float | None
    gated: bool
    readings: Mapping[str, np.ndarray]
    feed_forward_readings: Mapping[str, np.ndarray]

    @property
    def total(self) -> float:
        """Sum of all contributions."""
        return float(self.values.sum())

    @property
    def deviation(self) -> float:
        """|sum − logit|, due to rounding only."""
        return abs(self.total - self.logit)

    def of(self, part: Part) -> float:
        """Return the contribution of one part."""
        return float(self.values[self.parts.index(part)])

    def table(self, kind: str) -> np.ndarray:
        """Return contributions of one kind of attention, [layer, head], or feed-forward, [layer, 1]."""
        found = {(part.layer, max(part.head, 0)): self.of(part) for part in self.parts if part.kind == kind}
        if not found:
            raise ValueError(f"there is no part {kind!r}; there are {', '.join({part.kind: 0 for part in self.parts})}")
        shape = tuple(1 + max(place[axis] for place in found) for axis in (0, 1))
        return np.array([[found[layer, head] for head in range(shape[1])] for layer in range(shape[0])])

    def strongest(self, most: int) -> tuple[Part, ...]:
        """Return the parts that change the logit most, up or down."""
        order = np.argsort(-np.abs(self.values), kind="stable")[:most]
        return tuple(self.parts[place] for place in order)


def attribute(
    trace: Trace, position: int | None = None, *, token: int | None = None, against: int | None = None
) -> Attribution:
    """Split the logit of ``token`` at ``position`` into the contributions of all parts.

    Every norm divides by the σ that it had in this run. In a classifier that averages all tokens, the contributions are
    sums over the tokens.

    Args:
        trace: The recorded pass.
        position: Index among the decoder's tokens, where row t predicts the token after t; in a masked-token model,
            index among the sentence's tokens; ``None`` for a classifier.
        token: An id, or a class; by default the most likely one there.
        against: An alternative token, whose logit is subtracted.

    Raises:
        ValueError: If the position or the token does not exist, or the position is padding.
    """
    question = ask_question(trace, position, token=token, against=against)
    return attribution_of(trace.checkpoint.model, trace.values, question, edited=bool(trace.run.edits))


def attribution_of(model: Model, values: Values, question: Question, *, edited: bool = False) -> Attribution:
    """Compute ``attribute`` for any recorded pass, given its activations without batch axis."""
    last = last_step(model, values, question)
    stack = model.get_submodule(question.stack)
    walk = Walk(values, stack, question.stack, list(question.rows), last.direction)
    parts = walk.parts | last.parts
    if edited:  # what an edit added between two parts belongs to no part
        parts[Part("edits")] = last.logit - sum(parts.values())
    numbers = np.array(list(parts.values()))
    readings = walk.readings, walk.feed_forward_readings
    return Attribution(question, tuple(parts), numbers, last.logit, last.cap, last.gated, *readings)


@dataclass(frozen=True)
class UnitShare:
    """Contribution of one feed-forward unit.

    Attributes:
        position: The row of the question in which it contributes most.
        value: Contribution to the logit, summed over the rows.
    """

    layer: int
    unit: int
    position: int
    value: float


def strongest_units(trace: Trace, attribution: Attribution, *, most: int) -> tuple[UnitShare, ...]:
    """Return the units that raise the logit most.

    The share of a unit is its value times the product of its row of W₂ and the direction.
    """
    question, found = attribution.question, []
    rows = list(question.rows)
    for layer in range(trace.n_layers(question.stack)):
        name = f"{question.stack}.layers.{layer}.feed_forward"
        projection = array(trace.checkpoint.model.get_submodule(f"{name}.output_projection").weight)
        shares = trace.values(f"{name}.hidden")[rows] * (
            attribution.feed_forward_readings[name] @ projection
        )  # [row, unit]
        values = shares.sum(axis=0)
        for unit in np.argsort(-values, kind="stable")[:most].tolist():
            found.append(UnitShare(layer, unit, rows[int(shares[:, unit].argmax())], float(values[unit])))
    return tuple(sorted(found, key=lambda one: -one.value)[:most])


def predicting_units(trace: Trace, *, most: int) -> tuple[UnitShare, ...]:
    """Return the units with the largest direct effect on the output, where it is least certain.

    That is the row where p (1 − p) of the most likely token is largest. The effect is on its logit minus that of the
    second most likely one. The result is empty if nothing is predicted.
    """
    asked = prediction_rows(trace)
    if not asked.rows:
        return ()
    chances = np.exp(asked.log_probabilities(trace))
    best = chances.max(axis=-1)
    row = int((best * (1 - best)).argmax())
    token, against = np.argsort(-chances[row], kind="stable")[:2].tolist()
    position = None if trace.checkpoint.config.n_classes else asked.rows[row]
    return strongest_units(trace, attribute(trace, position, token=token, against=against), most=most)


@dataclass(frozen=True)
class Source:
    """Contribution of one key through one head.

    Attributes:
        weight: α; its mean if several rows are read.
        value: Contribution to the logit.
    """

    part: Part
    key: int
    display: str
    weight: float
    value: float


def shares_of_keys(trace: Trace, attribution: Attribution, *, kind: str, layer: int) -> np.ndarray:
    """Return the contribution of each key through each head of one attention: [head, key].

    It is summed over the rows of the question. A row sums to the contribution of the head, unless an edit of the run
    changed the context after the weights.
    """
    name = f"{attribution.question.stack}.layers.{layer}.{kind}"
    weights = trace.values(f"{name}.weights")[:, list(attribution.question.rows)]  # [head, row, key]
    values = trace.values(f"{name}.value")  # [head, key, channel]
    return np.einsum("hrk,hkc,rhc->hk", weights, values, attribution.readings[name], optimize=True)


def strongest_sources(trace: Trace, attribution: Attribution, *, most: int | None = None) -> tuple[Source, ...]:
    """Return all pairs of a head and a key, or the ``most`` strongest, by the size of their contribution."""
    question, found = attribution.question, []
    kinds = tuple(dict.fromkeys(part.kind for part in attribution.parts if part.head >= 0))
    for layer in range(trace.n_layers(question.stack)):
        for kind in kinds:
            shares = shares_of_keys(trace, attribution, kind=kind, layer=layer)
            name = f"{question.stack}.layers.{layer}.{kind}.weights"
            weights = trace.values(name)[:, list(question.rows)].mean(axis=1)  # [head, key]
            found += [
                (Part(kind, layer, head), key, float(weights[head, key]), float(share))
                for (head, key), share in np.ndenumerate(shares)
                if weights[head, key] > 0
            ]
    found.sort(key=lambda source: -abs(source[3]))
    read = {kind: trace.tokens("encoder" if kind == "cross_attention" else question.stack).labels for kind in kinds}
    return tuple(Source(part, key, read[part.kind][key], *numbers) for part, key, *numbers in found[:most])
