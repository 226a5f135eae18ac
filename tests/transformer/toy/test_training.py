"""The tiny model: its words and targets, and that it learns from its seed alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import numpy as np
import pytest
import torch

from transformer.errors import InputError
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID
from transformer.toy.learner import ToyLearner, toy_config
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
)
from transformer.toy.toy_training import ToyState, train_toy


def learner(task: str = "reverse", **settings) -> ToyLearner:
    return ToyLearner(TASKS[task], toy_config(**settings), torch.Generator().manual_seed(0))


def words(task: str, size: int = 8):
    return draw_batch(TASKS[task], size, torch.Generator().manual_seed(5))


# ---- the model ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "relative", "none"])
def test_every_weight_comes_from_the_seed(positions: str) -> None:
    config = toy_config(n_heads=2, positions=positions)
    one, same, other = (ToyLearner(TASKS["copy"], config, torch.Generator().manual_seed(s)).model for s in (1, 1, 2))
    differing = 0
    for (name, parameter), twin, stranger in zip(
        one.named_parameters(), same.parameters(), other.parameters(), strict=True
    ):
        assert torch.equal(parameter, twin), name
        differing += not torch.equal(parameter, stranger)
    matrices = [name for name, p in one.named_parameters() if p.ndim == 2 and "position_bias" not in name]
    assert differing == len(matrices)  # biases, γ and β are initialised to 0 and 1, the relative bias to 0


def test_padding_is_not_counted() -> None:
    """The loss of two words in one padded batch is the mean over the tokens of both."""
    model = learner()
    rows = [batch_of(TASKS["copy"], word) for word in ("abcdef", "xyz")]
    letters = torch.zeros(2, 6, dtype=torch.long)
    letters[0], letters[1, :3] = rows[0].source[0, :6], rows[1].source[0, :3]
    padded = make_batch(TASKS["copy"], letters, torch.tensor([6, 3]))
    assert int((padded.targets == PAD_ID).sum()) == 3
    with torch.no_grad():
        each = [float(model.loss(row)) for row in rows]
        loss = float(model.loss(padded))
    assert loss == pytest.approx((7 * each[0] + 4 * each[1]) / 11, rel=1e-5)
    assert model.score(padded).loss == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_attention_on_target_is_that_of_the_recorded_map(task: str) -> None:
    model = learner(task, n_heads=2)
    view, predicted = model.attention("gradient")
    assert view.weights.shape == (2, 9, 9) and view.allowed.all()
    assert "".join(predicted.displays[:-1]) == TASKS[task].answer("gradient") and predicted[8].display == "</s>"
    right = TASKS[task].answer("gradient")
    expected = [
        np.mean([head[row, "gradient".index(letter)] for row, letter in enumerate(right)]) for head in view.weights
    ]
    np.testing.assert_allclose(model.score(batch_of(TASKS[task], "gradient")).on_target, expected, rtol=1e-5)


# ---- training -------------------------------------------------------------------------------------------------------


def last(states) -> ToyState:
    *_, state = states
    return state


def test_reports_come_before_the_first_step_then_regularly_and_at_the_end() -> None:
    states = list(train_toy("copy", steps=50, every=20))
    assert [state.step for state in states] == [0, 20, 40, 50] and {state.steps for state in states} == {50}
    assert states[0].score.loss == pytest.approx(np.log(29), abs=1.0)
    assert states[-1].score.loss < states[0].score.loss - 0.5
    # The content of a state stays, although the model continues to learn.
    assert not np.array_equal(states[0].attention.weights, states[-1].attention.weights)
    np.testing.assert_allclose(states[0].attention.weights.sum(axis=-1), 1, atol=1e-5)
    assert states[0].attention.key.text == "gradient" and states[0].predicted.text == "gradient"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "positions"), [("copy", "sinusoidal"), pytest.param("sort", "none", marks=pytest.mark.nightly)]
)
def test_it_learns_and_its_accuracy_counts_the_words_that_are_written_without_a_mistake(task: str, positions: str):
    """Teacher forcing finds the same words as letting the model generate."""
    states, partly = [], 0
    for state in train_toy(task, positions=positions, steps=300, every=60):
        states.append(state)
        batch = words(task, 40)
        answers = [state.learner.answer(letters_of(row)) for row in batch.source.tolist()]
        right = sum(answer.text == answer.right and answer.finished for answer in answers)
        assert state.learner.score(batch).accuracy == pytest.approx(right / 40)
        partly += 0 < right < 40
    assert partly, "a model that can all or nothing proves nothing"
    assert states[0].score.accuracy == 0
    assert states[-1].score.accuracy >= 0.9
    assert max(states[-1].score.on_target) > 0.6 > 0.3 > max(states[0].score.on_target)


@pytest.mark.slow
def test_runs_in_threads_give_what_each_gives_alone() -> None:
    """Three at once, two of them with the same seed, while another thread uses the global generator."""
    runs = [("reverse", 0), ("reverse", 0), ("sort", 1)]

    def losses(task: str, seed: int) -> list[float]:
        return [state.score.loss for state in train_toy(task, steps=12, every=4, seed=seed)]

    alone = [losses(*run) for run in runs]
    barrier, over = Barrier(len(runs) + 1), []

    def meanwhile() -> None:
        barrier.wait()
        while not over:
            torch.manual_seed(0)
            torch.rand(10)
            sleep(0.0005)

    def together(run: tuple[str, int]) -> list[float]:
        barrier.wait()
        return losses(*run)

    with ThreadPoolExecutor(len(runs) + 1) as pool:
        noise = pool.submit(meanwhile)
        try:
            found = list(pool.map(together, runs))
        finally:
            over.append(True)
            noise.result()
    assert found == alone and alone[0] == alone[1] != alone[2]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"task": "double"}, "task is 'double'"),
        ({"steps": 0}, "steps is 0"),
        ({"every": 0}, "every is 0"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"n_heads": 3}, "not divisible by 3 heads"),
        ({"positions": "none of them"}, "positions is 'none of them'"),
    ],
)
def test_settings_that_cannot_be_are_refused_at_once(settings: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        train_toy(**settings)


def test_a_loss_that_is_no_number_ends_the_training_with_a_sentence() -> None:
    states = train_toy("copy", learning_rate=1e38, steps=200)
    with pytest.raises(FloatingPointError, match="stopped being a number at step .* lower learning rate than 1e\\+38"):
        last(states)


def test_the_untrained_model_is_there_before_any_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening the page must not wait for the import of PyTorch's compiler."""
    monkeypatch.setattr(torch.optim, "Adam", None)
    assert next(train_toy("reverse")).step == 0


# ---- words and targets ----------------------------------------------------------------------------------------------


RIGHT = {"copy": lambda word: word, "reverse": lambda word: word[::-1], "sort": lambda word: "".join(sorted(word))}


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_is_words_with_their_answers_and_where_each_letter_of_an_answer_stands(task: str) -> None:
    for word in ("gradient", "a", "banana"):
        assert TASKS[task].answer(word) == RIGHT[task](word)
    batch = draw_batch(TASKS[task], 300, torch.Generator().manual_seed(3))
    assert set(batch.lengths.tolist()) == set(range(SHORTEST, LONGEST + 1))
    assert batch.source.shape == batch.targets.shape == (300, LONGEST + 1)
    parts = (batch.source, batch.read, batch.targets, batch.places, batch.lengths)
    for source, read, targets, places, length in zip(*(part.tolist() for part in parts), strict=True):
        assert letters_of(targets) == RIGHT[task](letters_of(source))
        for row in (source, targets):
            assert all(END_ID < id < VOCABULARY_SIZE for id in row[:length])
            assert row[length] == END_ID and set(row[length + 1 :]) <= {PAD_ID}
        assert read[: length + 1] == [START_ID, *targets[:length]] and set(read[length + 1 :]) <= {PAD_ID}
        assert [source[place] for place in places[:length]] == targets[:length]
        assert sorted(places[:length]) == list(range(length))
    words = [letters_of(row) for row in batch.source.tolist()]
    assert any(len(set(word)) < len(word) for word in words) == (task != "sort"), "letters to sort are never repeated"


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
