"""Record of a beam search: every branch that was considered, and its fate."""

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
    """One token that could continue a text of the beam.

    Attributes:
        step: Position in the text, from 1.
        parent: Index of the previous node in ``BeamTree.nodes``; −1 for the first token.
        log_p: log p(token | everything before it), in nats.
        total: Σ log_p from the first token to this one.
        score: total / length penalty of a text of ``step`` tokens, by which finished texts are compared.
        fate: "kept" (one of the ``width`` best of its step), "pruned", "finished" (``</s>``), or "open" (kept, but the
            search ended before it was continued).
        rank: Rank by ``total`` among all continuations of its step except ``</s>``; for a finished text, rank by
            ``score`` among all finished texts.
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
    """Branches of one search, step by step, and the texts that it returned, best first.

    For each text of the beam, the ``width`` most likely continuations and ``</s>`` are recorded: no text can contribute
    more than ``width`` continuations to the next step, so everything that could have been kept is included.
    """

    nodes: tuple[BeamNode, ...]
    hypotheses: tuple[Hypothesis, ...]
    strategy: Beam
    n_forced: int = 0

    @cached_property
    def n_steps(self) -> int:
        """Number of steps."""
        return max([node.step for node in self.nodes])

    def path(self, index: int) -> tuple[BeamNode, ...]:
        """Return the nodes from the first token to this one."""
        way = []
        while index >= 0:
            way.append(self.nodes[index])
            index = way[-1].parent
        return tuple(reversed(way))

    def path_of(self, ids: Sequence[int]) -> tuple[BeamNode, ...]:
        """Return the nodes of a text that the search considered.

        Raises:
            KeyError: If it did not consider this text.
        """
        children, way = {(node.parent, node.id): node for node in self.nodes}, []
        for id in ids:
            way.append(children[way[-1].index if way else -1, id])
        return tuple(way)

    @cached_property
    def winner(self) -> tuple[BeamNode, ...]:
        """Nodes of the text that the search returned."""
        return self.path_of(self.hypotheses[0].ids)

    @cached_property
    def lowest(self) -> BeamNode | None:
        """The chosen token of the output with the lowest rank: how close the output came to being pruned."""
        words = [node for node in self.winner if node.fate != FINISHED and node.step > self.n_forced]
        return max(words, key=lambda node: node.rank, default=None)

    def count(self, fate: str) -> int:
        """Return the number of branches with this fate."""
        return sum([node.fate == fate for node in self.nodes])


class BeamRecorder:
    """Observer that records ``beam_search`` without changing it."""

    def __init__(self, *, width: int, ends: Sequence[int]) -> None:
        self._width, self._ends = width, list(ends)
        self._nodes: list[BeamNode] = []
        self._live: list[int] = [-1]  # index of the last node of each text of the beam

    def step(self, log_p: Tensor, before: Tensor, rows: Tensor, ids: Tensor) -> None:
        """Record one step of the search.

        Args:
            log_p: Log probabilities of the next token, [text, vocabulary].
            before: Total log probability of each text before the step, [text].
            rows: Which text each kept continuation extends, [kept], best first.
            ids: The token that each kept continuation adds, [kept].
        """
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
                if total == -float("inf"):  # the token is not allowed, or another one was forced
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
        """Return the tree of a completed search; ``display`` converts a token id to text."""
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
    """Decode with a ``Beam`` as ``transformer.decode`` does, and return the search tree.

    Raises what ``decode`` raises.
    """
    strategy = strategy or Beam()
    recorder = BeamRecorder(width=strategy.width, ends=checkpoint.framing.ends)
    written = decode(checkpoint, sentence, strategy, forced=forced, source_pads=source_pads, recorder=recorder)
    return recorder.tree(
        written.hypotheses,
        strategy=strategy,
        display=checkpoint.tokenizer.display,
        n_forced=n_forced(checkpoint, forced, sentence),
    )
