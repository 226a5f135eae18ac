"""How each token of a text was chosen, where the model hesitates, and how texts compare."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import transformer
from tests.shipped import shipped
from transformer.predictions.decoding_steps import (
    confidence,
    decode_with_attention,
    n_forced,
    rank,
    reshape_step,
    rest_of,
    step_attention,
)
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

SENTENCE = "The children are playing in the street."


def decoded(checkpoint, strategy=None, **options):
    return transformer.decode(checkpoint, SENTENCE, strategy, record_steps=True, **options)


def test_final_chances_are_those_that_sampling_drew_from(tiny_checkpoint):
    strategy = transformer.Sample(temperature=0.7, top_k=12, top_p=0.8, seed=3)
    decoding = decoded(tiny_checkpoint("translator"), strategy)
    for step in decoding.steps:
        reshaping = reshape_step(step, temperature=0.7, top_k=12, top_p=0.8)
        chosen = next(row for row in reshaping.rows if row.chosen)
        assert chosen.piece == step.chosen.display and chosen.kept
        assert chosen.final == pytest.approx(step.chosen.chance, abs=1e-6)
        assert sum(row.final for row in reshaping.rows) + reshaping.rest == pytest.approx(1.0, abs=1e-6)
        assert reshaping.n_kept <= 12
        assert all(row.final == 0 for row in reshaping.rows if not row.kept)


def test_an_unlikely_choice_is_still_listed(tiny_checkpoint):
    decoding = decoded(tiny_checkpoint("gpt"), transformer.Sample(temperature=5.0, seed=1, max_new_tokens=12))
    for step in decoding.steps:
        rows = reshape_step(step, shown=5).rows
        assert len(rows) == 5 and sum(row.chosen for row in rows) == 1
    unlikely = [s for s in decoding.steps if s.chosen.id not in [c.id for c in s.candidates[:5]]]
    assert unlikely and reshape_step(unlikely[0], shown=5).rows[-1].chosen


def test_confidence_is_the_models_own(tiny_checkpoint):
    decoding = decoded(tiny_checkpoint("translator"), transformer.Sample(temperature=3.0, seed=2))
    sure = confidence(decoding)
    assert np.log(sure.probability).sum() == pytest.approx(decoding.log_probability, rel=1e-5)
    for step, probability, other in zip(decoding.steps, sure.probability, sure.runner_up, strict=True):
        best = softmax(step.logits).argmax()
        if step.chosen.id == best:
            assert other <= probability
        else:
            assert other == pytest.approx(softmax(step.logits)[best], rel=1e-4)


def softmax(logits):
    return torch.tensor(logits).softmax(-1).numpy()


@pytest.mark.parametrize("kind, attention", [("translator", "cross"), ("translator", "self"), ("gpt", "self")])
def test_attention_of_a_step_is_the_row_of_the_trace(tiny_checkpoint, kind, attention):
    checkpoint = tiny_checkpoint(kind)
    decoding, recorded = decode_with_attention(checkpoint, SENTENCE, transformer.Greedy()), decoded(checkpoint)
    assert decoding.tokens.ids == recorded.tokens.ids
    both = [step_attention(checkpoint, one, SENTENCE, step=2, layer=1, kind=attention) for one in (decoding, recorded)]
    np.testing.assert_array_equal(both[0].of(1), both[1].weights[1])
    trace = transformer.trace(checkpoint, SENTENCE)
    first = len(trace.target) - len(decoding.tokens)  # the row that predicts token 0
    view = trace.attention("decoder", 1, attention)
    for step, chosen in enumerate(decoding.steps):
        assert rank(chosen) == 1 + int((chosen.logits > chosen.logits[chosen.chosen.id]).sum())
        listed = chosen.candidates[:10]
        assert rest_of(listed) == pytest.approx(1 - sum(one.probability for one in listed), abs=1e-6)
        found = step_attention(checkpoint, decoding, SENTENCE, step=step, layer=1, kind=attention)
        n_keys = len(found.key)
        assert found.weights.shape == (2, n_keys)
        assert np.allclose(found.weights, view.weights[:, first + step, :n_keys], atol=1e-5)
        assert np.array_equal(found.allowed, view.allowed[first + step, :n_keys])
        assert found.key.ids == view.key.ids[:n_keys]
        assert found.weights.sum(axis=-1) == pytest.approx(1.0, abs=1e-5)


def test_attention_that_was_not_recorded_is_named(tiny_checkpoint):
    checkpoint = tiny_checkpoint("translator")
    unrecorded = transformer.decode(checkpoint, SENTENCE)
    with pytest.raises(ValueError, match=r"decoder\.layers\.0\.cross_attention\.weights; it has no recording"):
        step_attention(checkpoint, unrecorded, SENTENCE, step=0, layer=0, kind="cross")
    with pytest.raises(ValueError, match=r"layers\.7\.cross.*it has decoder\.layers\.0"):
        step_attention(checkpoint, decoded(checkpoint), SENTENCE, step=0, layer=7, kind="cross")


# ---- the text that was written -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sentence", "chosen", "other"),
    [
        ("en-fr", "My grandmother bakes apple pie every Sunday.", "·fait", "·prend"),
        ("en-fr", "I love you.", "aime", "adore"),
        ("gpt-en", "My grandmother bakes", "·garden", "·park"),
    ],
)
def test_the_model_hesitates_where_a_word_is_chosen_from_words(
    name: str, sentence: str, chosen: str, other: str
) -> None:
    decoding = transformer.decode(shipped(name), sentence, record_steps=True)
    here = decoding.steps[hesitant_step(decoding)]
    assert [one.display for one in here.candidates[:2]] == [chosen, other]
    assert here.chosen.display == chosen


def test_what_was_given_kept_and_forced_is_told_apart(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")

    def ways(decoding: transformer.Decoding, **more: object) -> list[str]:
        return [how_chosen(checkpoint, decoding, step, **more) for step in range(len(decoding.steps))]

    given = transformer.decode(checkpoint, SENTENCE, forced="Le vieil")
    count = n_forced(checkpoint, "Le vieil", SENTENCE)
    assert 0 < count < len(given.steps) and n_forced(checkpoint, " ") == 0
    assert checkpoint.tokenizer.decode(given.tokens.ids[:count]) == "Le vieil"
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
