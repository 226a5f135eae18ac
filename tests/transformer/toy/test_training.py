"""The tiny model learns from its seed alone, whatever else runs in the process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Barrier

import numpy as np
import pytest
import torch

from transformer.errors import InputError
from transformer.files.build import build_model
from transformer.text.tokenizer import PAD_ID
from transformer.toy.learner import ToyLearner, initialise, toy_config
from transformer.toy.tasks import TASKS, batch_of, draw_batch, letters_of, make_batch
from transformer.toy.toy_training import STEPS, ToyState, train_toy


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


def test_weights_are_drawn_by_the_rules_of_a_new_model() -> None:
    model = build_model(toy_config(positions="learned"))
    fresh = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    initialise(model, torch.Generator().manual_seed(0))
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            assert float(parameter.detach().std() / fresh[name].std()) == pytest.approx(1, abs=0.15), name
        else:
            assert torch.equal(parameter, fresh[name]), name


def test_every_parameter_gets_a_gradient() -> None:
    model = learner(n_heads=2, positions="learned")
    model.loss(words("reverse")).backward()
    for name, parameter in model.model.named_parameters():
        reached = parameter.grad is not None and bool(parameter.grad.abs().max() > 0)
        # A key bias adds the same to all scores of a row, which cancels in the softmax.
        assert reached or name.endswith("key_projection.bias"), name


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


@pytest.mark.slow
def test_accuracy_counts_the_words_that_are_written_without_a_mistake() -> None:
    """Teacher forcing finds the same words as letting the model generate."""
    state = last(train_toy("copy", steps=120, every=120))
    batch = words("copy", 40)
    answers = [state.learner.answer(letters_of(row)) for row in batch.source.tolist()]
    right = sum(answer.text == answer.right and answer.finished for answer in answers)
    assert 0 < right < 40, "a model that can all or nothing proves nothing"
    assert state.learner.score(batch).accuracy == pytest.approx(right / 40)


def test_an_answer_says_what_is_wrong_with_it() -> None:
    answer = learner().answer("abc")
    assert answer.right == "cba" and answer.text != "cba"
    assert answer.attention.weights.shape == (1, len(answer.predicted), 4)
    for place, letter in enumerate(answer.text):
        assert (place in answer.wrong) == (answer.right[place : place + 1] != letter)


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


def test_stopping_is_break() -> None:
    states = list(islice(train_toy("sort", every=1), 3))
    assert [state.step for state in states] == [0, 1, 2] and states[-1].steps == STEPS["sort"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "positions"), [("copy", "sinusoidal"), pytest.param("sort", "none", marks=pytest.mark.nightly)]
)
def test_it_learns(task: str, positions: str) -> None:
    states = list(train_toy(task, positions=positions, steps=300, every=150))
    assert states[0].score.accuracy == 0
    assert states[-1].score.accuracy >= 0.9
    assert max(states[-1].score.on_target) > 0.6 > 0.3 > max(states[0].score.on_target)


@pytest.mark.nightly
def test_reversing_is_learned_and_its_attention_runs_backwards() -> None:
    """Half of the usual number of steps, to save time."""

    def backwards(state: ToyState) -> bool:
        return bool((state.attention.weights[0][:8].argmax(axis=1) == np.arange(8)[::-1]).all())

    states = train_toy("reverse", every=100)
    assert any(state.score.accuracy >= 0.9 and state.written == "tneidarg" and backwards(state) for state in states)


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_without_positions_order_cannot_be_learned(task: str) -> None:
    """The encoder then sees a bag of letters: both words give the same output."""
    state = last(train_toy(task, positions="none", steps=200, every=200))
    assert state.score.accuracy < 0.05 and state.score.loss > 1
    assert state.learner.generate("abcd") == state.learner.generate("dcba")


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


def test_the_number_of_threads_stays() -> None:
    before = torch.get_num_threads()
    last(train_toy("copy", steps=2))
    assert torch.get_num_threads() == before


def test_training_leaves_no_recording_and_no_grad_mode_behind() -> None:
    states = train_toy("copy", steps=3, every=1)
    next(states)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    next(states)


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


def test_an_example_that_is_no_word_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="a to z"):
        train_toy("copy", example="Ünïcode")


def test_a_loss_that_is_no_number_ends_the_training_with_a_sentence() -> None:
    states = train_toy("copy", learning_rate=1e38, steps=200)
    with pytest.raises(FloatingPointError, match="stopped being a number at step .* lower learning rate than 1e\\+38"):
        last(states)


def test_the_untrained_model_is_there_before_any_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening the page must not wait for the import of PyTorch's compiler."""
    monkeypatch.setattr(torch.optim, "Adam", None)
    assert next(train_toy("reverse")).step == 0
