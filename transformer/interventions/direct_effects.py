"""Direct contribution of a part to a logit, compared with the effect of removing it.

Attribution holds everything else fixed. If a part is really removed, it is also missing in the input of all later
parts, and those often compensate ("self-repair": McGrath et al. 2023, "The Hydra Effect"; Rushing & Nanda 2024). Both
runs are sums over the same parts, so the difference can be accounted for exactly: effect of removing = contribution of
the part − Σ over all other parts of how much more they contribute now.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.attribution.attention_trust import spearman
from transformer.attribution.direct_logit_attribution import Attribution, attribution_of
from transformer.interventions.experiment import Experiment
from transformer.layers.residual_stream import Part
from transformer.probes import Edit, record
from transformer.runs.recording_size import rows_that_fit
from transformer.runs.traces import Trace

TOKENS_PER_PASS = 256  # rows × tokens; everything that a pass computes is recorded
WAYS = ("zero", "mean", "patch")


@dataclass(frozen=True)
class RemovedParts:
    """Effects of removing parts one at a time, at the rows of the question.

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
    model, question = trace.checkpoint.model, attribution.question
    parts = tuple(part for part in attribution.parts if is_removable(part)) if parts is None else tuple(parts)
    if wrong := [part for part in parts if not is_removable(part) or part not in attribution.parts]:
        raise ValueError(f"{wrong[0]} cannot be removed; choose a head, a feed-forward layer or the token's embedding")
    sequences = [tokens.ids for tokens in (trace.source, trace.target) if tokens is not None]
    ways = WAYS if second is not None else WAYS[:2]
    tasks = [(part, way) for way in ways for part in parts]
    written = {} if second is None else _part_outputs(second.changed, question.stack, parts)
    lengths = {name: len(tokens) for name in ("source", "target") if (tokens := getattr(trace, name)) is not None}
    n_rows = rows_that_fit(model, TOKENS_PER_PASS // sum(lengths.values()), **lengths)
    logits, changes = [], []
    for start in range(0, len(tasks), n_rows):
        chunk = tasks[start : start + n_rows]
        inputs = [torch.tensor([ids], device=model.device).expand(len(chunk), -1) for ids in sequences]
        edits = _remove_one_per_row(trace, question.stack, question.rows, chunk, written)
        with torch.inference_mode(), record((*trace.run.edits, *edits)) as recording:
            model(*inputs)
        for row in range(len(chunk)):
            found = attribution_of(
                model, lambda name, row=row: _row(recording.tensors[name], row), question, edited=bool(trace.run.edits)
            )
            logits.append(found.logit)
            changes.append(found.values - attribution.values)
        if progress is not None:
            progress(min(start + n_rows, len(tasks)), len(tasks))
    zero, mean, *patched = attribution.logit - np.array(logits).reshape(len(ways), len(parts))
    if question.stack == "decoder" and question.rows == (0,):
        mean = np.full_like(mean, np.nan)  # the mean over one position is the value itself
    return RemovedParts(attribution, parts, zero, mean, np.array(changes[: len(parts)]), *patched)


def _row(tensor: Tensor, row: int) -> np.ndarray:
    """Return one text of a batch; what is the same for all texts (an encoding of positions) has one row."""
    return tensor[row if len(tensor) > 1 else 0].numpy(force=True)


def _part_outputs(trace: Trace, stack: str, parts: Sequence[Part]) -> dict[str, Tensor]:
    """Return what each of ``parts`` writes in a run, by probe: [(head,) position, channel]."""
    device = trace.checkpoint.model.device
    return {name: torch.tensor(trace.values(name), device=device) for name in {_probe(stack, part) for part in parts}}


def _remove_one_per_row(
    trace: Trace, stack: str, rows: Sequence[int], tasks: Sequence[tuple[Part, str]], written: Mapping[str, Tensor]
) -> list[Edit]:
    """Return edits that remove ``tasks[b]`` from text b of the batch, at the positions ``rows``."""
    by_probe: dict[str, list[tuple[int, int, str]]] = {}
    for text, (part, way) in enumerate(tasks):
        by_probe.setdefault(_probe(stack, part), []).append((text, part.head, way))
    upto = slice(0, rows[0] + 1) if stack == "decoder" else [t.index for t in trace.tokens(stack) if not t.is_padding]

    def edit(name: str, places: list[tuple[int, int, str]]) -> Edit:
        def remove(tensor: Tensor) -> Tensor:  # [batch, head, position, channel] or [batch, position, model]
            new = tensor.clone()
            for text, head, way in places:
                own = new[text] if head < 0 else new[text, head]  # [position, channel or model]
                if way == "patch":
                    other = written[name] if head < 0 else written[name][head]
                    own[list(rows)] = other[list(rows)]
                else:
                    own[list(rows)] = own[upto].mean(dim=0) if way == "mean" else 0.0
            return new

        return Edit(name, remove, "another part removed in each row")

    return [edit(name, places) for name, places in by_probe.items()]


def _probe(stack: str, part: Part) -> str:
    if part.kind == "token":
        return f"{stack}.embedding.token"
    layer = f"{stack}.layers.{part.layer}"
    if part.head >= 0:
        return f"{layer}.{part.kind}.context"
    return f"{layer}.{part.kind}.output" if part.kind == "feed_forward" else f"{layer}.{part.kind}"
