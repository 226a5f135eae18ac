"""The words of a sentence, combined from the tokens of a tokenizer."""

from dataclasses import dataclass

from transformer.text.tokens import Token, TokenSequence, visible


@dataclass(frozen=True)
class Word:
    """Consecutive tokens of one word: positions ``start`` to ``end`` (exclusive) of the sentence."""

    text: str
    start: int
    end: int


def words_of(tokens: TokenSequence) -> tuple[Word, ...]:
    """Return the words of a sentence; punctuation is separate, special tokens are left out."""
    words: list[Word] = []
    previous: Token | None = None
    for token in tokens:
        if token.special:
            previous = None
            continue
        if previous is not None and not _starts(token, previous):
            last = words[-1]
            words[-1] = Word(last.text + token.text, last.start, token.index + 1)
        else:
            words.append(Word(token.text, token.index, token.index + 1))
        previous = token
    return tuple(Word(word.text.strip() or visible(word.text.encode()), word.start, word.end) for word in words)


def _starts(token: Token, previous: Token) -> bool:
    """Return whether a word begins here: after a space or line break, or where letters meet punctuation."""
    # A byte of a character, or what follows a separate space.
    if token.display.startswith("⟨") or previous.display == "·":
        return False
    return token.starts_word or _is_mark(token) != _is_mark(previous)


def _is_mark(token: Token) -> bool:
    """Return whether a token is punctuation; apostrophes are more often within words than around them."""
    text = token.text.strip()
    return bool(text) and not any(character.isalnum() or character in "'’" for character in text)
