"""Complete third-party checkpoints for the tests: tiny random weights and small tokenizers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.transformer.guests.hugging_face import build
from tests.transformer.guests.tiny_guests import guest_checkpoint
from tests.transformer.guests.tiny_image_guests import IMAGE_GUESTS, image_checkpoint
from tests.transformer.text.foreign_folders import byte_level, sentencepiece, unigram, word_piece

BERT_NAMES = {name: f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}


def any_checkpoint(name: str, folder: Path, **changes: object) -> Path:
    """Write ``folder / name``: one of the tables below, of ``tiny_guests`` or of ``tiny_image_guests``."""
    if name.startswith("hf-"):
        return foreign_checkpoint(name, folder)
    return image_checkpoint(name, folder) if name in IMAGE_GUESTS else guest_checkpoint(name, folder, **changes)


def foreign_checkpoint(name: str, folder: Path) -> Path:
    """Write ``folder / name``, one of ``FOREIGN``, ``MANY_LANGUAGES`` or ``STRETCHED``."""
    path = folder / name
    path.mkdir(parents=True)
    (FOREIGN | MANY_LANGUAGES | STRETCHED)[name](path)
    return path


def _write(path: Path, case: str, backend, settings: dict, **config: object) -> None:
    backend.save(str(path / "tokenizer.json"))
    build(case, vocab_size=backend.get_vocab_size(), **config).save_pretrained(path)
    (path / "tokenizer_config.json").write_text(json.dumps(settings))


def _gpt2(path: Path) -> None:
    end = "<|endoftext|>"
    settings = {"tokenizer_class": "GPT2Tokenizer", "eos_token": end, "bos_token": end, "unk_token": end}
    _write(path, "gpt2", byte_level(special=(end,)), settings, bos_token_id=0, eos_token_id=0)


def _llama(path: Path, case: str = "llama 3, biases", **config: object) -> None:
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    _write(path, case, byte_level(special=("<s>", "</s>")), settings, **special, **config)


def _bert(path: Path, case: str = "bert, pre-training") -> None:
    settings = {"tokenizer_class": "BertTokenizer", **{f"{job}_token": text for job, text in BERT_NAMES.items()}}
    _write(path, case, word_piece(), settings, pad_token_id=0)


def _t5(path: Path, case: str = "t5") -> None:
    from tokenizers import processors

    backend = unigram(("<pad>", "</s>", "<unk>"), "<unk>")
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    settings = {"tokenizer_class": "T5Tokenizer", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    _write(path, case, backend, settings, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)


def _marian(path: Path, more: tuple[str, ...] = ()) -> None:
    import sentencepiece as library

    pieces = ["</s>", "<unk>"]
    for side in ("source", "target"):
        file = sentencepiece(path / f"{side}.spm", "unigram", vocab_size=200)
        processor = library.SentencePieceProcessor(model_file=str(file))
        pieces += [processor.id_to_piece(id) for id in range(processor.get_piece_size())]
    entries = dict.fromkeys(piece for piece in (*pieces, *more, "<pad>") if piece != "<s>")
    (path / "vocab.json").write_text(json.dumps({piece: id for id, piece in enumerate(entries)}))
    last = len(entries) - 1
    special = {"pad_token_id": last, "decoder_start_token_id": last}
    build("marian", vocab_size=len(entries), **special).save_pretrained(path)
    settings = {"tokenizer_class": "MarianTokenizer", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    (path / "tokenizer_config.json").write_text(json.dumps({**settings, "source_lang": "en", "target_lang": "fr"}))


def _m2m100(path: Path) -> None:
    import sentencepiece as library
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    file = sentencepiece(path / "sentencepiece.bpe.model", "bpe", vocab_size=250)
    processor = library.SentencePieceProcessor(model_file=str(file))
    pieces = [processor.id_to_piece(id) for id in range(processor.get_piece_size())]
    entries = dict.fromkeys(("<s>", "<pad>", "</s>", "<unk>", *pieces))
    (path / "vocab.json").write_text(json.dumps({piece: id for id, piece in enumerate(entries)}))
    size = len(entries) + len(FAIRSEQ_LANGUAGE_CODES["m2m100"]) + 8
    build("m2m100", vocab_size=size, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2).save_pretrained(path)
    (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "M2M100Tokenizer", "src_lang": "en"}))


FOREIGN: dict[str, Callable[[Path], None]] = {
    "hf-gpt2": _gpt2,
    "hf-llama": _llama,
    "hf-gemma2": lambda path: _llama(path, "gemma 2"),
    "hf-neox": lambda path: _llama(path, "gpt-neox"),
    "hf-bert": _bert,
    "hf-bert-classes": lambda path: _bert(path, "bert, classes"),
    "hf-t5": lambda path: _t5(path, "t5 1.1"),
    "hf-marian": _marian,
}
MANY_LANGUAGES: dict[str, Callable[[Path], None]] = {
    "hf-m2m100": _m2m100,
    "hf-marian-many": lambda path: _marian(path, (">>fra<<", ">>deu<<")),
}
STRETCHED: dict[str, Callable[[Path], None]] = {
    "hf-yarn": lambda path: _llama(path, "gpt-neox, yarn"),
    "hf-longrope": lambda path: _llama(path, "qwen3, longrope"),
    "hf-gemma3": lambda path: _llama(path, "gemma 3"),
    "hf-longrope-short": lambda path: _llama(path, "qwen3, longrope", original_max_position_embeddings=100),
}


RANK, ALPHA = 2, 8  # of an adapter


def write_adapter(folder: Path, base: Path, ending: str, **settings: object) -> Path:
    """Write an adapter of every matrix whose name ends with ``ending``, and the merged base beside it."""
    weights = load_file(base / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    stored, merged = {}, dict(weights)
    for name in sorted(name for name in weights if name.endswith(f"{ending}.weight")):
        rows, columns = weights[name].shape[:: -1 if settings.get("fan_in_fan_out") else 1]
        down, up = (torch.randn(*shape, generator=generator) for shape in ((RANK, columns), (rows, RANK)))
        module = f"base_model.model.{name.removesuffix('.weight')}"
        stored |= {f"{module}.lora_A.weight": down, f"{module}.lora_B.weight": up}
        change = ALPHA / RANK * up @ down
        merged[name] = weights[name] + (change.T if settings.get("fan_in_fan_out") else change)
    assert stored
    folder.mkdir()
    save_file(stored, folder / "adapter_model.safetensors")
    fields = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "base_model_name_or_path": str(base), "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(fields | settings), encoding="utf-8")
    expected = folder.parent / "merged"
    expected.mkdir()
    for file in base.iterdir():
        (expected / file.name).write_bytes(file.read_bytes())
    save_file({name: tensor.contiguous() for name, tensor in merged.items()}, expected / "model.safetensors")
    return expected
