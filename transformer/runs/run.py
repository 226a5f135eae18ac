"""What a trace is made from: a checkpoint, a sentence, and all that is asked of the model beside it."""

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

    ``target``: the answer that is given (teacher forcing); ``None`` where the model writes it, by ``strategy`` (default
    greedy). ``source_pads``, ``target_pads``: how many padding tokens are added. ``edits`` change the model for this
    run only.

    Runs are equal, and so one key of a dictionary, where all of this is equal. Of the checkpoint its path,
    ``fingerprint`` and config count: the same files, loaded twice, are the same model, but not with another order of
    LayerNorm. An ``Edit`` equals itself only, for it is a function.
    """

    checkpoint: Checkpoint
    sentence: str
    target: str | None = None
    _: KW_ONLY
    edits: tuple[Edit, ...] = ()
    strategy: Strategy | None = None
    source_pads: int = 0
    target_pads: int = 0

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Run) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    @once
    def _key(self) -> tuple[object, ...]:
        asked = (self.sentence, self.target, self.edits, self.strategy, self.source_pads, self.target_pads)
        checkpoint = self.checkpoint
        return (
            checkpoint.path,
            checkpoint.fingerprint,
            checkpoint.config,
            checkpoint.framing,
            checkpoint.prompt,
            *asked,
        )
