"""Direct logit attribution: one logit as a sum over the parts of the model (Elhage et al. 2021).

    logit = embedding + Σ heads + Σ feed-forward layers + biases

The sum is exact, but it does not show why a part wrote what it wrote, such as that a head uses the output of another
head.

The output of the stack is a sum of the embedding and what every sub-layer wrote. A LayerNorm is linear as long as its σ
is held fixed, and so is the projection to the vocabulary. So the row of W can be carried *backwards* through them, and
its dot product with what a part wrote is the contribution of that part to the logit (Elhage et al. 2021, "Direct logit
attribution"; nostalgebraist 2020). ``target_of`` defines the logit.

``shares_of_keys`` splits a head's contribution by the keys that it attended to: context = Σ α_key · v_key, so the
contribution is the sum over the keys of α_key · ⟨v_key W_O, direction⟩. In cross-attention the keys are the words of
the source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from transformer.guests.read_out import read_out_of
from transformer.layers.norms import carry_back_through_norm, denominators
from transformer.layers.residual_stream import Part, Values, array
from transformer.models import Model
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.predictions.target import Target, target_of
from transformer.runs.edits import SUBLAYERS
from transformer.runs.traces import Trace

_SMALLEST = 1e-6  # below it, f(z)/z is evaluated at this value: 0/0 is undefined, its limit is not


class _BackwardWalk:
    """Carry ``direction``, [row, model], back from a logit through one stack.

    Attributes:
        parts: Contribution of each part, summed over all rows, from the last to the first.
        readings: See ``Attribution``.
        feed_forward_readings: See ``Attribution``.
    """

    def __init__(self, model: Model, values: Values, target: Target) -> None:
        self.model, self.values, self.target, self.rows = model, values, target, list(target.rows)
        self.stack = model.get_submodule(target.stack)
        self.parts: dict[Part, float] = {}
        self.readings: dict[str, np.ndarray] = {}
        self.feed_forward_readings: dict[str, np.ndarray] = {}
        self.gated, self.cap, self.logit = False, None, math.nan
        self._walk_head()
        self.last, self.parts = self.parts, {}
        if self.stack.final_norm is not None:
            self._walk_norm(self.stack.final_norm, f"{target.stack}.final_norm", Part("final_norm"))
        for index in reversed(range(len(self.stack.layers))):
            self._walk_layer(self.stack.layers[index], f"{target.stack}.layers.{index}", index)
        self._walk_embedding(self.stack.embedding, f"{target.stack}.embedding")

    def _walk_head(self) -> None:
        """Begin with the row of W that reads the token's logit, minus that of the alternative token, if any.

        A head with its own layer, f(x W + b), is linear once every unit passes on the share f(z)/z that it passed on in
        this run (Ali et al. 2022, "XAI for Transformers", §3, do so with the gates of attention).
        """
        target, rows = self.target, self.rows
        found = read_out_of(self.model, target.stack)
        assert found is not None, "a target is a logit of this stack"
        head, projection = found.head, found.projection
        self.gated, self.cap = found.has_own_layer, found.cap
        ids = [id for id in (target.token, target.against) if id is not None]
        signs = np.array([1.0, -1.0])[: len(ids)]
        direction = signs @ array(projection.weight[ids]) * found.scale
        self.direction = np.tile(direction / len(rows), (len(rows), 1))  # a classifier averages its rows
        if projection.bias is not None:
            self.parts[Part("logit_bias")] = float(signs @ array(projection.bias[ids]))
        read = read_out(self.model, target.stack)
        if self.cap is None:
            given = self.values(target.logits)
            self.logit = float(
                signs @ (given if target.position is None else given[target.position])[ids].astype(float)
            )
        else:  # the recorded ones are capped already
            self.logit = self._product(read, self.direction) + sum(self.parts.values())
        if found.kind == "token head":
            self._walk_norm(head.norm, f"{target.stack}.vocabulary_projection.norm", Part("head_norm"))
        if self.gated:
            before = torch.from_numpy(self.values(read)[rows].astype(np.float64))
            before = nn.functional.linear(before, head.dense.weight.detach().cpu().double())
            if head.dense.bias is not None:  # ModernBERT has none
                before = before + head.dense.bias.detach().cpu().double()
            before = torch.where(before.abs() < _SMALLEST, _SMALLEST, before)
            self.direction = self.direction * (head.activation(before) / before).numpy()
            self._take_bias(head.dense.bias, Part("head_bias"))
            self.direction = self.direction @ array(head.dense.weight)

    def _walk_layer(self, layer: nn.Module, name: str, index: int) -> None:
        """Carry the direction back through one layer, and collect the contributions of its parts."""
        for kind in reversed(SUBLAYERS):
            if (sublayer := getattr(layer, kind, None)) is None:
                continue
            if not layer.pre_norm:  # out = norm(x + sublayer(x)): everything before passes through this norm, too
                norm = Part(f"{kind}_norm", index)
                self._walk_norm(getattr(layer, norm.kind), f"{name}.{norm.kind}", norm)
            stream = self.direction
            if hasattr(layer, f"{kind}_output_norm"):  # out = x + norm(sublayer(norm(x)))
                norm = Part(f"{kind}_output_norm", index)
                self._walk_norm(getattr(layer, norm.kind), f"{name}.{norm.kind}", norm)
            if kind == "feed_forward":
                self.feed_forward_readings[f"{name}.{kind}"] = self.direction
                self.parts[Part(kind, index)] = self._product(f"{name}.{kind}.output", self.direction)
            else:
                self._walk_heads(sublayer, f"{name}.{kind}", Part(kind, index))
            self.direction = stream

    def _walk_heads(self, attention: nn.Module, name: str, part: Part) -> None:
        """Split Concat(head_1, …) W_O + b_O into heads, each with its own columns of W_O."""
        projection = attention.output_projection
        self._take_bias(projection.bias, part._replace(kind=f"{part.kind}_bias"))
        read = (self.direction @ array(projection.weight)).reshape(len(self.rows), attention.n_heads, -1)
        self.readings[name] = read
        context = self.values(f"{name}.context")[:, self.rows]  # [head, row, channel]
        per_head = np.einsum("hrc,rhc->h", context, read)
        self.parts |= {part._replace(head=head): float(per_head[head]) for head in reversed(range(len(per_head)))}

    def _walk_embedding(self, embedding: nn.Module, name: str) -> None:
        """Split x = norm((token + segment + position) W); a model may lack some of these steps."""
        if embedding.norm is not None:
            self._walk_norm(embedding.norm, f"{name}.norm", Part("embedding_norm"))
        if embedding.projection is not None:
            self.direction = self.direction @ array(embedding.projection.weight)
        written = {
            "position": embedding.position_encoding,
            "segment": embedding.segment,
            "token": True,
        }
        for kind in (kind for kind, there in written.items() if there is not None):
            self.parts[Part(kind)] = self._product(f"{name}.{kind}", self.direction)

    def _walk_norm(self, norm: nn.Module, name: str, part: Part) -> None:
        """Carry the direction back through a norm, whose β becomes a part of its own."""
        self._take_bias(getattr(norm, "bias", None), part)
        sigma = denominators(norm, name, self.values)[self.rows, None]
        self.direction = carry_back_through_norm(self.direction, norm, sigma)

    def _take_bias(self, bias: Tensor | None, part: Part) -> None:
        if bias is not None:
            self.parts[part] = float((self.direction @ array(bias)).sum())

    def _product(self, name: str, direction: np.ndarray) -> float:
        """Return the dot product of the activation ``name`` with the direction, summed over the rows."""
        return float((self.values(name)[self.rows] * direction).sum())


def read_out(model: Model, stack: str) -> str:
    """Return the name of the activation that the final step reads."""
    module = model.get_submodule(stack)
    last = f"{stack}.layers.{len(module.layers) - 1}.residual.out"
    return last if module.final_norm is None else f"{stack}.final_norm.output"


@dataclass(frozen=True)
class Attribution:
    """A logit as a sum of contributions.

    Attributes:
        values: Contribution of each of ``parts`` to the logit, [part], in the order of the forward pass.
        logit: The model's logit, or with an alternative token the difference of two logits; before the ``cap``, if any.
        gated: Whether a layer with an activation function precedes the logits. Each of its units then counts with the
            share f(z)/z that it passes on in this run.
        readings: For each attention, the vectors that the contexts of the heads are multiplied by, [row, head,
            channel]; they give the share of every key.
        feed_forward_readings: For each feed-forward layer, what its output is multiplied by, [row, model]; it gives the
            share of every unit.
    """

    target: Target
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

    The arguments are those of ``target_of``, which raises an error for a token or a position that does not exist.
    """
    target = target_of(trace, position, token=token, against=against)
    return attribution_of(trace.checkpoint.model, trace.values, target, edited=bool(trace.run.edits))


def attribution_of(model: Model, values: Values, target: Target, *, edited: bool = False) -> Attribution:
    """Compute ``attribute`` for any recorded pass, given its activations without batch axis."""
    walk = _BackwardWalk(model, values, target)
    parts = dict(reversed(walk.parts.items())) | walk.last  # in the order of the forward pass
    if edited:  # what an edit added between two parts belongs to no part
        parts[Part("edits")] = walk.logit - sum(parts.values())
    numbers, readings = np.array(list(parts.values())), (walk.readings, walk.feed_forward_readings)
    return Attribution(target, tuple(parts), numbers, walk.logit, walk.cap, walk.gated, *readings)


@dataclass(frozen=True)
class UnitShare:
    """Contribution of one feed-forward unit.

    Attributes:
        position: The row of the target in which it contributes most.
        value: Contribution to the logit, summed over the rows.
    """

    layer: int
    unit: int
    position: int
    value: float


def strongest_units(trace: Trace, attribution: Attribution, *, most: int) -> tuple[UnitShare, ...]:
    """Return the units that raise the logit most.

    The share of a unit is its value times the dot product of its row of W₂ with the direction.
    """
    target, found = attribution.target, []
    rows = list(target.rows)
    for layer in range(trace.n_layers(target.stack)):
        name = f"{target.stack}.layers.{layer}.feed_forward"
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

    It is summed over the rows of the target. A row sums to the contribution of the head, unless an edit of the run
    changed the context after the weights.
    """
    name = f"{attribution.target.stack}.layers.{layer}.{kind}"
    weights = trace.values(f"{name}.weights")[:, list(attribution.target.rows)]  # [head, row, key]
    values = trace.values(f"{name}.value")  # [head, key, channel]
    return np.einsum("hrk,hkc,rhc->hk", weights, values, attribution.readings[name], optimize=True)


def strongest_sources(trace: Trace, attribution: Attribution, *, most: int | None = None) -> tuple[Source, ...]:
    """Return all pairs of a head and a key, or the ``most`` strongest, by the size of their contribution."""
    target, found = attribution.target, []
    kinds = tuple(dict.fromkeys(part.kind for part in attribution.parts if part.head >= 0))
    for layer in range(trace.n_layers(target.stack)):
        for kind in kinds:
            shares = shares_of_keys(trace, attribution, kind=kind, layer=layer)
            name = f"{target.stack}.layers.{layer}.{kind}.weights"
            weights = trace.values(name)[:, list(target.rows)].mean(axis=1)  # [head, key]
            found += [
                (Part(kind, layer, head), key, float(weights[head, key]), float(share))
                for (head, key), share in np.ndenumerate(shares)
                if weights[head, key] > 0
            ]
    found.sort(key=lambda source: -abs(source[3]))
    read = {kind: trace.tokens("encoder" if kind == "cross_attention" else target.stack).labels for kind in kinds}
    return tuple(Source(part, key, read[part.kind][key], *numbers) for part, key, *numbers in found[:most])
