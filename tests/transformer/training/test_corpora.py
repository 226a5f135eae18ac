"""Corpora are read in their documented layout; missing or malformed parts are named."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from transformer.training.corpora import SOURCES, group_references, load_corpus, read_pairs, read_texts


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content.encode())
    return folder.parent


def test_pairs(tmp_path: Path) -> None:
    data = write(
        tmp_path / "tatoeba-en-fr", train__tsv="Go.\tVa !\n\nHi.\tSalut !\nGo.\tPars !\n", dev__tsv="No.\tNon.\n"
    )
    corpus = load_corpus("tatoeba-en-fr", data)
    assert corpus.train == [("Go.", "Va !"), ("Hi.", "Salut !"), ("Go.", "Pars !")]
    assert corpus.dev == [("No.", "Non.")]
    both = b"".join((tmp_path / "tatoeba-en-fr" / name).read_bytes() for name in ("train.tsv", "dev.tsv"))
    assert corpus.digest == hashlib.sha256(both).hexdigest()
    english = load_corpus("tatoeba-en", str(data))
    assert english.train == [("Go.",), ("Hi.",)]
    assert english.dev == [("No.",)]
    assert english.digest == corpus.digest


def test_windows_line_ends_and_rare_separators(tmp_path: Path) -> None:
    data = write(tmp_path / "tatoeba-en-fr", train__tsv="a\u2028b\tc\x0bd\r\ne\tf\r\n", dev__tsv="x\ty")
    assert load_corpus("tatoeba-en-fr", data).train == [("a\u2028b", "c\x0bd"), ("e", "f")]


def test_two_files_side_by_side(tmp_path: Path) -> None:
    data = write(
        tmp_path / "multi30k-en-de",
        train__en="A dog.\n\nTwo men.\n", train__de="Ein Hund.\nEtwas.\nZwei Männer.\n", val__en="A.\n", val__de="B.\n",
    )  # fmt: skip
    corpus = load_corpus("multi30k-en-de", data)
    assert corpus.train == [("A dog.", "Ein Hund."), ("Two men.", "Zwei Männer.")], "an empty line shifts nothing"
    assert corpus.dev == [("A.", "B.")]
    assert read_pairs(tmp_path / "multi30k-en-de" / "val.en") == [("A.", "B.")]


def test_two_files_of_different_length_are_refused_with_both_numbers(tmp_path: Path) -> None:
    data = write(tmp_path / "multi30k-en-de", train__en="a\nb\n", train__de="a\n", val__en="a", val__de="b")
    with pytest.raises(ValueError, match=r"train.en has 2 lines but train.de has 1"):
        load_corpus("multi30k-en-de", data)


def test_labelled_texts(tmp_path: Path) -> None:
    data = write(tmp_path / "sst2", train__tsv="so good\t1\nso bad\t0\n", dev__tsv="fine\t1\n")
    assert load_corpus("sst2", data).train == [("so good", 1), ("so bad", 0)]
    write(tmp_path / "sst2", train__tsv="so good\tpositive\n")
    with pytest.raises(ValueError, match=r"train.tsv: the second column must be the index of a class, not 'positive'"):
        load_corpus("sst2", data)


def test_plain_text_is_split_nine_to_one(tmp_path: Path) -> None:
    data = write(tmp_path / "tinyshakespeare", input__txt="\n\n".join(f"line {n}" for n in range(20)))
    corpus = load_corpus("tinyshakespeare", data)
    assert corpus.train == [(f"line {n}",) for n in range(18)]
    assert corpus.dev == [("line 18",), ("line 19",)]


def test_passages_are_neighbouring_lines_up_to_a_length(tmp_path: Path) -> None:
    lines = [f"line {n} {'x' * (n * 7 % 90)}" for n in range(200)]
    data = write(tmp_path / "tinyshakespeare", input__txt="\n\n".join(lines))
    corpus = load_corpus("tinyshakespeare-passages", data)
    for passages, whole in ((corpus.train, lines[:180]), (corpus.dev, lines[180:])):
        assert " ".join(text for (text,) in passages) == " ".join(whole)
        assert all(len(text) <= 600 for (text,) in passages)
        assert all(
            len(a) + 1 + len(b.split(" line ")[0]) > 600 for (a,), (b,) in zip(passages, passages[1:], strict=False)
        )


@pytest.mark.parametrize("name", [*SOURCES, "tatoeba-en"])
def test_a_missing_file_is_named_with_where_to_get_it(name: str, tmp_path: Path) -> None:
    folder = name if name in SOURCES else "tatoeba-en-fr"
    with pytest.raises(FileNotFoundError) as caught:
        load_corpus(name, tmp_path)
    message = str(caught.value)
    assert str(tmp_path / folder) in message
    assert SOURCES[folder] in message
    assert f"point --data at the folder that holds {folder}/" in message


def test_joined_corpora_give_the_texts_of_both(tmp_path: Path) -> None:
    write(tmp_path / "tatoeba-en-fr", train__tsv="a b\tc\na b\td\n", dev__tsv="e\tf\n")
    data = write(tmp_path / "sst2", train__tsv="so good\t1\n", dev__tsv="so bad\t0\n")
    joined = load_corpus("tatoeba-en + sst2", data)
    assert joined.train == [("a b",), ("so good",)]
    assert joined.dev == [("e",), ("so bad",)]
    assert joined.digest not in (load_corpus("tatoeba-en", data).digest, load_corpus("sst2", data).digest)
    with pytest.raises(ValueError, match="corpus 'wmt14' is unknown"):
        load_corpus("sst2 + wmt14", data)


def test_joined_translations_into_french_keep_their_translations(tmp_path: Path) -> None:
    write(tmp_path / "tatoeba-en-fr", train__tsv="a b\tc\n", dev__tsv="e\tf\n")
    data = write(tmp_path / "multi30k-en-fr", train__en="A dog.", train__fr="Un chien.", val__en="A.", val__fr="Un.")
    joined = load_corpus("tatoeba-en-fr + multi30k-en-fr", data)
    assert joined.train == [("a b", "c"), ("A dog.", "Un chien.")]
    assert joined.dev == [("e", "f"), ("A.", "Un.")]
    assert read_pairs(tmp_path / "multi30k-en-fr" / "val.en") == [("A.", "Un.")]


def test_an_unknown_corpus_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="corpus 'wmt14' is unknown; known are tatoeba-en-fr, .*tatoeba-en"):
        load_corpus("wmt14", tmp_path)


@pytest.mark.parametrize("line", ["no tab", "one\ttwo\tthree"])
def test_a_line_without_two_columns_is_named_with_its_number(line: str, tmp_path: Path) -> None:
    data = write(tmp_path / "tatoeba-en-fr", train__tsv=f"a\tb\n\n{line}\n", dev__tsv="a\tb\n")
    with pytest.raises(ValueError, match=r"train.tsv, line 3: there must be exactly two columns"):
        load_corpus("tatoeba-en-fr", data)
    with pytest.raises(ValueError, match="line 3"):
        read_pairs(data / "tatoeba-en-fr" / "train.tsv")


def test_texts_and_references(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("Go.\tVa !\nHi.\tSalut !\nGo.\tPars !\n")
    assert read_texts(tmp_path / "test.tsv") == ["Go.", "Hi."]
    pairs = read_pairs(tmp_path / "test.tsv")
    assert group_references(pairs) == (["Go.", "Hi."], [["Va !", "Pars !"], ["Salut !"]])
    with pytest.raises(FileNotFoundError, match=r"nothing.tsv is missing; docs/checkpoints.md"):
        read_pairs(tmp_path / "nothing.tsv")
