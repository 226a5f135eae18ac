"""Everything that a trace is made from: a checkpoint, a sentence, and options."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from transformer.files.once import once

if TYPE_CHECKING:
    from transformer.files.checkpoints import Checkpoint
    from transformer.probes import Edit
    from transformer.runs.decoding_strategies import Strategy


@dataclass(frozen=True, eq=False)
class Run:
    """One sentence through one model.

    Runs with equal fields are equal, so a run can be the key of a dictionary. A checkpoint is compared by its path,
    ``fingerprint`` and config: loading the same files twice gives the same model, unless the order of LayerNorm
    differs. An ``Edit`` equals only itself, since it holds a function.

    Attributes:
        target: Given output (teacher forcing); ``None`` if the model generates it by ``strategy`` (greedy by default).
        source_pads: Number of padding tokens added to the source.
        edits: Changes to the model for this run only.
        output: Whether there is an output; without one, the model reads the prompt alone.
    """

    checkpoint: Checkpoint
    sentence: str
    target: str | None = None
    _: KW_ONLY
    edits: tuple[Edit, ...] = ()
    strategy: Strategy | None = None
    source_pads: int = 0
    output: bool = True

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Run) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    @once
    def _key(self) -> tuple[object, ...]:
        model = self.checkpoint
        return (
            *(model.path, model.fingerprint, model.config, model.framing, model.prompt),
            *(self.sentence, self.target, self.edits, self.source_pads, self.strategy, self.output),
        )
