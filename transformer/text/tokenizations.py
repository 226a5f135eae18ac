"""One text split in several ways: with fewer merges, into bytes, characters or whole words."""

from transformer.text.byte_pair_merges import merge_steps
from transformer.text.tokenizer import Tokenizer
from transformer.text.tokens import Token, TokenSequence, visible

NO_ID = -1  # a piece that this tokenizer's vocabulary lacks


def with_merges(tokenizer: Tokenizer, text: str, n_merges: int | None = None) -> TokenSequence:
    """Tokenize as if only the first ``n_merges`` merges had been learned (0: single bytes; ``None``: all).

    The ids are real entries of the vocabulary, because a merge adds an entry and removes none.
    """
    if n_merges is not None and n_merges < 0:
        raise ValueError(f"n_merges is {n_merges}; it is a number of merges, at least 0")
    pieces_of = {
        word: merge_steps(tokenizer, word, n_merges=n_merges)[-1].pieces for word in set(tokenizer.words(text))
    }
    ids = [tokenizer.to_id(piece) for word in tokenizer.words(text) for piece in pieces_of[word]]
    return tokenizer.sequence(ids)


def characters(tokenizer: Tokenizer, text: str) -> TokenSequence:
    """Split into one token per character, as for a character-level model.

    A character that the vocabulary lacks has the id ``NO_ID``.
    """
    front = " " if tokenizer.space_in_front and text else ""
    return _sequence(tokenizer, list(front + text))


def words(tokenizer: Tokenizer, text: str) -> TokenSequence:
    """Split into one token per word, as for a word-level model.

    A word that the vocabulary lacks has the id ``NO_ID``: such a model would read it as "unknown".
    """
    found = [tokenizer.bytes_of(word).decode("utf-8", errors="replace") for word in tokenizer.words(text)]
    return _sequence(tokenizer, found)


def word_of(tokenizer: Tokenizer, sequence: TokenSequence, index: int) -> str | None:
    """Return the word of token ``index``, as ``words`` writes it; ``None`` for a special token."""
    if sequence[index].special:
        return None
    start = sum(len(tokenizer.token_bytes[token.id]) for token in sequence.tokens[:index])
    end = 0
    for word in tokenizer.words(tokenizer.decode(sequence.ids)):
        end += len(tokenizer.bytes_of(word))
        if start < end:
            return word
    return None


def _sequence(tokenizer: Tokenizer, pieces: list[str]) -> TokenSequence:
    tokens = []
    for index, piece in enumerate(pieces):
        raw = piece.encode("utf-8", errors="replace")
        id = tokenizer.to_id(tokenizer.to_piece(piece))
        tokens.append(Token(index, NO_ID if id is None else id, piece, visible(raw)))
    return TokenSequence(tuple(tokens))
