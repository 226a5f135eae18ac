"""A head over the time of a sound, in columns that fit on the screen, without Streamlit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace

MOST_COLUMNS = 120


@dataclass(frozen=True)
class SoundViewModel:
    """A head whose columns are positions in time: cross-attention, or self-attention of the encoder.

    Attributes:
        trace: The recorded sound.
        location: The head.
        row: The query, by its position in the sequence that the stack reads.
    """

    trace: Trace = field(repr=False)
    location: Head
    row: int

    @cached_property
    def view(self) -> AttentionView:
        """All heads of the layer."""
        return self.trace.attention(self.location.stack, self.location.layer, self.location.kind)

    @property
    def of_time(self) -> bool:
        """Whether the rows are positions in time, too."""
        return self.location.stack == "encoder"

    @property
    def _sounds(self) -> Any:
        model: Any = self.trace.checkpoint.model
        return model.sounds

    @property
    def seconds(self) -> float:
        """Duration of the sound, without the silence after it."""
        return self._sounds.seconds_of(self.view.key.ids)

    @property
    def whole_seconds(self) -> float:
        """Duration of what the model reads, silence included."""
        return self._sounds.sound.log_mel.seconds

    @property
    def silence_seconds(self) -> float:
        """Duration of the silence that lengthens the sound."""
        return max(0.0, self.whole_seconds - self.covered * self._sounds.sound.seconds)

    @property
    def covered(self) -> int:
        """Number of positions that the sound covers."""
        return self._sounds.sound.covered(self.seconds)

    @property
    def step(self) -> int:
        """Number of positions in a column."""
        return math.ceil(self.covered / MOST_COLUMNS)

    @property
    def column_seconds(self) -> float:
        """Duration of a column."""
        return self.step * self._sounds.sound.seconds

    @property
    def frame_seconds(self) -> float:
        """Seconds from one frame of the spectrogram to the next."""
        return self._sounds.sound.log_mel.frame_seconds

    @property
    def centres(self) -> list[float]:
        """Frequency of each band of the spectrogram, in Hz."""
        return self._sounds.sound.log_mel.centres().tolist()

    @cached_property
    def spectrogram(self) -> np.ndarray:
        """What the model reads of the sound, without silence: [mel band, frame]."""
        return spectrogram_of(self.trace)

    @cached_property
    def shares(self) -> np.ndarray:
        """How much of its attention each row pays to each column: [row, column]; the rest goes to silence.

        A column is the sum of its positions. A row of time is the mean of its positions.
        """
        weights = self.view.weights[self.location.head][:, : self.covered]
        starts = range(0, self.covered, self.step)
        found = np.add.reduceat(weights, starts, axis=1)
        if not self.of_time:
            return found
        counts = np.diff([*starts, self.covered])
        return np.add.reduceat(found[: self.covered], starts, axis=0) / counts[:, None]

    @property
    def drawn_row(self) -> int:
        """The row of ``shares`` that is chosen."""
        return min(self.row // self.step, len(self.shares) - 1) if self.of_time else self.row

    @property
    def row_labels(self) -> tuple[str, ...]:
        """Names of the rows: when they begin, or the tokens that they predict."""
        if self.of_time:
            return self.view.query.labels[: self.covered : self.step]
        cross = self.location.kind == "cross" and self.trace.prediction is not None
        return self.trace.prediction.labels if cross else self.view.query.labels

    @property
    def silence(self) -> float:
        """How much of its attention the chosen row pays to the silence after the sound."""
        return max(0.0, 1.0 - float(self.shares[self.drawn_row].sum()))

    @property
    def strongest(self) -> tuple[str, str, float]:
        """Beginning and end of the column to which the chosen row attends most, in seconds, and its share."""
        row = self.shares[self.drawn_row]
        best = int(row.argmax())
        begin, end = (f"{place * self.column_seconds:.2f}" for place in (best, best + 1))
        return begin, end, float(row[best])


def spectrogram_of(trace: Trace) -> np.ndarray:
    """Return what the model reads of a sound, without the silence after it: [mel band, frame]."""
    import torch

    model: Any = trace.checkpoint.model
    assert trace.source is not None
    frames = model.sounds.spectrogram(torch.tensor([trace.source.ids]))[0].numpy()
    return frames[:, : 2 * model.sounds.sound.covered(model.sounds.seconds_of(trace.source.ids))]
