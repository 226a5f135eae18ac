"""Refusal of tokenizers that cannot spell a text, such as those of folders without their files."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from transformer.errors import CheckpointError
from transformer.text.tokenizer import Tokenizer

_SENTENCES = (
    "the cat sat on the mat",
    "la casa está en la colina",
    "кошка сидит на стене",
    "我的猫坐在墙上",
    "猫は壁の上に座っている",
    "고양이가 벽 위에 앉아 있다",
    "القط على الجدار",
    "बिल्ली दीवार पर बैठी है",
    "A C D E F G H I K L",  # amino acids
    "A C G T",
)


def check_spelling(tokenizer: Tokenizer, path: Path) -> None:
    """Refuse the tokenizer of ``path`` if it restores none of several ordinary sentences.

    Raises:
        CheckpointError: If every sentence loses letters when it is encoded and decoded.
    """
    if any(_letters(tokenizer.decode(tokenizer.encode(sentence))) == _letters(sentence) for sentence in _SENTENCES):
        return
    sentence = _SENTENCES[0]
    raise CheckpointError(
        f"{path}: the tokenizer turns {sentence!r} into {tokenizer.decode(tokenizer.encode(sentence))[:80]!r}, so the "
        "model would read another text. Check that its files are there (tokenizer.json, vocab.txt or a .model file)"
    )


def _letters(text: str) -> str:
    """Return the letters and digits of a text, without accents and capitals."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(character for character in plain if character.isalnum())
