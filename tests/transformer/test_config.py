"""A configuration is valid when it is created, or the error names the field, its value and the remedy."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.transformer.tiny import LAYERS, config
from transformer import ModelConfig
from transformer.files.layout import own_config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "encoder"}, "kind is 'encoder'; choose one of encoder-decoder, decoder-only, encoder-only"),
        ({"positions": "sinus"}, "positions is 'sinus'; choose one of sinusoidal, learned, rotary, relative, none"),
        ({"norm": "both"}, "norm is 'both'; choose one of pre, post"),
        ({"activation": "tanh"}, "activation is 'tanh'; choose one of relu, gelu"),
        ({"kind": ["encoder-decoder"]}, r"kind is \['encoder-decoder'\]"),
        ({"d_model": 0}, "d_model is 0; it must be an integer ≥ 1"),
        ({"d_ff": 12.5}, "d_ff is 12.5"),
        ({"n_heads": True}, "n_heads is True"),
        ({"vocabulary_size": "9"}, "vocabulary_size is '9'"),
        ({"max_length": -1}, "max_length is -1"),
        ({"max_length": 10**9}, "max_length is 1000000000; .* at most"),
        ({"n_encoder_layers": 10**6}, "n_encoder_layers is 1000000; .* at most"),
        ({"n_decoder_layers": -2}, "n_decoder_layers is -2; it must be an integer ≥ 0"),
        ({"n_heads": 3}, "d_model is 16, which is not divisible by 3 heads"),
        ({"n_heads": 16, "positions": "rotary"}, "d_head is 1; make it even"),
        ({"d_model": 15, "n_heads": 3}, "d_model is 15; make it even"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"dropout": "0.1"}, "dropout is '0.1'; it must be a number"),
        ({"dropout": None}, "dropout is None"),
        ({"layer_norm_epsilon": 0.0}, "layer_norm_epsilon is 0.0"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon is nan"),
        ({"layer_norm_epsilon": float("inf")}, "layer_norm_epsilon is inf"),
        ({"layer_norm_epsilon": "small"}, "layer_norm_epsilon is 'small'; it must be a number"),
        ({"tie_embeddings": "false"}, "tie_embeddings is 'false'; it must be true or false"),
        ({"n_encoder_layers": 0}, "n_encoder_layers is 0, which does not fit kind 'encoder-decoder'"),
        ({"kind": "decoder-only"}, "n_encoder_layers is 2, which does not fit kind 'decoder-only'"),
        ({"kind": "encoder-only"}, "n_decoder_layers is 2, which does not fit kind 'encoder-only'"),
        ({"n_segments": 2}, "n_segments is 2, but only an encoder-only model has segment embeddings"),
        ({"class_names": ("a", "b")}, "only an encoder-only model has a classifier head"),
        ({"kind": "encoder-only", "n_decoder_layers": 0, "class_names": ("a",)}, "needs at least 2 classes"),
        ({"kind": "encoder-only", "n_decoder_layers": 0, "class_names": "good"}, "class_names is 'good'; it must be a"),
        ({"kind": "encoder-only", "n_decoder_layers": 0, "class_names": [1, 2]}, r"class_names is \[1, 2\]"),
        ({"kind": "encoder-only", "n_decoder_layers": 0, "class_names": ["a", "a"]}, "class_names .* different"),
        ({"rms_norm": "yes"}, "rms_norm is 'yes'; it must be true or false"),
        ({"task_prefixes": "fill: "}, "task_prefixes is 'fill: '; it must be a list of strings"),
        ({"task_prefixes": [""]}, r"task_prefixes is \[''\]"),
        ({"pad_id": 23}, "pad_id is 23, but the vocabulary ends at 22"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig(**{**asdict(config()), **values})


@pytest.mark.parametrize("kind", LAYERS)
def test_json_and_back(kind: str, tmp_path: Path) -> None:
    settings = config(kind, class_names=("bad", "good") if kind == "encoder-only" else ())
    path = tmp_path / "config.json"
    path.write_text(settings.to_json())
    assert own_config(path) == settings
    assert hash(own_config(path)) == hash(settings)


def test_every_field_must_be_stated() -> None:
    values = asdict(config())
    del values["norm"]
    with pytest.raises(ValueError, match=r"lacks the fields \['norm'\]"):
        ModelConfig.from_dict(values)


def test_fields_that_are_younger_than_many_files(tmp_path: Path) -> None:
    """A file that predates them can be opened and is written unchanged; present fields are read."""
    old = json.loads(config().to_json())
    assert not {"rms_norm", "task_prefixes"} & set(old)
    assert ModelConfig.from_dict(old) == config()
    path = tmp_path / "config.json"
    path.write_text(config(rms_norm=True, task_prefixes=("fill: ",)).to_json())
    assert own_config(path) == config(rms_norm=True, task_prefixes=("fill: ",))


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown fields \['n_layer'\]; the known ones are .*n_heads"):
        ModelConfig.from_dict({**asdict(config()), "n_layer": 3})


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\x00", b"nonsense", b'{"kind": "\xff"}', b"[]", b"3", b"null", b'"text"']
)
def test_a_file_that_is_no_json_object_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"config.json is not valid JSON|must contain a JSON object"):
        own_config(path)
