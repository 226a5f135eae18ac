"""The time-lapse on Training: every step shows its snapshot's results, or the lack of snapshots."""

from __future__ import annotations

import contextlib
import io
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import percent_digits
from tests.conftest import ROOT
from tests.pages.conftest import codes, is_fine, said
from tests.transformer.files.test_trainer_folder import write_training
from tests.ui.texts_of import TextsOf
from transformer.files.snapshots import snapshot, snapshot_file, write_snapshot
from transformer.heads.sentence_through_training import Moment, changed_most, development
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.text.tokens import Token, TokenSequence
from transformer.training.run_state import write_history
from ui.words.texts import page_text
from views.training.training_sections import Shown, marked, per_token, step_names, story

TEXT = page_text("training")
SENTENCE = "The old man told us a story, and the sea was cold."
STEPS = ["0 (untrained)", "300", "1,700 (final)"]


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
        app = open_app("training", **{"checkpoint": "grown", "sentence": SENTENCE, **address})
        return app.segmented_control(key="training section").set_value(TEXT["section"]["time"]).run()

    return run


def test_every_step_is_in_the_table_with_what_its_snapshot_answers(open_section: Callable, grown) -> None:
    app = open_section()
    is_fine(app)
    moments = development(grown, SENTENCE)
    table = app.dataframe[0].value
    assert table[TEXT["column"]["step"]].tolist() == [0, 300, 1700]
    assert table[TEXT["column"]["text"]].tolist() == [" ".join(moment.text.split()) for moment in moments]
    expected = [moment.log_probability for moment in moments]
    np.testing.assert_allclose(table[TEXT["column"]["log"]], expected, rtol=1e-6)
    change = table[TEXT["column"]["change"]].tolist()
    assert change[2] == 0.0 and change[0] > 0.0
    assert len(app.get("plotly_chart")) == 1


@pytest.mark.slow
def test_the_slider_goes_through_training_time(open_section: Callable, grown) -> None:
    app = open_section(stack="decoder", kind="cross", layer="1", head="1")
    slider = app.select_slider(key="training_step")
    assert list(slider.options) == STEPS
    assert slider.value == "0"
    for step, name in zip((0, 300, None), STEPS, strict=True):
        app.select_slider(key="training_step").set_value("1700" if step is None else str(step)).run()
        is_fine(app)
        model = grown if step is None else snapshot(grown, step)
        own, final = transformer.decode(model, SENTENCE).text, transformer.decode(grown, SENTENCE).text
        assert f"#### {marked(own, final)}" in [element.value for element in app.markdown]
        assert f"Step **{name}**" in said(app)
    assert "Layer 1, head 1 of cross-attention" in said(app)


def test_the_time_lapse_of_a_run_that_continued_counts_its_own_steps(open_app: Callable, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("training", checkpoint="en-fr", sentence="The cat sat.", **{"training section": "time"})
    is_fine(app)
    options = list(app.select_slider(key="training_step").options)
    assert options == ["random weights", "0 (started from en-fr-2017)", "400", "4,200 (final)"]
    assert app.dataframe[0].value[TEXT["column"]["step"]].tolist() == [0, 400, 4200]
    assert TEXT["column"]["step"] in app.dataframe[0].value


def test_an_address_of_the_curves_opens_the_section_that_they_are_in(open_app: Callable, grown) -> None:
    app = open_app("training", checkpoint="grown", sentence=SENTENCE, **{"training section": "curves"})
    is_fine(app)
    assert app.segmented_control(key="training section").value == "early"


def test_the_head_that_changed_most_is_one_click_away(open_section: Callable, grown) -> None:
    app = open_section()
    next(button for button in app.button if button.label == TEXT["time_most"]).click().run()
    is_fine(app)
    place, _ = changed_most(development(grown, SENTENCE))
    assert f"Layer {place.layer}, head {place.head} of" in said(app)
    assert app.session_state["focus"].layer == place.layer
    assert (app.session_state["focus"].stack, app.session_state["focus"].kind) == (place.stack, place.kind)


@pytest.mark.slow
def test_odd_sentences_targets_and_padding(open_section: Callable) -> None:
    app = open_section(target="Le chat.", pads="2")
    is_fine(app)
    assert TEXT["time_read_given"] in said(app)
    for sentence in ("x", "!!!", "</s> <b>*a*", "I 😀\n"):
        app.text_input(key="sentence").set_value(sentence).run()
        is_fine(app)
        assert len(app.dataframe[0].value) == 3


def test_a_checkpoint_without_snapshots_is_shown_beside_random_weights(open_section: Callable) -> None:
    app = open_section(checkpoint="tiny-gpt")
    is_fine(app)
    assert list(app.select_slider(key="training_step").options) == ["random weights", "final"]
    assert f"{TEXT['time_none']} {TEXT['time_others'].format(names='grown')}" in said(app)
    assert TEXT["early_seed"].format(seed=0) in said(app) and TEXT["time_map_random"] in said(app)
    assert len(app.dataframe[0].value) == 2


def test_a_broken_snapshot_is_a_sentence_and_the_others_are_shown(open_section: Callable, grown) -> None:
    (grown.path / snapshot_file(300)).write_bytes(b"no")
    app = open_section()
    assert not app.exception and not app.error
    assert "is not a complete safetensors file" in app.warning[0].value.replace("\\", "")
    assert app.dataframe[0].value[TEXT["column"]["step"]].tolist() == [0, 1700]


def test_a_trainers_folder_is_a_time_lapse_with_its_losses(
    open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = write_training(tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(training))
    (training / "checkpoint-500" / "model.safetensors").write_bytes(b"no")
    app = open_app("training", checkpoint="checkpoint-1500", sentence="The cat")
    assert not app.exception and not app.error
    assert TEXT["logged"].format(steps="1,000") in said(app)
    app.segmented_control(key="training section").set_value(TEXT["section"]["time"]).run()
    assert not app.exception and not app.error
    assert "checkpoint-500" in app.warning[0].value.replace("\\", "")
    assert app.dataframe[0].value[TEXT["column"]["step"]].tolist() == [1000, 1500]


def test_the_snippet_gives_the_numbers_of_the_first_step(open_section: Callable, grown, tmp_path: Path, monkeypatch):
    app = open_section(stack="decoder", kind="cross", layer="1", head="1")
    snippet = next(code for code in codes(app) if "moment_of(" in code and "import transformer" in code)
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(snippet, "snippet", "exec"), {})  # the code that the page shows
    assert str(app.dataframe[0].value[TEXT["column"]["log"]][0])[:9] in printed.getvalue()


# ---- words ----------------------------------------------------------------------------------------------------------


def moments_of(n_even: int, *, last: int | None = 700) -> list[Moment]:
    """Return moments of a head whose map is even at ``n_even`` steps and diagonal at the end."""
    tokens = TokenSequence(tuple(Token(index, index, "a", "a") for index in range(4)))
    even, diagonal = np.full((4, 4, 4), 0.25, np.float32), np.tile(np.eye(4, dtype=np.float32), (4, 1, 1))
    return [
        Moment(
            step,
            "",
            -2.0,
            4,
            0.0,
            (AttentionView("x", "decoder", 1, "cross", weights, np.ones((4, 4), bool), weights, tokens, tokens),),
        )
        for step, weights in (*zip([0, 300, 500][:n_even], [even] * n_even, strict=True), (last, diagonal))
    ]


def shown_of(moments: list[Moment]) -> Shown:
    return Shown(tuple(moments), Head("decoder", "cross", 1, 3))


def test_steps_have_names() -> None:
    assert step_names(moments_of(1), TEXT, card="") == ["0 (untrained)", "700 (final)"]
    assert step_names(moments_of(0, last=None), TEXT, card="") == ["final"]
    fine_tuned = "| began as | the checkpoint `en-fr` |"
    assert step_names(moments_of(1), TEXT, card=fine_tuned)[0] == "0 (started from en-fr)"
    random = replace(moments_of(1)[0], step=None, has_random_weights=True)
    names = step_names([random, *moments_of(1)], TEXT, card=fine_tuned)
    assert names == ["random weights", "0 (started from en-fr)", "700 (final)"]


def test_the_run_itself_is_without_random_weights() -> None:
    early, late = moments_of(1)
    random = replace(early, step=None, has_random_weights=True)
    assert shown_of([random, early, late]).run == (early, late)
    assert shown_of([random, late]).run == (random, late), "there is nothing else to compare"


def test_green_is_explained_where_a_word_is_green(open_section: Callable) -> None:
    app = open_section(checkpoint="tiny-gpt")
    outputs = " ".join(element.value for element in app.markdown if element.value.startswith("#### "))
    assert (TEXT["time_green"] in said(app)) == (":green[" in outputs)


def test_the_words_that_answers_share_are_green_and_escaped() -> None:
    assert marked("Le chat.", "Le chien.") == r":green[Le] chat:green[\.]"
    assert marked("<b> :red[x]", "") == r"\<b\> \::color[]{}red\[x\]"
    assert marked("no no no no no no yes", "yes") == "no :small[×6] :green[yes]"
    assert marked("no no", "") == "no no"
    assert marked("", "a") == "–"


def test_when_a_map_changed_most_in_words() -> None:
    assert story(TextsOf("training"), shown_of(moments_of(3))) == (
        "The map of **Layer 1, head 3 of cross-attention** changes most between **steps 500 and 700**: 75% of its "
        "attention moves to other tokens."
    )
    assert "steps 0 and final" in story(TextsOf("training"), shown_of(moments_of(1, last=None)))


def test_probability_of_a_token_on_average() -> None:
    assert per_token(moments_of(0)[0].probability) == "60.7%"
    assert per_token(Moment(0, "", float("nan"), 0, 0.0, ()).probability) == "–"


def test_a_tiny_probability_is_not_mistaken_for_one_in_percent() -> None:
    """0.0108% beside 0.0107, the probability of the whole output on other pages, read as the same number."""
    assert [per_token(value) for value in (0.000108, 0.00012, 0.001, 0.0, 0.712)] == [
        "1 in 9,300",
        "1 in 8,300",
        "0.1%",
        percent_digits(0.0),
        "71.2%",
    ]
