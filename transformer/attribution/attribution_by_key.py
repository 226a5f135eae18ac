"""From which word, through which head? A head's share of a logit, split by the keys that it looked at.

context = Σ α_key · v_key, so what a head adds to a logit is the sum over the keys of α_key · ⟨v_key W_O, direction⟩. In
cross-attention the keys are the words of the source sentence.
"""

from dataclasses import dataclass

import numpy as np

from transformer.attribution.attribution import Attribution
from transformer.layers.stream_parts import Part
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Source:
    """What one head brought from one key: ``weight`` α (its mean, where several rows are read), ``value`` in logits."""

    part: Part
    key: int
    display: str
    weight: float
    value: float


def shares_of_keys(trace: Trace, attribution: Attribution, *, kind: str, layer: int) -> np.ndarray:
    """[head, key]: what each head of one attention brought from each key, summed over the rows of the question.

    A row sums to the head's part, unless an edit of the run changed the head's context behind the weights.
    """
    name = f"{attribution.question.stack}.layers.{layer}.{kind}"
    weights = trace.values(f"{name}.weights")[:, list(attribution.question.rows)]  # [head, row, key]
    values = trace.values(f"{name}.value")  # [head, key, channel]
    return np.einsum("hrk,hkc,rhc->hk", weights, values, attribution.readings[name], optimize=True)


def strongest_sources(trace: Trace, attribution: Attribution, *, most: int | None = None) -> tuple[Source, ...]:
    """All pairs of a head and a key, those that moved the logit most first; ``most`` of them."""
    question, found = attribution.question, []
    kinds = {part.kind for part in attribution.parts if part.head >= 0}
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
