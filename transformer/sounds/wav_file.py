"""WAV files: decoded with limits to one channel of numbers, and written.

A WAV file is a RIFF container of chunks. The chunk ``fmt `` states how samples are written, ``data`` holds them
(Microsoft and IBM 1991, "Multimedia Programming Interface and Data Specifications 1.0", pp. 56–65).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from transformer.errors import InputError

MAX_BYTES = 12_000_000  # of a file: 30 seconds of 48 kHz in stereo with 32 bits
MAX_SECONDS = 30.0
MAX_CHANNELS = 8
RATES = (4_000, 192_000)  # Hz: the lowest and the highest that is read
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_PCM_BITS, _FLOAT_BITS = (8, 16, 24, 32), (32, 64)
_GUID_END = bytes.fromhex("000000001000800000aa00389b71")  # of a format that is named by its first two bytes


@dataclass(frozen=True)
class Sound:
    """A sound with one channel.

    Attributes:
        samples: float32, −1 to 1.
        rate: Samples per second.
    """

    samples: np.ndarray
    rate: int

    @property
    def seconds(self) -> float:
        """Duration."""
        return len(self.samples) / self.rate


@dataclass(frozen=True)
class _Format:
    code: int
    n_channels: int
    rate: int
    bits: int


def decode_wav(data: bytes) -> Sound:
    """Decode a WAV file; its channels are averaged.

    Kind, size and duration are checked before any sample is decoded.

    Raises:
        InputError: If it is too large or too long, or no WAV file of these kinds.
    """
    if len(data) > MAX_BYTES:
        raise InputError(
            "The sound file has {size} MB; at most {most} MB are read.",
            size=f"{len(data) / 1e6:.1f}",
            most=f"{MAX_BYTES / 1e6:.0f}",
        )
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise InputError("The file is not a WAV file. Save the sound as WAV, for example with Audacity.")
    found, samples = _chunks(data)
    width = found.bits // 8 * found.n_channels
    n_samples = len(samples) // width
    if not n_samples:
        raise InputError("The sound is empty: its file holds no samples.")
    if (seconds := n_samples / found.rate) > MAX_SECONDS:
        raise InputError(
            "The sound lasts {seconds} seconds; at most {most} are read. Nothing was cut: make it shorter.",
            seconds=f"{seconds:.1f}",
            most=f"{MAX_SECONDS:.0f}",
        )
    numbers = _numbers(samples[: n_samples * width], found).reshape(n_samples, found.n_channels)
    if not np.isfinite(numbers).all():
        raise InputError("The sound holds samples that are not finite numbers.")
    return Sound(np.ascontiguousarray(numbers.mean(axis=1, dtype=np.float64).astype(np.float32)), found.rate)


def _chunks(data: bytes) -> tuple[_Format, bytes]:
    """Return the format and the bytes of the samples."""
    found: _Format | None = None
    place = 12
    while place + 8 <= len(data):
        name, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        content = data[place + 8 : place + 8 + size]
        if name == b"fmt ":
            found = _format_of(content)
        elif name == b"data":
            if found is None:
                break
            # A program that writes to a pipe does not know the size and writes 0 or the largest number.
            whole = size in (0, 0xFFFFFFFF) or place + 8 + size > len(data)
            return found, data[place + 8 :] if whole else content
        place += 8 + size + size % 2
    raise InputError("The WAV file is cut off or damaged: it states no format, or has no samples.")


def _format_of(content: bytes) -> _Format:
    if len(content) < 16:
        raise InputError("The WAV file is cut off or damaged: it states no format, or has no samples.")
    code, n_channels, rate, _, _, bits = struct.unpack("<HHIIHH", content[:16])
    if code == _EXTENSIBLE and len(content) >= 40 and content[26:40] == _GUID_END:
        code = int.from_bytes(content[24:26], "little")
    known = {_PCM: _PCM_BITS, _FLOAT: _FLOAT_BITS}.get(code, ())
    if bits not in known:
        raise InputError(
            "The WAV file has the format {code} with {bits} bits per sample. Save it as PCM with 16 bits.",
            code=code,
            bits=bits,
        )
    if not 1 <= n_channels <= MAX_CHANNELS or not RATES[0] <= rate <= RATES[1]:
        raise InputError(
            "The WAV file has {channels} channels of {rate} samples per second; 1 to {most} channels of {low} to "
            "{high} are read.",
            channels=n_channels,
            rate=f"{rate:,}",
            most=MAX_CHANNELS,
            low=f"{RATES[0]:,}",
            high=f"{RATES[1]:,}",
        )
    return _Format(code, n_channels, rate, bits)


def _numbers(samples: bytes, found: _Format) -> np.ndarray:
    """Return samples as numbers from −1 to 1."""
    if found.code == _FLOAT:
        with np.errstate(over="ignore"):  # a double may exceed float32; infinities are refused later
            return np.frombuffer(samples, f"<f{found.bits // 8}").astype(np.float32)
    if found.bits == 8:  # the only width without a sign
        return (np.frombuffer(samples, np.uint8).astype(np.float32) - 128.0) / 128.0
    if found.bits == 24:
        three = np.frombuffer(samples, np.uint8).reshape(-1, 3)
        four = np.zeros((len(three), 4), np.uint8)
        four[:, 1:] = three  # the sign is in the highest byte
        return (four.view("<i4")[:, 0] / 2.0**31).astype(np.float32)
    return (np.frombuffer(samples, f"<i{found.bits // 8}") / 2.0 ** (found.bits - 1)).astype(np.float32)


def encode_wav(samples: np.ndarray, rate: int) -> bytes:
    """Return one channel of samples, −1 to 1, as a WAV file with 16 bits."""
    content = (np.clip(samples, -1.0, 1.0) * 32767.0).round().astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", _PCM, 1, rate, 2 * rate, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(content)) + content
    return b"RIFF" + struct.pack("<I", len(body)) + body


def resample(sound: Sound, rate: int) -> np.ndarray:
    """Return the samples of a sound at another rate.

    The Fourier transform of the sound is cut off at half the lower rate, so that no frequency appears as another one
    (Nyquist); the last twentieth below it fades out with a cosine, which keeps the filter short in time. A second of
    silence after the sound keeps its end from running into its beginning.
    """
    if sound.rate == rate:
        return sound.samples
    seconds = int(np.ceil(sound.seconds)) + 1  # whole seconds have a whole number of samples at any rate
    spectrum = np.fft.rfft(sound.samples, n=seconds * sound.rate)
    top = min(sound.rate, rate) // 2 * seconds  # number of the first frequency that is left out
    spectrum = spectrum[: top + 1]
    fade = top // 20
    spectrum[top + 1 - fade :] *= np.cos(np.linspace(0.0, np.pi / 2.0, fade))
    found = np.fft.irfft(spectrum, n=seconds * rate) * (rate / sound.rate)
    return found[: int(np.ceil(len(sound.samples) * rate / sound.rate))].astype(np.float32)
