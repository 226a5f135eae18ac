"""Model types that no list has: exact as their own code, or refused in a sentence at opening."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.transformer.guests.their_numbers import compare, compare_images
from tests.transformer.guests.tiny_guests import ENCODERS, GUESTS, WRITERS, guest_checkpoint
from tests.transformer.guests.tiny_image_guests import IMAGE_GUESTS, image_checkpoint
from transformer import CheckpointError, Greedy, load, trace
from transformer.errors import NotExposedError
from transformer.guests import guest_model

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
GROUPED = {**SIZES, "num_key_value_heads": 2, "max_position_embeddings": 64}
VISION = {**SIZES, "image_size": 32, "patch_size": 8}
CLASSES = {"id2label": {0: "cat", 1: "dog"}}
TEXT = {**SIZES, "vocab_size": 400}
TOWERS = {"vision_config": VISION, "text_config": TEXT, **CLASSES}
PROCESSOR = ("ViTImageProcessor", {"size": {"height": 32, "width": 32}})

TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "doge": ("DogeForCausalLM", {**GROUPED, "head_dim": 8}),  # its default has 16,384 experts
    "dots1": (
        "Dots1ForCausalLM",
        {
            **GROUPED,
            "head_dim": 8,
            "n_routed_experts": 4,
            "n_shared_experts": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "first_k_dense_replace": 1,
            "n_group": 1,
            "topk_group": 1,
        },
    ),
}
IMAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "beit": ("BeitForImageClassification", {**VISION, **CLASSES, "use_relative_position_bias": True}),
    "beit, absolute": ("BeitForImageClassification", {**VISION, **CLASSES, "use_absolute_position_embeddings": True}),
    "data2vec-vision": (
        "Data2VecVisionForImageClassification",
        {**VISION, **CLASSES, "use_absolute_position_embeddings": True},
    ),
    "clip": ("CLIPForImageClassification", TOWERS),
}
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "lfm2": (
        "Lfm2ForCausalLM",
        {**GROUPED, "layer_types": ["conv", "full_attention"], "block_ff_dim": 48, "block_multiple_of": 8},
        "no attention map was found in these layers .counted from 1.: 1. ",
    ),
    "minimax": (
        "MiniMaxForCausalLM",
        {
            **GROUPED,
            "head_dim": 8,
            "num_local_experts": 4,
            "layer_types": ["linear_attention", "full_attention"],
        },
        "no attention map was found in these layers .counted from 1.: 1. ",
    ),
    "bamba": (  # its config has an infinite number
        "BambaForCausalLM",
        {
            **GROUPED,
            "attn_layer_indices": [1],
            "mamba_n_heads": 4,
            "mamba_d_head": 16,
            "mamba_d_state": 8,
            "mamba_chunk_size": 8,
        },
        "no attention map was found in these layers .counted from 1.: 1. ",
    ),
    "xglm": (
        "XGLMForCausalLM",
        {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 48, "max_position_embeddings": 64},
        "no attention map was found in these layers .counted from 1.: 1, 2. ",
    ),
    "diffllama": ("DiffLlamaForCausalLM", GROUPED, "several attention maps per head"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_models_of_text_agree_with_their_own_code(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GUESTS, kind, TEXTS[kind])
    found = compare(load(guest_checkpoint(kind, tmp_path)), lengths=(1, 9, 33))
    assert all(comparison.largest < 1e-5 for comparison in found)


def test_an_encoder_with_a_table_of_rotary_positions_agrees_with_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENCODERS, "roformer", ("RoFormerForMaskedLM", {**GROUPED, "embedding_size": 32}))
    monkeypatch.setitem(GUESTS, "roformer", ENCODERS["roformer"])
    found = compare(load(guest_checkpoint("roformer", tmp_path)), lengths=(1, 9, 33))
    assert all(comparison.largest < 1e-5 for comparison in found)


@pytest.mark.parametrize("kind", IMAGES)
def test_classifiers_of_images_agree_with_their_own_code(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, fields = IMAGES[kind]
    monkeypatch.setitem(IMAGE_GUESTS, f"{kind} classifier", (name, fields, PROCESSOR, ("[CLS]",)))
    checkpoint = load(image_checkpoint(f"{kind} classifier", tmp_path))
    assert checkpoint.config.class_names == ("cat", "dog")
    assert all(comparison.largest < 1e-5 for comparison in compare_images(checkpoint))


def test_a_stream_that_layers_multiply_is_said_to_be_not_exposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Doge multiplies the stream itself before each addition, so it is no sum of what was written."""
    monkeypatch.setitem(GUESTS, "doge", TEXTS["doge"])
    run = trace(load(guest_checkpoint("doge", tmp_path)), "The cat sat.", strategy=Greedy(1))
    with pytest.raises(NotExposedError, match="input . attention . feed-forward layer is not their output"):
        run.values("decoder.layers.0.residual.after_self_attention")


@pytest.mark.parametrize("kind", REFUSED)
def test_layers_without_one_map_per_head_are_refused_when_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, fields, message = REFUSED[kind]
    monkeypatch.setitem(GUESTS, kind, (name, fields))
    path = guest_checkpoint(kind, tmp_path)
    with pytest.raises(CheckpointError, match=message):
        load(path)


def test_a_type_that_needs_more_inputs_is_refused_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"vision_config": {**SIZES, "patch_size": 8, "num_patches": 16}, "text_config": TEXT}
    monkeypatch.setitem(IMAGE_GUESTS, "siglip2", ("Siglip2Model", fields, PROCESSOR, ()))
    path = image_checkpoint("siglip2", tmp_path)
    with pytest.raises(CheckpointError, match="'siglip2_vision_model' cannot be shown: .* on pixel_values alone"):
        load(path)


@pytest.mark.parametrize("kind", ["llava", "qwen2_audio"])
def test_a_model_of_text_and_more_is_refused_with_what_can_be_opened_instead(kind: str, tmp_path: Path) -> None:
    """Its config says so before any weight is read."""
    name = {"llava": "LlavaForConditionalGeneration", "qwen2_audio": "Qwen2AudioForConditionalGeneration"}[kind]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "architectures": [name]}))
    with pytest.raises(CheckpointError, match=f"{name}.* together with text.* Open its language model alone"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("whisper", "WhisperForConditionalGeneration"),
        ("whisper", "WhisperModel"),
        ("moonshine", "MoonshineForConditionalGeneration"),
        ("wav2vec2", "Wav2Vec2ForCTC"),
    ],
)
def test_a_model_that_reads_sounds_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    """Its config says so before any weight is read."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "architectures": [name]}))
    with pytest.raises(CheckpointError, match=f"'{name}' reads sounds, .* Open a model that reads text or images"):
        load(tmp_path)


def test_layers_that_order_their_axes_otherwise_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FSMT's layers compute [position, text, model]."""
    vocabularies = {"src_vocab_size": 400, "tgt_vocab_size": 400, "langs": ["en", "de"]}
    made = ("FSMTForConditionalGeneration", {**WRITERS["mbart"][1], **vocabularies})
    for kinds in (WRITERS, GUESTS):
        monkeypatch.setitem(kinds, "fsmt", made)
    path = guest_checkpoint("fsmt", tmp_path)
    with pytest.raises(CheckpointError, match=r"the axes \[7, 1, 32\] instead of \[text, token, channel\]"):
        load(path)


HEADS: dict[str, tuple[str, dict[str, Any]]] = {
    "questions": ("LlamaForQuestionAnswering", GROUPED),
    "classes of a decoder": ("LlamaForSequenceClassification", GROUPED),
    "tokens": ("BertForTokenClassification", SIZES),
    "one number": ("BertForSequenceClassification", {**SIZES, "num_labels": 1}),
    "several at once": ("BertForSequenceClassification", {**SIZES, "problem_type": "multi_label_classification"}),
}


@pytest.mark.parametrize("kind", HEADS)
def test_a_model_is_opened_without_the_head_that_is_not_shown(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, fields = HEADS[kind]
    for kinds in (GUESTS, ENCODERS if name.startswith("Bert") else {}):
        monkeypatch.setitem(kinds, kind, (name, fields))
    checkpoint = load(guest_checkpoint(kind, tmp_path))
    config = checkpoint.config
    assert config.unshown_head == name and config.architecture == f"{name.split('For')[0]}Model"
    assert config.encodes_sentences and not config.class_names
    assert checkpoint.model.agreement.n_maps == 8
    assert trace(checkpoint, "The cat sat.").values("encoder.layers.1.self_attention.weights").shape[0] == 4


@pytest.mark.parametrize("kind", ["roberta", "opt"])
def test_a_folder_without_the_files_of_its_tokenizer_is_refused(kind: str, tmp_path: Path) -> None:
    """Its class would read every word as unknown, or as nothing."""
    path = guest_checkpoint(kind, tmp_path)
    for file in path.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(
        CheckpointError, match="turns 'the cat sat on the mat' into '.*', so the model would read another"
    ):
        load(path)


def test_the_positions_that_older_files_hold_are_not_weights(tmp_path: Path) -> None:
    path = guest_checkpoint("camembert", tmp_path)
    file = path / "model.safetensors"
    stored = load_file(file)
    save_file({**stored, "roberta.embeddings.position_ids": torch.arange(66)[None]}, file)
    assert load(path).config.family == "camembert"
    save_file({**stored, "roberta.embeddings.other": torch.arange(66)[None]}, file)
    with pytest.raises(CheckpointError, match="other as I64; weights are"):
        load(path)


def test_missing_maps_are_found_before_a_folder_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the softmax of Bloom's own attention were not recognised."""
    monkeypatch.setattr(guest_model, "watch_softmax", lambda _: None)
    path = guest_checkpoint("bloom", tmp_path)
    with pytest.raises(CheckpointError, match="no attention map was found in these layers .counted from 1.: 1, 2. "):
        load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda *_: 1 / 0, "in two steps, as the pages need: 'division by zero'"),
        (lambda _, h: h * 2, r"its output has the axes \[1, 7, 32\]"),
    ],
)
def test_a_failing_second_pass_is_found_before_a_folder_is_accepted(
    change: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_model.GuestModel, "project", change)
    path = guest_checkpoint("phi", tmp_path)
    with pytest.raises(CheckpointError, match=message):
        load(path)
