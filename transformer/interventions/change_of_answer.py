"""What a list of edits does to one answer: the new answer, and how probable the old one still is.

Also what padding does to it: nothing with the padding mask, something without it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

import transformer
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.answer_probabilities import Answer, Asked, answer_of, asked, divergence
from transformer.probes import Edit, record
from transformer.runs.activation_arrays import activations_of
from transformer.runs.decoding_strategies import Greedy, Strategy
from transformer.runs.edits import check_edits
from transformer.runs.inputs import padding
from transformer.runs.mask_edits import no_padding_mask
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


PADS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class PaddingDrift:
    """``pads`` padding tokens behind the sentence, ``masked`` or not, compared with no padding at all.

    ``logits``: the largest |Δ logit| anywhere in the rows of the real tokens. ``change``: Σ ln p of the answer's tokens
    with the padding − without. ``text``: what the model answers then.
    """

    pads: int
    masked: bool
    logits: float
    change: float
    text: str


def padding_drift(trace: Trace, *, pads: Sequence[int] = PADS) -> tuple[PaddingDrift, ...]:
    """Pad the sentence of ``trace`` (made without pads) by each of ``pads``; every time with the mask and without it.

    An encoder's sentence is padded, or the text of a decoder-only model: at its end, where its causal mask hides the
    padding, too. Lengths that the model cannot read are left out. Δ with the mask is rounding: longer sums are added
    up in another order.
    """
    checkpoint, config = trace.checkpoint, trace.checkpoint.config
    if any(token.is_padding for tokens in (trace.source, trace.target) for token in tokens or ()):
        raise ValueError("this trace holds padding already; make it without")
    question = asked(trace)
    before = question.log_probabilities(trace)
    plain = np.atleast_2d(trace.values(question.logits)).astype(np.float64)
    padded = trace.source if config.has_encoder else trace.target
    # As many tokens as without padding: how long a text may become depends on the length of the source.
    strategy = Greedy(2 * len(trace.source) + 10) if trace.source and trace.target else None
    found = []
    for count in (count for count in pads if len(padded) + count <= config.max_length):
        for masked in (True, False):
            edits = [] if masked else without_padding_mask(checkpoint)
            logits = _padded_logits(trace, count, edits)[: len(plain)]
            after = question.log_softmax(checkpoint, logits)
            found.append(
                PaddingDrift(
                    count,
                    masked,
                    float(np.abs(logits - plain).max()),
                    float((question.chosen(after) - question.chosen(before)).sum()),
                    answer_under(checkpoint, trace.sentence, edits, pads=count, strategy=strategy).text,
                )
            )
    return tuple(found)


def without_padding_mask(checkpoint: Checkpoint) -> list[Edit]:
    """The edits that let every attention layer look at padding."""
    config = checkpoint.config
    kinds = [("encoder", "self")] if config.has_encoder else []
    if config.has_decoder:
        kinds.append(("decoder", "cross" if config.has_encoder else "self"))
    n_layers = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}
    return [no_padding_mask(stack, layer=layer, kind=kind) for stack, kind in kinds for layer in range(n_layers[stack])]


def _padded_logits(trace: Trace, count: int, edits: Sequence[Edit]) -> np.ndarray:
    """Logits over the tokens of ``trace`` with ``count`` pads behind: [row, vocabulary], or [1, class]."""
    model = trace.checkpoint.model
    sequences = [list(tokens.ids) for tokens in (trace.source, trace.target) if tokens is not None]
    sequences[0] += padding(trace.checkpoint, count)
    inputs = [torch.tensor([ids], device=model.device) for ids in sequences]
    with torch.inference_mode(), record(edits):
        return np.atleast_2d(model(*inputs)[0].numpy(force=True)).astype(np.float64)
