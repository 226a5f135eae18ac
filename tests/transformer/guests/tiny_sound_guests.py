"""Tiny random checkpoints of models that read sounds, made by Hugging Face's classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.transformer.text.foreign_folders import byte_level

_LANGUAGES = ("<|en|>", "<|fr|>", "<|de|>")
_SPECIAL = ("<|endoftext|>", "<|startoftranscript|>", *_LANGUAGES, "<|transcribe|>", "<|notimestamps|>")
_SIZES = {
    "vocab_size": 400,
    "num_mel_bins": 16,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 32,
    "max_source_positions": 50,
    "max_target_positions": 24,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
    "decoder_start_token_id": 1,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}
# A position is 60 ms, so that 50 of them are 3 seconds; Whisper's own are 20 ms.
EXTRACTOR = {"feature_size": 16, "chunk_length": 3, "hop_length": 480, "n_fft": 400}
N_BEFORE = 4  # tokens before the text: start, language, task, no times


def extractor(**changes: Any) -> Any:
    """Return the feature extractor of ``transformers`` for the tiny checkpoint, or with other settings."""
    from transformers import WhisperFeatureExtractor

    return WhisperFeatureExtractor(**{**EXTRACTOR, **changes})


def network(**changes: Any) -> Any:
    """Return a tiny Whisper with random weights, large enough that no map is flat."""
    import torch
    import transformers

    torch.manual_seed(0)
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**{**_SIZES, **changes}))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:  # the encoder's table of sines
                continue
            if parameter.ndim > 1:
                parameter.normal_(std=0.25)
            elif "norm" not in name:
                parameter.normal_(std=0.1)
    return model.eval()


def sound_checkpoint(folder: Path, name: str = "whisper", **changes: Any) -> Path:
    """Write ``folder/name``: config, weights, the settings of the feature extractor, and a tokenizer."""
    path = folder / name
    path.mkdir(parents=True)
    network(**changes).save_pretrained(path)
    byte_level(special=_SPECIAL).save(str(path / "tokenizer.json"))
    names = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    (path / "preprocessor_config.json").write_text(json.dumps(extractor().to_dict(), default=str))
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": 0, "suppress_tokens": [7, 9]}))
    return path
