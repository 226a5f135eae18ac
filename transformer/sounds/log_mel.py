"""The log-mel spectrogram that Whisper reads (Radford et al. 2022, §2.2).

The sound is cut into overlapping windows of 25 ms, one every 10 ms. For each of them,

    power(f)  = |Σₜ x(t) · w(t) · exp(−2πi f t / N)|²        w(t) = (1 − cos(2πt / N)) / 2
    mel(b)    = Σ_f filter(b, f) · power(f)
    log(b)    = log₁₀ max(mel(b), 10⁻¹⁰)
    output(b) = (max(log(b), largest log − 8) + 4) / 4

The filters are triangles whose peaks are equally far apart on the mel scale, which is linear up to 1,000 Hz and
logarithmic above, as in Slaney's Auditory Toolbox (1998). Each has the area 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer.errors import CheckpointError, InputError
from transformer.sounds.wav_file import MAX_SECONDS, Sound, resample

_HIGHEST = 8000.0  # Hz: where the last filter ends
_LINEAR_TO, _HZ_PER_MEL, _LOG_STEP = 1000.0, 200.0 / 3.0, math.log(6.4) / 27.0
_LIMITS = {  # the smallest and the largest value that is read
    "feature_size": (1, 512),
    "sampling_rate": (8_000, 48_000),
    "hop_length": (1, 4096),
    "chunk_length": (1, int(MAX_SECONDS)),
    "n_fft": (16, 8192),
}
_DEFAULTS = {"feature_size": 80, "sampling_rate": 16_000, "hop_length": 160, "chunk_length": 30, "n_fft": 400}
_UNKNOWN = ("dither", "do_normalize")


@dataclass(frozen=True)
class LogMel:
    """Settings of a log-mel spectrogram.

    Attributes:
        n_mels: Number of mel bands.
        rate: Samples per second.
        hop: Samples from one window to the next.
        window: Samples in a window, N.
        seconds: Duration to which every sound is lengthened.
        padding: The sample that is added: silence.
    """

    n_mels: int = 80
    rate: int = 16_000
    hop: int = 160
    window: int = 400
    seconds: int = 30
    padding: float = 0.0

    @property
    def n_frames(self) -> int:
        """Number of windows of a sound."""
        return self.seconds * self.rate // self.hop

    @property
    def frame_seconds(self) -> float:
        """Seconds from one window to the next."""
        return self.hop / self.rate

    def samples(self, sound: Sound) -> np.ndarray:
        """Return a sound at the model's rate.

        Raises:
            InputError: If it is longer than the model reads.
        """
        if sound.seconds > self.seconds:
            raise InputError(
                "The sound lasts {seconds} seconds; this model reads at most {most}. Nothing was cut: make it shorter.",
                seconds=f"{sound.seconds:.1f}",
                most=self.seconds,
            )
        return resample(sound, self.rate)

    def spectrogram(self, sound: Sound) -> Tensor:
        """Return what the model reads of a sound, [mel band, frame].

        Raises:
            InputError: If it is longer than the model reads.
        """
        waveform = torch.full((self.seconds * self.rate,), self.padding, dtype=torch.float32)
        samples = self.samples(sound)
        waveform[: len(samples)] = torch.from_numpy(np.array(samples))
        half = self.window // 2  # a window is centred on its frame; both ends are mirrored
        mirrored = torch.nn.functional.pad(waveform[None, None], (half, half), mode="reflect")[0, 0]
        windows = mirrored.unfold(0, self.window, self.hop)[: self.n_frames] * torch.hann_window(self.window)
        power = torch.fft.rfft(windows).abs().square()  # [frame, frequency]
        log = (mel_filters(self) @ power.T).clamp(min=1e-10).log10()
        return (torch.maximum(log, log.max() - 8.0) + 4.0) / 4.0

    def centres(self) -> np.ndarray:
        """Return the frequency at which each mel band peaks, in Hz."""
        return _edges(self.n_mels)[1:-1]


def mel_of(hertz: float) -> float:
    """Return a frequency on the mel scale of Slaney 1998."""
    if hertz < _LINEAR_TO:
        return hertz / _HZ_PER_MEL
    return _LINEAR_TO / _HZ_PER_MEL + math.log(hertz / _LINEAR_TO) / _LOG_STEP


def hertz_of(mel: np.ndarray) -> np.ndarray:
    """Return frequencies in Hz for values of the mel scale: the inverse of ``mel_of``."""
    linear, turn = mel * _HZ_PER_MEL, _LINEAR_TO / _HZ_PER_MEL
    return np.where(mel < turn, linear, _LINEAR_TO * np.exp(_LOG_STEP * (mel - turn)))


def _edges(n_mels: int) -> np.ndarray:
    """Return where the filters begin, peak and end, in Hz: each begins at the peak of the one before."""
    return hertz_of(np.linspace(0.0, mel_of(_HIGHEST), n_mels + 2))


@lru_cache(maxsize=8)
def mel_filters(settings: LogMel) -> Tensor:
    """Return the triangles of all bands, [mel band, frequency]."""
    frequencies = np.linspace(0.0, settings.rate // 2, 1 + settings.window // 2)
    edges = _edges(settings.n_mels)
    begin, peak, end = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (frequencies - begin) / (peak - begin), (end - frequencies) / (end - peak)
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return torch.from_numpy(triangles * 2.0 / (end - begin)).float()


def log_mel_of(fields: Mapping[str, Any]) -> LogMel:
    """Return the settings in the fields of a ``preprocessor_config.json``.

    Raises:
        CheckpointError: If it does something that is not supported, or a value is wrong.
    """
    for name in _UNKNOWN:
        if fields.get(name):
            raise CheckpointError("its feature extractor has {name}, which is not supported", name=name)
    values = {name: fields.get(name, usual) for name, usual in _DEFAULTS.items()}
    for name, value in values.items():
        least, most = _LIMITS[name]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise _wrong(name, value)
    padding = fields.get("padding_value", 0.0)
    if not isinstance(padding, (int, float)) or isinstance(padding, bool) or not -1.0 <= padding <= 1.0:
        raise _wrong("padding_value", padding)
    return LogMel(
        n_mels=values["feature_size"],
        rate=values["sampling_rate"],
        hop=values["hop_length"],
        window=values["n_fft"],
        seconds=values["chunk_length"],
        padding=float(padding),
    )


def _wrong(name: str, value: Any) -> CheckpointError:
    return CheckpointError(
        "its feature extractor sets {name} to {value}, which is not supported", name=name, value=repr(value)[:80]
    )
