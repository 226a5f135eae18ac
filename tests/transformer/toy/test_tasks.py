"""Words and their targets: the targets are right, and padding is never a target."""

from __future__ import annotations

import pytest
import torch

from transformer.errors import InputError
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID
from transformer.toy.tasks import (
    LONGEST,
    MAX_LETTERS,
    SHORTEST,
    TASKS,
    VOCABULARY_SIZE,
    batch_of,
    draw_batch,
    label_letters,
    letters_of,
    make_batch,
    task_named,
)

RIGHT = {"copy": lambda word: word, "reverse": lambda word: word[::-1], "sort": lambda word: "".join(sorted(word))}


def drawn(task: str, *, seed: int = 3, size: int = 300):
    return draw_batch(TASKS[task], size, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("task", TASKS)
def test_answers_are_right(task: str) -> None:
    assert TASKS[task].answer("gradient") == RIGHT[task]("gradient")
    assert TASKS[task].answer("a") == "a"
    batch = drawn(task)
    for source, targets in zip(batch.source.tolist(), batch.targets.tolist(), strict=True):
        assert letters_of(targets) == RIGHT[task](letters_of(source))


def test_a_repeated_letter_is_sorted_too_although_training_has_none() -> None:
    assert TASKS["sort"].answer("banana") == "aaabnn"
    words = [letters_of(row) for row in drawn("sort").source.tolist()]
    assert all(len(set(word)) == len(word) for word in words)
    assert any(len(set(word)) < len(word) for word in map(letters_of, drawn("copy").source.tolist()))


@pytest.mark.parametrize("task", TASKS)
def test_each_row_is_letters_then_the_end_then_padding(task: str) -> None:
    batch = drawn(task)
    assert set(batch.lengths.tolist()) == set(range(SHORTEST, LONGEST + 1))
    for rows in (batch.source, batch.targets):
        assert rows.shape == (300, LONGEST + 1)
        for row, length in zip(rows.tolist(), batch.lengths.tolist(), strict=True):
            assert row[length] == END_ID and set(row[length + 1 :]) <= {PAD_ID}
            assert all(END_ID < id < VOCABULARY_SIZE for id in row[:length])
    for read, targets, length in zip(batch.read.tolist(), batch.targets.tolist(), batch.lengths.tolist(), strict=True):
        assert read[: length + 1] == [START_ID, *targets[:length]] and set(read[length + 1 :]) <= {PAD_ID}


@pytest.mark.parametrize("task", TASKS)
def test_places_say_where_each_letter_of_the_answer_stands(task: str) -> None:
    batch = drawn(task)
    rows = (batch.source, batch.targets, batch.places, batch.lengths)
    for source, targets, places, length in zip(*(tensor.tolist() for tensor in rows), strict=True):
        assert [source[place] for place in places[:length]] == targets[:length]
        assert sorted(places[:length]) == list(range(length))


def test_a_padded_word_gives_what_it_gives_alone() -> None:
    for task in TASKS.values():
        alone = batch_of(task, "cab")
        padded = make_batch(task, torch.nn.functional.pad(alone.source[:, :3], (0, 4), value=25), torch.tensor([3]))
        for name in ("source", "read", "targets"):
            assert getattr(padded, name)[0, :4].tolist() == getattr(alone, name)[0].tolist()
            assert not getattr(padded, name)[0, 4:].any()


def test_the_same_generator_draws_the_same_words() -> None:
    one, same, other = (drawn("reverse", seed=seed).source for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_labels_are_letters_and_special_tokens() -> None:
    tokens = label_letters(batch_of(TASKS["copy"], "aba").read[0].tolist(), "target")
    assert tokens.displays == ("<s>", "a", "b", "a") and tokens.labels[-1] == "a₂"
    assert [token.special for token in tokens] == [True, False, False, False] and tokens.text == "aba"


@pytest.mark.parametrize(
    ("word", "reason"), [("", "0 letters"), ("x" * (MAX_LETTERS + 1), "16 letters"), ("Été", "É é"), ("a b", "a to z")]
)
def test_what_is_no_word_is_refused_with_a_sentence(word: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        batch_of(TASKS["copy"], word)


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(ValueError, match="'double'; choose one of copy, reverse, sort"):
        task_named("double")
