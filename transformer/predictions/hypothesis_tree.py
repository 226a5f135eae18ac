"""A beam search written down: every branch that was looked at, and what became of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor

from transformer.files.checkpoints import Checkpoint
from transformer.predictions.decoding_steps import n_forced
from transformer.runs.beam_search import Hypothesis
from transformer.runs.decoding import decode
from transformer.runs.decoding_strategies import Beam, length_penalty

KEPT, PRUNED, FINISHED, OPEN = "kept", "pruned", "finished", "open"


@dataclass(frozen=True)
class BeamNode:
    """One token that a text of the beam could go on with.

    ``step``: its place in the text, from 1. ``parent``: index of the node before it in ``BeamTree.nodes``, −1 for the
    first token. ``log_p`` = ln p(token | everything before it); ``total`` = Σ log_p from the first token to this one;
    ``score`` = total / length penalty of a text of ``step`` tokens, by which finished texts are compared.
    ``fate``: "kept" (one of the ``width`` best of its step), "pruned", "finished" (``</s>``), or "open" (kept, but the
    search ended before it went on). ``rank``: its place by ``total`` among all continuations of its step, those by
    ``</s>`` left out; for a finished text its place by ``score`` among all texts that finished.
    """

    index: int
    step: int
    parent: int
    id: int
    display: str
    log_p: float
    total: float
    score: float
    rank: int
    fate: str


@dataclass(frozen=True)
class BeamTree:
    """The branches of one search, step by step, and the texts it returned, best first.

    Of each text of the beam the ``width`` likeliest continuations are written down, and the one by ``</s>``: no text
    can put more than ``width`` into the next step, so everything that could have been kept is there.
    """

    nodes: tuple[BeamNode, ...]
    hypotheses: tuple[Hypothesis, ...]
    strategy: Beam
    n_forced: int = 0

    @cached_property
    def n_steps(self) -> int:
        return max([node.step for node in self.nodes])

    def path(self, index: int) -> tuple[BeamNode, ...]:
        """The nodes from the first token to this one."""
        way = []
        while index >= 0:
            way.append(self.nodes[index])
            index = way[-1].parent
        return tuple(reversed(way))

    def path_of(self, ids: Sequence[int]) -> tuple[BeamNode, ...]:
        """The nodes of a text that the search has met. Raises ``ValueError`` for another text."""
        children = {(node.parent, node.id): node for node in self.nodes}
        way, parent = [], -1
        for id in ids:
            if (parent, id) not in children:
                raise ValueError(f"the search never met the text {tuple(ids)}: nothing goes on with {id} at that place")
            way.append(children[parent, id])
            parent = way[-1].index
        return tuple(way)

    @cached_property
    def winner(self) -> tuple[BeamNode, ...]:
        """The nodes of the text that the search returned."""
        return self.path_of(self.hypotheses[0].ids)

    def at(self, step: int) -> tuple[BeamNode, ...]:
        return tuple([node for node in self.nodes if node.step == step])


class BeamRecorder:
    """Watches ``beam_search`` at work and changes nothing."""

    def __init__(self, *, width: int, ends: Sequence[int]) -> None:
        self._width, self._ends = width, list(ends)
        self._nodes: list[BeamNode] = []
        self._live: list[int] = [-1]  # index of the last node of each text of the beam

    def step(self, log_p: Tensor, before: Tensor, rows: Tensor, ids: Tensor) -> None:
        """One step of the search: ``log_p`` [text, vocabulary] and the texts' totals ``before`` it [text]; it kept
        ``ids`` [kept] as continuations of the texts ``rows`` [kept], the best first."""
        kept = list(zip(rows.tolist(), ids.tolist(), strict=True))
        totals = before[:, None] + log_p
        rivals = totals.clone()
        rivals[:, self._ends] = -float("inf")
        best = rivals.topk(min(self._width, rivals.shape[1]), dim=-1).indices.tolist()
        place = {}
        for row, parent in enumerate(self._live):
            considered = dict.fromkeys([id for at, id in kept if at == row] + best[row])
            for id in (*considered, *self._ends):
                total = float(totals[row, id])
                if total == -float("inf"):  # not allowed, or something else was forced
                    continue
                fate = FINISHED if id in self._ends else KEPT if (row, id) in kept else PRUNED
                rank = kept.index((row, id)) + 1 if fate == KEPT else int((rivals > total).sum()) + 1
                place[row, id] = self._add(parent, id, float(log_p[row, id]), total, rank, fate)
        self._live = [place[row, id] for row, id in kept]

    def _add(self, parent: int, id: int, log_p: float, total: float, rank: int, fate: str) -> int:
        step = self._nodes[parent].step + 1 if parent >= 0 else 1
        index = len(self._nodes)
        self._nodes.append(BeamNode(index, step, parent, id, "", log_p, total, 0.0, rank, fate))
        return index

    def tree(
        self,
        hypotheses: Sequence[Hypothesis],
        *,
        strategy: Beam,
        display: Callable[[int], str] = str,
        n_forced: int = 0,
    ) -> BeamTree:
        """What was seen, once the search is over; ``display`` names a token."""
        nodes = [
            replace(
                node,
                display=display(node.id),
                score=node.total / length_penalty(node.step, strategy.length_penalty),
                fate=OPEN if node.index in self._live and node.fate == KEPT else node.fate,
            )
            for node in self._nodes
        ]
        finished = sorted((node for node in nodes if node.fate == FINISHED), key=lambda node: -node.score)
        for rank, node in enumerate(finished, start=1):
            nodes[node.index] = replace(node, rank=rank)
        return BeamTree(tuple(nodes), tuple(hypotheses), strategy, n_forced)


def beam_tree(
    checkpoint: Checkpoint,
    sentence: str,
    strategy: Beam | None = None,
    *,
    forced: str | Sequence[int] = "",
    source_pads: int = 0,
) -> BeamTree:
    """``transformer.decode`` with a ``Beam``, its search written down. Raises what ``decode`` raises."""
    strategy = strategy or Beam()
    recorder = BeamRecorder(width=strategy.width, ends=checkpoint.framing.ends)
    written = decode(checkpoint, sentence, strategy, forced=forced, source_pads=source_pads, recorder=recorder)
    return recorder.tree(
        written.hypotheses,
        strategy=strategy,
        display=checkpoint.tokenizer.display,
        n_forced=n_forced(checkpoint, forced, sentence),
    )
