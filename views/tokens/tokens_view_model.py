"""The data of the Tokens page for one run: which tokens were typed, which are special.

Everything that the page counts is computed here, without Streamlit. A notebook builds the same object:

>>> import transformer
>>> from views.tokens.tokens_view_model import TokensViewModel
>>> checkpoint = transformer.load("checkpoints/en-fr")
>>> view_model = TokensViewModel(transformer.trace(checkpoint, "The cat sat on the mat."), stack="encoder")
>>> view_model.typed_text, view_model.n_typed, [token.display for token in view_model.added[1]]
('The cat sat on the mat.', 7, ['</s>'])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from transformer.runs.inputs import prompt_ids
from transformer.runs.next_sentence import is_pair, sentence_letters
from transformer.text.tokens import Token, TokenSequence
from transformer.text.word_spans import words_of
from views.view_models import TokenViewModel

ROLES = ("pad", "start", "end", "mask")


@dataclass(frozen=True)
class TokensViewModel(TokenViewModel):
    """The tokens of one run."""

    token: int = 0

    @cached_property
    def prompt_tokens(self) -> TokenSequence:
        """The input of the stack, without the continuation of a decoder-only model."""
        if self.checkpoint.config.has_encoder:
            return self.tokens
        n_read = len(prompt_ids(self.checkpoint, self.trace.sentence))
        return TokenSequence(self.tokens.tokens[:n_read], self.tokens.name)

    @property
    def n_written(self) -> int:
        """How many tokens of the stack are not part of the prompt."""
        return len(self.tokens) - len(self.prompt_tokens)

    @property
    def is_chat(self) -> bool:
        """Whether a chat template surrounds the typed text."""
        return self.checkpoint.prompt is not None and bool(self.checkpoint.prompt.chat)

    @cached_property
    def typed_tokens(self) -> tuple[Token, ...]:
        """The tokens of the prompt that were typed: in a chat, all but those of its template."""
        tokens = self.prompt_tokens
        if not self.is_chat:
            return tokens.tokens
        pieces = [self.checkpoint.tokenizer.token_bytes[token.id] for token in tokens]
        typed = self.trace.sentence.strip().encode("utf-8", errors="replace")
        # the last occurrence, because a system message may contain the same words
        begins = b"".join(pieces).rfind(typed)
        if begins < 0:
            return tokens.tokens  # if a template changes its input, the two cannot be distinguished
        ends = list(accumulate(map(len, pieces)))
        return tuple(
            token
            for token, piece, end in zip(tokens, pieces, ends, strict=True)
            if piece and end > begins and end - len(piece) < begins + len(typed)
        )

    @cached_property
    def typed_text(self) -> str:
        """The text of the typed tokens."""
        return "".join(token.text for token in self.typed_tokens if not token.special).removeprefix(" ")

    @cached_property
    def sentence_letters(self) -> tuple[str, ...]:
        """The sentence, "A" or "B", of every token that the encoder read; empty unless there are two."""
        return sentence_letters(self.trace) if is_pair(self.trace) else ()

    @property
    def n_typed(self) -> int:
        """How many tokens the typed text has, without special ones."""
        return sum(not token.special for token in self.typed_tokens)

    @property
    def framed(self) -> tuple[int, int] | None:
        """The numbers of tokens that a chat template added before and after the text, if there is one."""
        n_read, typed = len(self.prompt_tokens), [token.index for token in self.typed_tokens]
        return None if len(typed) == n_read else (min(typed), n_read - 1 - max(typed))

    @property
    def added(self) -> tuple[Sequence[Token], Sequence[Token]]:
        """The special tokens that were added before and after the text."""
        tokens = self.prompt_tokens.tokens
        typed = [index for index, token in enumerate(tokens) if not token.special or token.role == "mask"]
        first, last = (typed[0], typed[-1]) if typed else (len(tokens), len(tokens))
        return tokens[:first], tokens[last + 1 :]

    @property
    def added_between(self) -> Sequence[Token]:
        """The separator that was added between two sentences; nothing after one sentence."""
        tokens = self.prompt_tokens.tokens
        return [token for token in tokens[:-1] if token.role == "end"] if self.sentence_letters else []

    @property
    def special_ids(self) -> list[int]:
        """The ids of special tokens with a role, then of the others that occur in this run."""
        special = self.checkpoint.tokenizer.special
        ids = list(dict.fromkeys(id for role in ROLES if (id := getattr(special, role)) is not None))
        return ids + sorted({id for id in self.all_ids if special.role(id) == "other"} - set(ids))

    @cached_property
    def all_ids(self) -> tuple[int, ...]:
        """The ids of all stacks of the run."""
        return tuple(token.id for stack in self.trace.stacks for token in self.trace.tokens(stack))

    @property
    def divided_token(self) -> int:
        """The position of the first token of the word with the most tokens; 0 without words."""
        words = [word for word in words_of(self.tokens) if self.tokens[word.start].role != "task"]
        most = max(words, key=lambda word: (word.end - word.start, len(word.text)), default=None)
        return 0 if most is None else most.start

    def roles_of(self, id: int) -> list[str]:
        """Return the roles of a special token: "pad", "start", "end", "mask"; none for any other use."""
        return [role for role in ROLES if getattr(self.checkpoint.tokenizer.special, role) == id]
