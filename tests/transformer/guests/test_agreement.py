"""A trial pass compares a guest with its own maps and states; what cannot be shown is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.shipped import shipped
from tests.transformer.guests.tiny_guests import _GROUPED, _SIZES, WRITERS, guest_checkpoint
from tests.transformer.guests.tiny_image_guests import image_checkpoint
from transformer import CheckpointError, Greedy, load, trace
from transformer.errors import NotExposedError
from transformer.guests import attention_function, found_attention, guest_model, hooks
from transformer.guests.read_out import read_out_of
from transformer.probes import has_forward_hooks

_FUNNEL = {"d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "block_sizes": [2, 2, 2], "num_decoder_layers": 2}
_BLOCKS = {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 128}
_STREAMS = {"altup_num_inputs": 2, "laurel_rank": 4, "num_kv_shared_layers": 0, "layer_types": ["full_attention"] * 2}
_STREAMS |= {"vocab_size_per_layer_input": 400, "hidden_size_per_layer_input": 8}
_STREAMS |= {"activation_sparsity_pattern": [0.0, 0.0]}
LACKS = "itself returns . .* where . were found.*; every layer must have softmax attention"
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "big_bird": ("BigBirdForMaskedLM", {**_SIZES, **_BLOCKS}, "depends on the texts that it has read before"),
    "funnel": ("FunnelForMaskedLM", _FUNNEL, "returns 8 attentions where 2 were found, so a page would not show"),
    "longformer": (
        "LongformerForMaskedLM",
        {**_SIZES, "attention_window": [4, 4], "max_position_embeddings": 70},
        r"the attention map of layer 1 has the axes .* in the model's own code they are \[1, 4, 7, 5\]",
    ),
    "albert": ("AlbertForMaskedLM", {**_SIZES, "embedding_size": 16}, "one block runs several times"),
    "albert, two in a group": (
        "AlbertForMaskedLM",
        {**_SIZES, "embedding_size": 16, "inner_group_num": 2},
        "one block runs several times",
    ),
    "gemma3n": ("Gemma3nForCausalLM", {**_GROUPED, "head_dim": 8, **_STREAMS}, r"the axes \[2, 1, 7, 32\] instead of"),
    "prophetnet": (
        "ProphetNetForConditionalGeneration",
        {
            "hidden_size": 32,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
            "max_position_embeddings": 64,
        },
        "the attention map of layer 1 differs by up to .* same 7 tokens, so a page would show another model",
    ),
    "lfm2": (
        "Lfm2ForCausalLM",
        {**_GROUPED, "layer_types": ["conv", "full_attention"], "block_ff_dim": 48, "block_multiple_of": 8},
        LACKS,
    ),
    "minimax": (
        "MiniMaxForCausalLM",
        {**_GROUPED, "head_dim": 8, "num_local_experts": 4, "layer_types": ["linear_attention", "full_attention"]},
        LACKS,
    ),
    "bamba": (  # its config has an infinite number
        "BambaForCausalLM",
        {
            **_GROUPED,
            "attn_layer_indices": [1],
            "mamba_n_heads": 4,
            "mamba_d_head": 16,
            "mamba_d_state": 8,
            "mamba_chunk_size": 8,
        },
        LACKS,
    ),
    "xglm": (
        "XGLMForCausalLM",
        {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 48, "max_position_embeddings": 64},
        "no attention map was found in these layers .counted from 1.: 1, 2. ",
    ),
    "diffllama": ("DiffLlamaForCausalLM", _GROUPED, "several attention maps per head"),
    "fsmt": (
        "FSMTForConditionalGeneration",
        {**WRITERS["mbart"][1], "src_vocab_size": 400, "tgt_vocab_size": 400, "langs": ["en", "de"]},
        r"the axes \[7, 1, 32\] instead of \[text, token, channel\]",
    ),
}


@pytest.mark.sample("kind", of=4)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_differs_or_is_missing_is_refused_with_the_reason(kind: str, tmp_path: Path) -> None:
    *made, message = REFUSED[kind]
    with pytest.raises(CheckpointError, match=message):
        load(guest_checkpoint(kind, tmp_path, tuple(made)))


def test_the_result_of_the_trial_is_kept_and_leaves_no_hooks(tmp_path: Path) -> None:
    model = load(guest_checkpoint("phi", tmp_path)).model
    assert (model.agreement.lengths, model.agreement.n_maps) == ((7, 33), 8)
    assert not has_forward_hooks(model) and model.network.config._attn_implementation == attention_function.NAME


def scaled_softmax(patch: pytest.MonkeyPatch, longer_than: int) -> None:
    own = torch.softmax

    def other(scores: torch.Tensor, *args: Any, **given: Any) -> torch.Tensor:
        return own(scores * (1.01 if scores.shape[-1] > longer_than else 1.0), *args, **given)

    patch.setattr(attention_function.torch, "softmax", other)


def scaled_stream(patch: pytest.MonkeyPatch) -> None:
    own = hooks.StackHooks.before

    def shifted(self: Any, module: Any, change: Any, **given: Any) -> None:
        own(self, module, lambda guest_pass, x: change(guest_pass, x * 1.01), **given)

    patch.setattr(hooks.StackHooks, "before", shifted)


def second_pass(change: Any) -> Any:
    return lambda patch: patch.setattr(guest_model.GuestModel, "project", change)


# What goes wrong in our code: the model, the change, and what is said
AS_IF: dict[str, tuple[str, Any, str]] = {
    "other weights": ("phi", lambda patch: scaled_softmax(patch, 0), "differs by up to .* for the same 7 tokens"),
    "other weights in long texts": ("phi", lambda patch: scaled_softmax(patch, 7), "differs .* the same 33 tokens"),
    "another stream": ("phi", scaled_stream, "differs by up to .* returns for the same 7 tokens"),
    "a second pass that fails": ("phi", second_pass(lambda *_: 1 / 0), "in two steps, .*: 'division by zero'"),
    "a second pass of other axes": ("phi", second_pass(lambda _, h: h * 2), r"its output has the axes \[1, 7, 32\]"),
    "a softmax of its own that is not recognised": (
        "bloom",
        lambda patch: patch.setattr(found_attention, "watch_softmax", lambda _: None),
        "no attention map was found in these layers .counted from 1.: 1, 2. ",
    ),
}


@pytest.mark.parametrize("what", AS_IF)
def test_what_is_not_the_models_own_is_refused(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, change, message = AS_IF[what]
    path = guest_checkpoint(kind, tmp_path)
    change(monkeypatch)
    with pytest.raises(CheckpointError, match=message):
        load(path)


# ---- models in no list ----------------------------------------------------------------------------------------------


def test_a_stream_that_layers_multiply_is_said_to_be_not_exposed(tmp_path: Path) -> None:
    """Doge multiplies the stream itself before each addition, so it is no sum of what was written."""
    run = trace(load(guest_checkpoint("doge", tmp_path)), "The cat sat.", strategy=Greedy(1))
    with pytest.raises(NotExposedError, match="input . attention . feed-forward layer is not their output"):
        run.values("decoder.layers.0.residual.after_self_attention")


def test_a_type_that_needs_more_inputs_is_refused_by_its_name(tmp_path: Path) -> None:
    fields = {"vision_config": {**_SIZES, "patch_size": 8, "num_patches": 16}, "text_config": _SIZES}
    path = image_checkpoint("siglip2", tmp_path, ("Siglip2Model", fields))
    with pytest.raises(CheckpointError, match="'siglip2_vision_model' cannot be shown: .* on pixel_values alone"):
        load(path)


HEADS: dict[str, tuple[str, dict[str, Any]]] = {
    "questions": ("LlamaForQuestionAnswering", _GROUPED),
    "classes of a decoder": ("LlamaForSequenceClassification", _GROUPED),
    "tokens": ("BertForTokenClassification", _SIZES),
    "one number": ("BertForSequenceClassification", {**_SIZES, "num_labels": 1}),
    "several at once": ("BertForSequenceClassification", {**_SIZES, "problem_type": "multi_label_classification"}),
}


@pytest.mark.parametrize("kind", HEADS)
def test_a_model_is_opened_without_the_head_that_is_not_shown(kind: str, tmp_path: Path) -> None:
    name = HEADS[kind][0]
    checkpoint = load(guest_checkpoint(kind, tmp_path, HEADS[kind]))
    config = checkpoint.config
    assert config.unshown_head == name and config.architecture == f"{name.split('For')[0]}Model"
    assert config.encodes_sentences and not config.class_names
    assert checkpoint.model.agreement.n_maps == 8
    assert trace(checkpoint, "The cat sat.").values("encoder.layers.1.self_attention.weights").shape[0] == 4


def test_a_tokenizer_that_spells_no_sentence_is_refused(tmp_path: Path) -> None:
    path = guest_checkpoint("roberta", tmp_path)
    Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]")).save(str(path / "tokenizer.json"))
    with pytest.raises(CheckpointError, match="turns 'the cat sat on the mat' into '.*', so the model would read"):
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


# ---- how logits follow from the last vectors ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "stack", "kind", "own_layer"),
    [
        ("gpt-en", "decoder", "matrix", False),
        ("en-fr", "decoder", "matrix", False),
        ("bert-en", "encoder", "matrix", False),
        ("sentiment", "encoder", "mean", False),
        ("vit-digits", "encoder", "first", True),
    ],
)
def test_each_kind_of_shipped_model(name: str, stack: str, kind: str, own_layer: bool) -> None:
    checkpoint = shipped(name)
    found, config = read_out_of(checkpoint.model, stack), checkpoint.config
    assert (found.kind, found.has_own_layer, found.scale, found.cap) == (kind, own_layer, 1.0, None)
    assert len(found.projection.weight) == (config.n_classes or config.vocabulary_size)
    assert not (config.is_guest or config.family or config.gated or config.windows or config.n_key_heads)
    if config.kind == "encoder-decoder":
        assert read_out_of(checkpoint.model, "encoder") is None, "it gives no logits"


def test_a_guest_says_the_same_about_itself(tmp_path) -> None:
    checkpoint = load(guest_checkpoint("olmo3", tmp_path))
    attention, config = checkpoint.model.decoder.layers[0].self_attention, checkpoint.config
    assert read_out_of(checkpoint.model, "decoder").kind == "matrix" and config.is_guest and config.gated
    assert attention.heads_a_key == config.n_heads // config.n_key_heads > 1
    assert attention.normalizes and attention.window == config.windows[0]
