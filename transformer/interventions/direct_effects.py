"""Direct contribution of a part to a logit, compared with the effect of removing it.

Attribution holds everything else fixed. If a part is really removed, it is also missing from the input of all later
parts, which often compensate ("self-repair": McGrath et al. 2023, "The Hydra Effect"; Rushing & Nanda 2024). Both runs
are sums over the same parts, so the difference can be accounted for exactly: effect of removing = contribution of the
part − Σ over all other parts of how much more they contribute now.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from transformer.attribution.attention_trust import spearman
from transformer.attribution.direct_logit_attribution import Attribution, attribution_of
from transformer.interventions.experiment import Experiment
from transformer.layers.residual_stream import Part
from transformer.predictions.sweep import Replacement, n_rows, sweep, text_of
from transformer.runs.traces import Trace

TOKENS_PER_PASS = 256  # rows × tokens; everything that a pass computes is recorded
WAYS = ("zero", "mean", "patch")


@dataclass(frozen=True)
class RemovedParts:
    """Effects of removing parts one at a time, at the rows of the target.

    Attributes:
        attribution: Attribution of the whole run.
        parts: The removed parts.
        zero: logit − logit with 0 in place of the part, [removed part]; positive if the part helped, as in the
            attribution.
        mean: The same with the part's mean over the positions of this sentence (in a decoder, over those up to this
            one; NaN if there is only one).
        changes: How much more every part contributes when one is 0, [removed part, part].
        patched: If there is a second sentence, the same as ``zero`` with what the part writes there at the same
            positions ("resample ablation", Chan et al. 2022, "Causal Scrubbing"), [removed part].
    """

    attribution: Attribution
    parts: tuple[Part, ...]
    zero: np.ndarray
    mean: np.ndarray
    changes: np.ndarray
    patched: np.ndarray | None = None

    @property
    def added(self) -> np.ndarray:
        """Contribution of each removed part in the whole run, [removed part]."""
        return np.array([self.attribution.of(part) for part in self.parts])

    @property
    def agreement(self) -> float:
        """Spearman's ρ between contributions and effects of removal; NaN for fewer than three parts."""
        return spearman(self.added, self.zero)

    def answers(self, place: int) -> tuple[tuple[Part, float], ...]:
        """Return how the parts after the removed one changed, the strongest first.

        The parts before it and the biases change as well, but only because a norm divides by another σ.
        """
        everything, removed = self.attribution.parts, self.parts[place]
        later = [part for part in everything[everything.index(removed) + 1 :] if is_removable(part)]
        beside = (removed.kind, removed.layer)  # other heads of the same attention do not read it
        found = [
            (part, float(self.changes[place, everything.index(part)]))
            for part in later
            if (part.kind, part.layer) != beside
        ]
        return tuple(sorted(found, key=lambda change: -abs(change[1])))


def is_removable(part: Part) -> bool:
    """Return whether a part can be removed; biases, β and positions are the same for any sentence."""
    return part.head >= 0 or part.kind in ("token", "feed_forward")


def strongest_removable(attribution: Attribution, most: int) -> tuple[Part, ...]:
    """Return the removable parts that contribute most, of either sign, in the order of the forward pass."""
    found = [part for part in attribution.strongest(len(attribution.parts)) if is_removable(part)][:most]
    return tuple(part for part in attribution.parts if part in found)


def remove_parts(
    trace: Trace,
    attribution: Attribution,
    parts: Sequence[Part] | None = None,
    *,
    second: Experiment | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RemovedParts:
    """Remove each of ``parts`` (by default all that can be), and attribute the same logit again.

    Args:
        trace: The whole run.
        attribution: Its logit as a sum over parts.
        parts: Parts to remove. Many are removed in one pass: each row of the batch lacks another part.
        second: The same run compared with a second sentence that keeps its output, for ``patched``.
        progress: Called as ``progress(done, total)`` after every pass.

    Raises:
        ValueError: If a part cannot be removed.
    """
    model, target = trace.checkpoint.model, attribution.target
    parts = tuple(part for part in attribution.parts if is_removable(part)) if parts is None else tuple(parts)
    if wrong := [part for part in parts if not is_removable(part) or part not in attribution.parts]:
        raise ValueError(f"{wrong[0]} cannot be removed; choose a head, a feed-forward layer or the token's embedding")
    ways = WAYS if second is not None else WAYS[:2]
    stack, rows = target.stack, list(target.rows)
    upto = range(rows[0] + 1) if stack == "decoder" else [t.index for t in trace.tokens(stack) if not t.is_padding]

    def replacement(part: Part, way: str) -> Replacement:
        name, index = _probe(stack, part), (rows,) if part.head < 0 else (part.head, rows)
        if way == "zero":
            return Replacement(name, index, 0.0)
        values = (second.changed if way == "patch" else trace).values(name)
        own = values if part.head < 0 else values[part.head]  # [position, channel or model]
        own = own[list(upto)].mean(axis=0) if way == "mean" else own[rows]
        return Replacement(name, index, torch.tensor(own, device=model.device))

    tasks = [[replacement(part, way)] for way in ways for part in parts]
    logits, changes = [], []
    fit = max(1, n_rows(model, text_of(trace), tokens=TOKENS_PER_PASS) - 1)
    for found in sweep(model, [text_of(trace)], tasks, rows=fit, names=model.probes, edits=trace.run.edits):
        of_rows = [
            attribution_of(model, partial(_row, found.tensors, row), target, edited=bool(trace.run.edits))
            for row in range(len(found.logits))
        ]
        logits += [of_rows[0].logit - one.logit for one in of_rows[1:]]
        changes += [one.values - of_rows[0].values for one in of_rows[1:]]
        if progress is not None:
            progress(len(logits), len(tasks))
    zero, mean, *patched = np.array(logits).reshape(len(ways), len(parts))
    if stack == "decoder" and rows == [0]:
        mean = np.full_like(mean, np.nan)  # the mean over one position is the value itself
    return RemovedParts(attribution, parts, zero, mean, np.array(changes[: len(parts)]), *patched)


def _row(tensors: Mapping[str, Tensor], row: int, name: str) -> np.ndarray:
    """Return one text of a batch; a tensor that all texts share (an encoding of positions) has one row."""
    tensor = tensors[name]
    return tensor[row if len(tensor) > 1 else 0].numpy(force=True)


def _probe(stack: str, part: Part) -> str:
    if part.kind == "token":
        return f"{stack}.embedding.token"
    layer = f"{stack}.layers.{part.layer}"
    if part.head >= 0:
        return f"{layer}.{part.kind}.context"
    return f"{layer}.{part.kind}.output" if part.kind == "feed_forward" else f"{layer}.{part.kind}"
