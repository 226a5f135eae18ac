"""The Training page: “Train one now” up to the user's own word, and “One step in detail”."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.conftest import choose_text, codes, is_fine, said
from tests.ui.test_jobs import until
from transformer.layers.gradient_step import training_step
from transformer.toy import toy_training
from ui.compute.jobs import TRAINING as TRAINING_JOB
from ui.compute.jobs import Job
from ui.server.limits import limits
from ui.words.texts import page_text
from views.training import live_training
from views.training.live_training import RUN, Settings

TEXT = page_text("training")
KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SENTENCE = "The dog sleeps under the table."
SOON = 60.0


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten training runs to about a second."""
    monkeypatch.setattr(toy_training, "STEPS", {"copy": 40, "reverse": 40, "sort": 40})


@pytest.fixture
def live(open_app: Callable[..., AppTest]) -> Iterator[AppTest]:
    """Return the section before any training has started; training runs of a test end with the test."""
    app = show(open_app("training", checkpoint="tiny-gpt"), "now")
    yield app
    if RUN in app.session_state:
        job = app.session_state[RUN].job
        job.leave(app.session_state["long jobs: who"], at_once=True)
        assert job.wait(SOON)


def show(app: AppTest, section: str) -> AppTest:
    choose_text(app, "training section", TEXT["section"][section])
    return app.run()


def press(app: AppTest, name: str) -> AppTest:
    return app.button(key=f"toy {name}").click().run()


def wait(app: AppTest, until: Callable[[], bool]) -> None:
    """Run the page repeatedly, as its timer does, until ``until()``."""
    end = time.monotonic() + SOON
    while not until():
        assert time.monotonic() < end, said(app)
        time.sleep(0.05)
        app.run()


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


# ---- train one now --------------------------------------------------------------------------------------------------


def test_before_the_start_the_untrained_model_is_shown(live: AppTest) -> None:
    is_fine(live)
    assert metrics(live)[TEXT["now_step"]] == "0" and metrics(live)[TEXT["now_accuracy"]] == "0%"
    assert len(live.get("vega_lite_chart")) == 2 and len(live.get("bidi_component")) >= 1
    assert not live.button(key="toy start").disabled and live.button(key="toy stop").disabled
    assert RUN not in live.session_state


@pytest.mark.slow
def test_from_the_start_to_a_word_of_ones_own(live: AppTest) -> None:
    choose_text(live, "toy task", TEXT["now_copy"])
    press(live.run(), "start")
    is_fine(live)
    wait(live, lambda: "done in" in said(live))
    is_fine(live)
    states = live.session_state[RUN].states
    assert [state.step for state in states] == [0, 20, 40]
    assert metrics(live)[TEXT["now_step"]] == "40"
    assert "**Copy**" in said(live) and TEXT["now_see_copy"] in said(live)
    assert not live.button(key="toy start").disabled and live.button(key="toy stop").disabled
    # Back to the beginning: every figure shows the first state.
    slider = next(s for s in live.select_slider if s.label == TEXT["now_back"])
    slider.set_value(0).run()
    is_fine(live)
    assert metrics(live)[TEXT["now_step"]] == "0"
    answer = states[-1].learner.answer("anna")
    live.text_input(key="toy own").set_value(" Anna ").run()
    is_fine(live)
    assert f"The right word is **anna**: {len(answer.wrong)} wrong" in said(live)
    struck = said(live).split("### anna → ")[1].split("\n")[0]
    assert struck.count("~~") == 2 * len(answer.wrong)

    slider = next(s for s in live.select_slider if s.label == TEXT["now_back"])
    slider.set_value(40).run()
    for word, reason in (("zoë", "letters a to z only"), ("x" * 16, "16 letters")):  # which are no words
        live.text_input(key="toy own").set_value(word).run()
        assert not live.exception and not live.error
        assert reason in live.warning[0].value.replace("\\", "")
        assert metrics(live)[TEXT["now_step"]] == "40"


@pytest.mark.slow
def test_a_long_word_and_a_repeated_letter_are_something_it_has_never_seen(live: AppTest) -> None:
    choose_text(live, "toy task", TEXT["now_sort"])
    press(live.run(), "start")
    wait(live, lambda: "done in" in said(live))
    live.text_input(key="toy own").set_value("bananarama").run()
    assert TEXT["now_own_repeats"] in said(live) and "This word has" not in said(live)
    live.text_input(key="toy own").set_value("abcdefghijkl").run()
    assert "This word has 12" in said(live) and TEXT["now_own_repeats"] not in said(live)


def test_a_word_that_cannot_be_watched_cannot_be_started(live: AppTest) -> None:
    live.text_input(key="toy word").set_value("two words").run()
    assert "letters a to z only" in live.warning[0].value and live.button(key="toy start").disabled
    assert not live.exception and not live.error


@pytest.mark.slow
def test_stop(live: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy_training, "STEPS", {"reverse": 100_000})
    press(live, "start")
    wait(live, lambda: metrics(live).get(TEXT["now_step"], "0") != "0")
    assert live.button(key="toy start").disabled and not live.button(key="toy stop").disabled
    press(live, "stop")
    wait(live, lambda: "stopped after" in said(live))
    is_fine(live)
    assert live.session_state[RUN].job.wait(SOON)
    assert "of 100,000 steps" in said(live) and not live.button(key="toy start").disabled


@pytest.mark.slow
def test_all_settings_reach_the_training(live: AppTest) -> None:
    choices = {"toy positions": TEXT["now_positions_none"], "toy heads": 2, "toy rate": 0.02, "toy seed": 7}
    for key, value in choices.items():
        choose_text(live, key, value)
    live.run()
    live.text_input(key="toy word").set_value("abcdef").run()
    press(live, "start")
    assert live.session_state[RUN].settings == Settings("reverse", "none", 2, 0.02, 7, "abcdef")
    wait(live, lambda: "done in" in said(live))
    is_fine(live)
    assert TEXT["now_bag_reverse"] in said(live)
    state = live.session_state[RUN].states[-1]
    assert state.attention.n_heads == 2 and state.attention.key.text == "abcdef"
    expected = [s.score.loss for s in Settings("reverse", "none", 2, 0.02, 7, "abcdef").train()]
    assert [s.score.loss for s in live.session_state[RUN].states] == expected


@pytest.mark.slow
def test_the_snippet_gives_what_the_page_shows(live: AppTest, run_snippet: Callable[[str], str]) -> None:
    press(live, "start")
    wait(live, lambda: "done in" in said(live))
    state = live.session_state[RUN].states[-1]
    printed = run_snippet(codes(live)[-1])
    assert f"40 {state.score.loss} {state.score.accuracy} {state.written}" in printed


@pytest.fixture
def others() -> Iterator[threading.Event]:
    """Fill all slots with training runs of other sessions; yield a function that ends them."""
    over = threading.Event()
    jobs = [Job(lambda _: over.wait(SOON), patience=SOON, kind=TRAINING_JOB) for _ in range(limits().jobs)]
    for job in jobs:
        job.start("somebody")
    assert all(until(lambda job=job: job.status == "running") for job in jobs)
    yield over
    over.set()
    assert all(job.wait(SOON) for job in jobs)


@pytest.mark.slow
def test_who_comes_third_waits_and_then_begins_by_itself(live: AppTest, others: threading.Event) -> None:
    press(live, "start")
    wait(live, lambda: bool(live.info))
    assert "number **1**" in live.info[0].value and live.button(key="toy start").disabled
    others.set()
    wait(live, lambda: "done in" in said(live))


def test_who_waits_may_give_up(live: AppTest, others: threading.Event) -> None:
    press(live, "start")
    wait(live, lambda: bool(live.info))
    press(live, "stop")
    wait(live, lambda: TEXT["now_none"] in said(live))
    is_fine(live)
    assert not live.button(key="toy start").disabled


def test_a_training_that_fails_says_so(live: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Settings) -> Iterator[int]:
        raise FloatingPointError("the loss stopped being a number at step 3; take a lower learning rate than 1e38")

    monkeypatch.setattr(Settings, "train", fails)
    press(live, "start")
    wait(live, lambda: bool(live.warning))
    assert "stopped being a number at step 3" in live.warning[0].value.replace("\\", "")
    assert not live.exception and not live.error and not live.button(key="toy start").disabled


@pytest.mark.slow
def test_a_training_ends_when_its_page_is_left_and_its_result_stays(
    live: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_training, "STEPS", {"reverse": 100_000})
    monkeypatch.setattr(live_training, "PATIENCE", SOON)
    press(live, "start")
    wait(live, lambda: metrics(live).get(TEXT["now_step"], "0") != "0")
    job = live.session_state[RUN].job
    monkeypatch.setattr(job, "_patience", 0.5)  # only now, since a busy machine may take longer for a run of the page
    live.run()
    live.switch_page("pages/tokens.py").run()
    assert job.wait(SOON)
    live.switch_page("pages/training.py").run()
    is_fine(live)
    assert "this page was not open for" in said(live) and "of 100,000 steps" in said(live)
    assert job.status == "left" and len(live.session_state[RUN].states) > 1


# ---- one step in detail ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", KINDS)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_one_step_in_detail(
    open_app: Callable[..., AppTest], tiny_checkpoint: Callable, checkpoint: str, optimizer: str
) -> None:
    app = open_app("training", checkpoint=checkpoint, sentence=SENTENCE)
    choose_text(app, "training optimizer", TEXT[f"step_{optimizer}"])
    show(app, "step")
    is_fine(app)
    loaded = tiny_checkpoint(checkpoint)
    trace = transformer.trace(loaded, SENTENCE)
    rate = 0.001 if optimizer == "adam" else 0.01
    step = training_step(trace, stack=trace.stacks[-1], rate=rate, optimizer=optimizer)
    values = metrics(app)
    assert float(values[TEXT["step_before"]]) == pytest.approx(step.loss_before, rel=6e-3)
    assert float(values[TEXT["step_after"]]) == pytest.approx(step.loss_after, rel=6e-3)
    assert len(app.get("plotly_chart")) == 3
    assert TEXT[f"step_moves_{optimizer}"] in said(app)


def test_the_class_and_the_rate_can_be_chosen(open_app: Callable[..., AppTest]) -> None:
    app = show(open_app("training", checkpoint="tiny-sentiment", sentence=SENTENCE), "step")
    losses = []
    for name in ("negative", "positive"):
        choose_text(app, "training class", name)
        app.run()
        losses.append(metrics(app)[TEXT["step_before"]])
    assert losses[0] != losses[1]
    before = metrics(app)[TEXT["step_after"]]
    app.select_slider(key="training rate adam").set_value(0.1).run()
    is_fine(app)
    assert metrics(app)[TEXT["step_after"]] != before


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_snippet_of_the_step(
    open_app: Callable[..., AppTest], run_snippet: Callable[[str], str], checkpoint: str
) -> None:
    app = show(open_app("training", checkpoint=checkpoint, sentence=SENTENCE), "step")
    before, after = run_snippet(codes(app)[-1]).splitlines()[0].split()
    assert float(before) == pytest.approx(float(metrics(app)[TEXT["step_before"]]), rel=6e-3)
    assert float(after) == pytest.approx(float(metrics(app)[TEXT["step_after"]]), rel=6e-3)


@pytest.mark.parametrize("sentence", ["", "   "])
def test_a_step_needs_a_sentence(open_app: Callable[..., AppTest], sentence: str) -> None:
    app = show(open_app("training", checkpoint="tiny-bert", sentence=sentence), "step")
    assert not app.exception and not app.error
