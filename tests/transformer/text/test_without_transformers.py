"""Without the extra ``hf``, ``tokenizers`` reads ``tokenizer.json`` alone; errors name the extra."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transformer.text.foreign_folders import check_ids, opened, sentencepiece, theirs, unigram, write
from tests.transformer.text.test_foreign_tokenizer import FOLDERS, older_folder
from transformer.errors import CheckpointError
from transformer.text.foreign import connection

# The file names the tokenizer class, as in real checkpoint folders.
AGREEING = (
    *("GPT-2", "GPT-2, added tokens", "RoBERTa's file", "Whole words", "BERT", "BERT's file"),
    *("Llama 3", "Llama 2, legacy", "Gemma"),
)
SETTINGS = {"unk_token": "[UNK]", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


@pytest.fixture(autouse=True)
def _without_transformers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    missing = "import sys, runpy; sys.modules['transformers'] = None; "
    code = f"{missing}runpy.run_module('transformer.text.foreign.process', run_name='__main__')"
    monkeypatch.setattr(connection, "_ARGUMENTS", ("-c", code))
    monkeypatch.setattr(connection, "_nursery", connection._Nursery())
    yield
    if connection._nursery._process is not None:
        connection._nursery._line.close()
        connection._nursery._process.wait(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGREEING)
def test_ids_are_those_of_hugging_face(name: str, tmp_path: Path) -> None:
    model_type, settings, backend = FOLDERS[name]
    folder = write(tmp_path, {"model_type": model_type}, settings, backend())
    check_ids(opened(folder), theirs(folder))


def test_special_tokens_are_named_by_the_files_beside_it(tmp_path: Path) -> None:
    folder = write(tmp_path, {"model_type": "bert"}, None, FOLDERS["BERT"][2]())
    (folder / "special_tokens_map.json").write_text(json.dumps(SETTINGS))
    found, oracle = opened(folder).special, theirs(folder)
    assert (found.start, found.end, found.mask) == (oracle.cls_token_id, oracle.sep_token_id, oracle.mask_token_id)
    typed = opened(folder).encode("a [SEP] b")
    assert oracle.sep_token_id not in typed


@pytest.mark.parametrize("kind", ["GPT-2 without tokenizer.json", "T5's spiece.model", "NLLB"])
def test_what_only_transformers_reads_names_the_extra(kind: str, tmp_path: Path) -> None:
    if kind == "NLLB":
        folder = write(tmp_path, {"model_type": "m2m_100"}, {"tokenizer_class": "NllbTokenizer"}, FOLDERS[kind][2]())
    elif kind.startswith("GPT-2"):
        folder = older_folder(tmp_path, "gpt2", FOLDERS["GPT-2"][2]())
    else:
        folder = write(tmp_path, {"model_type": "t5"}, None, None)
        sentencepiece(folder / "spiece.model", "unigram")
    with pytest.raises(CheckpointError, match=r'pip install "glassformer\[hf\]"'):
        opened(folder)


def test_a_unigram_file_is_read(tmp_path: Path) -> None:
    folder = write(
        tmp_path, {"model_type": "t5"}, {"tokenizer_class": "T5Tokenizer"}, unigram(("<pad>", "</s>", "<unk>"), "<unk>")
    )
    ours = opened(folder)
    assert ours.kind == "Unigram" and ours.decode(ours.encode("The cat sat")) == "The cat sat"
