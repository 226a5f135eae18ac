"""The token with which pages open a sentence that has no opening of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import transformer
from views.opening_tokens import predicting_token, second_token

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "sentence", "read"),
    [
        ("en-fr", "The cat sat on the mat.", "·Le"),
        ("gpt-en", "The cat sat on the mat.", "."),
        ("gpt-en", "The children went to the", "·the"),
        ("bert-en", "The cat ___ on the mat.", "<mask>"),
        ("bert-en", "The cat sat on the mat.", "·cat"),
        ("sentiment", "a dull film", "<s>"),
    ],
)
def test_pages_open_at_the_second_row_of_the_output_or_at_the_end_of_a_text(
    name: str, sentence: str, read: str
) -> None:
    strategy = transformer.Greedy(1) if name == "gpt-en" else None
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / name), sentence, strategy=strategy)
    assert trace.tokens(trace.stacks[-1])[predicting_token(trace)].display == read


def test_pages_about_a_token_open_at_the_one_after_the_first(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The cat sat.")
    assert second_token(trace, "encoder") == second_token(trace, "decoder") == 1
