"""“Predict, then reveal” on Attention hides everything before the guess and scores the overlap."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from charts.toolkit.style import three_digits
from tests.pages.conftest import is_fine, said
from transformer.attention_maps.attention_guess import score_guess
from ui.shell.focus import FIRST_CHOSEN
from ui.words.texts import page_text
from views.attention.attention_controls import GUESS as SWITCH

TEXT = page_text("attention")
SENTENCE = "The old man told us a story."
WITHOUT_A_MAP = ["sentence box", "canvas script", "frame", "token strip", "way to attention answer", "typing"]
PLACES = [
    ("tiny-translator", "encoder", "self"),
    ("tiny-translator", "decoder", "cross"),
    ("tiny-gpt", "decoder", "self"),
    ("tiny-bert", "encoder", "self"),
    ("tiny-sentiment", "encoder", "self"),
]


def painting(app):
    return next(group for group in app.get("button_group") if group.key.startswith("paint "))


def reveal(app, places):
    painting(app).set_value(list(places)).run()
    return app.button(key="attention reveal").click().run()


@pytest.fixture
def asked(open_app):
    def run(checkpoint, stack="encoder", kind="self", token=2):
        place = {"stack": stack, "kind": kind, "layer": "1", "head": "1", "token": str(token), FIRST_CHOSEN: "1"}
        return open_app("attention", checkpoint=checkpoint, sentence=SENTENCE, **{SWITCH: "true"}, **place)

    return run


def view_of(tiny_checkpoint, checkpoint, stack, kind):
    return transformer.trace(tiny_checkpoint(checkpoint), SENTENCE).attention(stack, 1, kind)


def test_it_is_off_by_default(open_app):
    app = open_app("attention", checkpoint="tiny-translator", sentence=SENTENCE)
    assert not app.toggle(key=SWITCH).value
    assert app.metric


@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_nothing_is_given_away_before_the_guess(asked, tiny_checkpoint, checkpoint, stack, kind):
    app = asked(checkpoint, stack, kind)
    is_fine(app)
    view = view_of(tiny_checkpoint, checkpoint, stack, kind)
    assert not app.metric and not app.get("plotly_chart")
    assert [component.key for component in app.get("bidi_component")] == WITHOUT_A_MAP
    assert "looks mostly" not in said(app) and "spreads its attention" not in said(app)
    weights = view.weights[1, 2]
    assert not any(three_digits(float(weight)) in said(app) for weight in weights if 0 < weight < 1)
    assert app.button(key="attention reveal").disabled
    assert len(painting(app).options) == int(view.allowed[2].sum())


def test_a_switch_to_cross_attention_asks_about_the_predicted_tokens(asked):
    """As the map names the rows by default. The switch that says so is hidden until the guess."""
    app = asked("tiny-translator", "decoder", "self")
    assert TEXT["guess_question"].split("{")[0] in said(app)
    choose = next(group for group in app.get("button_group") if group.key == "choose kind")
    choose.set_value("decoder cross").run()
    assert TEXT["guess_question_predicted"].split("{")[0] in said(app)


@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_the_score_is_the_overlap(asked, tiny_checkpoint, checkpoint, stack, kind):
    view = view_of(tiny_checkpoint, checkpoint, stack, kind)
    best = int(np.argmax(view.weights[1, 2]))
    app = reveal(asked(checkpoint, stack, kind), [best])
    is_fine(app)
    score = score_guess(view.weights[1, 2], [best], allowed=view.allowed[2])
    assert f"**{three_digits(score.overlap)}**" in said(app)
    assert three_digits(score.evenly) in said(app)
    assert "looks mostly" in said(app) or "spreads its attention" in said(app)


def test_the_next_row_is_hidden_again_and_the_mean_goes_on(asked):
    app = reveal(asked("tiny-translator"), [0, 1])
    app.button(key="attention guess next").click().run()
    is_fine(app)
    assert app.session_state["focus"].token == 3
    assert not app.get("plotly_chart")
    assert "looks mostly" not in said(app) and "spreads its attention" not in said(app)
    app = reveal(app, [2])
    assert TEXT["guess_mean"].split("{count}")[1].split(":")[0].strip() in said(app)
    assert "of 2 rows" in said(app)


def test_a_row_without_a_choice_is_not_asked(asked):
    app = asked("tiny-gpt", "decoder", "self", token=0)  # the first token may attend only to itself
    is_fine(app)
    assert not any(group.key.startswith("paint ") for group in app.get("button_group"))
    assert "nothing to guess" in said(app)
    app.button(key="attention guess next").click().run()
    assert painting(app)


def test_switched_off_the_page_is_whole_again(asked):
    app = asked("tiny-translator")
    app.toggle(key=SWITCH).set_value(False).run()
    is_fine(app)
    assert app.metric
