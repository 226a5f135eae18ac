"""Sound files that a reader gives: decoded with limits, and kept in memory under their hash.

The text of a sound, ``sound:`` and the SHA-256 of its file, can be used wherever a sentence can. The samples are found
by that text as long as this process has the file.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from transformer.disk.kept_files import KeptFiles
from transformer.disk.plain_files import read_plain
from transformer.errors import InputError
from transformer.sounds.made_sounds import MADE, make_sound
from transformer.sounds.wav_file import MAX_BYTES, Sound, decode_wav

PREFIX = "sound:"
_files = KeptFiles(256_000_000)


def sound_text(file: bytes | str | Path) -> str:
    """Keep a sound file in memory and return its text, which ``transformer.trace`` takes as a sentence.

    Args:
        file: A WAV file: its content or its path.

    Raises:
        InputError: If it is too large or too long, or no WAV file that can be decoded.
    """
    data = file if isinstance(file, bytes) else read_plain(Path(file), most=MAX_BYTES + 1)
    text = PREFIX + sha256(data).hexdigest()
    if not is_kept(text):
        decode_wav(data)
    keep(text, data)
    return text


def keep(text: str, data: bytes) -> None:
    """Keep a file that ``sound_text`` has checked; those unused for the longest time are dropped."""
    _files.keep(text, data)


def is_sound_text(text: str) -> bool:
    """Whether a text names a sound."""
    return text.startswith(PREFIX)


def is_kept(text: str) -> bool:
    """Whether this process has the sound that a text names."""
    return text in _files or (is_sound_text(text) and text.removeprefix(PREFIX) in MADE)


def file_of(text: str) -> bytes:
    """Return the file of a kept sound.

    Raises:
        InputError: If this process does not have it.
    """
    if not is_sound_text(text):
        raise InputError("This model reads sounds, not text. Choose a WAV file.")
    if (name := text.removeprefix(PREFIX)) in MADE:
        return make_sound(name)
    if (data := _files.get(text)) is not None:
        return data
    raise InputError("The sound is no longer here: only its hash is in the address. Choose the file again.")


def read_sound(text: str) -> Sound:
    """Return the samples of a kept sound; raises what ``file_of`` raises."""
    return decode_wav(file_of(text))
