"""What a list of edits does to one answer: a new answer, and how probable the old one still is."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

import transformer
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.answer_probabilities import Answer, answer_of, divergence
from transformer.predictions.answer_rows import Asked, asked
from transformer.probes import Edit, record
from transformer.runs.activation_arrays import activations_of
from transformer.runs.decoding_strategies import Strategy
from transformer.runs.edits import check_edits
from transformer.runs.traces import Trace


class Change(NamedTuple):
    """One candidate: its probability without the edits and with them."""

    display: str
    before: float
    after: float
    chosen: bool


class ChangeOfAnswer:
    """What ``before`` and ``after``, ln p of every token of one answer in two runs, say of the whole of it."""

    before: np.ndarray
    after: np.ndarray

    @property
    def change(self) -> float:
        """Σ ln p with the edits − Σ ln p without: below 0, the original answer has become less probable."""
        return float((self.after - self.before).sum())

    @property
    def factor(self) -> float:
        """By what the probability of the whole original answer is multiplied."""
        return float(np.exp(self.change))


@dataclass(frozen=True)
class Effect(ChangeOfAnswer):
    """``asked``: where the answer stands in the logits. ``original`` and ``edited``: both runs over the same tokens.

    ``before``, ``after`` [token]: ln p of every token of the original answer. ``kl`` [token]: KL(original ‖ edited) of
    the distribution that the token came from, Σ p log₂(p / q), in bits; 0 = the edits change nothing there.
    """

    asked: Asked
    original: Trace
    edited: Trace
    before: np.ndarray
    after: np.ndarray
    kl: np.ndarray

    @property
    def mean_kl(self) -> float:
        """Mean over the tokens of the answer, in bits; 0 where nothing was asked."""
        return float(self.kl.mean()) if self.kl.size else 0.0


def effect_of(trace: Trace, edits: Iterable[Edit]) -> Effect:
    """Run the model with ``edits`` over the very tokens of ``trace``: teacher forcing.

    Raises ``ValueError`` for an edit that does not fit the model.
    """
    question, edits = asked(trace), tuple(edits)
    edited = same_tokens(trace, edits) if edits else trace
    before, after = question.log_probabilities(trace), question.log_probabilities(edited)
    changes = (question.chosen(before), question.chosen(after), divergence(before, after))
    return Effect(question, trace, edited, *changes)


def same_tokens(trace: Trace, edits: Iterable[Edit] = (), *, checkpoint: Checkpoint | None = None) -> Trace:
    """The tokens of ``trace`` once more, with ``edits``, or through another ``checkpoint``: its activations are new,
    its tokens and answer are kept."""
    edits, checkpoint = tuple(edits), checkpoint or trace.checkpoint
    check_edits(checkpoint.model.probes, edits)
    sequences = [tokens for tokens in (trace.source, trace.target) if tokens is not None]
    inputs = [torch.tensor([tokens.ids], device=checkpoint.model.device) for tokens in sequences]
    with torch.inference_mode(), record(edits) as recording:
        checkpoint.model(*inputs)
        activations = activations_of(checkpoint.model, recording)
    return replace(trace, activations=activations, run=replace(trace.run, checkpoint=checkpoint, edits=edits))


def answer_under(
    checkpoint: Checkpoint,
    sentence: str,
    edits: Iterable[Edit],
    *,
    pads: int = 0,
    strategy: Strategy | None = None,
) -> Answer:
    """What the model answers with ``edits``, written anew. ``pads``: padding tokens added to the source."""
    pads = pads if checkpoint.config.has_encoder else 0
    run = transformer.trace(checkpoint, sentence, edits=edits, source_pads=pads, strategy=strategy)
    return answer_of(run)


def candidates(effect: Effect, step: int, *, shown: int = 6) -> tuple[Change, ...]:
    """The likeliest candidates of one token of the answer, of both runs together, by their probability before."""
    if not 0 <= step < len(effect.asked.ids):
        raise ValueError(f"there is no step {step}; the answer has {len(effect.asked.ids)} tokens")
    rows = [np.exp(effect.asked.log_probabilities(run)[step]) for run in (effect.original, effect.edited)]
    chosen = effect.asked.ids[step]
    best = {int(id) for row in rows for id in row.argsort()[::-1][:shown]} | {chosen}
    checkpoint = effect.original.checkpoint
    names = checkpoint.config.class_names
    display = names.__getitem__ if names else checkpoint.tokenizer.display
    ordered = sorted(best, key=lambda id: -rows[0][id])
    return tuple(Change(display(id), float(rows[0][id]), float(rows[1][id]), id == chosen) for id in ordered)
