"""How each token of a text came, where the model hesitates, branches, and how texts compare."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from transformer.predictions.decoding_steps import decode_with_attention, n_forced, rank, rest_of, step_attention
from transformer.predictions.written_text import (
    MOST_BRANCHES,
    ORIGINAL,
    Branch,
    TextScore,
    hesitant_step,
    how_chosen,
    likelier,
    read_branches,
    text_before,
    write_branches,
)

SENTENCE = "The old man told us a story."


@pytest.mark.parametrize(
    ("name", "sentence", "chosen", "other"),
    [
        ("en-fr", "My grandmother bakes apple pie every Sunday.", "·chaque", "·tous"),
        ("en-fr", "I love you.", "aime", "adore"),
        ("gpt-en", "My grandmother bakes", "·garden", "·park"),
    ],
)
def test_the_model_hesitates_where_a_word_is_chosen_from_words(
    name: str, sentence: str, chosen: str, other: str
) -> None:
    decoding = transformer.decode(transformer.load(ROOT / "checkpoints" / name), sentence, record_steps=True)
    here = decoding.steps[hesitant_step(decoding)]
    assert [one.display for one in here.candidates[:2]] == [chosen, other]
    assert here.chosen.display == chosen


@pytest.mark.parametrize("kind", ("translator", "gpt"))
def test_each_step_is_that_of_the_decoding(tiny_checkpoint: Callable, kind: str) -> None:
    checkpoint = tiny_checkpoint(kind)
    whole = transformer.decode(checkpoint, SENTENCE, record_steps=True)
    decoding = decode_with_attention(checkpoint, SENTENCE, transformer.Greedy())
    assert decoding.tokens.ids == whole.tokens.ids
    for step in decoding.steps:
        assert rank(step) == 1 + int((step.logits > step.logits[step.chosen.id]).sum())
        listed = step.candidates[:10]
        assert rest_of(listed) == pytest.approx(1 - sum(one.probability for one in listed), abs=1e-6)
    for attention in ("cross", "self") if kind == "translator" else ("self",):
        seen, its = (
            step_attention(checkpoint, one, SENTENCE, step=2, layer=1, kind=attention) for one in (decoding, whole)
        )
        np.testing.assert_array_equal(seen.of(1), its.weights[1])


def test_what_was_given_kept_and_forced_is_told_apart(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")

    def ways(decoding: transformer.Decoding, **more: object) -> list[str]:
        return [how_chosen(checkpoint, decoding, step, **more) for step in range(len(decoding.steps))]

    given = transformer.decode(checkpoint, SENTENCE, forced="Le vieil")
    count = n_forced(checkpoint, "Le vieil", SENTENCE)
    assert 0 < count < len(given.steps)
    said = ways(given, n_given=count, greedy=True)
    assert [way.startswith("given") for way in said] == [step < count for step in range(len(said))]
    assert [way == "given_first" for way in said[:count]] == [rank(step) == 1 for step in given.steps[:count]]
    original = transformer.decode(checkpoint, SENTENCE)
    other = next(one.id for one in original.steps[2].candidates if one.id != original.tokens.ids[2])
    branch = Branch(original.tokens.ids[:2], (other,))
    text = transformer.decode(checkpoint, SENTENCE, forced=branch.forced)
    assert ways(text, n_given=3, branch=branch, greedy=True)[:4] == ["kept", "kept", "forced", "greedy"]
    assert set(ways(original, n_given=0, greedy=False)) == {"sampling"}
    assert set(ways(original, n_given=0, greedy=True)) <= {"greedy", "greedy_end"}
    assert text.tokens.ids[:3] == branch.forced and ORIGINAL.forced == ()


def test_the_text_before_a_step_begins_with_the_prompt_of_a_model_that_continues(tiny_checkpoint: Callable) -> None:
    for kind, begins in (("translator", ""), ("gpt", SENTENCE)):
        checkpoint = tiny_checkpoint(kind)
        decoding = transformer.decode(checkpoint, SENTENCE)
        assert text_before(checkpoint, decoding, SENTENCE, 0) == begins
        long = text_before(checkpoint, decoding, SENTENCE * 5, 1)
        assert long.startswith("… ") == (kind == "gpt") and len(long) <= 62


def test_branches_are_read_as_they_are_written(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    branches = (Branch((), (300,)), Branch((5, 17), (300, 301)))
    assert write_branches(branches) == "-300,5.17-300.301"
    assert read_branches(write_branches(branches), checkpoint) == branches
    assert read_branches("", checkpoint) == ()
    end, pad = checkpoint.framing.ends[0], checkpoint.special.pad
    impossible = f"7-,9.x-3,5-99999999,{end}-5,5-{pad},٣-5,5"
    assert read_branches(impossible, checkpoint) == ()
    assert len(read_branches(",".join(f"-{id}" for id in range(300, 330)), checkpoint)) == MOST_BRANCHES


def test_texts_are_compared_by_the_model_own_log_probability(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    greedy = transformer.decode(checkpoint, SENTENCE)
    other = transformer.decode(checkpoint, SENTENCE, transformer.Sample(temperature=1.2, seed=3))
    score = TextScore.of(other, 1.0)
    assert score.total == other.log_probability and score.each == score.total / len(other.tokens)
    assert score.score == pytest.approx(other.log_probability / ((5 + len(other.tokens)) / 6))
    assert TextScore.of(other).score == score.total
    assert likelier(greedy, greedy) == ("same", 1.0)
    found, factor = likelier(greedy, other)
    assert factor == pytest.approx(np.exp(abs(greedy.log_probability - other.log_probability)))
    assert {found, likelier(other, greedy)[0]} == {"likelier", "less_likely"}
    assert likelier(other, greedy)[1] == factor, "the factor does not depend on the direction"
