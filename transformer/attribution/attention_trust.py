"""How far to trust an attention map: its row compared with what the prediction really depends on.

Four rows of shares come from attention: the weights of the head, the mean of all heads of the layer, ‖α·v‖ (Kobayashi
et al. 2020) and rollout through all layers (Abnar & Zuidema 2020). Three signed rows come from the prediction:
gradient × input, integrated gradients and leaving the token out. The last is a measurement on the whole model, so the
others are compared with it: Spearman's ρ of the sizes |a_i|, since a share of attention has no sign.

Attention need not be an explanation: in recurrent encoders, other weights may give the same prediction (Jain & Wallace
2019), though not always, and weights that are one possible explanation can still be useful (Wiegreffe & Pinter 2019).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from transformer.attention_maps.attention_path import norm_weighted
from transformer.attention_maps.rollout import attention_rollout
from transformer.attribution.input_attribution import ROWS as PATH_ROWS
from transformer.attribution.input_attribution import InputAttribution, gradient_times_input, integrated_gradients
from transformer.attribution.leave_one_out import remove_each
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.sweep import TOKENS_PER_PASS
from transformer.predictions.target import Target
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

ANSWER_MEASURES = ("gradient_times_input", "integrated_gradients", "leave_one_out")


class InputAttributions(NamedTuple):
    """What one number of the output depends on, measured in the three ways of ``ANSWER_MEASURES``."""

    gradient: InputAttribution
    integrated: InputAttribution
    removal: InputAttribution

    def rows(self, stack: str) -> dict[str, np.ndarray]:
        """Return one row, [token], of the sentence that ``stack`` reads, per measure."""
        values = (part.source if stack == "encoder" else part.target for part in self)
        return dict(zip(ANSWER_MEASURES, values, strict=True))


@dataclass(frozen=True)
class TokenMeasure:
    """One measure over tokens.

    Attributes:
        values: Shares from 0 to 1 or, if ``signed``, numbers in the unit of the explained number, [token]; NaN where
            the measure is undefined.
        agreement: Spearman's ρ of |values| with the effect of leaving each token out; NaN for that row itself, and if
            there are too few tokens to rank.
    """

    name: str
    values: np.ndarray
    signed: bool
    agreement: float


@dataclass(frozen=True)
class Aligned:
    """Several measures over the same ``tokens`` (at ``positions`` of their sentence)."""

    tokens: TokenSequence
    positions: tuple[int, ...]
    measures: tuple[TokenMeasure, ...]

    def __getitem__(self, name: str) -> TokenMeasure:
        return next(measure for measure in self.measures if measure.name == name)


def input_attributions(
    checkpoint: Checkpoint, quantity: Target, *, baseline: str = "mean", n_steps: int = 64
) -> InputAttributions:
    """Compute gradient × input, integrated gradients and leave-one-out for one number."""
    return InputAttributions(
        gradient_times_input(checkpoint, quantity),
        integrated_gradients(checkpoint, quantity, baseline=baseline, n_steps=n_steps),
        remove_each(checkpoint, quantity),
    )


def n_passes(quantity: Target, *, n_steps: int) -> int:
    """Estimate how many batches ``input_attributions`` passes through the model, for a progress bar."""
    lengths = [len(tokens) for tokens in quantity.read.values()]
    total = sum(lengths)
    of_path, of_removal = math.ceil(n_steps / PATH_ROWS) + 2, 1 + math.ceil(total**2 / TOKENS_PER_PASS)
    return len(lengths) * (2 + of_path + of_removal)


def compare_with_attention(
    trace: Trace, view: AttentionView, found: InputAttributions, *, head: int, query: int
) -> Aligned:
    """Return all seven measures over the tokens that row ``query`` of ``view`` may attend to.

    ``view`` is a layer of ``trace``.
    """
    stack = "decoder" if (view.stack, view.kind) == ("decoder", "self") else "encoder"
    of_answer = found.rows(stack)
    n_read = len(of_answer["leave_one_out"])  # only the tokens of a target that precede the prediction
    positions = [int(key) for key in np.flatnonzero(view.allowed[query]) if key < n_read]
    weighted = norm_weighted(trace, view.stack, view.layer, view.kind)[head, query]
    total = float(weighted.sum())
    of_attention = {
        "head": view.weights[head, query],
        "heads": view.weights[:, query].mean(axis=0),
        "weighted": weighted / total if total > 0 else weighted,
        "rollout": _rollout_row(trace, view, found.removal.quantity),
    }
    return _align_measures(view.key, positions, of_attention, of_answer)


def compare_without_attention(found: InputAttributions, stack: str) -> Aligned:
    """Return the three measures of ``ANSWER_MEASURES`` alone, over the sentence that ``stack`` reads."""
    tokens = found.removal.quantity.read[stack]
    return _align_measures(tokens, [token.index for token in tokens if token.role != "pad"], {}, found.rows(stack))


def _rollout_row(trace: Trace, view: AttentionView, quantity: Target) -> np.ndarray:
    """Return the rollout from the position of the prediction down to the tokens that are keys of ``view``.

    The result is [key].
    """
    if quantity.position is None:  # a classifier reads the mean of all real positions
        rows = attention_rollout(trace, "encoder").view().weights[0]
        return rows[[token.role != "pad" for token in trace.source]].mean(axis=0)
    kind = "cross" if view.stack == "encoder" and quantity.stack == "decoder" else view.kind
    return attention_rollout(trace, quantity.stack).view(kind).weights[0, quantity.row]


def _align_measures(
    tokens: TokenSequence, positions: list[int], shares: dict[str, np.ndarray], signed: dict[str, np.ndarray]
) -> Aligned:
    truth = np.abs(signed["leave_one_out"][positions])
    measures = []
    for name, values in {**shares, **signed}.items():
        picked = np.asarray(values, dtype=np.float64)[positions]
        agreement = float("nan") if name == "leave_one_out" else spearman(np.abs(picked), truth)
        measures.append(TokenMeasure(name, picked, name in signed, agreement))
    return Aligned(tokens, tuple(positions), tuple(measures))


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's ρ, the correlation of the ranks, from −1 to 1; ties share their mean rank.

    Positions where either is NaN are left out. The result is NaN if fewer than three are left, or if one side is
    constant.

    Raises:
        ValueError: If the lists differ in length.
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"the numbers have shapes {first.shape} and {second.shape}; give two lists of one length")
    known = ~(np.isnan(first) | np.isnan(second))
    if known.sum() < 3:
        return float("nan")
    ranks = [_ranks(values[known]) for values in (first, second)]
    centred = [rank - rank.mean() for rank in ranks]
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float(centred[0] @ centred[1] / size) if size > 0 else float("nan")


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks from 1 for the smallest; ties share their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]
