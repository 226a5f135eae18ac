"""One step of writing taken apart: how its logits become a choice, and where the model looked meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.files.checkpoints import Checkpoint
from transformer.runs.decoding import Candidate, Decoding, Step, forced_tokens
from transformer.runs.decoding_strategies import reshape_logits
from transformer.runs.inputs import prompt_of
from transformer.text.tokens import TokenSequence


@dataclass(frozen=True)
class Reshaped:
    """One candidate on its way from logit to chance.

    ``own``: the model's own probability, before anything is reshaped. ``scaled`` = logit / temperature; ``probability``
    = softmax(scaled) over the whole vocabulary; ``kept``: whether top-k and top-p leave it; ``final``: its chance to be
    drawn, the kept probabilities divided by their sum.
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
    """The likeliest candidates of a step, most probable first, and what they leave out.

    ``rest``: final probability of all tokens not listed. ``n_kept`` of ``n_possible`` tokens can still be drawn.
    """

    rows: tuple[Reshaped, ...]
    rest: float
    n_kept: int
    n_possible: int


def reshape_step(
    step: Step, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, shown: int = 10
) -> Reshaping:
    """What temperature, top-k and top-p make of one step's logits (``decoding_strategies.reshape_logits``).

    The chosen token is always among the rows, as the last one where it is not one of the ``shown`` likeliest.
    """
    logits = torch.from_numpy(np.array(step.logits))
    shaped = reshape_logits(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    scaled = logits / temperature
    probabilities, final = scaled.softmax(dim=-1), shaped.softmax(dim=-1)
    listed = likeliest(step, shown=shown)
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
        for candidate in listed
    )
    rest = max(0.0, 1.0 - float(sum(row.final for row in rows)))
    return Reshaping(rows, rest, int(torch.isfinite(shaped).sum()), int(torch.isfinite(logits).sum()))


def likeliest(step: Step, *, shown: int = 10) -> tuple[Candidate, ...]:
    """The ``shown`` likeliest candidates, most probable first; the chosen one instead of the last if it is not among
    them."""
    listed = list(step.candidates[:shown])
    if step.chosen.id not in [candidate.id for candidate in listed]:
        listed[-1:] = [step.chosen]
    return tuple(listed)


@dataclass(frozen=True)
class Confidence:
    """Per step [step]: probability of the token that came and of the most likely other one, as ``Candidate`` has it."""

    probability: np.ndarray
    runner_up: np.ndarray

    @property
    def log_probability(self) -> float:
        """Σ log p over the steps; −∞ where a given token was impossible."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.probability).sum())

    @property
    def typical(self) -> float:
        """Geometric mean of the probabilities, so that long answers can be compared with short ones."""
        return float(np.exp(self.log_probability / len(self.probability)))


def confidence(decoding: Decoding) -> Confidence:
    """How sure the model was at each step, before any temperature, top-k or top-p."""
    chosen = [step.chosen.probability for step in decoding.steps]
    others = [
        max([candidate.probability for candidate in step.candidates if candidate.id != step.chosen.id], default=0.0)
        for step in decoding.steps
    ]
    return Confidence(np.array(chosen), np.array(others))


def token_log_probabilities(decoding: Decoding) -> np.ndarray:
    """[step]: log p of the token that came, among the tokens that may be written; their sum is
    ``decoding.log_probability``.

    From the logits and in float64: a probability that is too small for a float still has a logarithm.
    """
    values = []
    for step in decoding.steps:
        logits = step.logits.astype(np.float64)
        highest = logits.max()
        values.append(logits[step.chosen.id] - highest - np.log(np.exp(logits - highest).sum()))
    return np.array(values)


def without_most_activations(decoding: Decoding) -> Decoding:
    """A decoding made with ``record_steps=True`` that keeps only its attention, a small part of the memory."""
    kept = ("attention.weights", "attention.allowed")
    steps = tuple(
        replace(
            step,
            activations={
                name: value
                for name, value in step.activations.items()
                if name.startswith("decoder.") and name.endswith(kept)
            },
        )
        for step in decoding.steps
    )
    return replace(decoding, steps=steps)


@dataclass(frozen=True)
class StepAttention:
    """Where one step looked: ``weights`` [head, key], ``allowed`` [key], and the tokens it could look at."""

    weights: np.ndarray
    allowed: np.ndarray
    key: TokenSequence

    def of(self, head: int | None) -> np.ndarray:
        """Weights [key] of one head, or the mean of all (``None``)."""
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
    """Attention of the position that wrote token ``step``, in a decoder layer; ``decoding`` was made from ``sentence``
    with ``record_steps=True``.

    ``kind`` is "cross" (keys: the source) or "self" (keys: the prompt and everything written before this step).
    ``prompt``: ``prompt_of(checkpoint, sentence)``, where it is known already.
    Raises ``ValueError`` when the steps were not recorded or there is no such attention.
    """
    prefix = f"decoder.layers.{layer}.{kind}_attention"
    activations = decoding.steps[step].activations
    if f"{prefix}.weights" not in activations:
        known = sorted(name.removesuffix(".weights") for name in activations if name.endswith(".weights"))
        raise ValueError(f"step {step} holds no {prefix}.weights; it has {', '.join(known) or 'no recording at all'}")
    # The first step reads the whole prompt at once; its last row is the one that writes.
    weights = activations[f"{prefix}.weights"].values[:, -1]
    allowed = activations[f"{prefix}.allowed"].values[-1]
    if kind == "cross":
        key = decoding.source
    else:
        ids = [*(prompt_of(checkpoint, sentence) if prompt is None else prompt), *decoding.tokens.ids[:step]]
        key = checkpoint.tokenizer.sequence(ids, "target")
    return StepAttention(weights, allowed, key)


def rank(step: Step) -> int:
    """The place of the chosen token among all candidates by the model's own probability: 1 = the likeliest."""
    return int((step.logits > step.logits[step.chosen.id]).sum()) + 1


def guess_options(step: Step, *, count: int = 4) -> tuple[Candidate, ...]:
    """The token that came and its likeliest rivals, ``count`` in all, in an order that gives nothing away (by name)."""
    rivals = [candidate for candidate in step.candidates if candidate.id != step.chosen.id]
    return tuple(sorted((step.chosen, *rivals[: count - 1]), key=lambda option: (option.display, option.id)))


def n_forced(checkpoint: Checkpoint, forced: str | Sequence[int], sentence: str = "") -> int:
    """How many tokens of an answer were given by ``forced`` instead of chosen."""
    return 0 if isinstance(forced, str) and not forced.strip() else len(forced_tokens(checkpoint, forced, sentence))
