"""The Training page: curves, snapshots, one step, and a training of one's own."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import percent_digits
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, is_fine, metrics, said
from tests.transformer.files.test_trainer_folder import write_training
from tests.transformer.heads.test_sentence_through_training import development
from tests.ui.test_jobs import until
from tests.ui.texts_of import TextsOf
from transformer.files.model_card import checkpoint_step
from transformer.files.snapshots import snapshot, snapshot_file, write_snapshot
from transformer.heads.sentence_through_training import changed_most
from transformer.toy import toy_training
from transformer.training.recipe import load_recipe
from transformer.training.run_state import write_history
from ui.compute.jobs import Job
from ui.server.settings import settings
from ui.words.texts import page_text
from views.training import live_training
from views.training.live_training import RUN, Settings
from views.training.training_sections import marked, per_token, score_caption

TEXT = page_text("training")
COLUMN = TEXT["column"]
SENTENCE = "The old man told us a story, and the sea was cold."
TIME = {"training section": "time"}
ROWS = [
    {"step": 50, "epoch": 0, "target_tokens": 900, "seconds": 61.0, "learning_rate": 1e-3, "train_loss": 5.5},
    {"step": 100, "epoch": 0, "target_tokens": 1800, "seconds": 120.0, "learning_rate": 5e-4, "train_loss": 4.5,
     "gradient_norm": 1.0, "dev_loss": 4.75, "dev_perplexity": 115.6, "dev_score": 12.5},
]  # fmt: skip


# ---- the run and its snapshots --------------------------------------------------------------------------------------


@pytest.fixture
def grown(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> transformer.Checkpoint:
    """A folder with a translator with snapshots of steps 0 and 300, and a model without snapshots."""
    folder = shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path / "checkpoints" / "grown")
    shutil.copytree(checkpoints_folder / "tiny-gpt", tmp_path / "checkpoints" / "tiny-gpt")
    checkpoint = transformer.load(folder)
    for step in (0, 300):
        with torch.random.fork_rng():
            torch.manual_seed(step)
            write_snapshot(folder / snapshot_file(step), transformer.build_model(checkpoint.config), step)
    write_history(folder / "history.csv", [{"step": 1700, "dev_score": 2.0}])
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path / "checkpoints"))
    return checkpoint


@pytest.fixture
def open_section(open_app: Callable, grown: transformer.Checkpoint) -> Callable[..., AppTest]:
    def run(**address: str) -> AppTest:
        return open_app("training", **{"checkpoint": "grown", "sentence": SENTENCE, **TIME, **address})

    return run


def test_every_step_is_in_the_table_with_what_its_snapshot_answers(open_section, grown) -> None:
    app = open_section()
    is_fine(app)
    moments, table = development(grown, SENTENCE), app.dataframe[0].value
    assert table[COLUMN["step"]].tolist() == [0, 300, 1700]
    assert table[COLUMN["text"]].tolist() == [" ".join(moment.text.split()) for moment in moments]
    np.testing.assert_allclose(table[COLUMN["log"]], [moment.log_probability for moment in moments], rtol=1e-6)
    next(button for button in app.button if button.label == TEXT["time_most"]).click().run()
    is_fine(app)
    place, _ = changed_most(moments)
    focus = app.session_state["focus"]
    assert (focus.stack, focus.kind, focus.layer, focus.head) == (place.stack, place.kind, place.layer, place.head)


@pytest.mark.slow
def test_the_slider_goes_through_training_time(open_section, grown) -> None:
    app = open_section()
    assert app.select_slider(key="training_step").value == "0"
    final = transformer.decode(grown, SENTENCE).text
    for step, model in ((0, snapshot(grown, 0)), (300, snapshot(grown, 300)), (1700, grown)):
        app.select_slider(key="training_step").set_value(str(step)).run()
        is_fine(app)
        own = transformer.decode(model, SENTENCE).text
        assert f"#### {marked(own, final)}" in [element.value for element in app.markdown]


def test_without_snapshots_or_with_a_broken_one_the_others_are_shown(open_section, grown) -> None:
    app = open_section(checkpoint="tiny-gpt")
    is_fine(app)
    assert len(app.select_slider(key="training_step").options) == len(app.dataframe[0].value) == 2, "random and final"
    (grown.path / snapshot_file(300)).write_bytes(b"no")
    app = open_section()
    assert not app.exception and not app.error
    assert "safetensors" in app.warning[0].value
    assert app.dataframe[0].value[COLUMN["step"]].tolist() == [0, 1700]


def test_a_trainers_folder_is_a_time_lapse_with_its_losses(open_app, tmp_path, monkeypatch) -> None:
    training = write_training(tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(training))
    (training / "checkpoint-500" / "model.safetensors").write_bytes(b"no")
    app = open_app("training", checkpoint="checkpoint-1500", sentence="The cat", **TIME)
    assert not app.exception and not app.error
    assert "checkpoint-500" in app.warning[0].value.replace("\\", "")
    assert app.dataframe[0].value[COLUMN["step"]].tolist() == [1000, 1500]


def test_the_words_that_answers_share_are_green_and_escaped() -> None:
    assert marked("Le chat.", "Le chien.") == r":green[Le] chat:green[\.]"
    assert marked("<b> :red[x]", "") == r"\<b\> \::color[]{}red\[x\]"
    assert marked("no no no no no no yes", "yes") == "no :small[×6] :green[yes]"
    assert marked("", "a") == "–"


def test_a_tiny_probability_is_not_mistaken_for_one_in_percent() -> None:
    """0.0108% beside 0.0107, the probability of the whole output on other pages, read as the same number."""
    values = {0.000108: "1 in 9,300", 0.001: "0.1%", 0.0: percent_digits(0.0), 0.712: "71.2%", float("nan"): "–"}
    assert [per_token(value) for value in values] == [*values.values()]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "checkpoints").glob("*/history.csv")), ids=lambda path: path.parent.name
)
def test_the_caption_of_the_scores_is_true_of_every_included_checkpoint(path) -> None:
    """It says that the checkpoint has the best score only where it does."""
    history, kept = pd.read_csv(path), checkpoint_step(path.parent)
    recipe = load_recipe(ROOT / "configs" / f"{path.parent.name}.toml")
    scores = history.set_index("step")["dev_score"]
    shown = score_caption(TextsOf("training"), history, kept=kept, recipe=recipe)
    assert f"step {kept:,}" in shown and ("which has the best value" in shown) == (scores[kept] == scores.max())


# ---- train one now --------------------------------------------------------------------------------------------------

SOON = 60.0


@pytest.fixture
def live(open_app: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> Iterator[AppTest]:
    """Return the section before any training, which takes about a second here and ends with the test."""
    monkeypatch.setattr(toy_training, "STEPS", {"copy": 40, "reverse": 40, "sort": 40})
    app = open_app("training", checkpoint="tiny-gpt", **{"training section": "now"})
    is_fine(app)
    assert RUN not in app.session_state and app.button(key="toy stop").disabled
    yield app
    if RUN in app.session_state:
        job = app.session_state[RUN].job
        job.leave(app.session_state["long jobs: who"], at_once=True)
        assert job.wait(SOON)


def press(app: AppTest, name: str) -> AppTest:
    return app.button(key=f"toy {name}").click().run()


def wait(app: AppTest, until: Callable[[], bool]) -> None:
    """Run the page repeatedly, as its timer does, until ``until()``."""
    end = time.monotonic() + SOON
    while not until():
        assert time.monotonic() < end, said(app)
        time.sleep(0.05)
        app.run()


@pytest.mark.slow
def test_from_the_start_to_a_word_of_ones_own(live, run_snippet) -> None:
    choices = {"toy positions": TEXT["now_positions"]["none"], "toy heads": 2, "toy rate": 0.02, "toy seed": 7}
    for key, value in choices.items():
        choose_text(live, key, value)
    live.run()
    live.text_input(key="toy word").set_value("abcdef").run()
    press(live, "start")
    settings = Settings("reverse", "none", 2, 0.02, 7, "abcdef")
    assert live.session_state[RUN].settings == settings
    wait(live, lambda: not live.button(key="toy start").disabled)
    is_fine(live)
    states = live.session_state[RUN].states
    assert [state.step for state in states] == [0, 20, 40] and metrics(live)[TEXT["now_step"]] == "40"
    assert [state.score.loss for state in states] == [state.score.loss for state in settings.train()]
    printed = run_snippet(live)
    assert f"40 {states[-1].score.loss} {states[-1].score.accuracy} {states[-1].written}" in printed
    slider = next(one for one in live.select_slider if one.label == TEXT["now_back"])
    slider.set_value(0).run()
    is_fine(live)
    assert metrics(live)[TEXT["now_step"]] == "0", "every figure shows the first state"
    answer = states[-1].learner.answer("anna")
    live.text_input(key="toy own").set_value(" Anna ").run()
    is_fine(live)
    assert said(live).split("### anna → ")[1].split("\n")[0].count("~~") == 2 * len(answer.wrong)
    for word in ("zoë", "x" * 16):  # which are no words
        live.text_input(key="toy own").set_value(word).run()
        assert not live.exception and not live.error and len(live.warning) == 1


@pytest.fixture
def others() -> Iterator[threading.Event]:
    """Fill all slots with training runs of other sessions; yield what ends them."""
    over = threading.Event()
    jobs = [Job(lambda _: over.wait(SOON), patience=SOON) for _ in range(settings().jobs)]
    for job in jobs:
        job.start("somebody")
    assert all(until(lambda job=job: job.status == "running") for job in jobs)
    yield over
    over.set()
    assert all(job.wait(SOON) for job in jobs)


@pytest.mark.slow
def test_who_comes_third_waits_and_then_begins_by_itself(live, others) -> None:
    press(live, "start")
    wait(live, lambda: bool(live.info))
    assert "**1**" in live.info[0].value and live.button(key="toy start").disabled
    others.set()
    wait(live, lambda: metrics(live).get(TEXT["now_step"]) == "40")


def test_a_training_that_fails_says_so(live, monkeypatch) -> None:
    def fails(_: Settings) -> Iterator[int]:
        raise FloatingPointError("no number at step 3")

    monkeypatch.setattr(Settings, "train", fails)
    press(live, "start")
    wait(live, lambda: bool(live.warning))
    assert "no number at step 3" in live.warning[0].value.replace("\\", "")
    assert not live.exception and not live.error and not live.button(key="toy start").disabled


@pytest.mark.slow
@pytest.mark.parametrize("way", ["stop", "leave"])
def test_a_training_ends_when_it_is_stopped_or_its_page_left_and_its_result_stays(live, monkeypatch, way) -> None:
    monkeypatch.setattr(toy_training, "STEPS", {"reverse": 100_000})
    monkeypatch.setattr(live_training, "PATIENCE", SOON)
    press(live, "start")
    wait(live, lambda: metrics(live).get(TEXT["now_step"], "0") != "0")
    job = live.session_state[RUN].job
    if way == "stop":
        press(live, "stop")
    else:
        monkeypatch.setattr(job, "_patience", 0.5)  # only now, since a busy machine may take longer for a run
        live.run()
        live.switch_page("pages/tokens.py").run()
    assert job.wait(SOON)
    live.switch_page("pages/training.py").run()
    is_fine(live)
    assert "100,000" in said(live) and len(live.session_state[RUN].states) > 1
    assert not live.button(key="toy start").disabled and (job.status == "left") == (way == "leave")


# ---- one step in detail ---------------------------------------------------------------------------------------------
