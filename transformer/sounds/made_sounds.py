"""Sounds that this library computes itself, for models that read sounds when no file has been given."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from transformer.sounds.wav_file import encode_wav

MADE = ("melody", "sweep", "knocks")
_RATE = 16_000
_SCALE = (0, 2, 4, 5, 7, 9, 11, 12)  # semitones of a major scale


@lru_cache(maxsize=len(MADE))
def make_sound(name: str) -> bytes:
    """Return one of the sounds ``MADE`` as a WAV file of less than three seconds."""
    samples = {"melody": _melody, "sweep": _sweep, "knocks": _knocks}[name]()
    return encode_wav(0.8 * samples / np.abs(samples).max(), _RATE)


def _melody() -> np.ndarray:
    """A major scale: eight tones, each a fundamental with two overtones that fades away."""
    time = np.arange(int(0.3 * _RATE)) / _RATE
    envelope = np.minimum(1.0, time / 0.01) * np.exp(-6.0 * time)
    tones = [261.63 * 2.0 ** (step / 12.0) for step in _SCALE]
    parts = [sum(np.sin(2 * np.pi * n * tone * time) / n**2 for n in (1, 2, 3)) * envelope for tone in tones]
    return np.concatenate(parts)


def _sweep() -> np.ndarray:
    """One tone that rises from 100 to 6,400 Hz, six octaves, each in the same time."""
    seconds = 2.4
    time = np.arange(int(seconds * _RATE)) / _RATE
    octaves = 6.0
    phase = 2 * np.pi * 100.0 * seconds / (octaves * np.log(2.0)) * 2.0 ** (octaves * time / seconds)
    ends = np.minimum(1.0, np.minimum(time, seconds - time) / 0.02)
    return np.sin(phase) * ends


def _knocks() -> np.ndarray:
    """Three short bursts of noise with pauses between them."""
    noise = np.random.default_rng(0).normal(size=int(0.7 * _RATE))
    time = np.arange(len(noise)) / _RATE
    return np.tile(noise * np.exp(-30.0 * time), 3)
