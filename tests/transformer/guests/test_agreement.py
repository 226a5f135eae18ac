"""Trial passes of guests compared with their own maps and hidden states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.transformer.guests.tiny_guests import _GROUPED, _SIZES, ENCODERS, GUESTS, WRITERS, guest_checkpoint
from transformer import CheckpointError, load
from transformer.guests import attention_function, guest_model
from transformer.probes import has_forward_hooks

_FUNNEL = {"d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "block_sizes": [2, 2, 2], "num_decoder_layers": 2}
_BLOCKS = {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 128}
_STREAMS = {"altup_num_inputs": 2, "laurel_rank": 4, "num_kv_shared_layers": 0, "layer_types": ["full_attention"] * 2}
_STREAMS |= {"vocab_size_per_layer_input": 400, "hidden_size_per_layer_input": 8}
_STREAMS |= {"activation_sparsity_pattern": [0.0, 0.0]}
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
        "its layers compute attention twice",
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
}
OPENED: dict[str, tuple[str, dict[str, Any]]] = {
    "big_bird": ("BigBirdForMaskedLM", {**_SIZES, "attention_type": "original_full"}),
    "deberta": ("DebertaForMaskedLM", {**_SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "convbert": ("ConvBertForMaskedLM", {**_SIZES, "embedding_size": 32}),
}


@pytest.fixture
def path_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that writes a checkpoint of a class with given fields."""

    def write(kind: str, name: str, fields: dict[str, Any]) -> Path:
        for kinds in (GUESTS, ENCODERS if name.endswith("MaskedLM") else WRITERS if "Cond" in name else {}):
            monkeypatch.setitem(kinds, kind, (name, fields))
        return guest_checkpoint(kind, tmp_path)

    return write


@pytest.mark.parametrize("kind", REFUSED)
def test_what_differs_or_is_missing_is_refused_with_the_reason(kind: str, path_of: Callable[..., Path]) -> None:
    name, fields, message = REFUSED[kind]
    with pytest.raises(CheckpointError, match=message):
        load(path_of(kind, name, fields))


@pytest.mark.parametrize("kind", OPENED)
def test_maps_of_attention_with_code_of_its_own_are_compared_too(kind: str, path_of: Callable[..., Path]) -> None:
    model = load(path_of(kind, *OPENED[kind])).model
    longer = 65 if kind == "big_bird" else 33  # than a block; the model reads 64 tokens
    assert model.agreement.lengths == (7, min(longer, 64))
    assert model.agreement.attention < 1e-5 and model.agreement.hidden < 1e-5
    assert (
        model.agreement.n_maps == 2 * model.config.n_heads or kind == "convbert"
    )  # half of its heads are convolutions


def test_the_result_of_the_trial_is_kept_and_leaves_no_hooks(tmp_path: Path) -> None:
    model = load(guest_checkpoint("phi", tmp_path)).model
    assert (model.agreement.lengths, model.agreement.n_maps) == ((7, 33), 8)
    assert not has_forward_hooks(model) and model.network.config._attn_implementation == attention_function.NAME


@pytest.mark.parametrize("longer_than", [0, 7])
def test_a_map_that_is_not_the_models_own_is_refused(
    longer_than: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if our function computed other weights, or did so for long texts only."""
    own = torch.softmax

    def other(scores: torch.Tensor, *args: Any, **given: Any) -> torch.Tensor:
        factor = 1.01 if scores.shape[-1] > longer_than else 1.0
        return own(scores * factor, *args, **given)

    path = guest_checkpoint("phi", tmp_path)
    monkeypatch.setattr(attention_function.torch, "softmax", other)
    with pytest.raises(CheckpointError, match=f"differs by up to .* for the same {33 if longer_than else 7} tokens"):
        load(path)


def test_a_stream_that_is_not_the_models_own_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = guest_model._Watch.before

    def shifted(watch: Any, module: Any, change: Any) -> None:
        own(watch, module, lambda guest_pass, x: change(guest_pass, x * 1.01))

    path = guest_checkpoint("phi", tmp_path)
    monkeypatch.setattr(guest_model._Watch, "before", shifted)
    with pytest.raises(CheckpointError, match="differs by up to .* returns for the same 7 tokens"):
        load(path)
