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


# What every run tries, and a word that the refusal must say; ``None`` if it opens
SAID: dict[str, str | None] = {
    "upload: weights: two tensors of the same bytes": "complete",
    "upload: weights: eight bytes, four of them described": "8 bytes",
    "upload: weights: eight bytes, a hole in front": "begin",
    "upload: weights: eight bytes, a size below zero": "unexpected",
    "upload: weights: eight bytes, a truth value as a size": "unexpected",
    "upload: weights: eight bytes, three offsets": "unexpected",
    "upload: weights: a pickle": "complete",
    "upload: weights: NaN": "finite",
    "upload: config.json is too large": "at most",
    "upload: config.json is missing": "config.json is missing",
    "upload: model.safetensors is missing": "model.safetensors is missing",
    "upload: tokenizer.json is missing": "tokenizer.json is missing",
    "upload: config.json: {'n_heads': 5}": "divisible",
    "upload: config.json: half": "JSON",
    "upload: config.json: {'d_ff': 50}": "(40, 24) in the file but (50, 24) by the config",
    "upload: config.json: {'n_decoder_layers': 1}": "unknown decoder.layers.1",
    "upload: config.json: {'n_decoder_layers': 256}": "lacks decoder.layers.2",
    "upload: config.json: {'d_ff': 1000000000000000}": "numbers but the config asks for",
    "upload: a vocabulary with: special tokens of other ids": "<pad> the id 1",
    "upload: a vocabulary with: a hole": "its highest id is 9",
    "upload: a vocabulary with: a piece of no bytes": "漢字",
    "folder: nothing": "config.json",
    "folder: a file": "not a directory",
    "shards: one lacks its tensors": "lacks",
    "shards: a tensor is in two": "twice",
    "shards: one is cut off": "model-00001-of-00002.safetensors",
    "shards: one named: '../secret.safetensors'": "secret",
    "hf-gpt2: {'n_layer': 1}": "a layer that the config does not have",
    "hf-mistral: {'sliding_window': -3}": "cannot be shown",
    "hf-llama: {'num_key_value_heads': 3}": "share 3 heads of keys",
    "hf-llama: {'rope_parameters': {'rope_type': 'su', 'factor': 2.0, 'rope_theta': 10000.0}}": "longrope",
    "hf-llama: {'rope_parameters': {'rope_type': 'yarn', 'factor': 2.0, 'rope_theta': 1.0}}": "division by zero",
    "hf-llama: {'rope_parameters': {'rope_type': 'linear', 'rope_theta': 10000.0}}": "factor",
    "hf-llama: {'rope_parameters': Ellipsis, 'rope_theta': 1e-300}": "finite",
    "hf-llama: {'rope_parameters': {'rope_type': 'linear', 'factor': 1e-300}}": "finite",
    "hf-llama: {'rope_parameters': {'rope_type': 'l…actor': [-1, -1, -1, -1, -1]}}": "short_factor",
    "hf-bert: {'architectures': ['BertForTokenClassification']}": "lacks the weights classifier",
    "hf-bert: {'vocab_size': 401}": "401",
    "hf-opt: {'auto_map': {'AutoConfig': 'own.C', 'AutoModelForCausalLM': 'own.M'}}": None,
    "hf-opt: {'model_type': 'theirs', 'auto_map':…toModelForCausalLM': 'own.M'}}": "code in a folder is not run",
    **{
        f"{group}: {name}": word
        for group in ("config alone", "config alone, not opened")
        for name, word in {
            "layers in one of two stacks": "encoder_layers is 10000000",
            "layers in a nested config": "vision_config.num_hidden_layers is 10000000",
            "layers in a list of lists": "depths is 10000000",
            "classes": "num_labels is 100000000",
            "a vocabulary in a nested config": "text_config.vocab_size is 1099511627776",
            "positions": "max_position_embeddings is 1099511627776",
            "a number that no float holds": "rms_norm_eps",
            "channels": "hidden_size is 1099511627776",
            "300 deep": "nested more than 20 deep",
            "code in a backbone": ".auto_map names code of its own",
            "code in a tower": ".auto_map names code of its own",
            "code in a list": ".auto_map names code of its own",
            "a backbone of the hub, DPT": "built from another one",
            "a backbone of timm": "built from another one",
            "the default backbone": "built from another one",
            "a backbone that is described": "built from another one",
            "a backbone in a part": "built from another one",
            "LLaVA": "Open its language model alone",
            "Qwen2 audio": "Open its language model alone",
            "Whisper": "reads sounds",
            "Wav2Vec2": "reads sounds",
        }.items()
    },
    "LoRA: of another model": "the adapter changes",
    "LoRA: rank 1, 20000 × 20001": "but the base has",
    "LoRA: rank 1, 200000 × 200001": "but the base has",
    "GGUF: tokens: {'pre': 'viking'}": "viking",
    "GGUF: an unknown architecture": "rwkv7",
    "chat template: '{% if'": "refuses the text",
    "chat template: '{{ 1 / 0 }}'": "refuses the text",
    """chat template: "{{ ''.__class__.__mro__[1].__subclasses__() }}\"""": "refuses the text",
    """chat template: "{{ messages[0].update({'a': 1}) }}\"""": "refuses the text",
    """chat template: "{% include '/etc/passwd' %}\"""": "refuses the text",
    "tokenizer: settings: {'added_tokens_decoder': {'x': {}}}": "",
    "tokenizer: settings: {'added_tokens_decoder': {'1': 3}}": "",
    "tokenizer: settings: {'pad_token': 3}": "",
    "image: just too large": "16 million",
    "run state: a pickle": "whole state",
    "run state: a bomb": "whole state",
    "run state: an old bomb": "whole state",
    "run state: a bomb in a list": "whole state",
}


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


def _theirs(folder: Path, kind: str, **changes: Any) -> None:
    """Write a tiny model of ``transformers``, one of the tables of the tests."""
    from tests.foreign_checkpoints import any_checkpoint

    any_checkpoint(kind, folder.parent, **changes).rename(folder)


def _lora(folder: Path) -> None:
    from tests.foreign_checkpoints import guest_checkpoint, write_adapter

    write_adapter(folder / "adapter", guest_checkpoint("llama", folder).rename(folder / "base"), "q_proj")


def _shards(folder: Path) -> None:
    """Two shards, and a file beside the folder that must not be read."""
    import transformers

    from tests.foreign_checkpoints import guest_checkpoint

    path = guest_checkpoint("gpt2", folder).rename(folder / "model")
    model = transformers.GPT2LMHeadModel.from_pretrained(path)
    (path / WEIGHTS).rename(folder / "secret.safetensors")
    model.save_pretrained(path, max_shard_size="100KB")


def gguf(entries: Mapping[str, Any] | None = None, template: str | None = None, **changes: Any) -> Recipe:
    """Write a GGUF file of a small Llama with other ``entries`` of its tokenizer.

    ``changes`` are other keys, with ``__`` for a dot.
    """

    def make(folder: Path) -> None:
        from tests.transformer.guests.gguf_files import token_keys, write_gguf
        from tests.transformer.guests.tiny_guests import MORE, network
        from tests.transformer.text.foreign_folders import byte_level

        backend = byte_level(special=("<pad>", "</s>"))
        name, fields = MORE["llama"]
        model = network(name, {**fields, "vocab_size": backend.get_vocab_size()})
        tokens = token_keys(backend, "gpt2", pre="gpt-2", eos_token_id=1) | dict(entries or {})
        write_gguf(folder / "model.gguf", model, tokens=tokens, template=template, **changes)

    return make


NEO = {"hidden_size": 4, "num_heads": 1, "attention_types": [[["global"], 2]], "intermediate_size": 4}
BASES: dict[str, Callable[[Path], object]] = {
    "": lambda folder: folder.mkdir(),
    "gpt": partial(_ours, kind="decoder-only"),
    "translator": partial(_ours, kind="encoder-decoder"),
    "hf-gpt2": partial(_theirs, kind="gpt2"),
    "hf-llama": partial(_theirs, kind="llama"),
    "hf-bert": partial(_theirs, kind="bert"),
    "hf-opt": partial(_theirs, kind="opt"),
    "hf-bloom": partial(_theirs, kind="bloom"),
    "hf-bart": partial(_theirs, kind="bart"),
    "hf-mistral": partial(_theirs, kind="mistral"),
    "hf-gpt-neo": partial(_theirs, kind="gpt_neo", **NEO),
    "hf-gptj": partial(_theirs, kind="gptj", n_embd=8, n_head=2, n_inner=32, rotary_dim=2),
    "vit": partial(_theirs, kind="vit"),
    "lora": _lora,
    "shards": _shards,
}


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


def cut(file: str, kept: float) -> Recipe:
    """Keep a share of a file, or a whole number of its bytes."""

    def make(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: kept if isinstance(kept, int) else int(len(content) * kept)])

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
    """Its pickle ends the process when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.abort, ()


def bomb(file: str, content: Callable[[], object] = lambda: {"step": Bomb()}, **how: bool) -> Recipe:
    def make(folder: Path) -> None:
        import torch

        torch.save(content(), folder / file, **how)

    return make


def short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:36]}…{text[-30:]}"


# ---- the corpus ------------------------------------------------------------------------------------------------------


def empty(name: str, shape: list[int], end: int) -> dict[str, Any]:
    return {name: {"dtype": "F16", "shape": shape, "data_offsets": [end, end]}}


def many(count: int) -> Recipe:
    return safetensors(lambda *_: ({f"t{n}": empty("", [0], 0)[""] for n in range(count)}, b""))


def same_bytes(header: dict[str, Any]) -> dict[str, Any]:
    """Return a header in which two tensors of one shape have the same numbers."""
    shapes: dict[str, Any] = {}
    for name, part in header.items():
        if (first := shapes.setdefault(str(part.get("shape", name)), part)) is not part:
            return header | {name: first}
    raise ValueError("all shapes differ")


NO_JSON = {"nothing": b"", "a list": b"[]", "null": b"null", "no UTF-8": b"\xff\xfe", "half": b'{"a": ',
           "deep": b"[" * 60_000, "digits": b"9" * 60_000, "NUL": bytes(8)}  # fmt: skip
NOTES = {f"key {n}": "x" * 20 for n in range(10**5)}
HEADERS: dict[str, Recipe] = {
    "a length beyond the file": safetensors(lambda h, b: (h, b), length=2**40),
    "no header": safetensors(lambda h, b: (b"", b)),
    "offsets that overlap": safetensors(lambda h, b: ({n: p | {"data_offsets": [0, 48]} for n, p in h.items()}, b)),
    "two tensors of the same bytes": safetensors(lambda h, b: (same_bytes(h), b)),
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
    **{
        f"eight bytes, {text}": safetensors(lambda *_, part=part: ({"a": {"dtype": "F32"} | part}, bytes(8)))
        for text, part in {
            "four of them described": {"shape": [1], "data_offsets": [0, 4]},
            "a hole in front": {"shape": [1], "data_offsets": [4, 8]},
            "a size below zero": {"shape": [-2], "data_offsets": [8, 0]},
            "a truth value as a size": {"shape": [True, 2], "data_offsets": [0, 8]},
            "three offsets": {"shape": [2], "data_offsets": [0, 8, 16]},
        }.items()
    },
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
    **{f"{kept:.1%} of it": cut(WEIGHTS, kept) for kept in (0.0, 0.001, 0.5, 0.999)},
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
FIRST = {"<pad>": 0, "<s>": 1, "</s>": 2, "<mask>": 3}
ODD_VOCABULARIES = {
    "special tokens of other ids": {"<s>": 0, "<pad>": 1},
    "a hole": {**FIRST, "a": 9},
    "a piece of no bytes": {**FIRST, "漢字": 4},
}
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
# Names that Windows, or any system, takes for another file, a device, a folder or nothing
FALSE_NAMES = (
    "../model.safetensors", "/etc/passwd", "..", "", "a/config.json", "config.json\0", "CON", "config.json ",
    "config.json.", ".", "\n", "model.safetensors/", "C:\\config.json", "C:config.json", "<img src=x>", "a\\b.json",
    "..\\config.json", r"\\host\share\config.json", "config.json:stream", "config.json::$DATA", "nul.json",
    "aux.safetensors", "com1.json", "lpt9.txt", "config.json\0.txt", "config?.json", "con<fig>.json", "*.json",
    "model.safetensors\n",
)  # fmt: skip
OTHER_NAMES = (
    *FALSE_NAMES, ".bashrc", "model.zip", "model.pt", "pytorch_model.bin", "MODEL.PKL", "../../last.ckpt",
    "mоdel.safetensors", "CONFIG.JSON", "config\u200b.json", "ｃonfig.json", "config.json\u202e", "a" * 5000, "\ud800",
)  # fmt: skip


THEIR_CONFIGS: dict[str, tuple[dict[str, Any], ...]] = {
    "hf-gpt2": (
        {"model_type": "mamba"}, {"model_type": 3}, {"n_embd": 39}, {"n_embd": "wide"}, {"n_layer": 4}, {"n_layer": 1},
        {"n_layer": 10**9}, {"n_head": 5}, {"n_positions": 10**9}, {"vocab_size": 200}, {"vocab_size": 10**9},
        {"architectures": ["__import__"]}, {"architectures": ["GPT2ForSequenceClassification"]},
        {"auto_map": {"AutoModelForCausalLM": "own.Own"}, "model_type": "own"},
    ),
    "hf-mistral": ({"sliding_window": -3},),
    "hf-llama": (
        {"num_key_value_heads": 3}, {"head_dim": 9}, {"hidden_size": ...}, {"hidden_size": 10**9},
        {"rope_parameters": {"rope_type": "su", "factor": 2.0, "rope_theta": 1e4}},
        {"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1.0}},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4}},
        {"rope_parameters": ..., "rope_theta": 1e-300},
        {"rms_norm_eps": float("nan")}, {"num_hidden_layers": 10**9}, {"num_hidden_layers": -1},
        {"num_attention_heads": 0}, {"num_attention_heads": "x"},
        {"intermediate_size": 10**12}, {"max_position_embeddings": 10**12},
        {"rope_parameters": {"rope_type": "linear", "factor": 1e-300}},
        {"rope_parameters": {"rope_type": "longrope", "short_factor": [-1] * 5}},
        {"quantization_config": {"quant_method": "awq"}}, {"quantization_config": {"quant_method": "gptq"}},
        {"quantization_config": {"quant_method": "bitsandbytes"}},
    ),
    "hf-bert": (
        {"vocab_size": 401}, {"pad_token_id": 10**9}, {"max_position_embeddings": 10**9},
        {"architectures": ["BertForTokenClassification"]},
    ),
    "hf-opt": (
        {"quantization_config": {"quant_method": "awq"}}, {"architectures": ["OPTForQuestionAnswering"]},
        {"architectures": ["__import__"]}, {"num_hidden_layers": 10**9}, {"num_hidden_layers": 3}, {"hidden_size": 64},
        {"num_attention_heads": "x"}, {"model_type": "marian", "architectures": ["MarianMTModel"]},
        {"model_type": "theirs", "auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"}},
        {"sub_config": {"auto_map": {"AutoConfig": "own.C"}}},
        {"auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"}},
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
MANY_LAYERS = 10_000_000
CLIP = {"model_type": "clip", "architectures": ["CLIPModel"]}
DETR = {"model_type": "detr", "architectures": ["DetrModel"]}
BART = {"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "d_model": 8}
LLAMA = {"model_type": "llama", "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2, "vocab_size": 64}


def nested(depth: int) -> object:
    return {"text_config": [nested(depth - 1)]} if depth else 1


ALONE: dict[str, dict[str, Any]] = {
    "a backbone of the hub, DPT": {"model_type": "dpt", "architectures": ["DPTModel"], "backbone": "evil/x"},
    "a backbone of the hub, DETR": {**DETR, "backbone": "evil/x", "use_timm_backbone": False,
                                    "use_pretrained_backbone": True},
    "a backbone of timm": {**DETR, "backbone": "resnet50"},
    "the default backbone": {**DETR, "use_timm_backbone": False},
    "a backbone that is described": {"model_type": "vitmatte", "architectures": ["VitMatteForImageMatting"],
                                     "backbone_config": {"model_type": "vitdet"}},
    "a backbone in a part": {**CLIP, "vision_config": {"more": [{"backbone": "evil/x"}]}},
    "code in a nested config": {
        "model_type": "dpt", "architectures": ["DPTModel"],
        "backbone_config": {"model_type": "own", "auto_map": {"AutoConfig": "own.C"}},
    },
    "layers in a nested config": {**CLIP, "vision_config": {"num_hidden_layers": MANY_LAYERS}},
    "LLaVA": {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"]},
    "Qwen2 audio": {"model_type": "qwen2_audio", "architectures": ["Qwen2AudioForConditionalGeneration"]},
    "Whisper": {"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"]},
    "Wav2Vec2": {"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]},
    "layers in one of two stacks": {**BART, "encoder_layers": MANY_LAYERS},
    "layers in a list of lists": {"model_type": "swin", "depths": [2, [MANY_LAYERS]]},
    "classes": {"model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"],
                "num_labels": 10**8},
    "a vocabulary in a nested config": {**CLIP, "text_config": {"vocab_size": 2**40}},
    "positions": {**BART, "max_position_embeddings": 2**40},
    "a number that no float holds": {**LLAMA, "rms_norm_eps": 10**400},
    "channels": {"model_type": "bloom", "architectures": ["BloomForCausalLM"], "n_layer": 1, "hidden_size": 2**40},
    "300 deep": {**LLAMA, "more": nested(300)},
    "code in a backbone": {"model_type": "upernet", "head": {"auto_map": {"AutoBackbone": "modeling.M"}}},
    "code in a tower": {**CLIP, "vision_config": {"auto_map": {"AutoModel": "modeling.M"}}},
    "code in a list": {**LLAMA, "more": [{"deeper": {"auto_map": {"AutoModel": "evil/x--modeling.M"}}}]},
}  # fmt: skip


def _wide_positions(folder: Path) -> None:
    """GPT-Neo with 20,000 positions of four numbers: a mask of 400 MB per layer."""
    import numpy as np

    fields(CONFIG, {"max_position_embeddings": 20_000})(folder)
    tensors(lambda t: t | {"transformer.wpe.weight": np.zeros((20_000, 4), np.float32)})(folder)


def shard(name: object) -> Recipe:
    weights = {"a": "model-00001-of-00002.safetensors", "b": name}
    return lambda folder: _write(folder / "model", INDEX, {"weight_map": weights})


def bad_shards(change: Callable[[dict[str, str], dict[str, dict[str, Any]]], None]) -> Recipe:
    """Change where an index finds each tensor, and which tensors each shard has."""

    def make(folder: Path) -> None:
        from safetensors.numpy import load_file, save_file

        path = folder / "model"
        index = json.loads((path / INDEX).read_text(encoding="utf-8"))
        shards = {file.name: load_file(file) for file in sorted(path.glob("*.safetensors"))}
        change(index["weight_map"], shards)
        _write(path, INDEX, index)
        for name, parts in shards.items():
            save_file(parts, path / name)

    return make


def _all_in_one(places: dict[str, str], shards: dict[str, dict[str, Any]]) -> None:
    places |= dict.fromkeys(places, min(shards))


def _one_twice(places: dict[str, str], shards: dict[str, dict[str, Any]]) -> None:
    first, second = shards
    shards[first] |= {min(shards[second]): shards[second][min(shards[second])]}


BAD_SHARDS = {
    "one lacks its tensors": bad_shards(_all_in_one),
    "a tensor is in two": bad_shards(_one_twice),
    "one is cut off": lambda folder: cut("model-00001-of-00002.safetensors", 0.99)(folder / "model"),
}


def another_module(folder: Path) -> None:
    """Write an adapter of a matrix that its base does not have."""
    from safetensors.numpy import load_file, save_file

    adapter({})(folder)
    file = folder / "adapter" / "adapter_model.safetensors"
    save_file({name.replace("q_proj", "c_attn"): matrix for name, matrix in load_file(file).items()}, file)


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
    {"r": 10**400}, {"r": 10**400, "use_rslora": True}, {"lora_alpha": float("nan")},
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
    "an unknown architecture": HEADER + struct.pack("<Q20sIQ5s", 20, b"general.architecture", 8, 5, b"rwkv7"),
    "an unknown type": HEADER + NAME + struct.pack("<I", 99),
    "8 million empty texts": HEADER + NAME + struct.pack("<IIQ", 9, 8, 8_000_000) + bytes(64_000_000),
    "3 million empty texts in two lists": struct.pack("<4sIQQ", b"GGUF", 3, 0, 2)
    + 2 * (NAME + struct.pack("<IIQ", 9, 8, 1_500_000) + bytes(12_000_000)),
    "an alignment of nothing": HEADER + struct.pack("<Q17sII", 17, b"general.alignment", 4, 0),
}
GGUF_CHANGES: tuple[dict[str, Any], ...] = (
    {"block_count": "three"}, {"block_count": 4}, {"block_count": 1}, {"attention__head_count": 0},
    {"attention__head_count": 8}, {"embedding_length": 10**9}, {"feed_forward_length": [1, 2, 3]},
    {"rope__dimension_count": 4}, {"expert_count": 8}, {"rope__scaling__type": "spiral", "rope__scaling__factor": 2.0},
)  # fmt: skip


GGUF_TOKENS: tuple[dict[str, Any], ...] = (
    {"pre": "viking"}, {"model": "rwkv"}, {"tokens": ["a"]}, {"merges": ["no such"]},
)  # fmt: skip
TEMPLATES = (
    "{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ messages[0].update({'a': 1}) }}",
    "{{ messages.append }}{{ cycler.__init__.__globals__.os.popen('id').read() }}", "{% include '/etc/passwd' %}",
    "{% for i in range(1000000) %}x{% endfor %}", "{% if", "{{ 1 / 0 }}", "{{ undefined.a }}",
    "{% set ns = namespace(a='x') %}{% for i in range(40) %}{% set ns.a = ns.a + ns.a %}{% endfor %}{{ ns.a }}",
    "{% for i in range(99999) %}{{ 'x y ' * 100 }}{% endfor %}",
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
    "transparent and too large": lambda: png(4000, 4000, bytes(1000), colour=6),
    "a line of pixels": lambda: png(15_000_000, 1, bytes(1000)),
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


def _beside_code(recipes: Mapping[str, Recipe]) -> dict[str, Recipe]:
    """Write code of the folder's own, which ends the process, beside each change."""
    return {name: steps(raw("own.py", b"import os\nos.abort()\n"), recipe) for name, recipe in recipes.items()}


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
    entries = {
        name: {"model/vocab": odd, "model/merges": [], "added_tokens": []} for name, odd in ODD_VOCABULARIES.items()
    }
    odd = {name: fields(TOKENIZER, change) for name, change in entries.items()}
    yield "upload: a vocabulary with", "upload", "gpt", odd, ""
    yield "upload", "upload", "gpt", {f"{file} is too large": raw(file, b" " * (n + 1)) for file, n in most.items()}, ""
    alone = {short(name): lambda _, n=name: {n: b"x"} for name in OTHER_NAMES}
    yield "upload: another file", "upload", "gpt", alone, ""
    yield "upload: GPT-2", "upload", "hf-gpt2", _changed(CONFIG, THEIR_CONFIGS["hf-gpt2"]), ""

    needed = {f"{file} is missing": replaced(file, "missing") for file in (CONFIG, TOKENIZER, WEIGHTS)}
    yield "upload", "upload", "gpt", needed, ""
    for file in (CONFIG, TOKENIZER, WEIGHTS):
        yield "folder", "folder", "gpt", _places(file, *strange) | {f"half of {file}": cut(file, 0.5)}, ""
    yield "folder", "folder", "gpt", _places("README.md", "a pipe", "a device"), ""
    pickles = ("model.pt", "pytorch_model.bin", "model.pth", "model.pkl", "last.ckpt")
    bombs = {name: steps(replaced(WEIGHTS, "missing"), bomb(name)) for name in pickles}
    for base in ("gpt", "hf-gpt2"):
        yield f"{base}: a pickle", "folder", base, bombs, ""
    yield "folder", "folder", "", {"nothing": lambda _: None}, ""
    yield "folder", "folder", "gpt", {"a file": lambda _: None}, CONFIG
    yield "folder: translator", "folder", "translator", _changed(CONFIG, TRANSLATORS), ""

    for base, changes in THEIR_CONFIGS.items():
        yield base, "folder", base, _beside_code(_changed(CONFIG, changes)), ""
    yield "hf-gpt-neo", "folder", "hf-gpt-neo", {"a mask of 20,000² numbers per layer": _wide_positions}, ""
    alone = {name: raw(CONFIG, json.dumps(config).encode()) for name, config in ALONE.items()}
    yield "config alone", "folder", "", alone, ""
    yield "config alone, not opened", "config", "", alone, ""
    yield "image processor", "folder", "vit", _changed("preprocessor_config.json", PROCESSORS), ""
    yield "hf-gpt2: weights", "folder", "hf-gpt2", HEADERS, ""
    yield "shards: one named", "folder", "shards", {short(name): shard(name) for name in OTHER_SHARDS}, "model"
    yield "shards: index", "folder", "shards", _contents(f"model/{INDEX}", NO_JSON), "model"
    yield "shards", "folder", "shards", BAD_SHARDS, "model"
    for file in (INDEX, "model-00001-of-00002.safetensors"):
        yield "shards", "folder", "shards", _places(f"model/{file}", *strange[1:]), "model"
    yield "LoRA", "folder", "lora", {short(change): adapter(change) for change in ADAPTERS}, "adapter"
    shapes = {f"rank 1, {n} × {n + 1}": adapter({"r": 1}, n, n + 1) for n in (32, 20_000, 200_000)}
    yield "LoRA", "folder", "lora", shapes | {"of another model": another_module}, "adapter"

    file = "model.gguf"
    yield "GGUF", "folder", "", _contents(file, {name: lie + bytes(50) for name, lie in LYING_GGUF.items()}), file
    beginnings = {f"{n}": steps(gguf(), cut(file, n)) for n in (4, 8, 16, 24, 60, 400, 3000, -64)}
    yield "GGUF: its bytes up to", "folder", "", beginnings, file
    yield "GGUF", "folder", "", {short(change): gguf(**change) for change in GGUF_CHANGES}, file
    yield "GGUF: tokens", "folder", "", {short(entries): gguf(entries) for entries in GGUF_TOKENS}, file
    yield "GGUF", "folder", "", _places(file, "a pipe", "a device"), file
    yield "chat template", "chat", "", {short(text): gguf(template=text) for text in TEMPLATES}, file

    places = _places(TOKENIZER, "missing", "a pipe", "a device")
    recipes = _changed(TOKENIZER, THEIR_TOKENIZERS) | _contents(TOKENIZER, NO_JSON) | places | CHARSMAPS
    yield "tokenizer", "text", "hf-gpt2", recipes, ""
    yield "tokenizer: settings", "text", "hf-gpt2", _beside_code(_changed("tokenizer_config.json", SETTINGS)), ""
    yield "tokenizer", "text", "hf-bert", _changed(TOKENIZER, [ENDLESS]), ""

    yield "image", "image", "", {name: lambda _, make=make: make() for name, make in IMAGES.items()}, ""
    yield "trace: described as", "trace", "gpt", {short(text): described_as(text) for text in TRACES}, WEIGHTS
    for door in ("trace", "recipe"):
        yield door, door, "", _places("file", *strange), "file"
    yield "recipe", "recipe", "", _contents("file", TOML), "file"
    pickled = {"a pickle": raw("state", pickle.dumps(Bomb())), "a bomb": bomb("state"),
               "an old bomb": bomb("state", _use_new_zipfile_serialization=False),
               "a bomb in a list": bomb("state", lambda: [*map(float, range(3)), Bomb()])}  # fmt: skip
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
