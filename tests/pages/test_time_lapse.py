"""The time-lapse on Training: every step shows its snapshot's results, or the lack of snapshots."""

from __future__ import annotations

import contextlib
import io
import math
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
from transformer.files.snapshots import snapshot, snapshot_file, write_snapshot
from transformer.heads.head_roles import HeadRole
from transformer.heads.roles_through_training import Moment, changed_most, development, moment_of
from transformer.interventions.experiment import same_tokens
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.attention_view import AttentionView
from transformer.runs.head_places import Head
from transformer.text.tokens import Token, TokenSequence
from transformer.training.run_state import write_history
from ui.words.texts import as_plain, page_text
from views.training.time_lapse_words import (
    beginning,
    change,
    likely,
    marked,
    note,
    per_token,
    probability,
    shortened,
    step_names,
    story,
    summary,
    titles,
)
from views.training.training_view_model import TrainingViewModel, telling_head, training_view_model

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
        return app.segmented_control(key="training section").set_value(TEXT["section_time"]).run()

    return run


def test_every_step_is_in_the_table_with_what_its_snapshot_answers(open_section: Callable, grown) -> None:
    app = open_section()
    is_fine(app)
    moments = development(grown, SENTENCE)
    table = app.dataframe[0].value
    assert table[TEXT["time_column_step"]].tolist() == [0, 300, 1700]
    assert table[TEXT["time_column_text"]].tolist() == [" ".join(moment.text.split()) for moment in moments]
    expected = [moment.log_probability for moment in moments]
    np.testing.assert_allclose(table[TEXT["time_column_log"]], expected, rtol=1e-6)
    assert table[TEXT["time_column_roles"]].tolist() == [moment.clear_roles for moment in moments]
    change = table[TEXT["time_column_change"]].tolist()
    assert change[2] == 0.0 and change[0] > 0.0
    assert len(app.get("plotly_chart")) == 2


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


def test_it_opens_on_the_sentence_early_and_late_with_what_changed(open_app: Callable, grown) -> None:
    app = open_app("training", checkpoint="grown", sentence=SENTENCE)
    is_fine(app)
    first, *_, last = development(grown, SENTENCE)
    shown = training_view_model((first, last))
    titles = [element.value for element in app.markdown if element.value.startswith("##### ")]
    assert titles[-2:] == [f"##### {TEXT['early_before']}", f"##### {TEXT['early_after'].format(step='1,700')}"]
    outputs = [f"#### {as_plain(shortened(one.text, last.text))}" for one in (first, last)]
    assert [element.value for element in app.markdown if element.value in outputs] == outputs
    assert first.text != last.text
    for key, moment in (("early_other", first), ("early_this", last)):
        assert TEXT[key].format(probability=probability(moment)) in said(app)
    assert shown.location == telling_head((first, last))
    assert change(shown, TEXT, predicted=transformer.trace(grown, SENTENCE).prediction) in said(app)
    assert TEXT["early_random"] not in said(app), "its first snapshot is the model before training"
    assert len([one for one in app.get("bidi_component") if "training map" in one.proto.id]) == 2


def test_where_a_model_adds_nothing_it_shows_how_probable_the_text_was(open_app: Callable, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence, checkpoint = (
        "My grandmother bakes apple pie every Sunday.",
        transformer.load(ROOT / "checkpoints" / "gpt-en"),
    )
    trace = transformer.trace(checkpoint, sentence)
    app = open_app("training", checkpoint="gpt-en", sentence=sentence)
    is_fine(app)
    question = prediction_rows(trace)
    assert question.everywhere, "the model finds the text complete"
    for model in (transformer.untrained(checkpoint), checkpoint):
        logs = question.chosen(question.log_probabilities(same_tokens(trace, checkpoint=model)))
        share = per_token(math.exp(logs.mean()))
        assert TEXT["early_typed"].format(probability=share) in said(app)


def test_a_run_that_continued_opens_on_random_weights(open_app: Callable, monkeypatch) -> None:
    """Its own start already writes French, which shows nothing of what training did."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence, checkpoint = "The cat sat.", transformer.load(ROOT / "checkpoints" / "en-fr")
    app = open_app("training", checkpoint="en-fr", sentence=sentence)
    is_fine(app)
    trace = transformer.trace(checkpoint, sentence)
    random = moment_of(transformer.untrained(checkpoint), None, trace, max_new_tokens=12)
    final = moment_of(checkpoint, 4200, trace)
    shown = [element.value for element in app.markdown]
    assert f"##### {TEXT['early_random']}" in shown and f"##### {TEXT['early_trained']}" in shown
    assert f"#### {as_plain(beginning(random.text))}" in shown and f"#### {as_plain(final.text)}" in shown
    assert TEXT["early_other"].format(probability=probability(random)) in said(app)
    assert TEXT["early_this"].format(probability=probability(final)) in said(app)
    assert random.log_probability < final.log_probability - 10


def test_the_time_lapse_of_a_run_that_continued_counts_its_own_steps(open_app: Callable, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("training", checkpoint="en-fr", sentence="The cat sat.", **{"training section": "time"})
    is_fine(app)
    options = list(app.select_slider(key="training_step").options)
    assert options == ["random weights", "0 (started from en-fr-2017)", "400", "4,200 (final)"]
    assert app.dataframe[0].value[TEXT["time_column_step"]].tolist() == [0, 400, 4200]
    moments = development(transformer.load(ROOT / "checkpoints" / "en-fr"), "The cat sat.")
    assert summary(training_view_model(moments), TEXT) in said(app)


def test_a_classifier_is_compared_with_a_guess(open_app: Callable, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("training", checkpoint="sentiment", sentence="A wonderful film.")
    is_fine(app)
    assert TEXT["early_guess"].format(probability=percent_digits(0.5)) in said(app)
    assert app.segmented_control(key="training section").options[0] == TEXT["section_early"]


def test_a_long_output_is_cut_between_words() -> None:
    assert shortened("no " * 16, "") == "no " * 16
    for other, longest in (("", 50), ("longer words " * 5, 65), ("longer words " * 20, 100)):
        cut = shortened("longer words " * 20, other)
        assert cut.endswith("words …") or cut.endswith("longer …")
        assert longest - 8 < len(cut) <= longest + 2, "as long as the other output, within limits"


def test_noise_is_cut_to_one_line() -> None:
    assert beginning("no " * 12) == "no no no no no no no no no no …"
    assert beginning("word" * 12) == f"{'word' * 12}"[:30] + " …"
    assert beginning("Ka Ka") == "Ka Ka …"


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
        app.text_area(key="sidebar sentence").set_value(sentence).run()
        is_fine(app)
        assert len(app.dataframe[0].value) == 3


def test_a_checkpoint_without_snapshots_says_which_has_them(open_section: Callable) -> None:
    app = open_section(checkpoint="tiny-gpt")
    is_fine(app)
    assert app.info[0].value == f"{TEXT['time_none']} {TEXT['time_others'].format(names='grown')}"
    assert not app.get("plotly_chart")


def test_a_broken_snapshot_is_a_sentence_and_the_others_are_shown(open_section: Callable, grown) -> None:
    (grown.path / snapshot_file(300)).write_bytes(b"no")
    app = open_section()
    assert not app.exception and not app.error
    assert "is not a complete safetensors file" in app.warning[0].value.replace("\\", "")
    assert app.dataframe[0].value[TEXT["time_column_step"]].tolist() == [0, 1700]


def test_a_trainers_folder_is_a_time_lapse_with_its_losses(
    open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = write_training(tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(training))
    (training / "checkpoint-500" / "model.safetensors").write_bytes(b"no")
    app = open_app("training", checkpoint="checkpoint-1500", sentence="The cat")
    assert not app.exception and not app.error
    assert "checkpoint-500" in app.warning[0].value.replace("\\", "")
    assert TEXT["logged"].format(steps="1,000") in said(app)
    app.segmented_control(key="training section").set_value(TEXT["section_time"]).run()
    assert not app.exception and not app.error
    assert app.dataframe[0].value[TEXT["time_column_step"]].tolist() == [1000, 1500]


def test_the_snippet_gives_the_numbers_of_the_first_step(open_section: Callable, grown, tmp_path: Path, monkeypatch):
    app = open_section(stack="decoder", kind="cross", layer="1", head="1")
    snippet = next(code for code in codes(app) if "moment_of(" in code and "import transformer" in code)
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(snippet, "snippet", "exec"), {})  # the code that the page shows
    assert str(app.dataframe[0].value[TEXT["time_column_log"]][0])[:9] in printed.getvalue()


# ---- words ----------------------------------------------------------------------------------------------------------


def moments_of(*roles: str, last: int | None = 700) -> list[Moment]:
    """Return moments of a head with these roles, whose map is even at first and diagonal at the end."""
    steps = [0, 300, 500][: len(roles) - 1] + [last]
    tokens = TokenSequence(tuple(Token(index, index, "a", "a") for index in range(4)))
    even, diagonal = np.full((4, 4, 4), 0.25, np.float32), np.tile(np.eye(4, dtype=np.float32), (4, 1, 1))
    moments = []
    for index, (step, role) in enumerate(zip(steps, roles, strict=True)):
        weights = diagonal if index == len(roles) - 1 else even
        view = AttentionView("x", "decoder", 1, "cross", weights, np.ones((4, 4), bool), weights, tokens, tokens)
        found = HeadRole("decoder", "cross", 1, 3, role, {role: 0.75})
        moments.append(Moment(step, "", -2.0, 4, 0.0, (view,), (found,)))
    return moments


def shown_of(moments: list[Moment]) -> TrainingViewModel:
    return training_view_model(moments, Head("decoder", "cross", 1, 3))


def test_steps_have_names() -> None:
    assert step_names(moments_of("none", "none"), TEXT, card="") == ["0 (untrained)", "700 (final)"]
    assert step_names(moments_of("none", last=None), TEXT, card="") == ["final"]
    fine_tuned = "| began as | the checkpoint `en-fr` |"
    assert step_names(moments_of("none", "none"), TEXT, card=fine_tuned)[0] == "0 (started from en-fr)"
    random = replace(moments_of("none")[0], has_random_weights=True)
    names = step_names([random, *moments_of("none", "none")], TEXT, card=fine_tuned)
    assert names == ["random weights", "0 (started from en-fr)", "700 (final)"]


def test_titles_say_what_the_training_began_with() -> None:
    """4,200 steps that continued from another model did not begin with the random weights beside them."""
    early, late = moments_of("none", "none", last=4200)
    random, card = replace(early, step=None, has_random_weights=True), "| began as | the checkpoint `en-fr-2017` |"
    from_random, from_start = shown_of([random, late]), shown_of([early, late])
    assert titles(from_random, TEXT, card=card) == ("Before any training: random weights", "After training")
    assert r"did not begin with them: it continued from en\-fr\-2017" in note(from_random, TEXT, card=card)
    assert titles(from_random, TEXT, card="") == ("Before any training: random weights", "After 4,200 steps")
    assert note(from_random, TEXT, card="") == TEXT["early_seed"].format(seed=0)
    assert titles(from_start, TEXT, card="") == ("Before training", "After 4,200 steps")
    assert note(from_start, TEXT, card="") == ""


def test_what_a_head_learned_is_said_in_shares_of_its_attention() -> None:
    moments = moments_of("none", "diagonal")
    assert change(shown_of(moments), TEXT) == (
        "To predict **a₄**, **a₄** gets 25% of the attention before, **100%** after: "
        "cross-attention, layer 1, head 3 now **follows the word order**."
    )
    assert change(shown_of(moments_of("none", "none")), TEXT).endswith(":gray[(cross-attention, layer 1, head 3)].")


def test_green_is_explained_where_a_word_is_green() -> None:
    first, last = (replace(moment, text=said) for moment, said in zip(moments_of("none", "none"), "ab", strict=True))
    assert TEXT["time_green"] not in likely(first, last, TEXT)
    assert likely(first, replace(last, text="a b"), TEXT).endswith(TEXT["time_green"])


def test_the_words_that_answers_share_are_green_and_escaped() -> None:
    assert marked("Le chat.", "Le chien.") == r":green[Le] chat:green[\.]"
    assert marked("<b> :red[x]", "") == r"\<b\> \::color[]{}red\[x\]"
    assert marked("no no no no no no yes", "yes") == "no :small[×6] :green[yes]"
    assert marked("no no", "") == "no no"
    assert marked("", "a") == "–"


def test_when_a_head_took_up_its_role_in_words() -> None:
    said = story(shown_of(moments_of("broad", "none", "diagonal", "diagonal")), TEXT)
    assert said == (
        "**Layer 1, head 3 of cross-attention** has had the role *follows the word order (0.75)* since step **500**. "
        "Its map changes most between **steps 500 and 700**: 75% of its attention moves to other tokens."
    )
    assert "from the start" in story(shown_of(moments_of("sink", "sink")), TEXT)
    assert "no clear role" in story(shown_of(moments_of("sink", "none")), TEXT)
    assert "since step **final**" in story(shown_of(moments_of("none", "sink", last=None)), TEXT)


def test_when_most_heads_took_up_their_roles_in_words() -> None:
    said = summary(shown_of(moments_of("broad", "none", "diagonal", "diagonal")), TEXT)
    assert "Of 1 heads, 0 have a clear role in this sentence at step 0 and **1** at the end" in said
    assert "**1 between steps 300 and 500**" in said
    assert "between" not in summary(shown_of(moments_of("none", "none")), TEXT)


def test_probability_of_a_token_on_average() -> None:
    assert probability(moments_of("none")[0]) == "60.7%"
    assert probability(Moment(0, "", float("nan"), 0, 0.0, (), ())) == "–"


def test_a_tiny_probability_is_not_mistaken_for_one_in_percent() -> None:
    """0.0108% beside 0.0107, the probability of the whole output on other pages, read as the same number."""
    assert [per_token(value) for value in (0.000108, 0.00012, 0.001, 0.0, 0.712)] == [
        "1 in 9,300",
        "1 in 8,300",
        "0.1%",
        percent_digits(0.0),
        "71.2%",
    ]
