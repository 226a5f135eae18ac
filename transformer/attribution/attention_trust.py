"""How far to trust an attention map: its row beside what the answer really depends on, token by token.

Four rows of shares come from attention: the head's weights, the mean of all heads of the layer, ‖α·v‖ (Kobayashi et
al. 2020) and rollout through all layers (Abnar & Zuidema 2020). Four signed rows come from the answer: gradient ×
input, integrated gradients, AttnLRP (Achtibat et al. 2024) and leaving the token out. The last is a measurement on the
whole model, so the others are compared with it: Spearman's ρ of the sizes |a_i|, since a share of attention has no
sign.

Attention need not be an explanation: other weights may give the same answer (Jain & Wallace 2019), though not always,
and weights that are one possible account can still be useful (Wiegreffe & Pinter 2019).

Whether two lists of numbers put the same things first.
"""

import math
from dataclasses import dataclass

import numpy as np

from transformer.attention_maps.attention_path import norm_weighted
from transformer.attention_maps.rollout import attention_rollout
from transformer.attribution.attention_lrp import Relevance, attention_lrp
from transformer.attribution.input_attribution import ROWS as PATH_ROWS
from transformer.attribution.input_attribution import Attribution, gradient_times_input, integrated_gradients
from transformer.attribution.leave_one_out import ROWS as REMOVAL_ROWS
from transformer.attribution.leave_one_out import Removal, remove_each
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.quantity import Quantity
from transformer.runs.attention_view import AttentionView
from transformer.runs.traces import Trace
from transformer.text.tokens import TokenSequence

ANSWER_MEASURES = ("gradient_times_input", "integrated_gradients", "attention_lrp", "leave_one_out")


@dataclass(frozen=True)
class InputAttributions:
    """What one number of the answer depends on, measured in four ways."""

    gradient: Attribution
    integrated: Attribution
    relevance: Relevance
    removal: Removal

    def rows(self, stack: str) -> dict[str, np.ndarray]:
        """[token] of the sentence that ``stack`` reads, by the names of ``ANSWER_MEASURES``."""
        parts = (self.gradient, self.integrated, self.relevance, self.removal)
        values = [part.source if stack == "encoder" else part.target for part in parts]
        return dict(zip(ANSWER_MEASURES, values, strict=True))


@dataclass(frozen=True)
class Measure:
    """``values`` [token]: shares of 0…1, or ``signed`` numbers in the unit of the answer (NaN: cannot be asked).

    ``agreement``: Spearman's ρ of |values| with the size of what leaving each token out changes; NaN for that row
    itself, and where there are too few tokens to rank.
    """

    name: str
    values: np.ndarray
    signed: bool
    agreement: float


@dataclass(frozen=True)
class Aligned:
    """Several measures over the same ``tokens`` (``positions`` of their sentence); every array is as long as they."""

    tokens: TokenSequence
    positions: tuple[int, ...]
    measures: tuple[Measure, ...]

    def __getitem__(self, name: str) -> Measure:
        return next(measure for measure in self.measures if measure.name == name)


def input_attributions(
    checkpoint: Checkpoint, quantity: Quantity, *, baseline: str = "mean", n_steps: int = 64
) -> InputAttributions:
    """Gradient × input, integrated gradients, AttnLRP and leave-one-out of one number."""
    return InputAttributions(
        gradient_times_input(checkpoint, quantity),
        integrated_gradients(checkpoint, quantity, baseline=baseline, n_steps=n_steps),
        attention_lrp(checkpoint, quantity),
        remove_each(checkpoint, quantity),
    )


def n_passes(quantity: Quantity, *, n_steps: int) -> int:
    """About how many batches ``input_attributions`` sends through the model's stacks, for a progress bar."""
    lengths = [len(tokens) for tokens in quantity.read.values()]
    of_path, of_removal = math.ceil(n_steps / PATH_ROWS) + 2, sum(math.ceil(n / REMOVAL_ROWS) + 1 for n in lengths)
    return len(lengths) * (3 + of_path + of_removal)


def beside_attention(trace: Trace, view: AttentionView, found: InputAttributions, *, head: int, query: int) -> Aligned:
    """All eight measures over the tokens that row ``query`` of ``view`` (a layer of ``trace``) may look at."""
    stack = "decoder" if (view.stack, view.kind) == ("decoder", "self") else "encoder"
    of_answer = found.rows(stack)
    n_read = len(of_answer["leave_one_out"])  # of a target only what comes before the answer
    positions = [int(key) for key in np.flatnonzero(view.allowed[query]) if key < n_read]
    weighted = norm_weighted(trace, view.stack, view.layer, view.kind)[head, query]
    total = float(weighted.sum())
    of_attention = {
        "head": view.weights[head, query],
        "heads": view.weights[:, query].mean(axis=0),
        "weighted": weighted / total if total > 0 else weighted,
        "rollout": _rollout_row(trace, view, found.removal.quantity),
    }
    return _aligned(view.key, positions, of_attention, of_answer)


def beside_nothing(found: InputAttributions, stack: str) -> Aligned:
    """The four measures of the answer over the sentence that ``stack`` reads, without any attention."""
    tokens = found.removal.quantity.read[stack]
    return _aligned(tokens, [token.index for token in tokens if token.role != "pad"], {}, found.rows(stack))


def _rollout_row(trace: Trace, view: AttentionView, quantity: Quantity) -> np.ndarray:
    """Rollout from where the answer is read, down to the tokens that are the keys of ``view``: [key]."""
    if quantity.place is None:  # a classifier reads the mean of all real positions
        rows = attention_rollout(trace, "encoder").view().weights[0]
        return rows[[token.role != "pad" for token in trace.source]].mean(axis=0)
    stack, row = quantity.place
    kind = "cross" if view.stack == "encoder" and stack == "decoder" else view.kind
    return attention_rollout(trace, stack).view(kind).weights[0, row]


def _aligned(
    tokens: TokenSequence, positions: list[int], shares: dict[str, np.ndarray], signed: dict[str, np.ndarray]
) -> Aligned:
    truth = np.abs(signed["leave_one_out"][positions])
    measures = []
    for name, values in {**shares, **signed}.items():
        picked = np.asarray(values, dtype=np.float64)[positions]
        agreement = float("nan") if name == "leave_one_out" else spearman(np.abs(picked), truth)
        measures.append(Measure(name, picked, name in signed, agreement))
    return Aligned(tokens, tuple(positions), tuple(measures))


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's ρ: the correlation of the ranks, −1…1; equal numbers share the mean of their ranks.

    Places where either is NaN are left out. NaN where fewer than three are left, or one side is the same everywhere:
    then there is no order to agree on. Raises ``ValueError`` for lists of different lengths.
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
    """1 for the smallest; ties share their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]
