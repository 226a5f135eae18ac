"""Folders with a SentencePiece file: ids equal those of ``AutoTokenizer`` and of SentencePiece."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path

import pytest

from tests.transformer.text.foreign_folders import SENTENCES, TEXTS, check_ids, opened, sentencepiece, theirs, write
from transformer.errors import CheckpointError
from transformer.text.byte_pair_merges import merge_steps

T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
DEBERTA = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
DEBERTA |= {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}
BYTES = {"byte_fallback": True, "vocab_size": 560, "normalization_rule_name": "identity"}
LLAMA = BYTES | {"remove_extra_whitespaces": False, "split_digits": True, "allow_whitespace_only_pieces": True}
GEMMA = LLAMA | {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "bos_piece": "<bos>", "eos_piece": "<eos>"}
GEMMA |= {"user_defined_symbols": ["<mask>", "\n\n", "<start_of_turn>"]}


BEGUN, ENDED = {"add_bos_token": True}, {"add_bos_token": True, "add_eos_token": True}
LANGUAGES = {"additional_special_tokens": ["eng_Latn", "fra_Latn"]}
# name: (type of the model, file, settings, kind of the library's model, options of its training)
FOLDERS: dict[str, tuple[str, str, dict | None, str, dict]] = {
    "T5": ("t5", "spiece.model", {"tokenizer_class": "T5Tokenizer"}, "unigram", T5),
    "T5 without settings": ("t5", "spiece.model", None, "unigram", T5),
    "T5, few": ("t5", "spiece.model", {"extra_ids": 2, "additional_special_tokens": ["<extra_id_0>"]}, "unigram", T5),
    "DeBERTa": ("deberta-v2", "spm.model", {"do_lower_case": False}, "unigram", DEBERTA),
    "DeBERTa's mask": ("deberta-v2", "spm.model", None, "unigram", DEBERTA | {"user_defined_symbols": ["[MASK]"]}),
    "XLM-R": ("xlm-roberta", "sentencepiece.bpe.model", None, "unigram", {}),
    "M2M100": ("m2m_100", "sentencepiece.bpe.model", {"tokenizer_class": "NllbTokenizer", **LANGUAGES}, "bpe", {}),
    "NLLB": ("nllb", "sentencepiece.bpe.model", {"tokenizer_class": "NllbTokenizer"}, "bpe", {}),
    "Llama": ("llama", "tokenizer.model", {"tokenizer_class": "LlamaTokenizer", **BEGUN}, "bpe", LLAMA),
    "Llama, legacy": ("llama", "tokenizer.model", {"tokenizer_class": "LlamaTokenizer", "legacy": True}, "bpe", LLAMA),
    "Llama without settings": ("llama", "tokenizer.model", None, "bpe", LLAMA),
    "Mistral": ("mistral", "tokenizer.model", {"tokenizer_class": "LlamaTokenizer", **ENDED}, "bpe", LLAMA),
    "Mistral, scored": ("mistral", "tokenizer.model", None, "unigram", {}),
    "Gemma": ("gemma", "tokenizer.model", {"tokenizer_class": "GemmaTokenizer", **BEGUN}, "bpe", GEMMA),
}


@pytest.mark.slow
@pytest.mark.sample("what", of=5)
@pytest.mark.parametrize("what", FOLDERS)
def test_folders_with_a_sentencepiece_file_alone(what: str, tmp_path: Path) -> None:
    model_type, name, settings, kind, options = FOLDERS[what]
    folder = write(tmp_path, {"model_type": model_type}, settings, None)
    sentencepiece(folder / name, kind, **options)
    check_ids(opened(folder), theirs(folder))


GIVEN = {"normalization_rule_name": "nmt_nfkc_cf", "user_defined_symbols": ["<sep>", "foo"]}


OPTIONS = {
    "plain": {},
    "llama": LLAMA,
    "given": GIVEN,
    "gemma": GEMMA,
    "bytes": {"byte_fallback": True, "vocab_size": 520},
}
MADE = [f"{kind}, {name}" for kind in ("unigram", "bpe") for name in OPTIONS]


@pytest.mark.slow
@pytest.mark.sample("made", of=4)
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("model_type", ["llama", "mistral"])
def test_a_file_that_no_class_opens_is_cut_as_its_own_library_cuts_it(
    made: str, model_type: str, tmp_path: Path
) -> None:
    """The reference is the SentencePiece library, which trained such models.

    A text begins with ▁ if the file says so (``add_dummy_prefix``). transformers agrees from 5.24.0; earlier versions
    omitted this ▁, so the extra ``hf`` requires that version.
    """
    kind, options = made.split(", ")
    folder = write(tmp_path, {"model_type": model_type}, None, None)
    file = sentencepiece(folder / "tokenizer.model", kind, **OPTIONS[options])
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(file))
    ours = opened(tmp_path)
    texts = [
        "The cat sat on the mat.",
        "the",
        " leading",
        "  two  spaces ",
        "typed ▁",
        "foo a",
        "a foo b<sep>c",
        "1 22",
    ]
    for text in texts:
        assert ours.encode(text) == library.encode(text), repr(text)
    assert ours.decode(ours.encode(texts[0])) == library.decode(library.encode(texts[0]))


def pieces_of(file: Path) -> list[str]:
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(file))
    return [library.id_to_piece(id) for id in range(library.get_piece_size())]


def entries(*files: Path, more: tuple[str, ...] = (), first: tuple[str, ...] = ("</s>", "<unk>")) -> dict[str, int]:
    """Return a list of ids that lacks some pieces, in an order of its own."""
    names = list(first)
    for file in files:
        names += [piece for place, piece in enumerate(pieces_of(file)) if place % 17 != 5]
    return {name: id for id, name in enumerate(dict.fromkeys([*names, *more, "<pad>"]))}


def marian_folder(folder: Path, *, settings: dict | None = None, more: tuple[str, ...] = ()) -> Path:
    folder.mkdir(exist_ok=True)
    write(folder, {"model_type": "marian"}, settings, None)
    source = sentencepiece(folder / "source.spm", "unigram")
    target = sentencepiece(folder / "target.spm", "bpe", vocab_size=250)
    if settings and settings.get("separate_vocabs"):
        written = entries(target, first=("<unk>", "</s>"))
        (folder / "vocab.json").write_text(json.dumps(entries(source)))
        (folder / "target_vocab.json").write_text(json.dumps(written))
    else:
        (folder / "vocab.json").write_text(json.dumps(entries(source, target, more=more)))
    return folder


@pytest.mark.parametrize("settings", [None, {"source_lang": "en", "target_lang": "fr"}, {"separate_vocabs": True}])
def test_marian(settings: dict | None, tmp_path: Path) -> None:
    folder = marian_folder(tmp_path, settings=settings, more=(">>fra<<", ">>deu<<"))
    ours, oracle = opened(folder), theirs(folder)
    for text in [*TEXTS, ">>fra<< the cat", ">>deu<<the", ">>xx<< cat", ">> a"]:
        assert [*ours.before, *ours.encode(text), *ours.after] == oracle(text).input_ids
        assert [*ours.answer_before, *ours.encode_target(text), *ours.after] == oracle(text_target=text).input_ids
    written = ours.encode_target("a cat sat on tape.")
    assert ours.decode(written) == oracle.decode(written, skip_special_tokens=True)
    assert ours.sequence(written, "target").text == ours.decode(written)
    assert [token.special for token in ours.sequence([*ours.encode("cat"), *ours.after])][-1]


def test_marian_writes_in_the_language_that_is_asked_for(tmp_path: Path) -> None:
    ours = opened(marian_folder(tmp_path, more=(">>fra<<", ">>deu<<")))
    assert set(ours.languages) == {"fra", "deu"}
    french = ours.with_languages(target="fra")
    assert french.before == (ours.languages["fra"],)
    assert [*french.before, *french.encode("a cat"), *french.after] == theirs(tmp_path)(">>fra<< a cat").input_ids
    assert ours.before == ()


@pytest.mark.parametrize("settings", [None, {"src_lang": "de", "tgt_lang": "fr"}])
def test_m2m100(settings: dict | None, tmp_path: Path) -> None:
    folder = write(tmp_path, {"model_type": "m2m_100"}, settings, None)
    file = sentencepiece(folder / "sentencepiece.bpe.model", "bpe")
    (folder / "vocab.json").write_text(json.dumps(entries(file, first=("<s>", "<pad>", "</s>", "<unk>"))))
    ours, oracle = opened(folder), theirs(folder)
    check_ids(ours, oracle)
    pieces = [piece for word in ours.words(SENTENCES[0]) for piece in merge_steps(ours, word)[-1].pieces]
    assert pieces == oracle.tokenize(SENTENCES[0])
    assert ours.languages["fr"] == oracle.get_lang_id("fr")
    oracle.add_tokens(["cat", "sa"])
    oracle.save_pretrained(tmp_path / "added")
    write(tmp_path / "added", {"model_type": "m2m_100"}, None, None)
    check_ids(opened(tmp_path / "added"), theirs(tmp_path / "added"))
    oracle = theirs(folder)
    oracle.src_lang, oracle.tgt_lang = "fr", "ar"
    chosen = ours.with_languages(source="fr", target="ar")
    assert [*chosen.before, *chosen.encode("un chat"), *chosen.after] == oracle("un chat").input_ids
    written = [*chosen.answer_before, *chosen.encode_target("un chat"), *chosen.after]
    assert written == oracle(text_target="un chat").input_ids


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model_type", "name"),
    [("t5", "spiece.model"), pytest.param("marian", "source.spm", marks=pytest.mark.nightly)],
)
def test_files_that_lie_are_refused_or_read(model_type: str, name: str, tmp_path: Path) -> None:
    folder = marian_folder(tmp_path) if model_type == "marian" else write(tmp_path, {"model_type": "t5"}, None, None)
    file = folder / name
    whole = file.read_bytes() if file.exists() else sentencepiece(file, "unigram").read_bytes()
    chosen = random.Random(0)
    broken = [b"", b"\x00", b"\xff" * 50, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a" * 1000, b"{}"]
    for _ in range(25):  # a changed byte in the file: it reads differently or is refused, nothing else
        data = bytearray(whole)
        data[chosen.randrange(len(data))] = chosen.randrange(256)
        broken.append(bytes(data))
    broken += [whole[:end] for end in range(len(whole) // 9, len(whole), len(whole) // 9)]
    for data in broken:
        file.write_bytes(data)
        with suppress(CheckpointError):
            opened(folder).encode("The cat sat.")
    file.write_bytes(whole)
    assert opened(folder).encode("The cat sat.")
