"""Trained word vectors on disk: ``words.txt``, ``vectors.safetensors``, and a card."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from transformer.disk.plain_files import check_plain, read_plain_text
from transformer.disk.tensor_files import TensorFile
from transformer.disk.whole_files import atomic_path, write_text
from transformer.errors import CheckpointError, MessageError
from transformer.word_vectors.vocabulary import Vocabulary
from transformer.word_vectors.word2vec_objectives import OBJECTIVES

WORDS, VECTORS = "words.txt", "vectors.safetensors"


@dataclass(frozen=True)
class WordVectors:
    """Words of both runs and ``tables[objective]``, [word, width], with one row per word."""

    words: tuple[str, ...]
    tables: dict[str, np.ndarray]

    @cached_property
    def ids(self) -> dict[str, int]:
        """Index of each word."""
        return {word: id for id, word in enumerate(self.words)}


def save_vectors(folder: Path, vocabulary: Vocabulary, tables: dict[str, np.ndarray]) -> None:
    """Write the vectors in half precision, and the words, one per line, most frequent first."""
    with atomic_path(folder / VECTORS) as temporary:
        save_file({name: table.astype(np.float16) for name, table in tables.items()}, str(temporary))
    write_text(folder / WORDS, "".join(f"{word}\n" for word in vocabulary.words))


def load_vectors(folder: str | Path) -> WordVectors:
    """Read what ``save_vectors`` wrote.

    Raises:
        CheckpointError: If a file is missing, or they do not fit together.
    """
    folder = Path(folder)
    try:
        words = tuple(read_plain_text(folder / WORDS).splitlines())
        check_plain(folder / VECTORS)
        with TensorFile(folder / VECTORS) as file:
            tables = {name: file.read(name).float().numpy() for name in file.tensors}
    except FileNotFoundError as error:
        raise CheckpointError("{file} is missing", file=error.filename or folder / VECTORS) from None
    except MessageError as error:
        raise CheckpointError("{path} cannot be read: {problem}", path=folder, problem=error) from None
    if set(tables) != set(OBJECTIVES) or {len(table) for table in tables.values()} != {len(words)}:
        found = ", ".join(f"{name}: {len(table)}" for name, table in sorted(tables.items()))
        raise CheckpointError(
            "{file} holds vectors of {found} words, but {words} has {count} lines, and both {objectives} are needed",
            file=folder / VECTORS, found=found, words=WORDS, count=len(words), objectives=" and ".join(OBJECTIVES),
        )  # fmt: skip
    return WordVectors(words, tables)
