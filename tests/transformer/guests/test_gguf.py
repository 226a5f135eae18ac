"""GGUF files equal Hugging Face's weights of the same tiny models; false headers are refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.transformer.guests.gguf_files import finish, token_keys, whole_gguf, write_gguf
from tests.transformer.guests.hugging_face import build
from tests.transformer.guests.their_numbers import equals_theirs
from tests.transformer.text.foreign_folders import (
    SENTENCES,
    TEXTS,
    byte_level,
    theirs,
    unigram,
    with_byte_fallback,
    word_piece,
    write,
)
from tests.transformer.text.test_foreign_tokenizer import gemma, llama3
from transformer import CheckpointError, Greedy, decode, load, trace
from transformer.__main__ import main
from transformer.disk.gguf_file import GgufFile, is_gguf
from transformer.guests.folder import fields_of
from transformer.guests.opening import open_guest
from transformer.heads.role_files import load_corpus_roles

pytest.importorskip("gguf")

_PLAIN_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 500.0}
CASES: dict[str, tuple[str, dict]] = {
    "llama": ("llama", {}),
    "llama 3: biases, a tensor of factors": ("llama 3, biases", {}),
    "llama: linear, tied": ("llama, linear, tied", {}),
    "llama: yarn": ("llama, yarn", {"rope_parameters": _PLAIN_YARN}),
    "mistral: window": ("mistral", {}),
    "qwen2": ("qwen2", {"use_sliding_window": False}),
    "qwen3": ("qwen3", {}),
    "gemma": ("gemma", {}),
    "gemma 2: caps, windows": ("gemma 2", {"query_pre_attn_scalar": 10}),
    "gemma 3: two bases, windows": ("gemma 3", {"query_pre_attn_scalar": 10}),
    "gpt2": ("gpt2", {}),
    "gpt2: untied": ("gpt2", {"tie_word_embeddings": False}),
    "gpt-neox": ("gpt-neox", {}),
    "gpt-neox: sequential": ("gpt-neox, sequential", {}),
    "t5": ("t5", {"relative_attention_max_distance": 128}),
    "t5 1.1": ("t5 1.1", {"relative_attention_max_distance": 128}),
}


@pytest.mark.sample("case", of=5)
@pytest.mark.parametrize("case", CASES)
def test_logits_and_maps_are_those_of_the_model_that_was_converted(case: str, tmp_path: Path) -> None:
    name, changes = CASES[case]
    model = build(name, **changes)
    file = write_gguf(tmp_path / "model.gguf", model)
    ours = open_guest(file, fields_of(file))
    assert ours.unread == ()
    assert all(equals_theirs(ours.model, model, length, tolerance=4e-5) for length in (1, 2, 5, 17, 64))


@pytest.mark.parametrize("packed", ["F16", "BF16", "Q8_0", "Q4_0", "Q5_1"])
def test_packed_numbers_are_the_librarys(packed: str, tmp_path: Path) -> None:
    import gguf

    model = build("llama", hidden_size=64, intermediate_size=96, head_dim=32, num_attention_heads=4)
    file = write_gguf(tmp_path / "model.gguf", model, packed=packed)
    kind = gguf.GGMLQuantizationType[packed]
    matrix = model.model.layers[1].mlp.down_proj.weight.detach().numpy()
    found = GgufFile(file).read("blk.1.ffn_down.weight")
    assert np.array_equal(found, gguf.quants.dequantize(gguf.quants.quantize(matrix, kind), kind))
    assert 0 < np.abs(found - matrix).max() < {"F16": 0.01, "BF16": 0.05}.get(packed, 0.3)
    assert packed in GgufFile(file).types()[:2]
    ours = open_guest(file, fields_of(file))
    assert torch.isfinite(ours.model(torch.tensor([[1, 2, 3]]))).all()


def test_a_file_in_parts(tmp_path: Path) -> None:
    import gguf

    model = build("llama")
    whole = GgufFile(write_gguf(tmp_path / "model.gguf", model))
    names = list(whole.tensors)
    for number, part in enumerate((names[:9], names[9:]), start=1):
        writer = gguf.GGUFWriter(str(tmp_path / f"split-{number:05}-of-00002.gguf"), "llama")
        if number == 1:
            for key in whole._keys:
                value = whole.get(key)
                if key.startswith("llama."):
                    (writer.add_float32 if isinstance(value, float) else writer.add_uint32)(key, value)
        for name in part:
            writer.add_tensor(name, whole.read(name))
        finish(writer)
    first = tmp_path / "split-00001-of-00002.gguf"
    assert GgufFile(first).tensors == whole.tensors
    ids = torch.tensor([[3, 5, 8]])
    expected = open_guest(whole.path, fields_of(whole.path)).model(ids)
    assert torch.equal(open_guest(first, fields_of(first)).model(ids), expected)
    (tmp_path / "split-00002-of-00002.gguf").unlink()
    with pytest.raises(CheckpointError, match="split-00002-of-00002"):
        GgufFile(first)


# name: (tokenizer, kind, case of the model, keys, settings with which Hugging Face opens the same tokenizer)
TOKENIZERS = {
    "gpt2": (lambda: byte_level(special=("<|endoftext|>",)), "gpt2", "gpt2", {"pre": "gpt-2"}),
    "gpt2, an old file": (lambda: byte_level(special=("<|endoftext|>",)), "gpt2", "gpt2", {}),
    "llama 3": (llama3, "gpt2", "llama", {"pre": "llama-bpe"}),
    "llama 3, an old file": (llama3, "gpt2", "llama", {"add_bos_token": True}),
    "llama 2": (with_byte_fallback, "llama", "llama", {"add_bos_token": False}),
    "gemma": (gemma, "llama", "gemma", {"add_space_prefix": False, "bos_token_id": 2, "eos_token_id": 1}),
    "t5": (lambda: unigram(("<pad>", "</s>", "<unk>"), "<unk>"), "t5", "t5", {"eos_token_id": 1}),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_ids_are_those_of_the_tokenizer_that_was_converted(name: str, tmp_path: Path) -> None:
    make, kind, case, keys = TOKENIZERS[name]
    backend = make()
    model = build(case, vocab_size=backend.get_vocab_size())
    ours = load(write_gguf(tmp_path / "model.gguf", model, tokens=token_keys(backend, kind, **keys))).tokenizer
    if kind == "t5":  # the class splits at white space first, which a file of the library alone does not say
        backend = theirs(write(tmp_path, {"model_type": "t5"}, None, backend)).backend_tokenizer
    for text in TEXTS:
        if kind == "llama" and (text != text.strip() or "▁" in text):
            continue  # a space typed in front: Llama's classes differ
        assert list(ours.encode(text)) == backend.encode(text, add_special_tokens=False).ids, repr(text)
    if kind != "t5":
        assert ours.decode(ours.encode(SENTENCES[0])) == SENTENCES[0]


def test_word_pieces_are_those_of_bert(tmp_path: Path) -> None:
    """A BERT in llama.cpp has no head: its output is a sentence embedding."""
    from transformer.text.guests.tokenizer import open_tokenizer

    backend = word_piece()
    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    ids = ("padding", "unknown", "cls", "seperator", "mask")
    named = {f"{job}_token_id": backend.token_to_id(name) for job, name in zip(ids, names, strict=True)}
    model = build("bert", vocab_size=backend.get_vocab_size(), hidden_act="gelu")  # the file names no template
    file = write_gguf(tmp_path / "model.gguf", model, tokens=token_keys(backend, "bert", **named))
    ours = open_tokenizer(file, config={}, generation={})
    for text in TEXTS:
        assert [*ours.before, *ours.encode(text), *ours.after] == backend.encode(text).ids, repr(text)
    assert ours.special.mask == backend.token_to_id("[MASK]")
    vector = trace(load(file), TEXTS[0])["pooling.vector"].values
    with torch.no_grad():
        hidden = model.bert(torch.tensor([backend.encode(TEXTS[0]).ids])).last_hidden_state[0]
    assert vector == pytest.approx(hidden.mean(dim=0).numpy(), abs=1e-6)


def test_a_whole_checkpoint_is_traced_and_writes(tmp_path: Path) -> None:
    file = whole_gguf(tmp_path / "sha256-0123", bos_token_id=0)  # the name that Ollama gives it
    assert is_gguf(file)
    checkpoint = load(file)
    assert checkpoint.name == "sha256-0123" and checkpoint.framing.ends == (0,) and len(checkpoint.fingerprint) == 64
    assert load(file).fingerprint == checkpoint.fingerprint
    found = trace(checkpoint, "The cat sat")
    written = decode(checkpoint, "The cat sat", Greedy(max_new_tokens=5))
    ids = torch.tensor([checkpoint.tokenizer.encode("The cat sat")])
    model = build("gpt2", vocab_size=checkpoint.config.vocabulary_size)
    expected = model.generate(ids, max_new_tokens=5, do_sample=False, eos_token_id=0, pad_token_id=0)
    assert list(written.tokens.ids)[:5] == expected[0, ids.shape[1] :].tolist()
    assert found.text


def test_a_tokenizer_is_read_from_a_file_larger_than_its_process_may_be(tmp_path: Path) -> None:
    """The tokenizer's process may use a few gigabytes, less than the file of a large model."""
    backend, file = byte_level(special=("<|endoftext|>",)), whole_gguf(tmp_path / "model.gguf")
    os.truncate(file, 2**36)  # without using space on the disk
    assert list(load(file).tokenizer.encode("The cat")) == backend.encode("The cat").ids


def test_memory_is_counted_before_a_number_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_gguf(tmp_path / "model.gguf", build("llama"))
    monkeypatch.setattr("transformer.system.memory.free_memory", lambda: 1000)
    monkeypatch.setattr(GgufFile, "read", lambda self, name: pytest.fail(f"{name} was read"))
    with pytest.raises(CheckpointError, match="GB of memory"):
        load(file)


def test_heads_of_a_file_are_saved_beside_it_also_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """The fingerprint used to be looked up inside the file, as if it were a folder."""
    (tmp_path / "models").mkdir()
    whole_gguf(tmp_path / "models" / "tiny.gguf", special=("<pad>", "</s>"), eos_token_id=1, padding_token_id=0)
    (tmp_path / "sentences.txt").write_text("the cat sat on the mat\n")
    monkeypatch.chdir(tmp_path)
    file = Path("models") / "tiny.gguf"
    assert main(["heads", "--checkpoint", str(file), "--sentences", "sentences.txt", "--save"]) == 0
    saved = Path("models") / "tiny.gguf.head_roles.json"
    assert f"saved in {saved}" in capsys.readouterr().err and saved.is_file()
    assert load(file).fingerprint == load(file.resolve()).fingerprint
    assert load_corpus_roles(load(file)).n_sentences == 1
