"""Readers for the corpora, which are not part of the project; errors say where to get a file."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transformer.config import NEXT_SENTENCE
from transformer.errors import InputError

SOURCES = {
    "tatoeba-en-fr": "manythings.org/anki (fra-eng), from the Tatoeba Project, CC BY 2.0 FR",
    "multi30k-en-de": "github.com/multi30k/dataset, for non-commercial research and educational use",
    "multi30k-en-fr": "github.com/multi30k/dataset, for non-commercial research and educational use",
    "sst2": "the Stanford Sentiment Treebank (Socher et al. 2013), binary version",
    "digits": "Optical Recognition of Handwritten Digits (Alpaydin & Kaynak 1998, UCI Machine Learning Repository), "
    "CC BY 4.0, the 1,797 pictures that scikit-learn has, as docs/checkpoints.md writes them",
    "tatoeba-pairs": "English texts of tatoeba-en-fr, cut in two as in docs/checkpoints.md",
    "tinyshakespeare-pairs": "lines of github.com/karpathy/char-rnn (public domain), paired as in docs/checkpoints.md",
}

_PARTS = {"tatoeba-en": "tatoeba-en-fr"}  # corpus → the folder it is in
PAIRS = ("tatoeba-pairs", "tinyshakespeare-pairs")
_CAPTIONS = {"multi30k-en-de": "de", "multi30k-en-fr": "fr"}  # folder → ending of the files with the translations
_INTO_FRENCH = {"tatoeba-en-fr", "multi30k-en-fr"}


class SentencePair(NamedTuple):
    """Two sentences, and the index in ``NEXT_SENTENCE`` of whether the second follows the first."""

    first: str
    second: str
    label: int


@dataclass(frozen=True)
class Corpus:
    """Training and development examples.

    Attributes:
        train: Tuples of texts (and, for classification, a class index).
        dev: The same for development.
        digest: SHA-256 over all files that were read, which lets a model card state exactly its data.
    """

    train: list[tuple]
    dev: list[tuple]
    digest: str


def load_corpus(name: str, directory: str | Path) -> Corpus:
    """Read corpus ``name`` from ``directory``/``name``, in the layout of docs/checkpoints.md.

    ``"tatoeba-en"`` is the English side of tatoeba-en-fr, each sentence once; ``"a + b"`` joins two corpora: the first
    column of each, but sentence pairs as they are; translations into French are kept if both have them.

    Raises:
        FileNotFoundError: If a file is missing; the message says where to get it.
    """
    if "+" in name:
        parts = corpus_parts(name)
        return _concatenate([load_corpus(part, directory) for part in parts], keep_rows=_INTO_FRENCH.issuperset(parts))
    (folder,) = corpus_folders(name)
    root = Path(directory) / folder
    digest = hashlib.sha256()

    def checked(file: str) -> Path:
        path = root / file
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is missing; get it from {SOURCES[folder]}, and point --data at the folder that holds {folder}/"
            )
        digest.update(path.read_bytes())
        return path

    if ending := _CAPTIONS.get(folder):
        train, dev = (_parallel(checked(f"{split}.en"), checked(f"{split}.{ending}")) for split in ("train", "val"))
    else:
        read = read_sentence_pairs if folder in PAIRS else _columns if folder == "tatoeba-en-fr" else read_labelled
        train, dev = (read(checked(file)) for file in ("train.tsv", "dev.tsv"))
    if name == "tatoeba-en":
        train, dev = ([(text,) for text in dict.fromkeys(pair[0] for pair in split)] for split in (train, dev))
    return Corpus(train, dev, digest.hexdigest())


def corpus_parts(name: str) -> list[str]:
    """Return the names of the corpora that ``name`` joins with ``+``; usually it is one."""
    return [part.strip() for part in name.split("+")]


def corpus_folders(name: str) -> list[str]:
    """Return the folders that a corpus is read from.

    Raises:
        ValueError: If the corpus is unknown.
    """
    folders = [_PARTS.get(part, part) for part in corpus_parts(name)]
    if unknown := [part for part, folder in zip(corpus_parts(name), folders, strict=True) if folder not in SOURCES]:
        raise ValueError(f"corpus {unknown[0]!r} is unknown; known are {', '.join([*SOURCES, *_PARTS])}")
    return folders


def _concatenate(parts: Sequence[Corpus], *, keep_rows: bool) -> Corpus:
    """Concatenate corpora: the first text of each row, and the whole row of sentence pairs.

    With ``keep_rows``, all rows stay whole.
    """
    train, dev = (
        [row if keep_rows or isinstance(row, SentencePair) else row[:1] for part in rows for row in part]
        for rows in ([part.train for part in parts], [part.dev for part in parts])
    )
    return Corpus(train, dev, hashlib.sha256("".join(part.digest for part in parts).encode()).hexdigest())


def read_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Read pairs from two columns, or line by line from ``NAME.en`` and ``NAME.fr`` or ``NAME.de``.

    Raises:
        ValueError: If a line is not such a pair; the message names the file and the line.
    """
    path = Path(path)
    if path.suffix != ".en":
        return _columns(path)
    french = path.with_suffix(".fr")
    return _parallel(path, french if french.is_file() else path.with_suffix(".de"))


def read_sentence_pairs(path: str | Path) -> list[SentencePair]:
    """Read rows of two sentences and a class, 0 if the second follows the first and 1 otherwise.

    Raises:
        ValueError: If a line is not such a row; the message names the file and the line.
    """
    labels = [str(index) for index in range(len(NEXT_SENTENCE))]
    pairs = []
    for number, line in _numbered_lines(Path(path)):
        columns = line.split("\t")
        if len(columns) != 3 or columns[2] not in labels:
            raise ValueError(f"{path}, line {number}: there must be two sentences and {' or '.join(labels)}, with tabs")
        pairs.append(SentencePair(columns[0], columns[1], int(columns[2])))
    return pairs


def read_labelled(path: str | Path, n_classes: int | None = None) -> list[tuple[str, int]]:
    """Read texts with the index of their class, which is below ``n_classes`` if that is given.

    Raises:
        ValueError: If a line is not such a row; the message names the file and the class or the line.
    """
    pairs = _columns(Path(path))
    for _, label in pairs:
        if not label.strip().isdecimal() or (n_classes is not None and int(label) >= n_classes):
            last = "" if n_classes is None else f" to {n_classes - 1}"
            raise InputError(f"{path}: a text has the class {label!r}; the classes are numbered from 0{last}")
    return [(text, int(label)) for text, label in pairs]


def holds_sentence_pairs(path: str | Path) -> bool:
    """Return whether the first line of a file has three columns: two sentences and a class."""
    return any(line.count("\t") == 2 for _, line in _numbered_lines(Path(path))[:1])


def read_texts(path: str | Path) -> list[str]:
    """Return the first column of a file, each text once, in order."""
    return list(dict.fromkeys(line.split("\t")[0] for _, line in _numbered_lines(Path(path))))


def group_references(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[list[str]]]:
    """Return each source sentence once, in order, with all its translations."""
    references: dict[str, list[str]] = {}
    for source, target in pairs:
        references.setdefault(source, []).append(target)
    return list(references), list(references.values())


def _columns(path: Path) -> list[tuple[str, str]]:
    pairs = []
    for number, line in _numbered_lines(path):
        columns = line.split("\t")
        if len(columns) != 2:
            raise ValueError(f"{path}, line {number}: there must be exactly two columns with a tab between them")
        pairs.append((columns[0], columns[1]))
    return pairs


def _parallel(first: Path, second: Path) -> list[tuple[str, str]]:
    """Pair line i of one file with line i of the other, without pairs that have an empty side."""
    sides = _lines(first), _lines(second)
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{first} has {len(sides[0])} lines but {second.name} has {len(sides[1])}; line i must fit line i"
        )
    return [pair for pair in zip(*sides, strict=True) if pair[0].strip() and pair[1].strip()]


def _numbered_lines(path: Path) -> list[tuple[int, str]]:
    """Return the non-empty lines with their numbers in the file."""
    return [(number, line) for number, line in enumerate(_lines(path), start=1) if line.strip()]


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; docs/checkpoints.md says where to get the corpora")
    try:
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
    return text.removesuffix("\n").split("\n")  # not splitlines(), which also splits at characters inside a sentence
