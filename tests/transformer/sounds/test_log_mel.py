"""The log-mel spectrogram against the feature extractor of ``transformers``, and its settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from transformer import CheckpointError, InputError
from transformer.sounds.log_mel import LogMel, hertz_of, log_mel_of, mel_of
from transformer.sounds.sound_files import read_sound
from transformer.sounds.wav_file import Sound

WHISPER: dict[str, Any] = {}  # its defaults
LARGE = {"feature_size": 128}
SHORT = {"feature_size": 16, "chunk_length": 3, "hop_length": 480}
OTHER = {"feature_size": 24, "chunk_length": 2, "n_fft": 512, "hop_length": 200, "sampling_rate": 8000}


@pytest.mark.parametrize("settings", [WHISPER, LARGE, SHORT, OTHER])
def test_spectrograms_are_those_of_the_feature_extractor(settings: dict[str, int]) -> None:
    extractor = pytest.importorskip("transformers").WhisperFeatureExtractor(**settings)
    ours = log_mel_of(extractor.to_dict())
    noise = np.random.default_rng(0).normal(scale=0.1, size=ours.rate).astype(np.float32)
    for samples in (noise, read_sound("sound:melody").samples[: 2 * ours.rate], np.zeros(100, np.float32)):
        expected = extractor(samples, sampling_rate=ours.rate)["input_features"][0]
        found = ours.spectrogram(Sound(samples, ours.rate)).numpy()
        assert found.shape == expected.shape == (ours.n_mels, ours.n_frames)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_rising_tone_rises_through_the_bands() -> None:
    settings = LogMel(n_mels=40, seconds=3)
    loudest = settings.spectrogram(read_sound("sound:sweep"))[:, 20:220].argmax(dim=0)
    centres = settings.centres()[loudest.numpy()]
    expected = 100.0 * 2.0 ** (6.0 * np.arange(20, 220) * 0.01 / 2.4)
    np.testing.assert_allclose(centres, expected, rtol=0.2, atol=60.0)


def test_the_mel_scale_is_linear_below_1000_hz_and_logarithmic_above() -> None:
    assert (mel_of(200.0), mel_of(1000.0), mel_of(6400.0)) == pytest.approx((3.0, 15.0, 42.0))
    np.testing.assert_allclose(hertz_of(np.array([3.0, 15.0, 42.0])), [200.0, 1000.0, 6400.0])


def test_a_sound_that_is_too_long_for_the_model_is_refused_and_not_cut() -> None:
    with pytest.raises(InputError, match=r"2\.4 seconds; this model reads at most 1"):
        LogMel(seconds=1).spectrogram(read_sound("sound:sweep"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dither": 0.1}, "dither"),
        ({"do_normalize": True}, "do_normalize"),
        ({"feature_size": 10**9}, "feature_size"),
        ({"chunk_length": 31}, "chunk_length"),
        ({"hop_length": 0}, "hop_length"),
        ({"n_fft": "400"}, "n_fft"),
        ({"sampling_rate": True}, "sampling_rate"),
        ({"padding_value": float("nan")}, "padding_value"),
    ],
)
def test_a_feature_extractor_that_does_something_else_is_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        log_mel_of(changed)
