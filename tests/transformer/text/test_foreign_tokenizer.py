"""Tokenizers of Hugging Face folders give the ids of ``AutoTokenizer``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.transformer.text.foreign_folders import (
    SENTENCES,
    TEXTS,
    byte_level,
    check_ids,
    opened,
    theirs,
    unigram,
    with_byte_fallback,
    word_piece,
    write,
)
from transformer.errors import CheckpointError

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
DEBERTA = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")


def around(backend: tokenizers.Tokenizer, single: str, *names: str) -> tokenizers.Tokenizer:
    backend.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(name, backend.token_to_id(name)) for name in names]
    )
    return backend


def gpt2() -> tokenizers.Tokenizer:
    return byte_level(special=("<|endoftext|>",))


def roberta() -> tokenizers.Tokenizer:
    backend = byte_level(special=FAIRSEQ)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    backend.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    return backend


def llama3() -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(LLAMA3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(SENTENCES, trainer)
    backend.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    begin = around(backend, "<|begin_of_text|> $A", "<|begin_of_text|>").post_processor
    backend.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin])
    return backend


def llama2() -> tokenizers.Tokenizer:
    return around(with_byte_fallback(), "<s> $A", "<s>")


def mistral() -> tokenizers.Tokenizer:
    backend = llama2()
    backend.pre_tokenizer = None
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return backend


def gemma() -> tokenizers.Tokenizer:
    backend = with_byte_fallback(("<pad>", "<eos>", "<bos>", "<unk>", "<mask>"))
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return around(backend, "<bos> $A", "<bos>")


def nllb() -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=list(FAIRSEQ[:4]), show_progress=False)
    backend.train_from_iterator(SENTENCES, trainer)
    backend.add_special_tokens(["eng_Latn", "fra_Latn"])
    backend.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    return backend


def with_added() -> tokenizers.Tokenizer:
    """Added tokens that are not special: found wherever they are typed."""
    backend = gpt2()
    backend.add_tokens(["<tool>", tokenizers.AddedToken("hello", single_word=True)])
    return backend


def word_level() -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]"], show_progress=False)
    backend.train_from_iterator(SENTENCES, trainer)
    return backend


LLAMA3_NAMES = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
FOLDERS = {
    "GPT-2": ("gpt2", {"tokenizer_class": "GPT2Tokenizer"}, gpt2),
    "GPT-2 without settings": ("gpt2", None, gpt2),
    "GPT-2, space in front": ("gpt2", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}, gpt2),
    "GPT-2, added tokens": ("gpt2", {"tokenizer_class": "GPT2TokenizerFast"}, with_added),
    "RoBERTa": ("roberta", {"tokenizer_class": "RobertaTokenizer"}, roberta),
    "RoBERTa's file": ("roberta", {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "<mask>"}, roberta),
    "BART": ("bart", {"tokenizer_class": "BartTokenizer"}, roberta),
    "Whole words": ("gpt2", {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}, word_level),
    "BERT": ("bert", {"tokenizer_class": "BertTokenizer"}, word_piece),
    "BERT, cased": ("bert", {"do_lower_case": False}, word_piece),
    "BERT's file": ("bert", {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]"}, word_piece),
    "DistilBERT": ("distilbert", {"tokenizer_class": "DistilBertTokenizer", "strip_accents": False}, word_piece),
    "GPT-NeoX": (
        "gpt_neox",
        {"tokenizer_class": "GPTNeoXTokenizer"},
        lambda: around(byte_level(special=("<|endoftext|>", "<|padding|>")), "<|endoftext|> $A", "<|endoftext|>"),
    ),
    "Llama 3": ("llama", {"tokenizer_class": "PreTrainedTokenizerFast", **LLAMA3_NAMES}, llama3),
    "Llama 3, named Llama": ("llama", {"tokenizer_class": "LlamaTokenizer", **LLAMA3_NAMES}, llama3),
    "Llama 2": ("llama", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False}, llama2),
    "Llama 2, legacy": ("llama", {"tokenizer_class": "LlamaTokenizerFast", "legacy": True}, llama2),
    "Llama 2, no space": ("llama", {"tokenizer_class": "LlamaTokenizer", "add_prefix_space": False}, llama2),
    "Llama 2 without settings": ("llama", None, mistral),
    "Mistral": ("mistral", {"tokenizer_class": "LlamaTokenizer"}, mistral),
    "Qwen2": ("qwen2", {"tokenizer_class": "Qwen2Tokenizer"}, gpt2),
    "Qwen2, wrong class": ("qwen2", {"tokenizer_class": "PreTrainedTokenizerFast"}, gpt2),
    "Qwen2, whole words": ("qwen2", {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}, word_level),
    "Qwen2, scored pieces": (
        "qwen2",
        {"tokenizer_class": "PreTrainedTokenizerFast"},
        lambda: unigram(("<pad>", "</s>", "<unk>"), "<unk>"),
    ),
    "BERT, whole words": ("bert", None, word_level),
    "Qwen3": (
        "qwen3",
        {"tokenizer_class": "Qwen2Tokenizer", "pad_token": "<|endoftext|>", "eos_token": "<|im_end|>"},
        lambda: byte_level(special=("<|endoftext|>", "<|im_end|>")),
    ),
    "Gemma": ("gemma", {"tokenizer_class": "GemmaTokenizer"}, gemma),
    "Gemma 3": ("gemma3_text", None, gemma),
    "T5": ("t5", {"tokenizer_class": "T5Tokenizer"}, lambda: unigram(("<pad>", "</s>", "<unk>"), "<unk>")),
    "T5, few": ("t5", {"extra_ids": 5}, lambda: unigram(("<pad>", "</s>", "<unk>"), "<unk>")),
    "DeBERTa": ("deberta-v2", {"tokenizer_class": "DebertaV2Tokenizer"}, lambda: unigram(DEBERTA, "[UNK]")),
    "DeBERTa, punctuation": (
        "deberta-v2",
        {"do_lower_case": True, "split_by_punct": True},
        lambda: unigram(DEBERTA, "[UNK]"),
    ),
    "XLM-R": ("xlm-roberta", {"tokenizer_class": "XLMRobertaTokenizer"}, lambda: unigram(FAIRSEQ, "<unk>")),
    "NLLB": ("m2m_100", {"tokenizer_class": "NllbTokenizer", "src_lang": "fra_Latn"}, nllb),
    "NLLB, legacy": ("m2m_100", {"tokenizer_class": "NllbTokenizer", "legacy_behaviour": True}, nllb),
}


def made(name: str, folder: Path) -> Path:
    model_type, settings, backend = FOLDERS[name]
    (place := folder / name).mkdir()
    return write(place, {"model_type": model_type}, settings, backend())


@pytest.mark.slow
@pytest.mark.sample("name", of=12)
@pytest.mark.parametrize("name", FOLDERS)
def test_ids_are_those_of_hugging_face(name: str, tmp_path: Path) -> None:
    model_type, folder = FOLDERS[name][0], made(name, tmp_path)
    oracle = theirs(folder)
    check_ids(opened(folder), oracle)
    saved = tmp_path / "saved"
    oracle.save_pretrained(saved)
    write(saved, {"model_type": model_type}, None, None)
    check_ids(opened(saved), theirs(saved))


def older_folder(folder: Path, model_type: str, backend: tokenizers.Tokenizer, **settings: object) -> Path:
    """The vocabulary alone, as before ``tokenizer.json`` existed."""
    content = json.loads(backend.to_str())["model"]
    if content["type"] == "WordPiece":
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in content["vocab"]), encoding="utf-8")
    else:
        (folder / "vocab.json").write_text(json.dumps(content["vocab"]))
        lines = ["#version: 0.2", *(" ".join(merge) for merge in content["merges"])]
        (folder / "merges.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return write(folder, {"model_type": model_type}, settings or None, None)


OLDER = {
    "GPT-2": ("gpt2", gpt2, {}),
    "GPT-2, begun": ("gpt2", gpt2, {"add_bos_token": True}),
    "RoBERTa": ("roberta", roberta, {}),
    "BART": ("bart", roberta, {"tokenizer_class": "BartTokenizer"}),
    "GPT-NeoX": (
        "gpt_neox",
        gpt2,
        {"tokenizer_class": "GPTNeoXTokenizer", "add_bos_token": True, "add_eos_token": True},
    ),
    "Qwen2": ("qwen2", gpt2, {"tokenizer_class": "Qwen2Tokenizer"}),
    "BERT": ("bert", word_piece, {}),
    "DistilBERT": ("distilbert", word_piece, {"do_lower_case": False}),
}


@pytest.mark.sample("name", of=3)
@pytest.mark.parametrize("name", OLDER)
def test_folders_from_before_tokenizer_json(name: str, tmp_path: Path) -> None:
    model_type, backend, settings = OLDER[name]
    folder = older_folder(tmp_path, model_type, backend(), **settings)
    check_ids(opened(folder), theirs(folder))


def test_older_files_name_special_and_added_tokens(tmp_path: Path) -> None:
    folder = older_folder(tmp_path, "roberta", roberta())
    mask = {"content": "<mask>", "lstrip": True, "normalized": False, "rstrip": False, "single_word": False}
    (folder / "special_tokens_map.json").write_text(json.dumps({"mask_token": mask, "pad_token": "<pad>"}))
    (folder / "added_tokens.json").write_text(json.dumps({"<speaker>": 400, "<mask>": 4}))
    check_ids(opened(folder), theirs(folder))
    assert opened(folder).to_id("<speaker>") == theirs(folder).convert_tokens_to_ids("<speaker>")


def test_special_tokens_that_are_typed_stay_text(tmp_path: Path) -> None:
    for name in ("GPT-2", "RoBERTa", "BERT", "Llama 2", "Gemma", "T5", "DeBERTa", "XLM-R", "NLLB"):
        folder = made(name, tmp_path)
        ours, unknown = opened(folder), theirs(folder).unk_token_id
        for content in ours.special_names - {ours.mask}:
            assert not {id for id in ours.encode(f"a {content} b") if id in ours.special} - {unknown}, (name, content)


def test_a_mask_is_typed_in_three_ways(tmp_path: Path) -> None:
    ours = opened(write(tmp_path, {"model_type": "roberta"}, {}, roberta()))
    expected = ours.encode("The <mask> sat.")
    assert expected.count(ours.special.mask) == 1
    assert ours.encode_with_blanks("The [MASK] sat.") == ours.encode_with_blanks("The ___ sat.") == expected
    assert ours.special.mask not in ours.encode("The [MASK] ___ sat.")
    without = tmp_path / "gpt2"
    without.mkdir()
    plain = opened(write(without, {"model_type": "gpt2"}, {}, gpt2()))
    assert plain.decode(plain.encode_with_blanks("a [MASK] ___")) == "a [MASK] ___"


def test_what_a_token_stands_for(tmp_path: Path) -> None:
    shown: dict[str, list[str]] = {}
    for name in ("GPT-2", "BERT", "Llama 2", "T5"):
        ours = opened(made(name, tmp_path), vocab_size=700)
        ids = [*ours.before, *ours.encode("The cat\n🦊"), *ours.after]
        shown[name] = [ours.display(id) for id in ids]
        assert len(ours.token_bytes) == len(ours.pieces) == ours.vocabulary_size == 700
        assert ours.display(699) == "⟨699⟩"
        assert [token.display for token in ours.sequence(ids)] == shown[name]
        assert ours.sequence(ids)[0].special == bool(ours.before)
    assert shown["GPT-2"][:2] == ["The", "·c"]
    assert shown["BERT"][0] == "[CLS]"
    assert shown["BERT"][-1] == "[SEP]"
    assert shown["BERT"][1] == "·the"
    assert shown["Llama 2"][:3] == ["<s>", "·T", "he"]
    assert shown["Llama 2"][-5:] == ["⏎", "⟨F0⟩", "⟨9F⟩", "⟨A6⟩", "⟨8A⟩"]
    assert shown["T5"][-1] == "</s>"


@pytest.mark.parametrize("name", ["GPT-2", "RoBERTa", "Llama 3", "Gemma"])
def test_every_text_comes_back(name: str, tmp_path: Path) -> None:
    ours = opened(made(name, tmp_path))
    for text in TEXTS:
        if name != "Gemma" or ("▁" not in text and "<0x" not in text):  # the forms as a space and as a byte are equal
            assert ours.decode(ours.encode(text)) == text
    assert ours.decode(ours.encode("lone \ud800 surrogate")) == "lone \ufffd surrogate"


def test_a_text_goes_on_after_another(tmp_path: Path) -> None:
    for name in ("GPT-2", "Llama 2", "T5"):
        ours = opened(made(name, tmp_path))
        prompt, more = ours.encode("The cat"), ours.encode_continuation("The cat", "sat on")
        assert prompt + more == ours.encode("The cat sat on")
        assert ours.decode(prompt + ours.encode_continuation("The cat", ", and")) == "The cat, and"
        assert not ours.decode([*prompt, *ours.encode("s", continues=True)]).endswith(" s")


def test_languages_of_nllb(tmp_path: Path) -> None:
    folder = write(tmp_path, {"model_type": "m2m_100"}, {"tokenizer_class": "NllbTokenizer"}, nllb())
    oracle, ours = theirs(folder), opened(folder)
    assert {"eng_Latn", "fra_Latn"} <= ours.languages.keys()
    assert (ours.source_language, ours.target_language) == ("eng_Latn", None)
    for source, target in (("fra_Latn", "eng_Latn"), ("eng_Latn", "fra_Latn")):
        oracle.src_lang, oracle.tgt_lang = source, target
        chosen = ours.with_languages(source=source, target=target)
        assert [*chosen.before, *chosen.encode("a text"), *chosen.after] == oracle("a text").input_ids
        written = [*chosen.answer_before, *chosen.encode_target("a text"), *chosen.after]
        assert written == oracle(text_target="a text").input_ids
    assert ours.source_language == "eng_Latn"  # the first stays as it was
    with pytest.raises(CheckpointError, match="knows no language 'xx'"):
        ours.with_languages(source="xx")
