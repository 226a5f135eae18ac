"""The words of a sentence: whole words put together from the tokens into which a tokenizer has cut them."""

from dataclasses import dataclass

from transformer.text.tokens import Token, TokenSequence, visible


@dataclass(frozen=True)
class Word:
    """Neighbouring tokens that belong together: positions ``start`` to ``end`` (not included) of the sentence."""

    text: str
    start: int
    end: int


def words_of(tokens: TokenSequence) -> tuple[Word, ...]:
    """The words of a sentence: a word with all its pieces, punctuation by itself, special tokens left out."""
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
    """Whether a word begins here: after a space or line break, or where letters meet punctuation."""
    if token.display.startswith("⟨") or previous.display == "·":  # a byte of a character, or what a lone space begins
        return False
    return token.starts_word or _is_mark(token) != _is_mark(previous)


def _is_mark(token: Token) -> bool:
    """Punctuation. An apostrophe stands inside of words more often than around them."""
    text = token.text.strip()
    return bool(text) and not any(character.isalnum() or character in "'’" for character in text)
