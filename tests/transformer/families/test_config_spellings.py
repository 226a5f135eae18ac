"""Old and new spellings of config fields, compared with Hugging Face's interpretation."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.transformer.families.hugging_face import CASES
from transformer import CheckpointError
from transformer.families.llama import gemma3_config, llama_config, qwen2_config
from transformer.families.neox import config as neox_config
from transformer.families.values import Values

transformers = pytest.importorskip("transformers")

OLDER, OLD = {"type": "linear", "factor": 8.0}, {"rope_type": "linear", "factor": 8.0}
FULL, SLIDING = "full_attention", "sliding_attention"


def values(case: str, fields: dict[str, Any]) -> Values:
    return Values(CASES[case][2] | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"rope_theta": 500.0},
        {"rope_theta": 500.0, "rotary_emb_base": 600.0},
        {"rope_scaling": OLDER, "rope_theta": 500.0},
        {"rope_scaling": OLD, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
        {"rope_parameters": {"type": "linear", "factor": 2.0, "rope_theta": 500.0}, "rope_theta": 600.0},
    ],
)
def test_one_rotation(fields: dict[str, Any]) -> None:
    """GPT-NeoX ignores ``rope_theta``, which some of its files contain; other families use it."""
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    for case, theirs, read in (
        ("llama", LlamaRotaryEmbedding, llama_config),
        ("gpt-neox", GPTNeoXRotaryEmbedding, neox_config),
    ):
        config = getattr(transformers, CASES[case][1])(**copy.deepcopy(CASES[case][2] | fields))
        (rotary,) = set(read(values(case, fields)).rotary)
        torch.testing.assert_close(rotary.frequencies(1), theirs(config).inv_freq)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"rope_scaling": OLDER},
        {"rope_scaling": OLD, "rope_theta": 500.0, "rope_local_base_freq": 600.0},
        {"rope_parameters": {**OLD, "rope_theta": 500.0}},
        {"rope_parameters": {FULL: {**OLDER, "rope_theta": 500.0}}},
        {"rope_parameters": {FULL: {"rope_type": "default"}, SLIDING: OLD}, "rope_scaling": {"factor": 2.0}},
        {"rope_parameters": {FULL: {"rope_type": "dynamic", "factor": 2.0}}, "rope_theta": 500.0},
        {
            "rope_parameters": {
                SLIDING: {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1, "high_freq_factor": 4}
            }
        },
    ],
)
def test_gemma_3_turns_near_and_far_layers_otherwise(fields: dict[str, Any]) -> None:
    from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding

    kinds = {"layer_types": [SLIDING, FULL, SLIDING]}
    theirs = Gemma3RotaryEmbedding(transformers.Gemma3TextConfig(**copy.deepcopy(CASES["gemma 3"][2] | fields | kinds)))
    ours = gemma3_config(values("gemma 3", fields | kinds)).rotary
    for kind, rotary in zip(kinds["layer_types"], ours, strict=True):
        expected = getattr(theirs, f"{kind}_inv_freq")
        torch.testing.assert_close(rotary.frequencies(1), expected)
        assert rotary.attention_factor == pytest.approx(getattr(theirs, f"{kind}_attention_scaling"))


def test_parameters_for_kinds_of_layers_are_refused_where_there_is_one_kind() -> None:
    with pytest.raises(CheckpointError, match="stretches rotary positions by .*full_attention"):
        llama_config(values("llama", {"rope_parameters": {FULL: OLD, SLIDING: OLD}}))


def test_a_window_of_null_is_none() -> None:
    fields = CASES["qwen2"][2] | {"sliding_window": None}
    assert set(transformers.Qwen2Config(**fields).layer_types) == {FULL}
    assert qwen2_config(Values(fields)).windows == ()
