"""Whisper's weights in the format of CTranslate2 as a folder in Hugging Face's layout."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

_TYPES = {0: np.float32, 3: np.int32, 4: np.float16}
_PARTS = {"self_attention": "self_attn", "attention": "encoder_attn"}
_NORMS = {"self_attention": "self_attn_layer_norm", "attention": "encoder_attn_layer_norm", "ffn": "final_layer_norm"}


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read a ``model.bin`` of CTranslate2, version 6: names, shapes and numbers."""

    def number(code: str) -> int:
        return int(struct.unpack(f"<{code}", file.read(struct.calcsize(code)))[0])

    def text() -> str:
        return file.read(number("H")).rstrip(b"\0").decode()

    found: dict[str, torch.Tensor] = {}
    file: BinaryIO
    with path.open("rb") as file:
        if number("I") != 6:
            raise ValueError(f"{path} is not of version 6")
        text(), number("I")  # the name of the specification and its revision
        for _ in range(number("I")):
            name, shape = text(), [number("I") for _ in range(number("B"))]
            kind, n_bytes = number("B"), number("I")
            data = file.read(n_bytes)
            if kind in _TYPES:
                found[name] = torch.from_numpy(np.frombuffer(data, _TYPES[kind]).reshape(shape).astype(np.float32))
        for _ in range(number("I")):
            alias, name = text(), text()
            if name in found:
                found[alias] = found[name]
    return found


def hugging_face_names(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors under Hugging Face's names; fused projections are cut apart."""
    found: dict[str, torch.Tensor] = {"model.decoder.embed_tokens.weight": tensors["decoder/embeddings/weight"]}
    for name, tensor in tensors.items():
        stack, *inside = name.split("/")
        if stack not in ("encoder", "decoder"):
            continue
        end = {"gamma": "weight", "beta": "bias"}.get(inside[-1], inside[-1])
        if inside[0] in ("conv1", "conv2"):
            found[f"model.{stack}.{inside[0]}.{end}"] = tensor
        elif inside[0] == "position_encodings":
            found[f"model.{stack}.embed_positions.weight"] = tensor
        elif inside[0] == "layer_norm":
            found[f"model.{stack}.layer_norm.{end}"] = tensor
        elif inside[0].startswith("layer_"):
            layer, part, kind = f"model.{stack}.layers.{inside[0].removeprefix('layer_')}", inside[1], inside[2]
            if kind == "layer_norm":
                found[f"{layer}.{_NORMS[part]}.{end}"] = tensor
                continue
            if part == "ffn":
                found[f"{layer}.fc{1 + int(kind[-1])}.{end}"] = tensor
                continue
            names = {"linear_0": "qkv", "linear_1": "o"} if part == "self_attention" else None
            letters = (names or {"linear_0": "q", "linear_1": "kv", "linear_2": "o"}).get(kind, "")
            for letter, rows in zip(letters, tensor.chunk(max(1, len(letters)), dim=0), strict=True):
                if (letter, end) != ("k", "bias"):  # there is none: CTranslate2 stores zeros
                    projection = "out_proj" if letter == "o" else f"{letter}_proj"
                    found[f"{layer}.{_PARTS[part]}.{projection}.{end}"] = rows
    return found


def write_folder(stored: Path, folder: Path) -> Path:
    """Write the model in the folder ``stored`` as ``folder`` in Hugging Face's layout."""
    import transformers

    tensors = hugging_face_names(read_tensors(stored / "model.bin"))
    sizes: dict[str, Any] = {
        "vocab_size": len(tensors["model.decoder.embed_tokens.weight"]),
        "d_model": tensors["model.decoder.embed_tokens.weight"].shape[1],
        "num_mel_bins": tensors["model.encoder.conv1.weight"].shape[1],
        "max_source_positions": len(tensors["model.encoder.embed_positions.weight"]),
        "max_target_positions": len(tensors["model.decoder.embed_positions.weight"]),
    }
    for stack in ("encoder", "decoder"):
        sizes[f"{stack}_layers"] = sum(f"{stack}.layers" in name and "fc1.weight" in name for name in tensors)
        sizes[f"{stack}_ffn_dim"] = len(tensors[f"model.{stack}.layers.0.fc1.weight"])
        sizes[f"{stack}_attention_heads"] = sizes["d_model"] // 64
    backend = transformers.PreTrainedTokenizerFast(tokenizer_file=str(stored / "tokenizer.json"))
    end, start = (backend.convert_tokens_to_ids(name) for name in ("<|endoftext|>", "<|startoftranscript|>"))
    special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": start}
    config = transformers.WhisperConfig(**sizes, **special)
    model = transformers.WhisperForConditionalGeneration(config)
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    if unexpected or set(missing) - {"proj_out.weight"}:
        raise ValueError(f"missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    model.save_pretrained(folder)
    suppressed = json.loads((stored / "config.json").read_text(encoding="utf-8"))
    generation = {**special, "suppress_tokens": suppressed.get("suppress_ids"),
                  "begin_suppress_tokens": suppressed.get("suppress_ids_begin")}  # fmt: skip
    (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    shutil.copy(stored / "tokenizer.json", folder)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "WhisperTokenizer", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}),
        encoding="utf-8",
    )
    transformers.WhisperFeatureExtractor(feature_size=sizes["num_mel_bins"]).save_pretrained(folder)
    return folder
