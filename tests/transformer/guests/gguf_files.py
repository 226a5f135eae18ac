"""Tiny models as GGUF files in the format of llama.cpp's converter, written with the ``gguf`` library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch

from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import byte_level

ARCHITECTURES = {
    **{"gpt2": "gpt2", "gpt_neox": "gptneox", "llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"},
    **{"gemma": "gemma", "gemma2": "gemma2", "gemma3_text": "gemma3", "t5": "t5", "bert": "bert"},
}


def converted(model: Any) -> dict[str, np.ndarray]:
    """Return the tensors of a Hugging Face model with llama.cpp's names and order."""
    gguf = pytest.importorskip("gguf")
    config, found = model.config, {}
    architecture = ARCHITECTURES[config.model_type]
    number = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}[architecture]
    n_layers = max(getattr(config, name, 0) for name in ("num_hidden_layers", "num_decoder_layers"))
    names = gguf.get_tensor_name_map(number, n_layers)
    for name, tensor in model.state_dict().items():
        full = names.get_name(name.removeprefix("bert."), try_suffixes=(".weight", ".bias"))
        if full is None:
            continue
        theirs, _, ending = full.rpartition(".")
        tensor = tensor.float()
        if architecture == "llama" and theirs.endswith(("attn_q", "attn_k")):
            heads = config.num_attention_heads if theirs.endswith("q") else config.num_key_value_heads
            tensor = tensor.reshape(heads, 2, -1, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)
        if architecture.startswith("gemma") and theirs.endswith("norm"):
            tensor = tensor + 1
        if architecture == "gpt2" and ending == "weight" and ".c_" in name:
            tensor = tensor.T
        if architecture == "gptneox" and theirs.endswith("attn_qkv"):
            heads = config.num_attention_heads
            tensor = tensor.reshape(heads, 3, -1, *tensor.shape[1:]).transpose(0, 1).reshape(tensor.shape)
        found[full] = tensor.contiguous().numpy()
    scaled = getattr(config, "scale_decoder_outputs", True)  # T5 1.1 keeps the two separate
    if scaled and np.array_equal(found.get("output.weight"), found["token_embd.weight"]):
        del found["output.weight"]
    return found


def keys_of(model: Any) -> dict[str, object]:
    """Return the keys of the architecture, without its name in front."""
    config, kind = model.config, model.config.model_type
    if kind == "t5":
        return {
            "context_length": 512,
            "embedding_length": config.d_model,
            "feed_forward_length": config.d_ff,
            "block_count": config.num_layers,
            "decoder_block_count": config.num_decoder_layers,
            "attention.head_count": config.num_heads,
            "attention.key_length": config.d_kv,
            "attention.layer_norm_epsilon": config.layer_norm_epsilon,
            "attention.relative_buckets_count": config.relative_attention_num_buckets,
            "decoder_start_token_id": 0,
        }
    keys: dict[str, object] = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": getattr(config, "n_inner", None) or getattr(config, "intermediate_size", None),
        "block_count": config.num_hidden_layers,
        "attention.head_count": config.num_attention_heads,
    }
    if kind in ("gpt2", "gpt_neox", "bert"):
        epsilon = getattr(config, "layer_norm_epsilon", None) or config.layer_norm_eps
        keys["attention.layer_norm_epsilon"] = epsilon
    if kind == "gpt_neox":
        width = config.hidden_size // config.num_attention_heads
        keys["rope.dimension_count"] = int(width * config.rope_parameters["partial_rotary_factor"])
        keys["use_parallel_residual"] = config.use_parallel_residual
    if kind in ("gpt2", "gpt_neox", "bert"):
        return keys
    rope = config.rope_parameters
    full = rope.get("full_attention", rope)
    keys |= {
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": float(full["rope_theta"]),
    }
    if full["rope_type"] in ("linear", "yarn"):
        keys |= {"rope.scaling.type": full["rope_type"], "rope.scaling.factor": full["factor"]}
        if "original_max_position_embeddings" in full:
            keys["rope.scaling.original_context_length"] = full["original_max_position_embeddings"]
    if kind in ("mistral", "gemma2", "gemma3_text"):
        keys["attention.sliding_window"] = config.sliding_window
    if kind == "gemma2":
        keys["attn_logit_softcapping"] = config.attn_logit_softcapping
    if kind.startswith("gemma") and getattr(config, "final_logit_softcapping", None):
        keys["final_logit_softcapping"] = config.final_logit_softcapping
    if kind == "gemma3_text":
        keys["rope.freq_base_swa"] = float(rope["sliding_attention"]["rope_theta"])
        keys["attention.sliding_window_pattern"] = [each == "sliding_attention" for each in config.layer_types]
    return keys


def write_gguf(
    file: Path,
    model: Any,
    *,
    tokens: dict[str, object] | None = None,
    packed: str = "F32",
    template: str | None = None,
    **changes: object,
) -> Path:
    """Write a GGUF file.

    ``tokens`` are keys of the tokenizer, ``packed`` is the format of matrices, ``template`` that of a chat, and
    ``changes`` are keys with ``__`` for the dot.
    """
    gguf = pytest.importorskip("gguf")
    architecture = ARCHITECTURES[model.config.model_type]
    writer = gguf.GGUFWriter(str(file), architecture)
    keys = keys_of(model) | {name.replace("__", "."): value for name, value in changes.items()}
    for name, value in {f"{architecture}.{name}": value for name, value in keys.items()}.items():
        _add(writer, name, value)
    for name, value in (tokens or {}).items():
        _add(writer, f"tokenizer.ggml.{name}", value)
    if template is not None:
        writer.add_chat_template(template)
    tensors = converted(model)
    rope = getattr(model.config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "llama3":
        tensors["rope_freqs.weight"] = llama3_factors(model.config)
    for name, tensor in tensors.items():
        if packed == "F32" or tensor.ndim == 1:
            writer.add_tensor(name, tensor)
        else:
            kind = gguf.GGMLQuantizationType[packed]
            writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    finish(writer)
    return file


def finish(writer: Any) -> None:
    """Write what a writer of the library ``gguf`` has collected."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add(writer: Any, name: str, value: object) -> None:
    if isinstance(value, bool):
        writer.add_bool(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    elif isinstance(value, float):
        writer.add_float32(name, value)
    elif isinstance(value, str):
        writer.add_string(name, value)
    elif value:
        writer.add_array(name, value)


def llama3_factors(config: Any) -> np.ndarray:
    """Return what each frequency is divided by, as llama.cpp's converter computes it."""
    rope, width = config.rope_parameters, config.head_dim
    frequency = 1.0 / rope["rope_theta"] ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    length, factors = rope["original_max_position_embeddings"], []
    for each in frequency:
        wavelength = 2 * torch.pi / each
        if wavelength < length / high:
            factors.append(1.0)
        elif wavelength > length / low:
            factors.append(rope["factor"])
        else:
            share = (length / wavelength - low) / (high - low)
            factors.append(float(1 / ((1 - share) / rope["factor"] + share)))
    return np.array(factors, dtype=np.float32)


def token_keys(backend: tokenizers.Tokenizer, kind: str, **more: object) -> dict[str, object]:
    """Return the keys of a ``tokenizers`` tokenizer; ``kind`` is "gpt2", "llama", "t5" or "bert"."""
    content = json.loads(backend.to_str())
    special = {token["content"]: token["special"] for token in content["added_tokens"]}
    by_id = sorted(backend.get_vocab().items(), key=lambda item: item[1])
    tokens = [name for name, _ in by_id]
    types = [3 if special.get(name) else 4 if name in special else 1 for name in tokens]
    if kind == "llama":
        types = [6 if name.startswith("<0x") else code for name, code in zip(tokens, types, strict=True)]
    keys: dict[str, object] = {"model": kind, "token_type": types}
    if kind == "gpt2":
        keys["merges"] = [" ".join(merge) for merge in content["model"]["merges"]]
    if kind == "llama":
        rank = {"".join(merge): place for place, merge in reversed(list(enumerate(content["model"]["merges"])))}
        keys["scores"] = [-float(rank.get(name, 10**6)) for name in tokens]
    if kind == "t5":
        keys["scores"] = [float(score) for _, score in content["model"]["vocab"]]
    if kind == "bert":
        tokens = [
            name if code == 3 else name[2:] if name.startswith("##") else f"▁{name}"
            for name, code in zip(tokens, types, strict=True)
        ]
    return keys | {"tokens": tokens} | more


def whole_gguf(
    file: Path,
    case: str = "gpt2",
    *,
    special: tuple[str, ...] = ("<|endoftext|>",),
    template: str | None = None,
    sizes: Mapping[str, object] | None = None,
    **tokens: object,
) -> Path:
    """Write a tiny model with a tokenizer of bytes, to whose keys ``tokens`` adds."""
    backend = byte_level(special=special)
    keys = token_keys(backend, "gpt2", pre="gpt-2", **({"eos_token_id": 0} | tokens))
    model = build(case, vocab_size=backend.get_vocab_size(), **(sizes or {}))
    return write_gguf(file, model, tokens=keys, template=template)
