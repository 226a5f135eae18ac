"""One decoding step in detail: how logits become a choice, and the attention of the step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from transformer.files.checkpoints import Checkpoint
from transformer.runs.decoding import Candidate, Decoding, Step, decode, forced_tokens
from transformer.runs.decoding_strategies import Strategy, reshape_logits
from transformer.runs.inputs import prompt_of
from transformer.text.tokens import TokenSequence


@dataclass(frozen=True)
class Reshaped:
    """One candidate from its logit to the probability of being drawn.

    Attributes:
        own: The model's probability, before reshaping.
        scaled: logit / temperature.
        probability: softmax(scaled) over the whole vocabulary.
        kept: Whether top-k and top-p keep it.
        final: Probability of being drawn: the kept probabilities divided by their sum.
    """

    piece: str
    own: float
    logit: float
    scaled: float
    probability: float
    kept: bool
    final: float
    chosen: bool


@dataclass(frozen=True)
class Reshaping:
    """Most likely candidates of a step, best first.

    Attributes:
        rest: Final probability of all tokens that are not listed.
        n_kept: Number of tokens that can be drawn.
        n_possible: Number of tokens before top-k and top-p.
    """

    rows: tuple[Reshaped, ...]
    rest: float
    n_kept: int
    n_possible: int


def reshape_step(
    step: Step, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, shown: int = 10
) -> Reshaping:
    """Apply temperature, top-k and top-p to the logits of one step (see ``reshape_logits``).

    The chosen token is always included, as the last one if it is not among the ``shown`` most likely.
    """
    logits = torch.from_numpy(np.array(step.logits))
    shaped = reshape_logits(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    scaled = logits / temperature
    probabilities, final = scaled.softmax(dim=-1), shaped.softmax(dim=-1)
    rows = tuple(
        Reshaped(
            piece=candidate.display,
            own=candidate.probability,
            logit=float(logits[candidate.id]),
            scaled=float(scaled[candidate.id]),
            probability=float(probabilities[candidate.id]),
            kept=bool(torch.isfinite(shaped[candidate.id])),
            final=float(final[candidate.id]),
            chosen=candidate.id == step.chosen.id,
        )
        for candidate in most_likely(step, shown=shown)
    )
    rest = max(0.0, 1.0 - float(sum(row.final for row in rows)))
    return Reshaping(rows, rest, int(torch.isfinite(shaped).sum()), int(torch.isfinite(logits).sum()))


def most_likely(step: Step, *, shown: int = 10) -> tuple[Candidate, ...]:
    """Return the ``shown`` most likely candidates, best first.

    If the chosen token is not among them, it replaces the last one.
    """
    listed = list(step.candidates[:shown])
    if step.chosen.id not in [candidate.id for candidate in listed]:
        listed[-1:] = [step.chosen]
    return tuple(listed)


def rest_of(candidates: Sequence[Candidate]) -> float:
    """Return the probability of all tokens that are not among these."""
    return max(0.0, 1.0 - sum([candidate.probability for candidate in candidates]))


class Confidence(NamedTuple):
    """Probabilities, [step], of the chosen token and of the most likely other one, as in ``Candidate``."""

    probability: np.ndarray
    runner_up: np.ndarray


def confidence(decoding: Decoding) -> Confidence:
    """Return the model's probabilities at each step, before temperature, top-k and top-p."""
    chosen = [step.chosen.probability for step in decoding.steps]
    others = [
        max([candidate.probability for candidate in step.candidates if candidate.id != step.chosen.id], default=0.0)
        for step in decoding.steps
    ]
    return Confidence(np.array(chosen), np.array(others))


def token_log_probabilities(decoding: Decoding) -> np.ndarray:
    """Return log p of each chosen token in nats, among the tokens that may be generated: [step].

    They sum to ``decoding.log_probability``. They are computed from the logits in float64: a probability that is too
    small for a float still has a logarithm.
    """
    found = [torch.tensor(step.logits, dtype=torch.float64).log_softmax(dim=-1) for step in decoding.steps]
    return np.array([float(log_p[step.chosen.id]) for log_p, step in zip(found, decoding.steps, strict=True)])


def decode_with_attention(
    checkpoint: Checkpoint,
    sentence: str,
    strategy: Strategy,
    *,
    forced: str | Sequence[int] = "",
    source_pads: int = 0,
) -> Decoding:
    """Return the output of ``decode`` with each step's attention, and none of the other recorded tensors."""
    arguments = {"forced": forced, "source_pads": source_pads, "record_steps": True}
    decoding = decode(checkpoint, sentence, strategy, **arguments)
    kept, steps = ("attention.weights", "attention.allowed"), []
    for step in decoding.steps:
        names = [name for name in step.activations if name.startswith("decoder.") and name.endswith(kept)]
        steps.append(replace(step, activations={name: step.activations[name] for name in names}))
    return replace(decoding, steps=tuple(steps))


@dataclass(frozen=True)
class StepAttention:
    """Attention of one step: ``weights`` [head, key], ``allowed`` [key], and the visible tokens."""

    weights: np.ndarray
    allowed: np.ndarray
    key: TokenSequence

    def of(self, head: int | None) -> np.ndarray:
        """Return the weights, [key], of one head, or the mean of all heads (``None``)."""
        return self.weights.mean(axis=0) if head is None else self.weights[head]


def step_attention(
    checkpoint: Checkpoint,
    decoding: Decoding,
    sentence: str,
    *,
    step: int,
    layer: int,
    kind: str,
    prompt: Sequence[int] | None = None,
) -> StepAttention:
    """Return the attention of the position that predicted token ``step``, in one decoder layer.

    Args:
        checkpoint: The model.
        decoding: Made from ``sentence`` with ``record_steps=True``.
        sentence: Source sentence or prompt.
        step: Index of the generated token.
        layer: Index of the layer.
        kind: "cross" (keys: the source) or "self" (keys: the prompt and everything generated before).
        prompt: Result of ``prompt_of(checkpoint, sentence)``, if known.

    Raises:
        ValueError: If the steps were not recorded or the layer does not exist.
    """
    prefix = f"decoder.layers.{layer}.{kind}_attention"
    activations = decoding.steps[step].activations
    if f"{prefix}.weights" not in activations:
        known = sorted(name.removesuffix(".weights") for name in activations if name.endswith(".weights"))
        raise ValueError(f"step {step} holds no {prefix}.weights; it has {', '.join(known) or 'no recording at all'}")
    # The first step reads the whole prompt at once; its last row is the one that predicts.
    weights = activations[f"{prefix}.weights"].values[:, -1]
    allowed = activations[f"{prefix}.allowed"].values[-1]
    if kind == "cross":
        key = decoding.source
    else:
        ids = [*(prompt_of(checkpoint, sentence) if prompt is None else prompt), *decoding.tokens.ids[:step]]
        key = checkpoint.tokenizer.sequence(ids, "target")
    return StepAttention(weights, allowed, key)


def rank(step: Step) -> int:
    """Return the rank of the chosen token by the model's own probability; 1 is the most likely."""
    return int((step.logits > step.logits[step.chosen.id]).sum()) + 1


def n_forced(checkpoint: Checkpoint, forced: str | Sequence[int], sentence: str = "") -> int:
    """Return how many tokens of an output were fixed by ``forced`` instead of being chosen."""
    return 0 if isinstance(forced, str) and not forced.strip() else len(forced_tokens(checkpoint, forced, sentence))
