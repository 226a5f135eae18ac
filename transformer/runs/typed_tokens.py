"""The tokens of a run that the reader typed, and the special tokens that were added around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from transformer.runs.inputs import prompt_ids
from transformer.runs.next_sentence import is_pair
from transformer.runs.traces import Trace
from transformer.text.tokens import Token, TokenSequence
from transformer.text.word_spans import words_of

ROLES = ("pad", "start", "end", "mask")


@dataclass(frozen=True)
class AddedTokens:
    """The special tokens that were added around a text; ``between`` is the separator of two sentences."""

    before: Sequence[Token]
    between: Sequence[Token]
    after: Sequence[Token]


def prompt_tokens(trace: Trace, stack: str) -> TokenSequence:
    """Return the input of a stack, without the continuation of a decoder-only model."""
    tokens = trace.tokens(stack)
    if trace.checkpoint.config.has_encoder:
        return tokens
    return TokenSequence(tokens.tokens[: len(prompt_ids(trace.checkpoint, trace.sentence))], tokens.name)


def typed_tokens(trace: Trace, stack: str) -> tuple[Token, ...]:
    """Return the tokens of the prompt that were typed: in a chat, all but those of its template."""
    tokens, prompt = prompt_tokens(trace, stack), trace.checkpoint.prompt
    if prompt is None or not prompt.chat:
        return tokens.tokens
    pieces = [trace.checkpoint.tokenizer.token_bytes[token.id] for token in tokens]
    typed = trace.sentence.strip().encode("utf-8", errors="replace")
    # the last occurrence, because a system message may contain the same words
    begins = b"".join(pieces).rfind(typed)
    if begins < 0:
        return tokens.tokens  # if a template changes its input, the two cannot be distinguished
    ends = accumulate(map(len, pieces))
    return tuple(
        token
        for token, piece, end in zip(tokens, pieces, ends, strict=True)
        if piece and end > begins and end - len(piece) < begins + len(typed)
    )


def text_of(tokens: Sequence[Token]) -> str:
    """Return the text of tokens, without special ones.

    >>> import transformer
    >>> trace = transformer.trace(transformer.load("checkpoints/en-fr"), "The cat sat on the mat.")
    >>> text_of(typed_tokens(trace, "encoder"))
    'The cat sat on the mat.'
    """
    return "".join(token.text for token in tokens if not token.special).removeprefix(" ")


def added_tokens(trace: Trace, stack: str) -> AddedTokens:
    """Return the special tokens that were added to the text of a prompt."""
    tokens = prompt_tokens(trace, stack).tokens
    typed = [index for index, token in enumerate(tokens) if not token.special or token.role == "mask"]
    first, last = (typed[0], typed[-1]) if typed else (len(tokens), len(tokens))
    separators = [token for token in tokens[:-1] if token.role == "end"] if is_pair(trace) else []
    return AddedTokens(tokens[:first], separators, tokens[last + 1 :])


def special_uses(trace: Trace) -> dict[int, tuple[str, ...]]:
    """Return each special token's roles by id: first the tokens with a role, then all others of this run."""
    special = trace.checkpoint.tokenizer.special
    found: dict[int, tuple[str, ...]] = {}
    for role in ROLES:
        if (id := getattr(special, role)) is not None:
            found[id] = (*found.get(id, ()), role)
    read = {token.id for stack in trace.stacks for token in trace.tokens(stack)}
    return found | {id: () for id in sorted(read - found.keys()) if special.role(id) == "other"}


def most_divided_word(tokens: TokenSequence) -> int:
    """Return the position of the first token of the word with the most tokens; 0 without words."""
    words = [word for word in words_of(tokens) if tokens[word.start].role != "task"]
    most = max(words, key=lambda word: (word.end - word.start, len(word.text)), default=None)
    return 0 if most is None else most.start
