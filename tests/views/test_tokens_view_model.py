"""The view model of the Tokens page: typed tokens, added tokens, and special tokens."""

from __future__ import annotations

import pytest

import transformer
from views.tokens.tokens_view_model import TokensViewModel

SENTENCE = "The old man told us a story."


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_what_was_typed_and_what_was_added(tiny_checkpoint, name):
    checkpoint = tiny_checkpoint(name)
    trace = transformer.trace(checkpoint, SENTENCE)
    view_model = TokensViewModel(trace, trace.stacks[0])
    assert view_model.typed_text == SENTENCE and view_model.framed is None and not view_model.is_chat
    before, after = view_model.added
    assert all(token.special for token in (*before, *after))
    assert len(before) + view_model.n_typed + len(after) == len(view_model.prompt_tokens)
    assert view_model.n_typed == len([id for id in checkpoint.tokenizer.encode(SENTENCE) if id > 3])
    assert view_model.n_written == len(view_model.tokens) - len(view_model.prompt_tokens)
    assert (view_model.n_written > 0) == (name == "tiny-gpt")


def test_special_tokens_have_their_roles(tiny_checkpoint):
    checkpoint = tiny_checkpoint("tiny-bert")
    view_model = TokensViewModel(transformer.trace(checkpoint, "The ___ man."), "encoder")
    special = checkpoint.tokenizer.special
    assert set(view_model.special_ids) >= {special.pad, special.mask}
    assert view_model.roles_of(special.mask) == ["mask"] and view_model.roles_of(99) == []
    assert view_model.all_ids.count(special.mask) == 1
