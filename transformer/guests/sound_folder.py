"""Folders of models that read sounds: what is read of a sound, and how the text begins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.errors import CheckpointError
from transformer.families.foreign_folder import read_json
from transformer.guests.image_folder import PREPROCESSOR, PROCESSOR
from transformer.sounds.log_mel import log_mel_of
from transformer.sounds.time_positions import FRAMES, SoundInput, SoundPositions, SpeechTokenizer
from transformer.text.foreign.tokenizer import ForeignTokenizer

_EXTRACTOR = "WhisperFeatureExtractor"
_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
_ENGLISH_ONLY = 51_864  # entries of the vocabulary of Whisper's models of English, which name no language
_TASK, _NO_TIMES = "<|transcribe|>", "<|notimestamps|>"


def reads_spectrograms(architecture: str) -> bool:
    """Whether a class of ``transformers`` reads the spectrogram of a sound."""
    return _input_name(architecture) == "input_features"


def check_reads_no_other_sounds(architecture: str) -> None:
    """Refuse a class that reads the samples of a sound, or a spectrogram without writing text.

    Raises:
        CheckpointError: If it does.
    """
    writes = architecture.endswith("ForConditionalGeneration")
    if _input_name(architecture) == "input_values" or (reads_spectrograms(architecture) and not writes):
        raise _only_whisper(architecture)


def _input_name(architecture: str) -> str:
    import transformers

    return getattr(getattr(transformers, architecture), "main_input_name", "")


def _only_whisper(architecture: str) -> CheckpointError:
    return CheckpointError(
        "architectures {name}: of models that read sounds, only those can be opened that write text from Whisper's "
        "log-mel spectrogram. Open a Whisper model instead, such as openai/whisper-tiny",
        name=repr(architecture),
    )


def sound_input(folder: Path, theirs: Any, architecture: str) -> SoundInput:
    """Return what a model reads of a sound.

    Args:
        folder: The checkpoint.
        theirs: Its config of ``transformers``.
        architecture: Its class in ``transformers``.

    Raises:
        CheckpointError: If its feature extractor is not Whisper's, or does not fit the model.
    """
    stored = _stored(folder)
    kind = str(stored.get("feature_extractor_type") or _EXTRACTOR)
    n_positions, n_mels = (getattr(theirs, name, None) for name in ("max_source_positions", "num_mel_bins"))
    if kind != _EXTRACTOR or not isinstance(n_positions, int) or not isinstance(n_mels, int):
        raise _only_whisper(architecture)
    found = log_mel_of({"feature_size": n_mels, **stored})
    for name, here, there in (
        ("feature_size", found.n_mels, n_mels),
        ("chunk_length", found.n_frames, FRAMES * n_positions),
    ):
        if here != there:
            raise CheckpointError(
                "its feature extractor ({name}) produces {found} numbers, but the model reads {wanted}",
                found=here,
                name=name,
                wanted=there,
            )
    return SoundInput(found, theirs.vocab_size)


def _stored(folder: Path) -> dict[str, Any]:
    """Return the fields of the feature extractor in a folder, or none."""
    if (folder / PREPROCESSOR).is_file():
        return read_json(folder / PREPROCESSOR)
    if (folder / PROCESSOR).is_file():
        inner = read_json(folder / PROCESSOR).get("feature_extractor")
        return inner if isinstance(inner, dict) else {}
    return {}


def speech_tokenizer(
    text: ForeignTokenizer, positions: SoundPositions, generation: Mapping[str, Any], fields: Mapping[str, Any]
) -> SpeechTokenizer:
    """Return the tokenizer of a model that writes down sounds.

    The text begins with a token for the language that is spoken, if the model knows several, one for the task, and one
    that says that no times are written.
    """
    languages = {
        match[1]: id
        for name in text.special_names
        if (match := _LANGUAGE.fullmatch(name)) and (id := text.to_id(name)) is not None
    }
    several = generation.get("is_multilingual", fields.get("vocab_size") != _ENGLISH_ONLY)
    languages = languages if several else {}
    follow = tuple(id for name in (_TASK, _NO_TIMES) if (id := text.to_id(name)) is not None)
    if not languages:
        follow = follow[-1:] if text.to_id(_NO_TIMES) is not None else ()
    return SpeechTokenizer(text, positions, languages, _spoken(languages, generation, fields), follow)


def alignment_head(folder: Path) -> tuple[int, int] | None:
    """Return (layer, head) of the first of ``alignment_heads`` in ``generation_config.json``."""
    try:
        heads = read_json(folder / "generation_config.json").get("alignment_heads")
    except (OSError, ValueError):
        return None
    first = heads[0] if isinstance(heads, list) and heads else None
    if not isinstance(first, list) or len(first) != 2 or not all(type(each) is int and each >= 0 for each in first):
        return None
    return first[0], first[1]


def _spoken(languages: Mapping[str, int], *configs: Mapping[str, Any]) -> str | None:
    """Return the language that a config names, or else English; ``None`` if there is no choice."""
    for config in configs:
        named = str(config.get("language") or "").removeprefix("<|").removesuffix("|>")
        forced = config.get("forced_decoder_ids") or []
        ids = [pair[1] for pair in forced if isinstance(pair, list) and len(pair) == 2]
        found = next((code for code, id in languages.items() if code == named or id in ids), None)
        if found is not None:
            return found
    return "en" if "en" in languages else min(languages, default=None)
