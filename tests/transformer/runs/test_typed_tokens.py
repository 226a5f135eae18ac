"""What was typed, what was added around it, and special tokens."""

from __future__ import annotations

import pytest

import transformer
from transformer.runs.typed_tokens import added_tokens, letters_of, prompt_tokens, special_uses, text_of, typed_tokens

SENTENCE = "The old man told us a story."


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_what_was_typed_and_what_was_added(tiny_checkpoint, name: str) -> None:
    checkpoint = tiny_checkpoint(name)
    trace = transformer.trace(checkpoint, SENTENCE)
    stack = trace.stacks[0]
    prompt, typed, added = prompt_tokens(trace, stack), typed_tokens(trace, stack), added_tokens(trace, stack)
    assert text_of(typed) == SENTENCE and typed == prompt.tokens, "there is no chat"
    assert all(token.special for token in (*added.before, *added.after))
    assert not added.between and not letters_of(trace)
    ids = [token.id for token in typed if not token.special]
    assert ids == [id for id in checkpoint.tokenizer.encode(SENTENCE) if id > 3]
    assert len(added.before) + len(ids) + len(added.after) == len(prompt)
    assert (len(trace.tokens(stack)) > len(prompt)) == (name == "tiny-gpt")


def test_special_tokens_have_their_roles(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("tiny-bert")
    uses = special_uses(transformer.trace(checkpoint, "The ___ man."))
    special = checkpoint.tokenizer.special
    assert uses[special.pad] == ("pad",) and uses[special.mask] == ("mask",)
