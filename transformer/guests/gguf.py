"""A GGUF file read as the Hugging Face checkpoint from which it was made: its config and its tensors.

llama.cpp's converter changes more than names. It reorders the rows of queries and keys for ``llama`` and for no
other architecture, adds 1 to Gemma's norms, transposes GPT-2's matrices, and concatenates GPT-NeoX's queries, keys
and values. All of this is undone here, so that a network of ``transformers`` takes the tensors of both kinds of files.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor

from transformer.disk.gguf_file import GgufFile
from transformer.errors import CheckpointError, text_of

ROPE_FACTORS = "rope_freqs.weight"
_LLAMA = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "blk.#.attn_norm": "model.layers.#.input_layernorm",
    "blk.#.attn_q": "model.layers.#.self_attn.q_proj",
    "blk.#.attn_k": "model.layers.#.self_attn.k_proj",
    "blk.#.attn_v": "model.layers.#.self_attn.v_proj",
    "blk.#.attn_output": "model.layers.#.self_attn.o_proj",
    "blk.#.attn_q_norm": "model.layers.#.self_attn.q_norm",
    "blk.#.attn_k_norm": "model.layers.#.self_attn.k_norm",
    "blk.#.ffn_norm": "model.layers.#.post_attention_layernorm",
    "blk.#.ffn_gate": "model.layers.#.mlp.gate_proj",
    "blk.#.ffn_up": "model.layers.#.mlp.up_proj",
    "blk.#.ffn_down": "model.layers.#.mlp.down_proj",
}
_SANDWICH = _LLAMA | {
    "blk.#.post_attention_norm": "model.layers.#.post_attention_layernorm",
    "blk.#.ffn_norm": "model.layers.#.pre_feedforward_layernorm",
    "blk.#.post_ffw_norm": "model.layers.#.post_feedforward_layernorm",
}
_GPT2 = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
    "blk.#.attn_norm": "transformer.h.#.ln_1",
    "blk.#.attn_qkv": "transformer.h.#.attn.c_attn",
    "blk.#.attn_output": "transformer.h.#.attn.c_proj",
    "blk.#.ffn_norm": "transformer.h.#.ln_2",
    "blk.#.ffn_up": "transformer.h.#.mlp.c_fc",
    "blk.#.ffn_down": "transformer.h.#.mlp.c_proj",
}
_NEOX = {
    "token_embd": "gpt_neox.embed_in",
    "output_norm": "gpt_neox.final_layer_norm",
    "output": "lm_head",
    "blk.#.attn_norm": "gpt_neox.layers.#.input_layernorm",
    "blk.#.attn_qkv": "gpt_neox.layers.#.attention.query_key_value",
    "blk.#.attn_output": "gpt_neox.layers.#.attention.dense",
    "blk.#.ffn_norm": "gpt_neox.layers.#.post_attention_layernorm",
    "blk.#.ffn_up": "gpt_neox.layers.#.mlp.dense_h_to_4h",
    "blk.#.ffn_down": "gpt_neox.layers.#.mlp.dense_4h_to_h",
}
_BERT = {
    "token_embd": "embeddings.word_embeddings",
    "position_embd": "embeddings.position_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "token_embd_norm": "embeddings.LayerNorm",
    "blk.#.attn_q": "encoder.layer.#.attention.self.query",
    "blk.#.attn_k": "encoder.layer.#.attention.self.key",
    "blk.#.attn_v": "encoder.layer.#.attention.self.value",
    "blk.#.attn_output": "encoder.layer.#.attention.output.dense",
    "blk.#.attn_output_norm": "encoder.layer.#.attention.output.LayerNorm",
    "blk.#.ffn_up": "encoder.layer.#.intermediate.dense",
    "blk.#.ffn_down": "encoder.layer.#.output.dense",
    "blk.#.layer_output_norm": "encoder.layer.#.output.LayerNorm",
}


def _t5_names(gated: bool) -> dict[str, str]:
    first = "wi_1" if gated else "wi"
    names = {"token_embd": "shared", "output": "lm_head"}
    for short, stack, last in (("enc", "encoder", 1), ("dec", "decoder", 2)):
        ours, theirs = f"{short}.blk.#", f"{stack}.block.#.layer"
        names[f"{short}.output_norm"] = f"{stack}.final_layer_norm"
        for place, (mine, other) in enumerate((("attn", "SelfAttention"), ("cross_attn", "EncDecAttention"))[:last]):
            names[f"{ours}.{mine}_norm"] = f"{theirs}.{place}.layer_norm"
            names[f"{ours}.{mine}_rel_b"] = f"{theirs}.{place}.{other}.relative_attention_bias"
            names |= {f"{ours}.{mine}_{part}": f"{theirs}.{place}.{other}.{part}" for part in "qkvo"}
        dense = f"{theirs}.{last}.DenseReluDense"
        names |= {f"{ours}.ffn_norm": f"{theirs}.{last}.layer_norm", f"{ours}.ffn_gate": f"{dense}.wi_0"}
        names |= {f"{ours}.ffn_up": f"{dense}.{first}", f"{ours}.ffn_down": f"{dense}.wo"}
    return names


class _Keys:
    """The keys of one architecture: ``keys("block_count")`` reads ``llama.block_count``."""

    def __init__(self, file: GgufFile) -> None:
        self.file, self.architecture = file, str(file.get("general.architecture"))

    def __call__(self, name: str, default: object = None) -> object:
        return self.file.get(f"{self.architecture}.{name}", default)

    def has(self, name: str) -> bool:
        return name in self.file.tensors

    def __getitem__(self, name: str) -> object:
        if (found := self(name)) is None:
            raise CheckpointError(f"{self.file.path} lacks the key {self.architecture}.{name}")
        return found


def _scaling(keys: _Keys) -> dict | None:
    """Return how rotary frequencies are scaled."""
    if keys.has(ROPE_FACTORS):  # ``rope_factors`` reads them
        return None
    kind, factor = keys("rope.scaling.type", "none"), keys("rope.scaling.factor", keys("rope.scale_linear"))
    if kind == "none" or factor in (None, 1.0):
        return None
    return {
        "rope_type": kind,
        "factor": factor,
        "original_max_position_embeddings": keys("rope.scaling.original_context_length", keys["context_length"]),
    }


def _decoder(keys: _Keys) -> dict:
    """Return the fields that Llama and its successors share."""
    width, n_heads = keys["embedding_length"], keys["attention.head_count"]
    scaling = _scaling(keys)
    whole = isinstance(width, int) and isinstance(n_heads, int) and n_heads > 0
    d_head = keys("attention.key_length", width // n_heads if whole else None)
    if keys("rope.dimension_count", d_head) != d_head or keys("attention.value_length", d_head) != d_head:
        raise CheckpointError(
            f"{keys.file.path} rotates only {keys('rope.dimension_count')} of the {d_head} channels of a "
            f"head; for {keys.architecture}, all channels must be rotated"
        )
    if keys("expert_count"):
        raise CheckpointError(f"{keys.file.path} is a mixture of experts, which cannot be opened")
    return {
        "hidden_size": width,
        "num_attention_heads": n_heads,
        "num_key_value_heads": keys("attention.head_count_kv", n_heads),
        "head_dim": d_head,
        "num_hidden_layers": keys["block_count"],
        "intermediate_size": keys["feed_forward_length"],
        "max_position_embeddings": keys["context_length"],
        "rms_norm_eps": keys["attention.layer_norm_rms_epsilon"],
        "rope_theta": keys("rope.freq_base", 10_000.0),
        **({"rope_scaling": scaling} if scaling else {}),
    }


def _llama(keys: _Keys) -> dict:
    window = keys("attention.sliding_window")
    return _decoder(keys) | {
        "model_type": "mistral" if window else "llama",
        "sliding_window": window,
        "attention_bias": keys.has("blk.0.attn_q.bias"),
        "mlp_bias": keys.has("blk.0.ffn_up.bias"),
    }


def _qwen(keys: _Keys) -> dict:
    return _decoder(keys) | {"model_type": keys.architecture, "attention_bias": keys.has("blk.0.attn_q.bias")}


def _gemma(keys: _Keys) -> dict:
    fields = _decoder(keys) | {"model_type": {"gemma3": "gemma3_text"}.get(keys.architecture, keys.architecture)}
    fields["sliding_window"] = keys("attention.sliding_window")
    # Not in the file. llama.cpp also infers it from the number of layers: only the 27 B models differ.
    largest = fields["num_hidden_layers"] == {"gemma2": 46, "gemma3": 62}.get(keys.architecture)
    fields["query_pre_attn_scalar"] = (
        fields["hidden_size"] / fields["num_attention_heads"] if largest else fields["head_dim"]
    )
    fields["attn_logit_softcapping"] = keys("attn_logit_softcapping")
    fields["final_logit_softcapping"] = keys("final_logit_softcapping")
    if keys.architecture == "gemma3":
        fields["rope_local_base_freq"] = keys("rope.freq_base_swa", 10_000.0)
        pattern = keys("attention.sliding_window_pattern", 6)
        if isinstance(pattern, int):
            fields["sliding_window_pattern"] = pattern
        else:
            fields["layer_types"] = ["sliding_attention" if slides else "full_attention" for slides in pattern]
    return fields


def _gpt2(keys: _Keys) -> dict:
    return {
        "model_type": "gpt2",
        "n_embd": keys["embedding_length"],
        "n_head": keys["attention.head_count"],
        "n_layer": keys["block_count"],
        "n_inner": keys["feed_forward_length"],
        "n_positions": keys["context_length"],
        "layer_norm_epsilon": keys["attention.layer_norm_epsilon"],
    }


def _neox(keys: _Keys) -> dict:
    width, n_heads = keys["embedding_length"], keys["attention.head_count"]
    return {
        "model_type": "gpt_neox",
        "hidden_size": width,
        "num_attention_heads": n_heads,
        "num_hidden_layers": keys["block_count"],
        "intermediate_size": keys["feed_forward_length"],
        "max_position_embeddings": keys["context_length"],
        "layer_norm_eps": keys["attention.layer_norm_epsilon"],
        "rotary_pct": keys["rope.dimension_count"] / (width // n_heads),
        "rotary_emb_base": keys("rope.freq_base", 10_000.0),
        "use_parallel_residual": keys("use_parallel_residual", True),
        "attention_bias": keys.has("blk.0.attn_qkv.bias"),
    }


def _bert(keys: _Keys) -> dict:
    return {
        "model_type": "bert",
        "architectures": ["BertModel"],  # llama.cpp drops the head
        "hidden_size": keys["embedding_length"],
        "num_attention_heads": keys["attention.head_count"],
        "num_hidden_layers": keys["block_count"],
        "intermediate_size": keys["feed_forward_length"],
        "max_position_embeddings": keys["context_length"],
        "layer_norm_eps": keys["attention.layer_norm_epsilon"],
    }


def _t5(keys: _Keys) -> dict:
    return {
        "model_type": "t5",
        "d_model": keys["embedding_length"],
        "num_heads": keys["attention.head_count"],
        "d_kv": keys["attention.key_length"],
        "d_ff": keys["feed_forward_length"],
        "num_layers": keys["block_count"],
        "num_decoder_layers": keys("decoder_block_count", keys["block_count"]),
        "n_positions": keys["context_length"],
        "layer_norm_epsilon": keys("attention.layer_norm_epsilon", keys("attention.layer_norm_rms_epsilon")),
        "relative_attention_num_buckets": keys["attention.relative_buckets_count"],
        "decoder_start_token_id": keys("decoder_start_token_id", 0),
        "feed_forward_proj": "gated-gelu" if keys.has("enc.blk.0.ffn_gate.weight") else "relu",
    }


_CONFIGS: dict[str, Callable[[_Keys], dict]] = {
    "llama": _llama,
    "qwen2": _qwen,
    "qwen3": _qwen,
    "gemma": _gemma,
    "gemma2": _gemma,
    "gemma3": _gemma,
    "gpt2": _gpt2,
    "gptneox": _neox,
    "bert": _bert,
    "t5": _t5,
}
_NAMES = {"gemma2": _SANDWICH, "gemma3": _SANDWICH, "gpt2": _GPT2, "gptneox": _NEOX, "bert": _BERT}


def rope_factors(file: GgufFile) -> Tensor | None:
    """Return what the rotary frequency of each pair of channels is divided by (Llama 3), or ``None``.

    llama.cpp stores these numbers instead of the settings from which they were computed.

    Raises:
        CheckpointError: If they are not numbers above 0.
    """
    if ROPE_FACTORS not in file.tensors:
        return None
    factors = torch.from_numpy(file.read(ROPE_FACTORS)).flatten()
    if not bool((factors.isfinite() & (factors > 0)).all()):
        raise CheckpointError(f"{file.path} has rotary factors in {ROPE_FACTORS} that are not numbers above 0")
    return factors


def config_fields(file: GgufFile) -> dict:
    """Return the equivalent ``config.json`` fields; an unknown architecture is a ``CheckpointError``."""
    keys = _Keys(file)
    if keys.architecture not in _CONFIGS:
        raise CheckpointError(
            f"{file.path} has the architecture {repr(keys.architecture)[:80]}; of GGUF files "
            f"{', '.join(_CONFIGS)} can be opened"
        )
    if not keys.has("token_embd.weight"):
        raise CheckpointError(f"{file.path} lacks the tensor token_embd.weight")
    try:
        fields = _CONFIGS[keys.architecture](keys)
    except (TypeError, ZeroDivisionError, ValueError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{file.path} has keys of a wrong type: {text_of(error)}") from error
    special = {name: file.get(f"tokenizer.ggml.{short}_token_id") for name, short in _SPECIAL.items()}
    ends = [id for id in (special["eos_token_id"], file.get("tokenizer.ggml.eot_token_id")) if isinstance(id, int)]
    return {
        **fields,
        "vocab_size": file.tensors["token_embd.weight"][0],
        "tie_word_embeddings": not keys.has("output.weight"),
        **{name: id for name, id in special.items() if id is not None},
        "eos_token_id": list(dict.fromkeys(ends)) or None,
    }


_SPECIAL = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}


class GgufTensors:
    """The tensors of a GGUF file under Hugging Face's names, in its order of rows, unpacked to float32.

    Attributes:
        shapes: Shape of each tensor, by name.
        halves: Names of the tensors that stay in half precision: none.
    """

    halves: frozenset[str] = frozenset()

    def __init__(self, file: GgufFile, fields: dict) -> None:
        self._file, self._fields = file, fields
        self._architecture = str(file.get("general.architecture"))
        names = _NAMES.get(self._architecture, _LLAMA)
        if self._architecture == "t5":
            names = _t5_names(fields["feed_forward_proj"] != "relu")
        self._where = {_renamed(name, names): name for name in file.tensors if name != ROPE_FACTORS}
        stored = file.tensors
        self.shapes = {
            name: stored[there][::-1] if self._is_transposed(name) else stored[there]
            for name, there in self._where.items()
        }

    def name_in_file(self, name: str) -> str:
        """Return the name of a tensor in the file."""
        return self._where[name]

    def read(self, name: str) -> Tensor:
        """Return a tensor in float32."""
        tensor = torch.from_numpy(self._file.read(self._where[name]))
        if self._is_transposed(name):
            return tensor.T.contiguous()
        if self._architecture == "llama" and (part := re.search(r"self_attn\.([qk])_proj", name)):
            heads = self._fields["num_attention_heads" if part[1] == "q" else "num_key_value_heads"]
            return _half_order(tensor, heads)
        if self._architecture.startswith("gemma") and name.endswith("norm.weight"):
            return tensor - 1
        if self._architecture == "gptneox" and ".query_key_value." in name:
            heads = self._fields["num_attention_heads"]
            return tensor.reshape(3, heads, -1, *tensor.shape[1:]).transpose(0, 1).reshape(tensor.shape)
        return tensor

    def _is_transposed(self, name: str) -> bool:
        return self._architecture == "gpt2" and ".c_" in name and name.endswith(".weight")


def _half_order(tensor: Tensor, n_heads: int) -> Tensor:
    """Undo llama.cpp's row order, which pairs channels (2i, 2i + 1) instead of (i, i + d/2)."""
    return tensor.reshape(n_heads, -1, 2, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)


def _renamed(name: str, names: dict[str, str]) -> str:
    """Return ``layers.3.self_attn.q_proj.weight`` for ``blk.3.attn_q.weight``; keep unknown names."""
    plain, _, ending = name.rpartition(".")
    number = re.search(r"\.(\d+)\.", plain)
    pattern = re.sub(r"\.\d+\.", ".#.", plain, count=1)
    if pattern not in names:
        return name
    return names[pattern].replace("#", number[1] if number else "#") + f".{ending}"
