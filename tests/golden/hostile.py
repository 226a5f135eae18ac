"""The corpus of hostile files and addresses: each has a name, a door and a short recipe.

A recipe changes a copy of a small sound folder (``BASES``), or an empty one. Doors are in ``tests/golden/refusals.py``.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

Recipe = Callable[[Path], Any]  # changes a folder, and returns what the door opens if this is no file or folder
CONFIG, WEIGHTS, TOKENIZER, INDEX = "config.json", "model.safetensors", "tokenizer.json", "model.safetensors.index.json"
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**SIZES, "vocab_size": 300, "max_position_embeddings": 64}
LETTERS = "abcdefghijklmnopqrstuvwxyz.,"


class Hostile(NamedTuple):
    """An input: its name, its door, the sound folder that it changes, its recipe, the file to open."""

    name: str
    door: str
    base: str
    make: Recipe
    at: str


# ---- sound folders ---------------------------------------------------------------------------------------------------


def _ours(folder: Path, kind: str) -> None:
    import torch

    import transformer

    layers = {"n_encoder_layers": 2 * (kind != "decoder-only"), "n_decoder_layers": 2 * (kind != "encoder-only")}
    tokenizer = transformer.Tokenizer.train(["The cat sat on the mat.", "Le chat dort sur le tapis."] * 9, 300)
    sizes = {"d_model": 24, "n_heads": 2, "d_ff": 40, "max_length": 96, "vocabulary_size": tokenizer.vocabulary_size}
    options = {"positions": "learned", "norm": "pre", "activation": "gelu", "tie_embeddings": False}
    torch.manual_seed(0)
    config = transformer.ModelConfig(kind=kind, **layers, **sizes, **options)
    transformer.save(folder, transformer.build_model(config), tokenizer, card="# A card\n")


def _theirs(folder: Path, name: str, **fields: Any) -> None:
    """Write a tiny model of ``transformers``; its tokenizer knows single characters."""
    import torch
    import transformers

    model = getattr(transformers, name)
    torch.manual_seed(0)
    model(model.config_class(**fields)).save_pretrained(folder)
    if "Bert" in name:
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + letter for letter in LETTERS)]
        kind = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
        kind |= {"max_input_chars_per_word": 100, "vocab": {piece: id for id, piece in enumerate(pieces)}}
        split, special, settings = {"type": "Whitespace"}, pieces[:5], {"tokenizer_class": "BertTokenizer"}
    else:
        from tokenizers.pre_tokenizers import ByteLevel

        vocabulary = {piece: id for id, piece in enumerate(["<pad>", "</s>", "<s>", *sorted(ByteLevel.alphabet())])}
        kind = {"type": "BPE", "vocab": vocabulary, "merges": []}
        split = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        special = ["<pad>", "</s>", "<s>"]
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "</s>"}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": id, "content": content, **flags} for id, content in enumerate(special)]
    parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None}
    content = {**parts, "pre_tokenizer": split, "post_processor": None, "decoder": None, "model": kind}
    _write(folder, TOKENIZER, content)
    _write(folder, "tokenizer_config.json", settings)


def _image(folder: Path, name: str, **fields: Any) -> None:
    import transformers

    _theirs(folder, name, **{**SIZES, "image_size": 32, "patch_size": 8, **fields})
    for file in (TOKENIZER, "tokenizer_config.json"):
        (folder / file).unlink()
    processor = transformers.ViTImageProcessorPil(size={"height": 32, "width": 32})
    (folder / "preprocessor_config.json").write_text(json.dumps(processor.to_dict(), default=str))


def _lora(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    _theirs(folder / "base", "LlamaForCausalLM", **TEXT)
    stored = {}
    for name, matrix in load_file(folder / "base" / WEIGHTS).items():
        if "q_proj" in name:
            module = f"base_model.model.{name.removesuffix('.weight')}"
            stored |= {f"{module}.lora_A.weight": matrix[:2].copy(), f"{module}.lora_B.weight": matrix[:, :2].copy()}
    fields = {"peft_type": "LORA", "r": 2, "lora_alpha": 8, "base_model_name_or_path": "base", "bias": "none"}
    (folder / "adapter").mkdir()
    _write(folder / "adapter", "adapter_config.json", fields)
    save_file(stored, folder / "adapter" / "adapter_model.safetensors")


def _shards(folder: Path) -> None:
    """Two shards, and a file beside the folder that must not be read."""
    from safetensors.numpy import load_file, save_file

    _theirs(folder / "model", "GPT2LMHeadModel", n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=300)
    tensors = load_file(folder / "model" / WEIGHTS)
    (folder / "model" / WEIGHTS).rename(folder / "secret.safetensors")
    placed = {name: f"model-0000{1 + place % 2}-of-00002.safetensors" for place, name in enumerate(sorted(tensors))}
    for shard in set(placed.values()):
        save_file({name: tensors[name] for name, file in placed.items() if file == shard}, folder / "model" / shard)
    _write(folder / "model", INDEX, {"metadata": {}, "weight_map": placed})


GGUF_KEYS: dict[str, Any] = {
    "context_length": 64, "embedding_length": 32, "feed_forward_length": 48, "block_count": 2,
    "attention.head_count": 4, "attention.head_count_kv": 4, "attention.layer_norm_rms_epsilon": 1e-6,
}  # fmt: skip


def _gguf(folder: Path, entries: Mapping[str, Any] | None = None, **changes: Any) -> None:
    """Write a GGUF file of a small Llama; ``changes`` are keys, with ``__`` for a dot."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(str(folder / "model.gguf"), "llama")
    pieces = ["<pad>", "</s>", *sorted(gguf_alphabet())]
    tokens = {"model": "gpt2", "pre": "gpt-2", "tokens": pieces, "merges": ["a b"], "eos_token_id": 1}
    keys = {f"llama.{name}": value for name, value in GGUF_KEYS.items()}
    keys |= {f"llama.{name.replace('__', '.')}": value for name, value in changes.items()}
    keys |= {f"tokenizer.ggml.{name}": value for name, value in (tokens | dict(entries or {})).items()}
    for name, value in keys.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, list: writer.add_array}
        add[type(value)](name, value)
    shapes = {"attn_q": (32, 32), "attn_k": (32, 32), "attn_v": (32, 32), "attn_output": (32, 32)}
    shapes |= {"attn_norm": (32,), "ffn_norm": (32,), "ffn_gate": (48, 32), "ffn_up": (48, 32), "ffn_down": (32, 48)}
    all_shapes = {f"blk.{layer}.{name}": shape for layer in (0, 1) for name, shape in shapes.items()}
    all_shapes |= {"token_embd": (len(pieces), 32), "output_norm": (32,), "output": (len(pieces), 32)}
    chance = np.random.default_rng(0)
    for name, shape in all_shapes.items():
        writer.add_tensor(f"{name}.weight", chance.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def gguf_alphabet() -> list[str]:
    """Return the characters that stand for bytes, and one pair of them."""
    from tokenizers.pre_tokenizers import ByteLevel

    return [*ByteLevel.alphabet(), "ab"]


GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 300}
NEO = {"hidden_size": 4, "num_layers": 2, "num_heads": 1, "attention_types": [[["global"], 2]], "vocab_size": 300}
BASES: dict[str, Callable[[Path], object]] = {
    "": lambda folder: None,
    "gpt": partial(_ours, kind="decoder-only"),
    "translator": partial(_ours, kind="encoder-decoder"),
    "hf-gpt2": partial(_theirs, name="GPT2LMHeadModel", **GPT2),
    "hf-llama": partial(_theirs, name="LlamaForCausalLM", **TEXT),
    "hf-bert": partial(_theirs, name="BertForMaskedLM", **TEXT),
    "hf-opt": partial(_theirs, name="OPTForCausalLM", **TEXT, ffn_dim=48, word_embed_proj_dim=32),
    "hf-bloom": partial(_theirs, name="BloomForCausalLM", hidden_size=32, n_layer=2, n_head=4, vocab_size=300),
    "hf-bart": partial(_theirs, name="BartForConditionalGeneration", d_model=32, encoder_layers=2, decoder_layers=2,
                       encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
                       vocab_size=300, max_position_embeddings=64),
    "hf-gpt-neo": partial(_theirs, name="GPTNeoForCausalLM", **NEO, intermediate_size=4, max_position_embeddings=64),
    "hf-gptj": partial(_theirs, name="GPTJForCausalLM", **{**GPT2, "n_embd": 8, "n_head": 2}, rotary_dim=2),
    "vit": partial(_image, name="ViTForImageClassification", id2label={0: "cat", 1: "dog"}),
    "lora": _lora,
    "shards": _shards,
}  # fmt: skip


# ---- changes ---------------------------------------------------------------------------------------------------------


def _write(folder: Path, file: str, content: object) -> None:
    (folder / file).write_text(json.dumps(content), encoding="utf-8")


def raw(file: str, content: bytes) -> Recipe:
    def make(folder: Path) -> None:
        (folder / file).write_bytes(content)

    return make


def fields(file: str, changes: Mapping[str, Any]) -> Recipe:
    """Change fields of a JSON file; a slash leads into an object, and ``...`` removes a field."""

    def make(folder: Path) -> None:
        content = json.loads((folder / file).read_text(encoding="utf-8"))
        for name, value in changes.items():
            *path, last = name.split("/")
            holder = content
            for part in path:
                holder = holder.setdefault(part, {})
            if value is ...:
                holder.pop(last, None)
            else:
                holder[last] = value
        _write(folder, file, content)

    return make


def cut(file: str, share: float) -> Recipe:
    def make(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: int(len(content) * share)])

    return make


def replaced(file: str, kind: str) -> Recipe:
    """Put a folder, a pipe, a link to a device or to nothing, or nothing at all, in place of a file."""

    def make(folder: Path) -> None:
        (folder / file).unlink(missing_ok=True)
        if kind == "a folder":
            (folder / file).mkdir()
        elif kind == "a pipe":
            os.mkfifo(folder / file)
        elif kind != "missing":
            (folder / file).symlink_to("/dev/zero" if kind == "a device" else "/no/such/file")

    return make


def safetensors(change: Callable[[dict[str, Any], bytes], tuple[object, bytes]], length: int | None = None) -> Recipe:
    """Write another header and other numbers; ``length`` is the length of the header that the file claims."""

    def make(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        end = 8 + int.from_bytes(content[:8], "little")
        header, body = change(json.loads(content[8:end]), content[end:])
        written = header if isinstance(header, bytes) else json.dumps(header).encode()
        size = len(written) if length is None else length
        (folder / WEIGHTS).write_bytes(size.to_bytes(8, "little") + written + body)

    return make


def tensors(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Recipe:
    def make(folder: Path) -> None:
        from safetensors.numpy import load_file, save_file

        save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS)

    return make


def steps(*recipes: Recipe) -> Recipe:
    def make(folder: Path) -> Any:
        return [recipe(folder) for recipe in recipes][-1]

    return make


class Bomb:
    """Its pickle creates a folder when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("a-pickle-was-run",)


def bomb(file: str) -> Recipe:
    def make(folder: Path) -> None:
        import torch

        torch.save({"step": Bomb()}, folder / file)

    return make


def short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:36]}…{text[-30:]}"


# ---- the corpus ------------------------------------------------------------------------------------------------------


def empty(name: str, shape: list[int], end: int) -> dict[str, Any]:
    return {name: {"dtype": "F16", "shape": shape, "data_offsets": [end, end]}}


def many(count: int) -> Recipe:
    return safetensors(lambda *_: ({f"t{n}": empty("", [0], 0)[""] for n in range(count)}, b""))


NO_JSON = {"nothing": b"", "a list": b"[]", "null": b"null", "no UTF-8": b"\xff\xfe", "half": b'{"a": ',
           "deep": b"[" * 60_000, "digits": b"9" * 60_000, "NUL": bytes(8)}  # fmt: skip
NOTES = {f"key {n}": "x" * 20 for n in range(10**5)}
HEADERS: dict[str, Recipe] = {
    "a length beyond the file": safetensors(lambda h, b: (h, b), length=2**40),
    "no header": safetensors(lambda h, b: (b"", b)),
    "offsets that overlap": safetensors(lambda h, b: ({n: p | {"data_offsets": [0, 48]} for n, p in h.items()}, b)),
    "an offset below zero": safetensors(
        lambda h, b: (h | {"x": {"dtype": "F16", "shape": [1], "data_offsets": [-2, 0]}}, b)
    ),
    "a shape of 2^80 numbers": safetensors(
        lambda h, b: (h | {"x": {"dtype": "F16", "shape": [2**40, 2**40], "data_offsets": [0, 2]}}, b)
    ),
    "an empty tensor of a huge shape": safetensors(lambda h, b: (h | empty("x", [0, 2**62], len(b)), b)),
    "the same tensor twice": safetensors(
        lambda h, b: (json.dumps(h)[:-1].encode() + b", " + json.dumps(h)[1:].encode(), b + b)
    ),
    "a tensor too many": safetensors(lambda h, b: (h | empty("x", [0], len(b)), b)),
    "whole numbers": safetensors(lambda h, b: ({n: p | {"dtype": "I16"} for n, p in h.items()}, b)),
    "an unknown type": safetensors(lambda h, b: ({n: p | {"dtype": ["X9"]} for n, p in h.items()}, b)),
    "lists inside of lists": safetensors(lambda h, b: (b'{"a":' + b"[" * 10**6 + b"]" * 10**6 + b"}", b)),
    "a header that is a list": safetensors(lambda h, b: ([1, 2], b)),
    "a million tensors": many(10**5),
    "as many tensors as a header may name": many(25_000),
    "a million notes": safetensors(lambda h, b: (h | {"__metadata__": NOTES}, b)),
    "notes that are no texts": safetensors(lambda h, b: (h | {"__metadata__": {"a": 1}}, b)),
    "a million axes": safetensors(lambda h, b: (h | empty("x", [0] * 500_000, len(b)), b)),
    "a name as long as a book": safetensors(lambda h, b: (h | empty("x" * 10**6, [0], len(b)), b)),
    "a header of spaces": safetensors(lambda h, b: (b" " * 2_000_001, b)),
    "NaN": tensors(lambda t: {name: values * float("nan") for name, values in t.items()}),
    "infinite": tensors(lambda t: {name: values + float("inf") for name, values in t.items()}),
    "another model": tensors(lambda t: {"a": next(iter(t.values()))[:1]}),
    "a pickle": bomb(WEIGHTS),
    **{f"{kept:.1%} of it": cut(WEIGHTS, kept) for kept in (0, 0.001, 0.5, 0.999)},
    **{f"no tensors, {name}": raw(WEIGHTS, content) for name, content in NO_JSON.items()},
}  # fmt: skip
OUR_CONFIGS: tuple[dict[str, Any], ...] = (
    {"n_heads": -4}, {"n_heads": True}, {"n_heads": 5}, {"d_model": 2**62}, {"d_model": 10**12}, {"d_model": 24.0},
    {"d_model": 0}, {"d_ff": 10**400}, {"d_ff": 50}, {"d_ff": 10**15}, {"dropout": float("nan")}, {"dropout": 10**400},
    {"layer_norm_epsilon": float("inf")}, {"positions": ["learned"]}, {"positions": "sinus"}, {"kind": {}},
    {"kind": "encoder"}, {"class_names": "ab"}, {"class_names": {"a": [[[[]]]]}}, {"pad_id": 10**30}, {"pad_id": 2},
    {"max_length": None}, {"max_length": 65_536}, {"max_length": 10**9}, {"n_decoder_layers": 255, "d_ff": 1},
    {"n_decoder_layers": 256}, {"n_decoder_layers": 1}, {"n_decoder_layers": 3}, {"n_decoder_layers": 10**6},
    {"n_encoder_layers": 2}, {"tie_embeddings": "yes"}, {"tie_embeddings": True}, {"vocabulary_size": 10**9},
    {"vocabulary_size": "9"}, {"vocabulary_size": 301}, {"norm": "post"}, {"norm": ...}, {"task_prefixes": [""]},
    {"..": 1},
)  # fmt: skip
OUR_TOKENIZERS: tuple[dict[str, Any], ...] = (
    {"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}}, {"version": "9"},
    {"padding": {"strategy": {"Fixed": 10**9}}}, {"post_processor": {"type": "ByteLevel"}}, {"pre_tokenizer": None},
    {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}}}, {"model/dropout": 0.5}, {"model": [1]},
    {"model/type": "Unigram"}, {"model/vocab": []}, {"model/vocab": {"a": 0}, "model/merges": [["a", "a"]] * 3},
    {"model/vocab": {"a" * 600: 0}, "model/merges": []}, {"model/vocab": {str(i): i for i in range(200_001)}},
    {"model/merges": [["no", "such"]]}, {"model/merges": [3]}, {"model/merges": ["a b c"]},
    {"model/vocab": {"a": 0, "b": 2**70}, "model/merges": []}, {"model/vocab": {"a": 0, "b": -1}, "model/merges": []},
    {"model/vocab": {"a": "0"}, "model/merges": []}, {"added_tokens": [{"id": 7, "content": "the"}]},
    {"added_tokens": 3}, {"added_tokens": [{"id": 5, "content": ["<pad>"]}]}, {"decoder": {"type": "no such"}},
    {"decoder": {"type": "Replace", "pattern": {"Regex": "(a|b)*" * 20_000}, "content": ""}}, {"decoder": 7},
    {"decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}] * 50_000}}, {"truncation": {"max_length": 1}},
    {"decoder": {"type": "ByteLevel", "x": "y" * 10**6}}, {"more": [{}] * 150_000},
    {"added_tokens": [{"id": 5, "content": "0" * 1000}] * 20_000},
)  # fmt: skip
OTHER_NAMES = (
    "../model.safetensors", "/etc/passwd", "..", "", "a/config.json", "config.json\0", "CON", ".bashrc", "model.zip",
    "model.pt", "pytorch_model.bin", "MODEL.PKL", "../../last.ckpt", "mоdel.safetensors", "config.json ", "CONFIG.JSON",
    "config\u200b.json", "ｃonfig.json", ".", "\n", "model.safetensors/", "C:\\config.json", "config.json\u202e",
    "<img src=x>", "a" * 5000, "\ud800",
)  # fmt: skip


THEIR_CONFIGS: dict[str, tuple[dict[str, Any], ...]] = {
    "hf-gpt2": (
        {"model_type": "mamba"}, {"model_type": 3}, {"n_embd": 39}, {"n_embd": "wide"}, {"n_layer": 4}, {"n_layer": 1},
        {"n_layer": 10**9}, {"n_head": 5}, {"n_positions": 10**9}, {"vocab_size": 200}, {"vocab_size": 10**9},
        {"architectures": ["__import__"]}, {"architectures": ["GPT2ForSequenceClassification"]},
        {"auto_map": {"AutoModelForCausalLM": "own.Own"}, "model_type": "own"},
    ),
    "hf-llama": (
        {"num_key_value_heads": 3}, {"head_dim": 9}, {"hidden_size": ...}, {"hidden_size": 10**9},
        {"rms_norm_eps": float("nan")}, {"num_hidden_layers": 10**9}, {"num_hidden_layers": -1},
        {"num_attention_heads": 0}, {"num_attention_heads": "x"},
        {"intermediate_size": 10**12}, {"max_position_embeddings": 10**12},
        {"rope_parameters": {"rope_type": "linear", "factor": 1e-300}},
        {"rope_parameters": {"rope_type": "longrope", "short_factor": [-1] * 5}},
        {"quantization_config": {"quant_method": "awq"}}, {"quantization_config": {"quant_method": "gptq"}},
        {"quantization_config": {"quant_method": "bitsandbytes"}},
    ),
    "hf-bert": ({"vocab_size": 301}, {"pad_token_id": 10**9}, {"max_position_embeddings": 10**9}),
    "hf-opt": (
        {"quantization_config": {"quant_method": "awq"}}, {"architectures": ["OPTForQuestionAnswering"]},
        {"architectures": ["__import__"]}, {"num_hidden_layers": 10**9}, {"num_hidden_layers": 3}, {"hidden_size": 64},
        {"num_attention_heads": "x"}, {"model_type": "marian", "architectures": ["MarianMTModel"]},
        {"model_type": "theirs", "auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"}},
        {"sub_config": {"auto_map": {"AutoConfig": "own.C"}}},
    ),
    # What costs more than its file: layers under other names and in nested configs, and buffers of n² bytes.
    "hf-bloom": ({"n_layer": 10_000_000},),
    "hf-bart": ({"encoder_layers": 10_000_000},),
    "hf-gptj": ({"n_positions": 2**26},),
    "vit": ({"num_hidden_layers": 10_000_000}, {"image_size": 10**6}, {"patch_size": 0}, {"num_channels": 10**9}),
}  # fmt: skip
TRANSLATORS: tuple[dict[str, Any], ...] = (
    {"n_encoder_layers": 3}, {"n_decoder_layers": 200}, {"positions": "sinusoidal"}, {"d_model": 48},
    {"d_model": 32_768, "d_ff": 1, "n_encoder_layers": 1, "n_decoder_layers": 1, "tie_embeddings": True},
)  # fmt: skip
PROCESSORS: tuple[dict[str, Any], ...] = (
    {"do_pad": True}, {"size": {"longest_edge": 300}}, {"size": {"height": 10**9, "width": 32}}, {"resample": 17},
    {"image_std": [0.5, 0.0, 0.5]}, {"image_mean": ["a", 0.5, 0.5]}, {"rescale_factor": float("nan")},
)  # fmt: skip
ALONE: dict[str, dict[str, Any]] = {
    "a backbone of the hub, DPT": {"model_type": "dpt", "architectures": ["DPTModel"], "backbone": "evil/x"},
    "a backbone of the hub, DETR": {
        "model_type": "detr", "architectures": ["DetrModel"], "backbone": "evil/x", "use_timm_backbone": False,
        "use_pretrained_backbone": True,
    },
    "code in a nested config": {
        "model_type": "dpt", "architectures": ["DPTModel"],
        "backbone_config": {"model_type": "own", "auto_map": {"AutoConfig": "own.C"}},
    },
    "layers in a nested config": {
        "model_type": "clip", "architectures": ["CLIPModel"], "vision_config": {"num_hidden_layers": 10_000_000},
    },
    "LLaVA": {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"]},
    "Qwen2 audio": {"model_type": "qwen2_audio", "architectures": ["Qwen2AudioForConditionalGeneration"]},
}  # fmt: skip


def _wide_positions(folder: Path) -> None:
    """GPT-Neo with 20,000 positions of four numbers: a mask of 400 MB per layer."""
    import numpy as np

    fields(CONFIG, {"max_position_embeddings": 20_000})(folder)
    tensors(lambda t: t | {"transformer.wpe.weight": np.zeros((20_000, 4), np.float32)})(folder)


def shard(name: object) -> Recipe:
    weights = {"a": "model-00001-of-00002.safetensors", "b": name}
    return lambda folder: _write(folder / "model", INDEX, {"weight_map": weights})


def adapter(changes: Mapping[str, Any], *shape: int) -> Recipe:
    """Change an adapter; ``shape`` is that of the only matrix that it changes, by rank 1."""

    def make(folder: Path) -> None:
        import numpy as np
        from safetensors.numpy import load_file, save_file

        base = {"base_model_name_or_path": str(folder / "base")}
        fields("adapter/adapter_config.json", base | dict(changes))(folder)
        file = folder / "adapter" / "adapter_model.safetensors"
        if shape:
            module = next(iter(load_file(file))).rsplit(".lora_", 1)[0]
            matrices = {"A": np.zeros((1, shape[1]), np.float32), "B": np.zeros((shape[0], 1), np.float32)}
            save_file({f"{module}.lora_{name}.weight": matrix for name, matrix in matrices.items()}, file)

    return make


OTHER_SHARDS = (
    "../secret.safetensors", "/etc/passwd", "..", ".", "", "a/b.safetensors", "model.bin", "x\0.safetensors",
    "x" * 5000 + ".safetensors", "missing.safetensors", "~/x.safetensors", "\ud800.safetensors", 7, None, [], {}, True,
    1e400,
)  # fmt: skip
ADAPTERS: tuple[dict[str, Any], ...] = (
    {"peft_type": "IA3"}, {"use_dora": True}, {"modules_to_save": ["lm_head"]}, {"r": 3}, {"r": 0}, {"r": 10**9},
    {"base_model_name_or_path": None}, {"base_model_name_or_path": "no/where"}, {"lora_alpha": "x"},
)  # fmt: skip
HEADER, NAME = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1), struct.pack("<Q1s", 1, b"a")
LYING_GGUF = {
    "keys without end": struct.pack("<4sIQQ", b"GGUF", 3, 0, 2**60),
    "tensors without end": struct.pack("<4sIQQ", b"GGUF", 3, 2**60, 0),
    "an old version": struct.pack("<4sIQQ", b"GGUF", 1, 0, 0),
    "the other order of bytes": struct.pack(">4sIQQ", b"GGUF", 3, 0, 0),
    "a name without end": HEADER + struct.pack("<Q", 2**62),
    "a text without end": HEADER + NAME + struct.pack("<IQ", 8, 2**62),
    "a list without end": HEADER + NAME + struct.pack("<IIQ", 9, 4, 2**62),
    "texts without end": HEADER + NAME + struct.pack("<IIQ", 9, 8, 2**62),
    "a list of lists": HEADER + NAME + struct.pack("<IIQIQ", 9, 9, 1, 9, 1),
    "a type that nobody knows": HEADER + NAME + struct.pack("<I", 99),
    "8 million empty texts": HEADER + NAME + struct.pack("<IIQ", 9, 8, 8_000_000) + bytes(64_000_000),
    "an alignment of nothing": HEADER + struct.pack("<Q17sII", 17, b"general.alignment", 4, 0),
}
GGUF_CHANGES: tuple[dict[str, Any], ...] = (
    {"block_count": "three"}, {"block_count": 4}, {"block_count": 1}, {"attention__head_count": 0},
    {"attention__head_count": 8}, {"embedding_length": 10**9}, {"feed_forward_length": [1, 2, 3]},
    {"rope__dimension_count": 4}, {"expert_count": 8}, {"rope__scaling__type": "spiral", "rope__scaling__factor": 2.0},
)  # fmt: skip


def short_gguf(length: int) -> Recipe:
    def make(folder: Path) -> None:
        _gguf(folder)
        file = folder / "model.gguf"
        file.write_bytes(file.read_bytes()[:length])

    return make


GGUF_TOKENS: tuple[dict[str, Any], ...] = (
    {"pre": "viking"}, {"model": "rwkv"}, {"tokens": ["a"]}, {"merges": ["no such"]},
)  # fmt: skip
# For each, some text makes an engine that tries again take an exponential or a quadratic number of paths.
EXPRESSIONS = (r"(a+)+$", r"(a|aa)+$", r"(.*a){12}$", r"^(a+)+\1$", r"(?=(a+))a*b\1", r"((a{1,300}){1,300}){1,300}",
               r"(?:a?){200}a{200}", "(" * 5000 + "a" + ")" * 5000)  # fmt: skip
DOUBLED = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 30}
THEIR_TOKENIZERS: tuple[dict[str, Any], ...] = (
    {"model": 3}, {"model/type": "Other"}, {"model/dropout": 0.5}, {"model/end_of_word_suffix": "</w>"},
    {"model/vocab": []}, {"model/vocab": {"a": -1}}, {"model/vocab": {"a": "x"}}, {"model/merges": [["no", "such"]]},
    {"model/vocab": {"a" * 3000: 0}, "model/merges": []}, {"model/vocab": {"a": 2**31}, "model/merges": []},
    {"model/merges": 3}, {"normalizer": {"type": "Script"}}, {"added_tokens": 3}, {"added_tokens": [{"id": 3}]},
    {"added_tokens": [7]}, {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, 7]}},
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA"}},
    {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}}, {"normalizer": DOUBLED},
    *({"pre_tokenizer": {"type": "Split", "behavior": "Isolated", "invert": False, "pattern": {"Regex": one}}}
      for one in EXPRESSIONS),
)  # fmt: skip
SETTINGS: tuple[dict[str, Any], ...] = (
    {"added_tokens_decoder": {"x": {}}}, {"added_tokens_decoder": {"1": 3}}, {"pad_token": 3},
    {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}},
)  # fmt: skip


ENDLESS = {"model/max_input_chars_per_word": 10**9, "model/vocab": {"[UNK]": 0, "a": 1, "##a": 2}}


def charsmap(units: bytes, length: int) -> Recipe:
    content = base64.b64encode(struct.pack("<I", length) + units + b"a\0b").decode()
    return fields(TOKENIZER, {"normalizer": {"type": "Precompiled", "precompiled_charsmap": content}})


UNITS = {"zeros": bytes(1024), "ones": b"\xff" * 40_000, "loops": b"\0\1\0\0" * 256}
CHARSMAPS = {
    f"a charsmap of {name}, length {length}": charsmap(units, length)
    for name, units in UNITS.items()
    for length in (len(units), len(units) + 1, 2**32 - 1, 0)
}


def png(width: int, height: int, rows: bytes, *, depth: int = 8, colour: int = 2) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def drawn(kind: str) -> bytes:
    from PIL import Image

    file = BytesIO()
    Image.effect_noise((64, 64), 90).convert("RGB").save(file, kind)
    return file.getvalue()


IMAGES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"A dog barks.",
    "a GIF": lambda: drawn("GIF"),
    "a TIFF": lambda: drawn("TIFF"),
    "a vector graphic": lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "PostScript": lambda: drawn("EPS"),
    "half a PNG": lambda: drawn("PNG")[:-2000],
    "half a JPEG": lambda: drawn("JPEG")[:-900],
    "a decompression bomb": lambda: png(60_000, 60_000, bytes(1000)),
    "just too large": lambda: png(4001, 4000, bytes(1000)),
    "fewer rows than claimed": lambda: png(3000, 3000, bytes(1000)),
    "an unknown chunk for the pixels": lambda: drawn("PNG").replace(b"IDAT", b"IDAX", 1),
    "many scans": lambda: drawn("JPEG") + b"\xff\xda" * 70,
    "too many bytes": lambda: drawn("PNG") + bytes(8_000_000),
    "4000 × 4000 grey of 16 bits in 31 kB": lambda: png(4000, 4000, bytes(4000 * 8001), depth=16, colour=0),
    "4000 × 4000 in colour": lambda: png(4000, 4000, bytes(4000 * 12001)),
}
TRACES = ("[]", "{", "[" * 100_000, '{"axes": {}}', '{"axes": {"a": ["x", "y"]}, "source": null, "target": null}')
TOML = {
    "no TOML": b"[[[", "NUL in a text": b'title = "a\0b"', "large": b"title = '" + b"x" * 30_000_000 + b"'",
    "deep TOML": b"a = " + b"[" * 5000 + b"]" * 5000, "deep tables": b"a" + b".a" * 5000 + b" = 3",
    "a number": b"step = 3\nmodel = 3", "a number of digits": b"steps = " + b"9" * 100_000, **NO_JSON,
}  # fmt: skip
UNEQUAL = {"model_type": "gemma4_text", "head_dim": 8, "global_head_dim": 16, **TEXT}


def described_as(text: str) -> Recipe:
    header = {"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}
    notes = {"__metadata__": {"format": "glassformer trace 1", "trace": text}}
    return safetensors(lambda _, b: (notes | header, bytes(12)))


MARKUP = "<b>zq</b> **zq, zq** :red[zq] :material/zq: [zq](http://zq) $zq$ `zq` ~~zq~~ </s> \x00 \u202e"
LONG, MANY = "so " * 40_000, ["zero:encoder.0.self.0"] * 1000
ADDRESSES: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("attention", {name: value}) for name in ("layer", "head", "token", "pads")
      for value in ("99", "9" * 5000, "-5", "1e3", "٣", "0x10", MARKUP)),
    *(("attention", {name: value}) for value in (LONG, MARKUP, "x" * 100_000)
      for name in ("sentence", "target", "checkpoint", "stack", "lesson", "note", "language")),
    *(("tokens", {"checkpoint": name}) for name in ("../translator", f"received-{'0' * 64}", "received-../..", "/etc")),
    *(("surgery", {"edit": [edit]}) for edit in (
        "hello", "burn:encoder.0.self.3", "zero:encoder.0.self", "drop:encoder.0.self.1", "zero:encoder.*.self.1",
        "scale:encoder.0.self.1=much", "zero:encoder.7.self.1", "zero:encoder.0.self.9",
        "edge:encoder.0.self.1=2-3,4-5",
        "mask:encoder.0.self=window x", "<script>", f"patch:encoder.0.self.0={LONG}")),
    ("surgery", {"edit": MANY}),
    *(("masks", {"mask": [mask]}) for mask in ("no_such", "window 999999999999", "block 900-1", "allow x-y,1-", "keys",
                                               "allow ²-1", LONG)),
    *(("compare", {name: value}) for name in ("second", "other") for value in (LONG, MARKUP)),
    *(("decoding", {name: value}) for name in ("branches", "step", "strategy", "seed")
      for value in ("9" * 5000, "99999-1", MARKUP)),
    ("overview", {"fingerprint": "0123456789abcdef"}), ("lessons", {"lesson": "gone", "lesson_step": "999"}),
)  # fmt: skip


def _changed(file: str, changes: Iterable[Mapping[str, Any]]) -> dict[str, Recipe]:
    return {short(change): fields(file, change) for change in changes}


def _contents(file: str, contents: Mapping[str, bytes]) -> dict[str, Recipe]:
    return {name: raw(file, content) for name, content in contents.items()}


def _places(file: str, *kinds: str) -> dict[str, Recipe]:
    return {f"{file} is {kind}": replaced(file, kind) for kind in kinds}


def _groups() -> Iterator[tuple[str, str, str, Mapping[str, Recipe], str]]:
    """Yield groups of inputs: first words of their names, door, sound folder, recipes, file to open."""
    strange = ("missing", "a folder", "a pipe", "a device", "a link to nothing")
    most = {CONFIG: 65_536, TOKENIZER: 32_000_000, WEIGHTS: 100_000_000, "README.md": 1_000_000}
    yield "upload: weights", "upload", "gpt", HEADERS, ""
    for file, changes in ((CONFIG, OUR_CONFIGS), (TOKENIZER, OUR_TOKENIZERS)):
        yield f"upload: {file}", "upload", "gpt", _changed(file, changes) | _contents(file, NO_JSON), ""
    yield "upload", "upload", "gpt", {f"{file} is too large": raw(file, b" " * (n + 1)) for file, n in most.items()}, ""
    yield (
        "upload: another file",
        "upload",
        "gpt",
        {short(name): lambda _, n=name: {n: b"x"} for name in OTHER_NAMES},
        "",
    )
    yield "upload: GPT-2", "upload", "hf-gpt2", _changed(CONFIG, THEIR_CONFIGS["hf-gpt2"]), ""

    for file in (CONFIG, TOKENIZER, WEIGHTS):
        yield "folder", "folder", "gpt", _places(file, *strange) | {f"half of {file}": cut(file, 0.5)}, ""
    yield "folder", "folder", "gpt", _places("README.md", "a pipe", "a device"), ""
    pickles = ("model.pt", "pytorch_model.bin", "model.pth", "model.pkl", "last.ckpt")
    for base in ("gpt", "hf-gpt2"):
        yield (
            f"{base}: a pickle",
            "folder",
            base,
            {name: steps(replaced(WEIGHTS, "missing"), bomb(name)) for name in pickles},
            "",
        )
    yield "folder", "folder", "", {"nothing": lambda _: None}, ""
    yield "folder", "folder", "gpt", {"a file": lambda _: None}, CONFIG
    yield "folder: translator", "folder", "translator", _changed(CONFIG, TRANSLATORS), ""

    for base, changes in THEIR_CONFIGS.items():
        yield base, "folder", base, _changed(CONFIG, changes), ""
    yield "hf-gpt-neo", "folder", "hf-gpt-neo", {"a mask of 20,000² numbers per layer": _wide_positions}, ""
    alone = {name: raw(CONFIG, json.dumps(config).encode()) for name, config in ALONE.items()}
    yield "config alone", "folder", "", alone, ""
    yield "image processor", "folder", "vit", _changed("preprocessor_config.json", PROCESSORS), ""
    yield "hf-gpt2: weights", "folder", "hf-gpt2", HEADERS, ""
    yield "shards: one named", "folder", "shards", {short(name): shard(name) for name in OTHER_SHARDS}, "model"
    yield "shards: index", "folder", "shards", _contents(f"model/{INDEX}", NO_JSON), "model"
    for file in (INDEX, "model-00001-of-00002.safetensors"):
        yield "shards", "folder", "shards", _places(f"model/{file}", *strange[1:]), "model"
    yield "LoRA", "folder", "lora", {short(change): adapter(change) for change in ADAPTERS}, "adapter"
    shapes = {f"rank 1, {n} × {n + 1}": adapter({"r": 1}, n, n + 1) for n in (32, 20_000, 200_000)}
    yield "LoRA", "folder", "lora", shapes, "adapter"

    file = "model.gguf"
    yield "GGUF", "folder", "", _contents(file, {name: lie + bytes(50) for name, lie in LYING_GGUF.items()}), file
    yield (
        "GGUF: its bytes up to",
        "folder",
        "",
        {f"{n}": short_gguf(n) for n in (4, 8, 16, 24, 60, 400, 3000, -64)},
        file,
    )
    yield "GGUF", "folder", "", {short(change): partial(_gguf, **change) for change in GGUF_CHANGES}, file
    yield (
        "GGUF: tokens",
        "folder",
        "",
        {short(entries): partial(_gguf, entries=entries) for entries in GGUF_TOKENS},
        file,
    )
    yield "GGUF", "folder", "", _places(file, "a pipe", "a device"), file

    places = _places(TOKENIZER, "missing", "a pipe", "a device")
    recipes = _changed(TOKENIZER, THEIR_TOKENIZERS) | _contents(TOKENIZER, NO_JSON) | places | CHARSMAPS
    yield "tokenizer", "text", "hf-gpt2", recipes, ""
    yield "tokenizer: settings", "text", "hf-gpt2", _changed("tokenizer_config.json", SETTINGS), ""
    yield "tokenizer", "text", "hf-bert", _changed(TOKENIZER, [ENDLESS]), ""

    yield "image", "image", "", {name: lambda _, make=make: make() for name, make in IMAGES.items()}, ""
    yield "trace: described as", "trace", "gpt", {short(text): described_as(text) for text in TRACES}, WEIGHTS
    for door in ("trace", "recipe"):
        yield door, door, "", _places("file", *strange), "file"
    yield "recipe", "recipe", "", _contents("file", TOML), "file"
    pickled = {"a pickle": raw("state", pickle.dumps(Bomb())), "a bomb": bomb("state")}
    yield "run state", "state", "", _contents("state", NO_JSON) | pickled, ""
    yield "opening", "app", "gpt", _contents("opening.toml", TOML), ""
    listed = alone | {"unequal heads": raw(CONFIG, json.dumps(UNEQUAL).encode())} | _contents(CONFIG, NO_JSON)
    yield "a folder in the list", "app", "", listed, ""
    for page, address in ADDRESSES:
        name = ", ".join(f"{key}={short(value)}" for key, value in address.items())
        yield "address", "address", "", {f"{page}?{name}": lambda _, asked=(page, address): asked}, ""


def corpus() -> tuple[Hostile, ...]:
    """Return all hostile inputs, in the order of the table."""
    found = tuple(
        Hostile(f"{group}: {name}", door, base, make, at)
        for group, door, base, recipes, at in _groups()
        for name, make in recipes.items()
    )
    assert len({hostile.name for hostile in found}) == len(found), "two inputs have one name"
    return found
