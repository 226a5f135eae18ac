"""Tiny random models of other families, made by Hugging Face's classes, for comparison with ours.

They are unusual on purpose: widths that are not powers of two, shared heads, windows shorter than the text, large
weights.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch

VOCABULARY = 97

_LLAMA = {
    "vocab_size": VOCABULARY,
    "hidden_size": 36,
    "intermediate_size": 50,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "head_dim": 10,
}
_NEOX = {name: value for name, value in _LLAMA.items() if name not in ("num_key_value_heads", "head_dim")}
_BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 36,
    "intermediate_size": 50,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "max_position_embeddings": 96,
}
_DISTILBERT = {
    "vocab_size": VOCABULARY,
    "dim": 36,
    "hidden_dim": 50,
    "n_layers": 3,
    "n_heads": 3,
    "max_position_embeddings": 96,
}
_GPT2 = {"vocab_size": VOCABULARY, "n_embd": 36, "n_layer": 3, "n_head": 3, "n_positions": 96}
_BART = {
    "vocab_size": VOCABULARY,
    "d_model": 36,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 50,
    "max_position_embeddings": 96,
}
_MARIAN = {"pad_token_id": 96, "decoder_start_token_id": 96, "eos_token_id": 0, "forced_eos_token_id": 0}
_T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 36,
    "d_kv": 10,
    "d_ff": 50,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
}
_STRETCHED = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
    "rope_theta": 500.0,
}
_LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
_YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 2.0,
    "beta_slow": 0.5,
    "rope_theta": 500.0,
}
_LONG = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0],
    "long_factor": [1.5, 2.0, 3.0, 5.0, 9.0],
    "original_max_position_embeddings": 16,
    "rope_theta": 500.0,
}
_SEES = {"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 1, "num_attention_heads": 2}
_CAPPED = {"query_pre_attn_scalar": 24, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}

# name: (class of the model, fields of its config)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", {**_GPT2, "n_inner": 50}),
    "gpt2, scaled by layer, untied": (
        "GPT2LMHeadModel",
        {
            **_GPT2,
            "scale_attn_by_inverse_layer_idx": True,
            "scale_attn_weights": False,
            "tie_word_embeddings": False,
            "activation_function": "gelu_pytorch_tanh",
        },
    ),
    "bert": ("BertForMaskedLM", {**_BERT, "hidden_act": "gelu_new"}),
    "bert, pre-training": ("BertForPreTraining", _BERT),
    "bert, classes": ("BertForSequenceClassification", {**_BERT, "num_labels": 3}),
    "gpt-neox": ("GPTNeoXForCausalLM", {**_NEOX, "hidden_size": 48, "rotary_pct": 0.5}),
    "gpt-neox, sequential": (
        "GPTNeoXForCausalLM",
        {**_NEOX, "hidden_size": 48, "use_parallel_residual": False, "attention_bias": False},
    ),
    "llama": ("LlamaForCausalLM", _LLAMA),
    "llama 3, biases": (
        "LlamaForCausalLM",
        {**_LLAMA, "attention_bias": True, "mlp_bias": True, "rope_parameters": _STRETCHED},
    ),
    "llama, linear, tied": ("LlamaForCausalLM", {**_LLAMA, "tie_word_embeddings": True, "rope_parameters": _LINEAR}),
    "llama, dynamic": (
        "LlamaForCausalLM",
        {**_LLAMA, "rope_parameters": {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 500.0}},
    ),
    "llama, yarn": ("LlamaForCausalLM", {**_LLAMA, "rope_parameters": _YARN}),
    "llama, longrope": ("LlamaForCausalLM", {**_LLAMA, "rope_parameters": _LONG}),
    "mistral, yarn": (
        "MistralForCausalLM",
        {**_LLAMA, "sliding_window": 7, "rope_parameters": {**_YARN, "truncate": False, "attention_factor": 1.3}},
    ),
    "qwen3, longrope": ("Qwen3ForCausalLM", {**_LLAMA, "rope_parameters": {**_LONG, "attention_factor": 0.8}}),
    "gemma 3, yarn and longrope": (
        "Gemma3ForCausalLM",
        {
            **_LLAMA,
            "sliding_window": 20,
            "sliding_window_pattern": 2,
            "rope_parameters": {"full_attention": _YARN, "sliding_attention": _LONG},
        },
    ),
    "gpt-neox, yarn": ("GPTNeoXForCausalLM", {**_NEOX, "hidden_size": 96, "rotary_pct": 0.5, "rope_parameters": _YARN}),
    "gpt-neox, longrope": (
        "GPTNeoXForCausalLM",
        {
            **_NEOX,
            "hidden_size": 120,
            "rotary_pct": 0.5,
            "rope_scaling": {"type": "longrope", "factor": 8.0, **{n: v for n, v in _LONG.items() if n != "rope_type"}},
        },
    ),
    "mistral": ("MistralForCausalLM", {**_LLAMA, "sliding_window": 7}),
    "qwen2": (
        "Qwen2ForCausalLM",
        {
            **{name: value for name, value in _LLAMA.items() if name != "head_dim"},
            "use_sliding_window": True,
            "sliding_window": 5,
            "max_window_layers": 1,
        },
    ),
    "qwen3": ("Qwen3ForCausalLM", _LLAMA),
    "gemma": ("GemmaForCausalLM", _LLAMA),
    "gemma 2": ("Gemma2ForCausalLM", {**_LLAMA, **_CAPPED, "sliding_window": 6}),
    "gemma 3": (
        "Gemma3ForCausalLM",
        {**_LLAMA, **_CAPPED, "sliding_window": 6, "sliding_window_pattern": 2},  # scores are not capped, logits are
    ),
    "gemma 3, with pictures": (
        "Gemma3ForConditionalGeneration",
        {
            "text_config": {**_LLAMA, "sliding_window": 6, "sliding_window_pattern": 2},
            "vision_config": _SEES,
            "mm_tokens_per_image": 4,
        },
    ),
    "marian": ("MarianMTModel", {**_BART, **_MARIAN, "scale_embedding": True, "activation_function": "swish"}),
    "t5": ("T5ForConditionalGeneration", _T5),
    "t5 1.1": ("T5ForConditionalGeneration", {**_T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "m2m100": ("M2M100ForConditionalGeneration", _BART),
    "roberta, classes": ("RobertaForSequenceClassification", {**_BERT, "num_labels": 4}),
    "distilbert": ("DistilBertForMaskedLM", _DISTILBERT),
    "distilbert, classes": (
        "DistilBertForSequenceClassification",
        {**_DISTILBERT, "num_labels": 2, "sinusoidal_pos_embds": True},
    ),
}


def build(case: str, *, seed: int = 0, **changes: Any) -> Any:
    """Return one of ``CASES`` with large random weights, eager, in ``eval()`` mode."""
    import transformers

    name, values = CASES[case]
    model_class = getattr(transformers, name)
    # a copy, because the config changes its arguments
    config = model_class.config_class(**copy.deepcopy({**values, **changes}))
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        model = model_class._from_config(config, attn_implementation="eager")
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 1.5 / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(torch.randn_like(parameter) * (0.3 if "bias" in name else 0.2))
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.normal_()
    return model.eval()


def saved(case: str, folder: Path) -> Any:
    """Write the model of a case into ``folder``, and return it as Hugging Face reads it back."""
    import transformers

    build(case).save_pretrained(folder)
    return getattr(transformers, CASES[case][0]).from_pretrained(folder, attn_implementation="eager").eval()
