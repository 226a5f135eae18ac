"""Sizes, code and other models in a ``config.json`` are refused wherever they stand in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from transformer import CheckpointError, load
from transformer.disk.config_limits import check_config
from transformer.files.layout import config_of

BLOOM = {"model_type": "bloom", "architectures": ["BloomForCausalLM"], "hidden_size": 8, "n_head": 2}
BART = {"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "d_model": 8}
LLAMA = {"model_type": "llama", "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2, "vocab_size": 64}
CLIP = {"model_type": "clip", "architectures": ["CLIPModel"]}
BERT = {"model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"]}
MANY = 10_000_000
TOO_MUCH = {
    "layers": ({**BLOOM, "n_layer": MANY}, "n_layer is 10000000; it must be at most 512"),
    "layers of one of two stacks": ({**BART, "encoder_layers": MANY}, "encoder_layers is 10000000"),
    "layers of one of two towers": (
        {**CLIP, "vision_config": {"num_hidden_layers": MANY}, "text_config": {}},
        "vision_config.num_hidden_layers is 10000000",
    ),
    "layers within a list": ({"model_type": "swin", "depths": [2, [MANY]]}, "depths is 10000000"),
    "layers of our own translation": ({**LLAMA, "num_hidden_layers": 1_000_000}, "num_hidden_layers is 1000000"),
    "classes": ({**BERT, "num_labels": 10**8}, "num_labels is 100000000"),
    "vocabulary": ({**CLIP, "text_config": {"vocab_size": 2**40}}, "text_config.vocab_size is 1099511627776"),
    "positions": ({**BART, "max_position_embeddings": 2**40}, "max_position_embeddings is 1099511627776"),
    "a number that no float holds": ({**LLAMA, "rms_norm_eps": 10**400}, "expected a number above 0"),
    "widths": ({**BLOOM, "n_layer": 1, "hidden_size": 2**40}, "hidden_size is 1099511627776"),
}


def folder_of(config: object, path: Path, **tensors: torch.Tensor) -> Path:
    """Write a folder with a config, a few weights, and a tokenizer that is never reached."""
    path.mkdir(parents=True, exist_ok=True)
    save_file(tensors or {"x": torch.zeros(100)}, str(path / "model.safetensors"))
    (path / "config.json").write_text(json.dumps(config))
    (path / "tokenizer.json").write_text("{}")
    return path


@pytest.mark.parametrize("attack", TOO_MUCH)
def test_a_size_that_no_file_confirms_is_refused_before_anything_is_built(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, sentence = TOO_MUCH[attack]

    def build(*_: object, **__: object) -> None:
        raise AssertionError("a module was built")

    monkeypatch.setattr(torch.nn.Module, "__init__", build)
    for work in (load, config_of):
        with pytest.raises(CheckpointError, match=sentence):
            work(folder_of(config, tmp_path))


def test_a_config_is_not_nested_without_end(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(300):
        deep = {"text_config": [deep]}
    with pytest.raises(CheckpointError, match="nested more than 20 deep"):
        load(folder_of({**BLOOM, "more": deep}, tmp_path))


@pytest.mark.nightly
def test_the_sizes_of_every_model_that_transformers_knows_are_accepted() -> None:
    transformers = pytest.importorskip("transformers")
    accepted = 0
    for kind in transformers.CONFIG_MAPPING:
        try:
            fields = transformers.CONFIG_MAPPING[kind]().to_dict()
        except Exception:  # two types have no defaults
            continue
        try:
            check_config(fields)
            accepted += 1
        except CheckpointError as error:
            assert "backbone" in str(error), kind
    assert accepted > 300


PARTS = {
    "a backbone": {"model_type": "upernet", "head": {"auto_map": {"AutoBackbone": "modeling.M"}}},
    "a tower": {**CLIP, "vision_config": {"auto_map": {"AutoModel": "modeling.M"}}},
    "a part in a list": {**LLAMA, "more": [{"deeper": {"auto_map": {"AutoModel": "evil/x--modeling.M"}}}]},
}


@pytest.mark.parametrize("part", PARTS)
def test_code_of_a_part_is_refused_and_nobody_is_asked_to_run_it(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transformers asks in the terminal whether to run the code of a part; "y" would run it."""
    (tmp_path / "modeling.py").write_text("raise SystemExit('this ran')\n")

    def ask(*_: object) -> str:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr("builtins.input", ask)
    for work in (load, config_of):
        with pytest.raises(CheckpointError, match=r"\.auto_map names code of its own for a part of the model"):
            work(folder_of(PARTS[part], tmp_path))
