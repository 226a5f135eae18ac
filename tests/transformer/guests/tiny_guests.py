"""Tiny random checkpoints of families without a translation, made by Hugging Face's classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.transformer.text.foreign_folders import byte_level, word_piece

Made = tuple[str, dict[str, Any]]  # the class of a model, and the fields of its config
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

DECODERS: dict[str, Made] = {
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
    "qwen2_moe": ("Qwen2MoeForCausalLM", {**_GROUPED, **_EXPERTS, "shared_expert_intermediate_size": 24}),
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
ENCODERS: dict[str, Made] = {
    "roberta": ("RobertaForMaskedLM", {**_SIZES, "max_position_embeddings": 66}),
    "distilbert": ("DistilBertForMaskedLM", _DISTILBERT),
    "xlm-roberta": ("XLMRobertaForMaskedLM", {**_SIZES, "max_position_embeddings": 66}),
    "camembert": ("CamembertForMaskedLM", {**_SIZES, "max_position_embeddings": 66}),
    "electra": ("ElectraForMaskedLM", {**_SIZES, "embedding_size": 16}),
    "modernbert": ("ModernBertForMaskedLM", {**_SIZES, "local_attention": 8, "global_attn_every_n_layers": 2}),
    "mpnet": ("MPNetForMaskedLM", {**_SIZES, "max_position_embeddings": 66}),
}
WRITERS: dict[str, Made] = {
    "bart": ("BartForConditionalGeneration", _DECODER),
    "m2m_100": ("M2M100ForConditionalGeneration", _DECODER),
    "mbart": ("MBartForConditionalGeneration", _DECODER),
    "pegasus": ("PegasusForConditionalGeneration", _DECODER),
    "mt5": ("MT5ForConditionalGeneration", _T5),
    "blenderbot-small": ("BlenderbotSmallForConditionalGeneration", _DECODER),
}
GUESTS = {**DECODERS, **ENCODERS, **WRITERS}
_HEADS = {**_GROUPED, "head_dim": 8}
_RELATIVE = {**_SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
_MAMBA = {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_chunk_size": 8}
# further types, whose sums are checked
MORE: dict[str, Made] = {
    "bert": ("BertForMaskedLM", _SIZES),
    "big_bird": ("BigBirdForMaskedLM", {**_SIZES, "attention_type": "original_full"}),
    "deberta": ("DebertaForMaskedLM", _RELATIVE),
    "deberta-v2": ("DebertaV2ForMaskedLM", _RELATIVE),
    "roformer": ("RoFormerForMaskedLM", {**_SIZES, "embedding_size": 32}),
    "convbert": ("ConvBertForMaskedLM", {**_SIZES, "embedding_size": 32}),
    "rembert": ("RemBertForMaskedLM", {**_SIZES, "input_embedding_size": 16, "output_embedding_size": 24}),
    "xmod": (
        "XmodForMaskedLM",
        {**_SIZES, "max_position_embeddings": 66, "languages": ["en_XX"], "default_language": "en_XX"},
    ),
    "esm": ("EsmForMaskedLM", {**_SIZES, "max_position_embeddings": 66, "position_embedding_type": "rotary"}),
    "eurobert": ("EuroBertForMaskedLM", _SIZES),
    "gpt2": ("GPT2LMHeadModel", _GPT),
    "llama": ("LlamaForCausalLM", _GROUPED),
    "qwen2": ("Qwen2ForCausalLM", _GROUPED),
    "qwen3": ("Qwen3ForCausalLM", _HEADS),
    "gemma": ("GemmaForCausalLM", _HEADS),
    "gemma2": ("Gemma2ForCausalLM", {**_HEADS, "sliding_window": 5}),
    "gemma3_text": ("Gemma3ForCausalLM", {**_HEADS, "sliding_window": 5}),
    "mistral": ("MistralForCausalLM", {**_GROUPED, "sliding_window": 5}),
    "gpt_neox": ("GPTNeoXForCausalLM", _SIZES),
    "doge": ("DogeForCausalLM", _HEADS),
    "gpt_neox_japanese": ("GPTNeoXJapaneseForCausalLM", {**_SIZES, "intermediate_multiple_size": 2}),
    "bloom, stream after the norm": (
        "BloomForCausalLM",
        {"hidden_size": 32, "n_layer": 2, "n_head": 4, "apply_residual_connection_post_layernorm": True},
    ),
    "granitemoe": ("GraniteMoeForCausalLM", {**_GROUPED, **_EXPERTS}),
    "granitemoeshared": (
        "GraniteMoeSharedForCausalLM",
        {**_GROUPED, **_EXPERTS, "shared_intermediate_size": 24, "residual_multiplier": 0.5},
    ),
    "falcon_h1": ("FalconH1ForCausalLM", {**_GROUPED, **_MAMBA}),
    "mpt": ("MptForCausalLM", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}),
    "biogpt": ("BioGptForCausalLM", _SIZES),
    "ctrl": ("CTRLLMHeadModel", {**_GPT, "dff": 48}),
    "openai-gpt": ("OpenAIGPTLMHeadModel", _GPT),
    "exaone4": ("Exaone4ForCausalLM", {**_GROUPED, "sliding_window": 5}),
    "helium": ("HeliumForCausalLM", _HEADS),
    "apertus": ("ApertusForCausalLM", _GROUPED),
    "t5": ("T5ForConditionalGeneration", _T5),
    "umt5": ("UMT5ForConditionalGeneration", _T5),
    "switch_transformers": (
        "SwitchTransformersForConditionalGeneration",
        {**_T5, "num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    ),
    "plbart": ("PLBartForConditionalGeneration", _DECODER),
    "nllb-moe": (
        "NllbMoeForConditionalGeneration",
        {**_DECODER, "num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2},
    ),
}


def network(name: str, fields: dict[str, Any]) -> Any:
    """Return a tiny model of ``transformers``, with random weights so large that no map is flat."""
    import torch
    import transformers

    model_class = getattr(transformers, name)
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**fields))
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if not parameter.requires_grad:  # a table of sines
                continue
            if parameter.ndim > 1 and parameter.numel() > 1:
                parameter.normal_(std=0.25)
            elif parameter.ndim and not any(part in parameter_name.lower() for part in ("norm", "ln", "lambda")):
                parameter.normal_(std=0.1)
    return model.eval()


def guest_checkpoint(kind: str, folder: Path, made: Made | None = None, **changes: object) -> Path:
    """Write ``folder/kind``: config, weights and a tokenizer of a few hundred entries.

    ``made`` has the class and the fields of a type that is in no table.
    """
    name, fields = made or {**GUESTS, **MORE}[kind]
    path = folder / kind
    path.mkdir(parents=True)
    if "MaskedLM" in name or name.startswith("Bert"):
        names = {name: f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
        backend, special = word_piece(), {"pad_token_id": 0}
        settings = {"tokenizer_class": "BertTokenizer", **{f"{job}_token": text for job, text in names.items()}}
        if kind == "modernbert":
            special |= {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    else:
        backend = byte_level(special=("<pad>", "</s>", "<s>"))
        special = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2}
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "</s>"}
    if "Conditional" in name:
        from tokenizers import processors

        backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
        special |= {"decoder_start_token_id": 1 if kind == "m2m_100" else 0}  # padding has no position in M2M100
    backend.save(str(path / "tokenizer.json"))
    network(name, {**fields, "vocab_size": backend.get_vocab_size(), **special, **changes}).save_pretrained(path)
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return path
