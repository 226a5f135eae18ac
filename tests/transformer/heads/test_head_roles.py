"""Roles of heads: in one sentence, over many, in random sequences, and behind a task prefix."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.shipped import shipped
from tests.transformer.copying import COPYING, INDUCTION, PREVIOUS, copying_checkpoint, induction_checkpoint
from transformer.attention_maps.whole_words import word_spans
from transformer.errors import InputError
from transformer.heads.head_roles import HeadRole, corpus_roles, head_roles, n_annotated, sentence_roles, summarise
from transformer.heads.induction import (
    LEAST_INDUCTION,
    induction_counts,
    repeated_lengths,
    repeated_scores,
    repeated_sequences,
)
from transformer.heads.weight_patterns import LEAST_SHARE, Count, patterns_of
from transformer.runs.readings import readings, task_before, with_task
from transformer.text.sentence_files import SHIPPED, read_sentences, sentence_digest, split_sentences
from transformer.text.tokenizer import SPECIAL_TOKENS, START_ID

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"
TWICE = "horse milk Paris Friday Mary. horse milk Paris Friday"


def view_of(name: str, sentence: str, layer: int, stack: str = "decoder"):
    return transformer.trace(shipped(name), sentence).attention(stack, layer, "self")


def test_a_list_said_twice_shows_induction_and_the_share_is_what_followed_the_last_time() -> None:
    view = view_of("gpt-en", TWICE, layer=2)
    ids = view.key.ids
    for role in sentence_roles(view):
        shares = []
        for row, token in enumerate(view.query):
            behind = [key for key in range(1, row + 1) if ids[key - 1] == ids[row]]
            if behind and not token.special:
                shares.append(sum(view.weights[role.head, row, key] for key in behind))
        assert role.scores["induction"] == pytest.approx(np.mean(shares), abs=1e-6)
        assert (role.role == "induction") == (role.score >= LEAST_SHARE)
    assert sentence_roles(view)[4].role == "induction"  # the head that this model opens with


@pytest.mark.parametrize(
    ("followed", "elsewhere", "role", "awake"),
    [(0.16, 0.04, "induction", 0.8), (0.06, 0.14, "sink", 0.3), (0.09, 0.01, "sink", 0.9), (0.12, 0.3, "sink", 2 / 7)],
)
def test_a_head_at_rest_that_wakes_up_for_what_followed_is_an_induction_head(followed, elsewhere, role, awake) -> None:
    view = view_of("gpt-en", TWICE, layer=2)
    behind = patterns_of(view)["after_repeated"] & view.allowed
    weights = np.zeros_like(view.weights[:1])
    weights[0, :, 0] = 1  # the head attends to the sink <s>
    for row in np.flatnonzero(behind.any(axis=1)):
        weights[0, row, behind[row].argmax()] = followed
        weights[0, row, row] = elsewhere
        weights[0, row, 0] = 1 - followed - elsewhere
    (found,) = sentence_roles(replace(view, weights=weights, scores=view.scores[:1]))
    assert (found.role, found.scores["awake"]) == (role, pytest.approx(awake, abs=1e-4))
    assert found.scores["sink"] >= LEAST_SHARE  # most of its weight is on the sink all the same


@pytest.mark.parametrize(
    ("name", "sentence", "stack"),
    [("gpt-en", "I want to", "decoder"), ("bert-en", "the cat saw the cat and the ___ cat.", "encoder")],
)
def test_nothing_is_said_without_repetition_nor_of_a_model_that_reads_both_sides(name, sentence, stack) -> None:
    view = view_of(name, sentence, layer=0, stack=stack)
    assert all("induction" not in role.scores for role in sentence_roles(view))


SENTENCES = (
    "The cat sat on the mat.",
    "Go!",
    "She saw the sea, and the sea was cold.",
    "Do you know where the old man lives with his dog?",
    "It is late.",
    "The children told us a long story about the train, the bus and the small red car.",
)
KINDS = ("translator", "gpt", "bert", "sentiment")


def by_batches(checkpoint, sentences, batch_size):
    found = readings(checkpoint, sentences, batch_size=batch_size)
    return [[role for view in reading.views for role in head_roles(view)] for reading in found]


def assert_same(found, expected):
    assert [(r.stack, r.kind, r.layer, r.head) for r in found] == [(r.stack, r.kind, r.layer, r.head) for r in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.scores.keys() == other.scores.keys()
        for name in one.scores:
            np.testing.assert_allclose(one.scores[name], other.scores[name], atol=2e-5, err_msg=f"{name} of {one}")
        assert one.role == other.role


@pytest.mark.parametrize("kind", KINDS)
def test_a_padded_batch_says_what_the_sentences_say_one_by_one(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    alone = by_batches(checkpoint, SENTENCES, 1)
    assert len(alone) == len(SENTENCES)
    for batch_size in (2, 4, 100):
        for together, single in zip(by_batches(checkpoint, SENTENCES, batch_size), alone, strict=True):
            assert_same(together, single)


def test_the_head_that_copies_the_previous_token_is_labelled_so(tiny_tokenizer):
    checkpoint = copying_checkpoint(tiny_tokenizer)
    sentences = [sentence for sentence in SENTENCES if len(tiny_tokenizer.encode(sentence)) < 30]
    assert len(sentences) >= 4
    found = corpus_roles(checkpoint, sentences)
    head = found.head("decoder", "self", 0, COPYING)
    assert (head.role, head.nearest) == ("previous", "previous")
    assert head.shares == {"previous": 1.0} and head.consistency == 1.0
    assert head.score > 0.95 > LEAST_INDUCTION > head.scores["induction"]
    assert (head.strongest, head.measures["offset"].offset, head.has_role) == ("offset", -1, True)
    assert head.measures["offset"].score == 1.0
    assert head.scores["previous_random"] > 0.95
    # Its first row, which may attend only to itself, does not count; the second one attends to <s>.
    assert head.scores["confidence"] < 1.0 and head.scores["entropy"] < 0.01


def role(name: str, *, broad: float = 0.5, **scores: float) -> HeadRole:
    return HeadRole("encoder", "self", 1, 0, name, {"broad": broad, **scores})


def test_the_role_is_the_one_of_at_least_half_of_the_sentences():
    nan = float("nan")
    found = summarise(
        [
            role("sink", sink=0.9, repeated=nan),
            role("sink", sink=0.7, repeated=0.4),
            role("none", sink=0.2, repeated=nan),
            role("previous", sink=0.4, repeated=0.2),
            role("none", broad=nan, sink=nan, repeated=nan),  # too short for a role
        ]
    )
    assert (found.role, found.consistency, found.n_sentences) == ("sink", 0.5, 4)
    assert found.shares == {"previous": 0.25, "sink": 0.5, "none": 0.25}
    assert found.score == pytest.approx(0.55)
    assert found.scores["repeated"] == pytest.approx(0.3)
    rarer = summarise([role("sink", sink=0.9), role("previous", sink=0.1), role("broad", sink=0.1)])
    assert (rarer.role, rarer.leaning) == ("none", "previous")
    assert found.leaning == "" and summarise([role("none")] * 10 + [role("sink")]).leaning == ""
    assert rarer.consistency == pytest.approx(1 / 3)
    assert math.isnan(rarer.score)


def test_what_cannot_be_read_is_skipped_and_counted(tiny_checkpoint):
    checkpoint, seen = tiny_checkpoint("bert"), []
    sentences = [*SENTENCES, "word " * 300, "  "]
    found = corpus_roles(checkpoint, sentences, batch_size=4, progress=lambda done, total: seen.append((done, total)))
    assert (found.n_sentences, found.n_skipped) == (len(SENTENCES), 2)
    assert found.digest == sentence_digest(sentences)
    total = 8 + n_annotated(checkpoint)
    assert seen[:3] == [(2, total), (6, total), (8, total)] and seen[-1] == (total, total) and seen == sorted(seen)
    alone = corpus_roles(checkpoint, SENTENCES)
    assert [head.shares for head in found.heads] == [head.shares for head in alone.heads]
    with pytest.raises(InputError, match="tiny-bert cannot read any of the 2 sentences given.* at most 96 tokens"):
        corpus_roles(checkpoint, sentences[-2:])
    with pytest.raises(ValueError, match="batch_size is 0"):
        corpus_roles(checkpoint, SENTENCES, batch_size=0)


def test_a_file_of_sentences(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes("\ufeffOne. \r\n\n  Two, too.\n".encode())
    assert read_sentences(path) == ("One.", "Two, too.") == split_sentences("One.\nTwo, too.")
    path.write_text("\n \n", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine.txt contains no sentence"):
        read_sentences(path)
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match=r"mine.txt is not UTF-8"):
        read_sentences(path)
    with pytest.raises(InputError, match=r"There is no file .*other.txt"):
        read_sentences(tmp_path / "other.txt")
    assert sentence_digest(["a", "b"]) != sentence_digest(["b", "a"]) != sentence_digest(["ba"])
    assert SHIPPED.is_file()


TASKS = ("fill: ", "translate English to French: ")
CAT = "The cat sat on the mat."


@pytest.fixture(scope="module")
def checkpoint() -> transformer.Checkpoint:
    return shipped("t5-small-tasks")


def test_a_sentence_without_a_task_is_read_behind_the_one_into_french(checkpoint: transformer.Checkpoint) -> None:
    assert task_before(checkpoint) == TASKS[1]
    asked = (CAT, TASKS[0] + CAT, "", "  ")
    assert [with_task(checkpoint, sentence) for sentence in asked] == [TASKS[1] + CAT, *asked[1:]]
    found = {reading.index: reading.views for reading in readings(checkpoint, asked)}
    assert found[2] == found[3] == (), "what is blank stays unread"
    for index in (0, 1):
        alone = transformer.trace(checkpoint, with_task(checkpoint, asked[index])).attention("encoder", 1)
        view = found[index][1]
        assert view.key.ids == alone.key.ids
        np.testing.assert_allclose(view.weights, alone.weights, atol=1e-6)


def test_the_tokens_of_the_task_count_as_special(checkpoint: transformer.Checkpoint) -> None:
    """The words of a sentence are found after the task, including words that the task contains as well."""
    for sentence in (CAT, TASKS[0] + CAT, "translate English to French"):
        (reading,) = readings(checkpoint, [sentence])
        tokens = reading.views[0].key
        assert tokens.text == sentence.removeprefix(TASKS[0]), "without special tokens the sentence alone is left"
        assert tokens[0].special, "the task's first"
    words = ("to", "the", "cat")
    (reading,) = readings(checkpoint, [" ".join(words)])
    tokens = reading.views[0].key
    begin, _ = word_spans(tokens, words)[0]
    assert "French" in "".join(token.text for token in tokens.tokens[:begin])


def test_the_task_before_one_sentence_does_not_break_the_diagonal(checkpoint: transformer.Checkpoint) -> None:
    trace = transformer.trace(checkpoint, "translate English to French: She is reading a book.")
    view = trace.attention("decoder", 2, "cross")
    told = [token.display for token in view.key if token.role == "task"]
    assert "".join(told).replace("·", " ").strip() == "translate English to French:"
    assert not any(token.special for token in view.key if token.role == "task"), "they are words that were typed"
    assert sentence_roles(view)[1].role == "diagonal"  # the head that this model opens with
    plain = transformer.trace(checkpoint, "She is reading a book.").attention("decoder", 2, "cross")
    assert not any(token.role == "task" for token in plain.key)


# ---- induction in random sequences -----------------------------------------------------------------------------------


def scores_in(counts: list[dict[str, Count]], name: str) -> dict[tuple[int, int], float]:
    """Return a score by (layer, head)."""
    return {
        (layer, head): float(score)
        for layer, found in enumerate(counts)
        for head, score in enumerate(found[name].shares[:, 0])
    }


def test_the_head_that_was_built_for_it_is_the_only_induction_head(tiny_tokenizer):
    test, counts = induction_counts(induction_checkpoint(tiny_tokenizer))
    assert max(test.lengths) == 15  # the model reads 32 tokens
    induction, before = scores_in(counts, "induction"), scores_in(counts, "previous_random")
    assert [place for place, score in induction.items() if score >= LEAST_INDUCTION] == [INDUCTION]
    assert induction[INDUCTION] > 0.95 and before[PREVIOUS] > 0.95 and induction[PREVIOUS] < 0.05
    # The first head spreads its attention evenly.
    assert induction[0, 0] == pytest.approx(test.chance, abs=1e-6) == before[0, 0]


def test_random_weights_have_no_induction_head(tiny_checkpoint):
    first, again, other = (induction_counts(tiny_checkpoint("gpt"), seed=seed)[1] for seed in (0, 0, 1))
    found = scores_in(first, "induction")
    assert set(found) == {(layer, head) for layer in (0, 1) for head in (0, 1)}
    assert max(found.values()) < LEAST_INDUCTION
    assert found == scores_in(again, "induction") != scores_in(other, "induction")


def test_scores_are_read_at_the_token_after_the_first_place():
    """n = 2: <s> a b a b. The second a (row 3) must attend to b (2), the second b (row 4) to a (3)."""
    weights = torch.zeros(2, 5, 5)
    weights[0, 3, 2], weights[0, 4, 3] = 0.5, 0.25
    weights[1, 3, 1], weights[1, 4, 2] = 1.0, 1.0  # the first occurrences themselves: no induction
    induction, previous = repeated_scores(weights, 2).tolist()
    assert induction == [0.375, 0.0]
    assert previous == [0.375, 0.0]  # with two tokens the previous token is at that very position
    longer = torch.zeros(1, 7, 7)
    for row in (4, 5, 6):
        longer[0, row, row - 2] = 1.0
    assert repeated_scores(longer, 3).tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize("max_length", [49, 256, 32])
def test_a_head_that_always_looks_equally_far_back_is_far_from_passing(max_length):
    """Such a head finds the token after the first occurrence only in sequences of one length."""
    lengths = repeated_lengths(max_length)
    assert 1 + 2 * max(lengths) <= max_length
    for offset in range(1, 2 * max(lengths)):
        passed = 0.0
        for length in lengths:
            rows = torch.arange(1 + 2 * length)
            weights = (rows[:, None] - rows == offset).float()[None]
            passed += length * float(repeated_scores(weights, length)[0]) / sum(lengths)
        assert passed < LEAST_INDUCTION / 2


def test_sequences_repeat_different_ordinary_tokens():
    lengths = (8, 5, 8)
    sequences = repeated_sequences(30, lengths, seed=3)
    for length, ids in zip(lengths, sequences, strict=True):
        assert ids.shape == (1 + 2 * length,) and ids[0] == START_ID
        assert torch.equal(ids[1 : 1 + length], ids[1 + length :])
        assert len(set(ids[1:].tolist())) == length
        assert ids[1:].min() >= len(SPECIAL_TOKENS) and ids.max() < 30
    assert not torch.equal(sequences[0], sequences[2])
    with pytest.raises(ValueError, match="length is 27; choose 2 to 26"):
        repeated_sequences(30, (8, 27), seed=0)


def test_only_decoder_only_models_are_tested(tiny_checkpoint):
    with pytest.raises(ValueError, match="tiny-bert is encoder-only; induction is looked for in decoder-only"):
        induction_counts(tiny_checkpoint("bert"))
