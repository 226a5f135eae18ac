"""WAV files from strangers: which are read, how, and which are refused with a message."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from transformer import InputError
from transformer.sounds import wav_file
from transformer.sounds.made_sounds import MADE
from transformer.sounds.sound_files import file_of, is_kept, read_sound, sound_text
from transformer.sounds.wav_file import Sound, decode_wav, encode_wav, resample

RATE = 16_000


def tone(hertz: float, seconds: float = 1.0, rate: int = RATE) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def wav(
    content: bytes, *, code: int = 1, channels: int = 1, rate: int = RATE, bits: int = 16, more: bytes = b""
) -> bytes:
    width = channels * bits // 8
    form = struct.pack("<HHIIHH", code, channels, rate, 0, width % 2**16, bits) + more
    body = b"WAVE" + chunk(b"LIST", b"odd") + chunk(b"fmt ", form) + chunk(b"data", content)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def written(samples: np.ndarray, code: int, bits: int) -> bytes:
    if code == 3:
        return samples.astype(f"<f{bits // 8}").tobytes()
    if bits == 8:
        return (samples * 127 + 128).round().astype(np.uint8).tobytes()
    whole = (samples * (2 ** (bits - 1) - 1)).round().astype("<i4")
    return b"".join(int(number).to_bytes(bits // 8, "little", signed=True) for number in whole)


@pytest.mark.parametrize(("code", "bits"), [(1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)])
def test_every_kind_of_samples_is_read(code: int, bits: int) -> None:
    samples = 0.9 * tone(440.0, 0.1)
    sound = decode_wav(wav(written(samples, code, bits), code=code, bits=bits))
    assert sound.rate == RATE and sound.samples.dtype == np.float32
    np.testing.assert_allclose(sound.samples, samples, atol=1.5 * 2.0 ** -(min(bits, 24) - 1))


def test_channels_are_averaged() -> None:
    left, right = 0.5 * tone(300.0, 0.1), 0.25 * tone(500.0, 0.1)
    both = np.stack((left, right), axis=1).reshape(-1)
    sound = decode_wav(wav(written(both, 3, 32), code=3, bits=32, channels=2))
    np.testing.assert_allclose(sound.samples, (left + right) / 2, atol=1e-6)


def test_an_extensible_format_and_an_unknown_size_are_read() -> None:
    """Windows writes the first, a program that writes to a pipe the second."""
    content = written(tone(440.0, 0.1), 1, 16)
    more = struct.pack("<HHIH", 22, 16, 4, 1) + bytes.fromhex("000000001000800000aa00389b71")
    extensible = wav(content, code=0xFFFE, more=more)
    for size in (0, 0xFFFFFFFF):
        place = extensible.index(b"data") + 4
        file = extensible[:place] + struct.pack("<I", size) + extensible[place + 4 :]
        np.testing.assert_array_equal(decode_wav(file).samples, decode_wav(extensible).samples)
    assert len(decode_wav(extensible).samples) == 1600


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"A dog barks.", "not a WAV file"),
        (b"", "not a WAV file"),
        (b"RIFF\0\0\0\0AVI " + bytes(50), "not a WAV file"),
        (b"OggS" + bytes(50), "not a WAV file"),
        (wav(b"")[:20], "cut off or damaged"),
        (b"RIFF\0\0\0\0WAVE" + chunk(b"data", bytes(100)), "cut off or damaged"),
        (wav(b""), "holds no samples"),
        (wav(b"\0"), "holds no samples"),
        (wav(bytes(100), code=2, bits=4), "format 2 with 4 bits"),
        (wav(bytes(100), code=7, bits=8), "format 7 with 8 bits"),
        (wav(bytes(100), bits=0), "with 0 bits"),
        (wav(bytes(100), channels=0), "0 channels"),
        (wav(bytes(100), channels=9), "9 channels"),
        (wav(bytes(100), rate=0), "channels of 0 samples"),
        (wav(bytes(100), rate=2**32 - 1), "4,294,967,295 samples"),
        (wav(bytes(2 * 8000 * 31), rate=8000), "31.0 seconds"),
        (wav(struct.pack("<ff", 0.5, float("nan")), code=3, bits=32), "not finite"),
        (wav(struct.pack("<dd", 0.5, 1e300), code=3, bits=64), "not finite"),
        (bytes(wav_file.MAX_BYTES + 1), "at most 12 MB"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(file: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        sound_text(file)


def test_a_file_cut_off_anywhere_is_read_or_refused() -> None:
    whole = wav(written(tone(440.0, 0.01), 1, 24), bits=24)
    for length in range(len(whole)):
        try:
            sound = decode_wav(whole[:length])
        except InputError:
            continue
        assert 0 < len(sound.samples) <= 160


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 44_101, 48_000])
def test_a_tone_stays_the_same_at_another_rate(rate: int) -> None:
    found = resample(Sound(tone(1000.0, 1.0, rate).astype(np.float32), rate), RATE)
    assert len(found) == RATE
    np.testing.assert_allclose(found[800:-800], tone(1000.0)[800:-800], atol=1e-4)


def test_a_tone_that_the_lower_rate_cannot_hold_disappears() -> None:
    found = resample(Sound(tone(9000.0, 1.0, 44_100).astype(np.float32), 44_100), RATE)
    assert np.abs(found[800:-800]).max() < 1e-4, "it would be heard as 7,000 Hz"


def test_an_encoded_sound_is_decoded_to_the_same_samples() -> None:
    samples = 0.7 * tone(440.0, 0.1)
    np.testing.assert_allclose(decode_wav(encode_wav(samples, RATE)).samples, samples, atol=1e-4)


@pytest.mark.parametrize("name", MADE)
def test_a_computed_sound_is_read_and_short(name: str) -> None:
    sound = read_sound(f"sound:{name}")
    assert is_kept(f"sound:{name}") and not is_kept(name)
    assert 1.0 < sound.seconds < 3.0 and 0.5 < np.abs(sound.samples).max() <= 1.0


def test_a_file_is_kept_under_its_hash(tmp_path: Path) -> None:
    (tmp_path / "tone.wav").write_bytes(data := encode_wav(tone(440.0, 0.2), RATE))
    text = sound_text(tmp_path / "tone.wav")
    assert text == sound_text(data) and len(text) == 70 and file_of(text) == data
    for text, said in ((f"sound:{'0' * 64}", "no longer here"), ("A dog barks.", "reads sounds, not text")):
        with pytest.raises(InputError, match=said):
            read_sound(text)
