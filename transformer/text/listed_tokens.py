"""Tokens given as a list of texts, as ``convert_ids_to_tokens`` returns them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from transformer.errors import MessageError
from transformer.text.message import short_repr
from transformer.text.piece_bytes import BYTES_OF
from transformer.text.tokens import Token, TokenSequence, visible

# How a piece begins, by the notation of its vocabulary.
_NOTATIONS = {"byte-level": ("Ġ", "Ċ"), "SentencePiece": ("▁",), "word pieces": ("##",)}
_SPECIAL = re.compile(r"\[(CLS|SEP|PAD|MASK|UNK|BOS|EOS)\]|</?s>|<(pad|unk|mask|bos|eos|cls|sep)>|<[|｜][^<>]*[|｜]>")
_ROLES = {
    "pad": re.compile(r".pad.|<\|pad.*", re.IGNORECASE),
    "mask": re.compile(r".mask.", re.IGNORECASE),
    "start": re.compile(r".(cls|s|bos).|<[|｜]begin.*", re.IGNORECASE),
    "end": re.compile(r".(sep|/s|eos).|<[|｜]end.*", re.IGNORECASE),
}


def sequence_of_pieces(pieces: Iterable[str] | TokenSequence, name: str = "source") -> TokenSequence:
    """Return the tokens of a list of texts.

    Spaces may be written as in any vocabulary (``Ġthe``, ``▁the``, ``##ing``) or as they are (`` the``). Texts such as
    ``[CLS]``, ``</s>`` or ``<|endoftext|>`` become special tokens. Ids number the distinct texts.

    Raises:
        MessageError: If it is one text, or a token is not a text.
    """
    if isinstance(pieces, TokenSequence):
        return pieces
    if isinstance(pieces, str):
        raise MessageError(f"The tokens are one text, {short_repr(pieces)}; give a list with one text per token.")
    listed = list(pieces)
    for index, piece in enumerate(listed):
        if not isinstance(piece, str):
            raise MessageError(
                f"Token {index} is {short_repr(piece)}, not a text; a tokenizer converts ids with "
                "convert_ids_to_tokens."
            )
    notation = next((name for name, signs in _NOTATIONS.items() if any(p.startswith(signs) for p in listed)), "")
    ids = {piece: id for id, piece in enumerate(dict.fromkeys(listed))}
    return TokenSequence(
        tuple(_token(index, ids[piece], str(piece), notation) for index, piece in enumerate(listed)), name
    )


def _token(index: int, id: int, piece: str, notation: str) -> Token:
    if _SPECIAL.fullmatch(piece):
        role = next((role for role, form in _ROLES.items() if form.fullmatch(piece)), "other")
        return Token(index, id, "", piece, special=True, role=role)
    raw = BYTES_OF[notation](piece) if notation else piece.encode("utf-8", "replace")
    display = visible(raw) or "∅"
    return Token(index, id, raw.decode("utf-8", "replace"), display, first=index == 0 and not display.startswith("·"))
