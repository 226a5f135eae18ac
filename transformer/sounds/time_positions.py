"""A sound as positions in time, and the tokenizer of a model that writes down sounds.

Two frames of the spectrogram make one position, because the second of Whisper's two convolutions moves by two frames
(Radford et al. 2022, §2.2): 20 ms. Every sound is lengthened by silence, so the number of positions is fixed.

The ids of positions begin where those of the vocabulary end: the number of a sound times ``_STRIDE`` plus the
position. So a row of ids determines the frames that the model reads, even if a position is silenced.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from transformer.errors import CheckpointError
from transformer.sounds.log_mel import LogMel
from transformer.sounds.sound_files import is_sound_text, read_sound
from transformer.text.foreign.tokenizer import ForeignTokenizer
from transformer.text.numbered_files import NumberedFiles
from transformer.text.tokens import Token, TokenSequence

FRAMES = 2  # per position
_STRIDE = 2**16  # more than the positions of any sound here
_KEPT = 8  # sounds whose spectrograms are kept


@dataclass(frozen=True)
class SoundInput:
    """What a model reads of a sound.

    Attributes:
        log_mel: How a sound becomes a spectrogram.
        first_id: Id of the first position of the first sound: the size of the vocabulary.
    """

    log_mel: LogMel
    first_id: int

    @property
    def n_positions(self) -> int:
        """Number of positions of every sound."""
        return self.log_mel.n_frames // FRAMES

    @property
    def seconds(self) -> float:
        """Duration of one position."""
        return FRAMES * self.log_mel.frame_seconds

    def covered(self, seconds: float) -> int:
        """Return how many positions a sound of this duration covers; the others are silence."""
        return max(1, min(self.n_positions, math.ceil(seconds / self.seconds - 1e-9)))


class SoundPositions:
    """The sounds that a model has read: their ids, labels and spectrograms."""

    def __init__(self, sound: SoundInput) -> None:
        self.sound = sound
        self._seconds: dict[str, float] = {}  # without silence, by text
        self._sounds = NumberedFiles(self._read, most=_KEPT)

    def encode(self, text: str) -> list[int]:
        """Return the ids of all positions of a sound, silence included.

        Raises:
            InputError: If the text names no sound that this process has, or one that is too long.
        """
        first = self.sound.first_id + _STRIDE * self._sounds.number(text.strip())
        return list(range(first, first + self.sound.n_positions))

    def is_position(self, id: int) -> bool:
        """Whether an id stands for a position of a sound."""
        return id >= self.sound.first_id

    def text_of(self, id: int) -> str:
        """Return the text of the sound that a position belongs to."""
        return self._sounds.text((id - self.sound.first_id) // _STRIDE)

    def seconds_of(self, ids: Sequence[int]) -> float:
        """Return the duration of the sound that the first position of ``ids`` belongs to, without silence."""
        first = next((id for id in ids if self.is_position(id)), None)
        return 0.0 if first is None else self._seconds[self.text_of(first)]

    def display(self, id: int) -> str:
        """Return when a position begins."""
        return self.time((id - self.sound.first_id) % _STRIDE)

    def time(self, position: int) -> str:
        """Return when a position begins, in seconds."""
        return f"{position * self.sound.seconds:.2f} s"

    def spectrogram(self, ids: Tensor) -> Tensor:
        """Return what the network reads for [batch, position] ids: [batch, mel band, frame]."""
        return torch.stack([self._row(row) for row in ids.tolist()])

    def _row(self, ids: list[int]) -> Tensor:
        """Return the frames of positions; those of an id that is no position are the quietest of the sound."""
        numbers = {(id - self.sound.first_id) // _STRIDE for id in ids if self.is_position(id)}
        frames = {number: self._sounds.tensor(number) for number in numbers}
        if len(numbers) == 1 and ids == list(range(ids[0], ids[0] + self.sound.n_positions)):
            return frames[numbers.pop()]
        quiet = min((float(each.min()) for each in frames.values()), default=0.0)
        row = torch.full((self.sound.log_mel.n_mels, self.sound.log_mel.n_frames), quiet)
        for place, id in enumerate(ids):
            if self.is_position(id):
                number, position = divmod(id - self.sound.first_id, _STRIDE)
                own = slice(FRAMES * position, FRAMES * (position + 1))
                row[:, FRAMES * place : FRAMES * (place + 1)] = frames[number][:, own]
        return row

    def _read(self, text: str) -> Tensor:
        sound = read_sound(text)
        self._seconds[text] = sound.seconds
        return self.sound.log_mel.spectrogram(sound)


class SpeechTokenizer(ForeignTokenizer):
    """The tokenizer of a model that reads sounds and writes text.

    The text of a sound (``sound_text``) becomes the ids of its positions; any other text is encoded as usual.

    Args:
        text: The tokenizer of the text.
        positions: The sounds.
        languages: Ids of the tokens that name the spoken language, by code; empty if the model knows one only.
        language: The spoken language.
        follow: Ids that follow it before the text begins.
    """

    def __init__(
        self,
        text: ForeignTokenizer,
        positions: SoundPositions,
        languages: dict[str, int],
        language: str | None,
        follow: tuple[int, ...],
    ) -> None:
        self.__dict__.update(text.__dict__)
        self.positions, self.languages = positions, languages
        self._follow = follow
        self.before, self.after = (), ()
        special = text.special
        others = special.others if special.pad is None else special.others | {special.pad}
        self.special = replace(special, pad=None, others=others)  # a sound is lengthened by silence, never by padding
        self.source_language = None
        self._speak(language)

    def _speak(self, language: str | None) -> None:
        self.target_language = language
        spoken = () if language is None else (self.languages[language],)
        self.answer_before = (*spoken, *self._follow)

    def with_languages(self, *, source: str | None = None, target: str | None = None) -> SpeechTokenizer:
        """Return the same vocabulary for another spoken language; ``None`` keeps it."""
        if target is not None and target not in self.languages:
            raise CheckpointError("the tokenizer knows no language {language}", language=repr(target))
        changed = copy.copy(self)
        changed._speak(target or self.target_language)
        return changed

    @property
    def sound(self) -> SoundInput:
        """What the model reads of a sound."""
        return self.positions.sound

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        """Return the ids of a sound's positions, or of a text."""
        return self.positions.encode(text) if is_sound_text(text) else super().encode(text, continues=continues)

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many sounds and texts."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, or the text of the sound that the first of them belongs to."""
        ids = list(ids)
        if ids and self.positions.is_position(ids[0]):
            return self.positions.text_of(ids[0])
        return super().decode(ids)

    def display(self, id: int) -> str:
        """Return how a token is shown, or when a position of a sound begins."""
        return self.positions.display(id) if self.positions.is_position(id) else super().display(id)

    def sequence(self, ids: Sequence[int], name: str = "source") -> TokenSequence:
        """Label the positions of a sound by when they begin, and other ids with their text."""
        if not any(map(self.positions.is_position, ids)):
            return super().sequence(ids, name)
        labels = [self.positions.time(position) for position in range(len(ids))]
        tokens = (Token(at, int(id), f" {labels[at]}", labels[at], first=True) for at, id in enumerate(ids))
        return TokenSequence(tuple(tokens), name)

    def words(self, text: str) -> list[str]:
        """Return when each position of a sound begins, or the pre-tokenizer's words."""
        return [self.display(id) for id in self.encode(text)] if is_sound_text(text) else super().words(text)
