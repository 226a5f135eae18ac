"""Reading the corpora. None of them is part of the project; each error says where to get the file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCES = {
    "tatoeba-en-fr": "manythings.org/anki (fra-eng), from the Tatoeba Project, CC BY 2.0 FR",
    "multi30k-en-de": "github.com/multi30k/dataset, for non-commercial research and educational use",
    "sst2": "the Stanford Sentiment Treebank (Socher et al. 2013), binary version",
    "tinyshakespeare": "github.com/karpathy/char-rnn, public domain",
}


@dataclass(frozen=True)
class Corpus:
    """Training and development examples; an example is a tuple of texts (and, for classification, a class index).

    ``digest``: SHA-256 over all files that were read, so that a model card can say exactly which data it saw.
    """

    train: list[tuple]
    dev: list[tuple]
    digest: str


def load_corpus(name: str, directory: str | Path) -> Corpus:
    """Read corpus ``name`` from ``directory``/``name``, in the layout that README.md describes.

    ``"tatoeba-en"`` is the English side of tatoeba-en-fr, each sentence once. Raises ``FileNotFoundError`` that says
    where a missing file can be had.
    """
    folder = corpus_folder(name)
    root = Path(directory) / folder
    digest = hashlib.sha256()

    def lines(file: str) -> list[str]:
        path = root / file
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing; get it from {SOURCES[folder]}, and point --data at its parent")
        raw = path.read_bytes()
        digest.update(raw)
        return [line for line in raw.decode("utf-8").split("\n") if line.strip()]

    if folder == "tatoeba-en-fr":
        train, dev = ([tuple(line.split("\t")) for line in lines(f)] for f in ("train.tsv", "dev.tsv"))
        if name == "tatoeba-en":
            train, dev = ([(text,) for text in dict.fromkeys(pair[0] for pair in split)] for split in (train, dev))
    elif folder == "multi30k-en-de":
        train = list(zip(lines("train.en"), lines("train.de"), strict=True))
        dev = list(zip(lines("val.en"), lines("val.de"), strict=True))
    elif folder == "sst2":
        train, dev = ([_labelled(line) for line in lines(f)] for f in ("train.tsv", "dev.tsv"))
    else:
        paragraphs = [(line,) for line in lines("input.txt")]
        cut = len(paragraphs) * 9 // 10
        train, dev = paragraphs[:cut], paragraphs[cut:]
    return Corpus(train, dev, digest.hexdigest())


def corpus_folder(name: str) -> str:
    """The folder that a corpus is read from. Raises ``ValueError`` for an unknown corpus."""
    folder = {"tatoeba-en": "tatoeba-en-fr"}.get(name, name)
    if folder not in SOURCES:
        raise ValueError(f"corpus {name!r} is unknown; known are {', '.join([*SOURCES, 'tatoeba-en'])}")
    return folder


def _labelled(line: str) -> tuple[str, int]:
    text, label = line.rsplit("\t", 1)
    return text, int(label)


def read_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Pairs of one file: two columns with a tab between, or ``NAME.en`` with ``NAME.de`` beside it, line by line."""
    path = Path(path)
    if path.suffix == ".en":
        return list(zip(_read(path), _read(path.with_suffix(".de")), strict=True))
    pairs = [tuple(line.split("\t")) for line in _read(path)]
    if wrong := [number for number, pair in enumerate(pairs, start=1) if len(pair) != 2]:
        raise ValueError(f"{path}, line {wrong[0]}: there must be exactly two columns with a tab between them")
    return pairs


def read_texts(path: str | Path) -> list[str]:
    """The first column of a file, each text once, in order."""
    return list(dict.fromkeys(line.split("\t")[0] for line in _read(Path(path))))


def group_references(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[list[str]]]:
    """Each source sentence once, in order, with all its translations."""
    references: dict[str, list[str]] = {}
    for source, target in pairs:
        references.setdefault(source, []).append(target)
    return list(references), list(references.values())


def _read(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; README.md says where the corpora can be had")
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
