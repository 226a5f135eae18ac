"""The rows of the embedding matrix E that a text looks up, and the steps of one lookup.

    x = one-hot(id) · E      1 × vocabulary times vocabulary × model: row ``id`` of E

A program reads the row instead of multiplying. It is then scaled by √d_model where the model does that (Vaswani et al.
2017, section 3.4).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.runs.next_sentence import letters_of
from transformer.runs.traces import Trace


@dataclass(frozen=True)
class Lookup:
    """One token's row of E, computed both ways.

    Attributes:
        id: The token's id.
        row: Row ``id`` of E, [model].
        product: one-hot(id) · E, [model].
        recorded: The embedding that the trace holds, scale · row, [model].
        scale: The factor of a row: √d_model in the paper, 1 in many models.
        probe: Name of the activation that holds ``recorded``.
        segment: The sentence of the token, "A" or "B"; "" for a model without segments.
        segment_length: Length of the vector that is added for the segment.
    """

    id: int
    row: np.ndarray
    product: np.ndarray
    recorded: np.ndarray
    scale: float
    probe: str
    segment: str = ""
    segment_length: float = 0.0

    @property
    def difference(self) -> float:
        """The largest difference between ``product`` and ``row``."""
        return float(np.abs(self.product - self.row).max())


def embedding_table(checkpoint: Checkpoint, stack: str) -> np.ndarray:
    """Return E of a stack, [vocabulary, model]: a view of the model's memory, not a copy."""
    return getattr(checkpoint.model, stack).embedding.table.weight.detach().numpy()


def lookup(trace: Trace, stack: str, token: int) -> Lookup:
    """Return every step of the lookup of one token.

    Args:
        trace: The recorded run of a model that reads text.
        stack: "encoder" or "decoder".
        token: Position of the token in the stack.
    """
    table, id = embedding_table(trace.checkpoint, stack), trace.tokens(stack)[token].id
    one_hot = np.zeros(len(table), dtype=np.float32)
    one_hot[id] = 1
    probe, segment = f"{stack}.embedding.token", f"{stack}.embedding.segment"
    return Lookup(
        id,
        row=table[id],
        product=one_hot @ table,
        recorded=trace.values(probe)[token],
        scale=getattr(trace.checkpoint.model, stack).embedding.scale,
        probe=probe,
        segment=letters_of(trace)[token] if segment in trace else "",
        segment_length=float(np.linalg.norm(trace.values(segment)[token])) if segment in trace else 0.0,
    )


def rows_around(ids: Sequence[int], *, vocabulary: int, around: int = 2) -> list[int]:
    """Return each of ``ids`` with the ``around`` rows before and after it, in the order of E."""
    return sorted({row for id in ids for row in range(max(0, id - around), min(vocabulary - 1, id + around) + 1)})
