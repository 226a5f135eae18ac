"""Guests that read sounds: exact against ``transformers``, from the file to the text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.guests.tiny_sound_guests import N_BEFORE, extractor, network, sound_checkpoint
from transformer import CheckpointError, InputError
from transformer.__main__ import main
from transformer.files.languages import languages_of, with_languages
from transformer.runs import recording_size
from transformer.runs.edit_specs import edits_from
from transformer.runs.long_activations import SoundActivations
from transformer.sounds.sound_files import file_of, read_sound, sound_text

pytest.importorskip("transformers")
SWEEP, KNOCKS = "sound:sweep", "sound:knocks"
KINDS = (("encoder", "self", "encoder_attentions"), ("decoder", "self", "decoder_attentions"),
         ("decoder", "cross", "cross_attentions"))  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sound_checkpoint(tmp_path_factory.mktemp("sounds"))


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> transformer.Checkpoint:
    return transformer.load(folder)


def features(text: str) -> torch.Tensor:
    """Return what the feature extractor of ``transformers`` makes of a sound, [1, mel band, frame]."""
    return extractor()(read_sound(text).samples, sampling_rate=16_000, return_tensors="pt")["input_features"]


@pytest.mark.parametrize("sound", [SWEEP, KNOCKS])
def test_maps_and_logits_are_those_of_the_network(checkpoint: transformer.Checkpoint, sound: str) -> None:
    trace = transformer.trace(checkpoint, sound)
    whole = network()
    whole.set_attn_implementation("eager")
    given = {"input_features": features(sound), "decoder_input_ids": torch.tensor([trace.target.ids])}
    with torch.no_grad():
        expected = whole(**given, output_attentions=True)
    for stack, kind, name in KINDS:
        for layer, weights in enumerate(expected[name]):
            found = trace.values(f"{stack}.layers.{layer}.{kind}_attention.weights")
            np.testing.assert_array_equal(found, weights[0].numpy())
    np.testing.assert_array_equal(trace.values("decoder.logits"), expected.logits[0].numpy())


@pytest.mark.parametrize("sound", [SWEEP, KNOCKS])
def test_the_text_is_that_of_greedy_generation(checkpoint: transformer.Checkpoint, sound: str) -> None:
    trace = transformer.trace(checkpoint, sound)
    assert trace.target.displays[:N_BEFORE] == ("<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")
    prompt = torch.tensor([trace.target.ids[:N_BEFORE]])
    n_new = len(trace.target) - N_BEFORE
    expected = network().generate(
        features(sound), decoder_input_ids=prompt, suppress_tokens=[7, 9], max_new_tokens=n_new, do_sample=False
    )
    assert expected[0].tolist() == list(trace.target.ids[N_BEFORE:])
    assert not {7, 9} & set(trace.target.ids)


def test_the_encoder_reads_positions_in_time(checkpoint: transformer.Checkpoint) -> None:
    tokens = transformer.trace(checkpoint, SWEEP).source
    assert (
        len(tokens) == 50 and tokens.displays[:3] == ("0.00 s", "0.06 s", "0.12 s") and tokens.displays[-1] == "2.94 s"
    )
    sound = checkpoint.config.sound
    assert sound.covered(2.4) == 40 and sound.covered(0.001) == 1 and sound.covered(3.0) == 50
    assert checkpoint.model.sounds.seconds_of(tokens.ids) == pytest.approx(2.4)


def test_the_sums_of_the_residual_stream_hold(checkpoint: transformer.Checkpoint) -> None:
    trace = transformer.trace(checkpoint, SWEEP)
    for stack in ("encoder", "decoder"):
        token, place, total = (trace.values(f"{stack}.embedding.{part}") for part in ("token", "position", "sum"))
        np.testing.assert_allclose(token + place, total, atol=1e-5)
        for layer in range(2):
            name = f"{stack}.layers.{layer}"
            stream = trace.values(f"{name}.residual.in")
            for part in ("self_attention", "cross_attention", "feed_forward"):
                if f"{name}.{part}.output" in trace:
                    stream = stream + trace.values(f"{name}.{part}.output")
            np.testing.assert_allclose(stream, trace.values(f"{name}.residual.out"), atol=2e-5)


def test_removing_a_head_changes_the_run_alone(checkpoint: transformer.Checkpoint) -> None:
    before = transformer.trace(checkpoint, SWEEP, "hello").values("decoder.logits")
    edit = transformer.ablate_head("encoder", layer=1, head=1)
    changed = transformer.trace(checkpoint, SWEEP, "hello", edits=[edit]).values("decoder.logits")
    assert np.abs(changed - before).max() > 1e-3
    np.testing.assert_array_equal(transformer.trace(checkpoint, SWEEP, "hello").values("decoder.logits"), before)


def test_every_head_of_the_decoder_can_be_removed(checkpoint: transformer.Checkpoint) -> None:
    """The decoder has four heads per layer, the encoder two."""
    edits = edits_from(checkpoint, ["zero:decoder.1.cross.3"])
    run = transformer.trace(checkpoint, SWEEP, "hello", edits=edits)
    assert not run.values("decoder.layers.1.cross_attention.context")[3].any()
    with pytest.raises(ValueError, match="no head 2; this model has heads 0 to 1"):
        edits_from(checkpoint, ["zero:encoder.1.self.2"])


def test_a_long_recording_keeps_little_of_the_encoder(
    checkpoint: transformer.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers equal those of the whole one up to the rounding of the fused kernels, edits included."""
    edits = [transformer.ablate_head("encoder", layer=0, head=0)]
    whole = [transformer.trace(checkpoint, SWEEP, "hello", edits=each) for each in ([], edits)]
    monkeypatch.setattr(recording_size, "LARGE", 1000)
    for expected, each in zip(whole, ([], edits), strict=True):
        found = transformer.trace(checkpoint, SWEEP, "hello", edits=each)
        assert isinstance(found.activations, SoundActivations) and not isinstance(
            expected.activations, SoundActivations
        )
        assert set(found.names()) == set(expected.names())
        assert not [
            name for name in found.activations._kept if name.startswith("encoder.layers.") and "weights" in name
        ]
        for name in found.names():
            np.testing.assert_allclose(found.values(name), expected.values(name), atol=1e-4)


def test_the_size_of_a_recording_is_known_before_it_is_made(checkpoint: transformer.Checkpoint) -> None:
    trace = transformer.trace(checkpoint, SWEEP)
    expected = recording_size.recorded_bytes(checkpoint.model, source=len(trace.source), target=len(trace.target))
    assert sum(trace.values(name).nbytes for name in trace.names()) == expected


def test_a_position_without_a_sound_is_as_quiet_as_the_quietest(checkpoint: transformer.Checkpoint) -> None:
    ids = checkpoint.tokenizer.encode(SWEEP)
    whole, silenced = (
        checkpoint.model.sounds.spectrogram(torch.tensor([row]))[0] for row in (ids, [*ids[:5], 0, *ids[6:]])
    )
    assert (silenced[:, 10:12] == whole.min()).all() and whole[:, 10:12].max() > whole.min()
    torch.testing.assert_close(silenced[:, 12:], whole[:, 12:], rtol=0, atol=0)


def test_the_spoken_language_can_be_chosen(checkpoint: transformer.Checkpoint) -> None:
    assert languages_of(checkpoint) == ((), ("de", "en", "fr"))
    french = with_languages(checkpoint, target="fr")
    assert transformer.trace(french, SWEEP).target.displays[1] == "<|fr|>"
    assert transformer.trace(checkpoint, SWEEP).target.displays[1] == "<|en|>"
    with pytest.raises(CheckpointError, match="no language 'xx'"):
        with_languages(checkpoint, target="xx")


def test_a_model_of_one_language_names_neither_language_nor_task(folder: Path, tmp_path: Path) -> None:
    """Its tokenizer has the tokens of all languages, but its training never used them."""
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": 0, "is_multilingual": False}))
    english = transformer.load(tmp_path)
    assert languages_of(english) == ((), ())
    displays = transformer.trace(english, SWEEP).target.displays
    assert displays[:2] == ("<|startoftranscript|>", "<|notimestamps|>")


def test_a_sentence_padding_or_a_sound_that_is_not_here_is_refused(checkpoint: transformer.Checkpoint) -> None:
    for text, said in (("A cat.", "reads sounds, not text"), (f"sound:{'0' * 64}", "no longer here")):
        with pytest.raises(InputError, match=said):
            transformer.trace(checkpoint, text)
    with pytest.raises(InputError, match="has no padding token"):
        transformer.trace(checkpoint, SWEEP, source_pads=2)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({"chunk_length": 30}, "chunk_length"),
        ({"feature_size": 80}, "feature_size"),
        ({"feature_extractor_type": "Wav2Vec2FeatureExtractor"}, "Open a Whisper model instead"),
        ({"dither": 0.5}, "dither"),
    ],
)
def test_a_feature_extractor_that_does_not_fit_is_refused(
    folder: Path, tmp_path: Path, stored: dict, said: str
) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**settings, **stored}))
    with pytest.raises(CheckpointError, match=said):
        transformer.load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("moonshine", "MoonshineForConditionalGeneration"),
        ("speech_to_text", "Speech2TextForConditionalGeneration"),
        ("wav2vec2", "Wav2Vec2ForCTC"),
        ("wav2vec2", "Wav2Vec2Model"),
        ("whisper", "WhisperForAudioClassification"),
        ("whisper", "WhisperModel"),
    ],
)
def test_another_reader_of_sounds_is_refused_with_what_can_be_opened_instead(
    tmp_path: Path, kind: str, name: str
) -> None:
    """Its config says so before any weight is read."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "architectures": [name]}))
    with pytest.raises(CheckpointError, match=f"'{name}': .* that write text from .* Open a Whisper model instead"):
        transformer.load(tmp_path)


def test_the_commands_read_a_file(
    folder: Path, checkpoint: transformer.Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "sound.wav").write_bytes(file_of(SWEEP))
    given = ["--checkpoint", str(folder), "--sound", str(tmp_path / "sound.wav")]
    text = transformer.decode(checkpoint, sound_text(tmp_path / "sound.wav")).text
    assert main(["translate", *given]) == 0
    assert capsys.readouterr().out == " ".join(text.split()) + "\n"
    assert main(["trace", *given]) == 0
    assert "source  0.00 s 0.06 s" in capsys.readouterr().out
    assert main(["trace", "--checkpoint", str(folder)]) == 2
    assert "either --sentence or --sound" in capsys.readouterr().err
    assert main(["translate", "--checkpoint", str(folder)]) == 2
    assert "--sound FILE.wav" in capsys.readouterr().err
    (tmp_path / "sound.wav").write_bytes(b"A dog barks.")
    assert main(["translate", *given]) == 2
    assert "not a WAV file" in capsys.readouterr().err


def test_a_model_of_texts_refuses_a_sound(checkpoints_folder: Path, capsys: pytest.CaptureFixture) -> None:
    given = ["--checkpoint", str(checkpoints_folder / "tiny-translator"), "--sound", "sound.wav"]
    assert main(["translate", *given]) == 2
    assert "reads text, not sounds" in capsys.readouterr().err
