"""The benchmark of long texts reads nearly as many tokens as requested."""

from __future__ import annotations

from benchmarks.long_texts import text_of


def test_the_text_is_nearly_as_long_as_requested(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("gpt")
    assert 160 < len(checkpoint.tokenizer.encode(text_of(checkpoint, 200))) < 200
