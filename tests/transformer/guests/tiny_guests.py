"""Tiny random checkpoints of families without a translation, made by Hugging Face's classes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.transformer.text.foreign_folders import byte_level, word_piece

_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
_GROUPED = {**_SIZES, "num_key_value_heads": 2}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
_DECODER = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
_DECODER |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 40}
_DECODER |= {"max_position_embeddings": 64}
_DISTILBERT = {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4}

DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "opt": ("OPTForCausalLM", {**_SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "phi": ("PhiForCausalLM", _SIZES),
    "phi3": ("Phi3ForCausalLM", _GROUPED),
    "olmo": ("OlmoForCausalLM", _GROUPED),
    "olmo2": ("Olmo2ForCausalLM", _GROUPED),
    "olmo3": ("Olmo3ForCausalLM", {**_GROUPED, "sliding_window": 5}),
    "smollm3": ("SmolLM3ForCausalLM", _GROUPED),
    "stablelm": ("StableLmForCausalLM", _GROUPED),
    "starcoder2": ("Starcoder2ForCausalLM", {**_GROUPED, "sliding_window": 5}),
    "cohere": ("CohereForCausalLM", _GROUPED),
    "cohere2": ("Cohere2ForCausalLM", {**_GROUPED, "sliding_window": 5}),
    "granite": (
        "GraniteForCausalLM",
        {**_GROUPED, "residual_multiplier": 0.5, "logits_scaling": 2.0, "attention_multiplier": 0.3},
    ),
    "glm": ("GlmForCausalLM", {**_GROUPED, "head_dim": 8}),
    "glm4": ("Glm4ForCausalLM", {**_GROUPED, "head_dim": 8}),
    "mixtral": ("MixtralForCausalLM", {**_GROUPED, "num_local_experts": 4}),
    "qwen2_moe": (
        "Qwen2MoeForCausalLM",
        {**_GROUPED, **_EXPERTS, "shared_expert_intermediate_size": 24},
    ),
    "qwen3_moe": ("Qwen3MoeForCausalLM", {**_GROUPED, **_EXPERTS, "head_dim": 8}),
    "gpt_oss": (
        "GptOssForCausalLM",
        {**_GROUPED, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5},
    ),
    "gptj": (
        "GPTJForCausalLM",
        {"n_embd": 32, "n_inner": 48, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64},
    ),
    "codegen": (
        "CodeGenForCausalLM",
        {"n_embd": 32, "n_inner": 48, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64},
    ),
    "gpt_bigcode": (
        "GPTBigCodeForCausalLM",
        {"n_embd": 32, "n_inner": 48, "n_layer": 2, "n_head": 4, "n_positions": 64},
    ),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 5,
            "max_position_embeddings": 64,
        },
    ),
    "falcon": ("FalconForCausalLM", {**_SIZES, "multi_query": True, "alibi": False}),
    "bloom": ("BloomForCausalLM", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "persimmon": ("PersimmonForCausalLM", _SIZES),
    "nemotron": ("NemotronForCausalLM", _GROUPED),
}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "roberta": ("RobertaForMaskedLM", {**_SIZES, "max_position_embeddings": 66}),
    "distilbert": ("DistilBertForMaskedLM", _DISTILBERT),
    "xlm-roberta": ("XLMRobertaForMaskedLM", {**_SIZES, "max_position_embeddings": 66}),
    "camembert": ("CamembertForMaskedLM", {**_SIZES, "max_position_embeddings": 66}),
    "electra": ("ElectraForMaskedLM", {**_SIZES, "embedding_size": 16}),
    "modernbert": ("ModernBertForMaskedLM", {**_SIZES, "local_attention": 8, "global_attn_every_n_layers": 2}),
    "mpnet": ("MPNetForMaskedLM", {**_SIZES, "max_position_embeddings": 66}),
}
WRITERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bart": ("BartForConditionalGeneration", _DECODER),
    "m2m_100": ("M2M100ForConditionalGeneration", _DECODER),
    "mbart": ("MBartForConditionalGeneration", _DECODER),
    "pegasus": ("PegasusForConditionalGeneration", _DECODER),
    "mt5": ("MT5ForConditionalGeneration", _T5),
    "blenderbot-small": ("BlenderbotSmallForConditionalGeneration", _DECODER),
}
GUESTS = {**DECODERS, **ENCODERS, **WRITERS}


def network(kind: str, **changes: object) -> Any:
    """Return a tiny model of ``transformers`` with random weights, large enough that no map is flat."""
    import torch
    import transformers

    name, fields = GUESTS[kind]
    model_class = getattr(transformers, name)
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**{**fields, **changes}))
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if not parameter.requires_grad:  # a table of sines
                continue
            if parameter.ndim > 1:
                parameter.normal_(std=0.25)
            elif "norm" not in parameter_name.lower() and "ln" not in parameter_name.lower():
                parameter.normal_(std=0.1)
    return model.eval()


def guest_checkpoint(kind: str, folder: Path, **changes: object) -> Path:
    """Write ``folder/kind``: config, weights and a tokenizer of a few hundred entries."""
    path = folder / kind
    path.mkdir(parents=True)
    if kind in ENCODERS:
        names = {name: f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
        backend, special = word_piece(), {"pad_token_id": 0}
        settings = {"tokenizer_class": "BertTokenizer", **{f"{job}_token": text for job, text in names.items()}}
        if kind == "modernbert":
            special |= {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    else:
        backend = byte_level(special=("<pad>", "</s>", "<s>"))
        special = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2}
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "</s>"}
    if kind in WRITERS:
        from tokenizers import processors

        backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
        special |= {"decoder_start_token_id": 1 if kind == "m2m_100" else 0}  # padding has no position in M2M100
    backend.save(str(path / "tokenizer.json"))
    network(kind, vocab_size=backend.get_vocab_size(), **special, **changes).save_pretrained(path)
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return path


def architecture(kinds: Mapping[str, tuple[str, dict[str, Any]]] = GUESTS) -> tuple[str, ...]:
    return tuple(kinds)
