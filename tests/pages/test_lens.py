"""The Lens page: every kind of model, every colouring, odd sentences, and a snippet that agrees."""

from __future__ import annotations

import re

import pytest

import transformer
from charts.toolkit.style import three_digits
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, codes, is_fine, said
from transformer.layers.residual_stream import Part, SubLayer, label_in_sentence
from transformer.predictions.lens import logit_lens, word_probabilities
from ui.shell.focus import FIRST_CHOSEN
from ui.words.texts import page_text
from views.lens.lens_view_model import MAX_COLUMNS

TEXT = page_text("lens")
KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SENTENCE = "The old man told us a story."
STACK = {"tiny-translator": "decoder", "tiny-gpt": "decoder", "tiny-bert": "encoder", "tiny-sentiment": "encoder"}


def plain(token: str) -> str:
    return token.removeprefix("·") or token


def window_around(place: int, count: int) -> tuple[int, int]:
    """Return the columns that are drawn: as many as fit, the selected one in the middle if possible."""
    first = min(max(0, place - MAX_COLUMNS // 2), max(0, count - MAX_COLUMNS))
    return first, first + MAX_COLUMNS


@pytest.mark.parametrize("checkpoint", KINDS)
def test_every_row_colour_and_place(open_app, tiny_checkpoint, checkpoint):
    app = open_app("lens", checkpoint=checkpoint, sentence=SENTENCE, stack=STACK[checkpoint], token="2")
    for rows in ("sublayers", "layers"):
        choose_text(app, "lens_rows", rows)
        for colour in ("rank", "divergence", "probability"):
            choose_text(app, "lens_colour", colour)
            is_fine(app.run())
    loaded = tiny_checkpoint(checkpoint)
    lens = logit_lens(transformer.trace(loaded, SENTENCE))
    place = 2 + lens.of_classes
    assert f"**{plain(lens.read[place])}**" in said(app)
    top = lens.words[-1][place]
    assert f"**{plain(top)}**" in said(app) and three_digits(float(lens.probabilities[-1, place, 0])) in said(app)
    drawn = lens.part(*window_around(place, len(lens.read)))
    late, never = int((drawn.decided == len(drawn.steps) - 1).sum()), int((drawn.decided < 0).sum())
    text = TEXT.instead("of_classes") if lens.of_classes else TEXT
    counted = text["top_never"] if lens.of_classes else text["top" if late else "top_none"]
    assert counted.format(count=never if lens.of_classes else late, total=len(drawn.read)) in said(app)
    assert text["legend"].format(colour=text["legend_top"]) in said(app)
    assert TEXT["pre" if lens.final_norm else "post"].format(norm="LayerNorm") in said(app)


def test_how_the_words_compete_is_worked_out_where_it_is_unfolded(open_app, monkeypatch):
    made = []
    monkeypatch.setattr(
        "views.lens.lens_view_model.word_probabilities", lambda *of: made.append(of[2]) or word_probabilities(*of)
    )
    place = {"checkpoint": "tiny-translator", "sentence": SENTENCE, "stack": "decoder", "token": "2"}
    is_fine(open_app("lens", **place))
    assert not made
    is_fine(open_app("lens", **place, lens_course="true"))
    assert made == [2]


def test_the_first_view_has_no_divergence_and_one_lens(open_app, monkeypatch):
    made = []
    monkeypatch.setattr(
        "views.lens.lens_view_model.logit_lens", lambda *of, **how: made.append(how["spread"]) or logit_lens(*of, **how)
    )
    app = open_app("lens", checkpoint="tiny-translator", sentence="The old man went out.")
    is_fine(app)
    assert made == [False]
    choose_text(app, "lens_colour", "divergence")
    is_fine(app.run())
    assert made == [False, True]
    is_fine(open_app("lens", checkpoint="tiny-gpt", sentence="The old man went out.", lens_view="author"))
    assert made == [False, True], "who wrote it is no readout"


def test_a_sublayer_is_named_as_a_sentence_names_it(open_app):
    app = open_app("lens", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder", lens_rows="sublayers")
    is_fine(app)
    assert not re.search(r"after \d", said(app)), said(app)
    label = SubLayer("decoder", 2, "cross_attention", before="", update="", norm="", after="").label
    assert (label, label_in_sentence(label)) == ("2 cross-attention", "the cross-attention of layer 2")
    assert label_in_sentence(Part("self_attention", 1, 3).label) == "self-attention, layer 1, head 3"


def test_a_classifier_begins_with_the_whole_sentence(open_app):
    app = open_app("lens", checkpoint="tiny-sentiment", sentence=SENTENCE)
    is_fine(app)
    assert "The sentence is classified as **" in said(app)


def test_the_first_sentence_says_when_the_prediction_is_decided(open_app, monkeypatch):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = "My grandmother bakes apple pie every Sunday."
    lens = logit_lens(transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), sentence))
    column = lens.read.index("·chaque")
    place = {"stack": "decoder", "kind": "cross", "token": str(column)}
    app = open_app("lens", checkpoint="en-fr", sentence=sentence, **place)
    is_fine(app)
    before = dict.fromkeys(row[column] for row in lens.words[:-1])
    assert lens.decided[column] == len(lens.steps) - 1 and lens.words[-1][column] == "·dimanche"
    earlier = ", ".join(f"**{plain(word)}**" for word in before)
    assert f"After **chaque**, the model predicts **dimanche** ({lens.probability[-1, column]:.3f})." in said(app)
    assert TEXT["since_last"].format(earlier=earlier) in said(app)
    assert TEXT["legend"].format(colour=TEXT["legend_top"]) in said(app)


def test_a_blank_is_looked_at_first(open_app, tiny_checkpoint):
    sentence = "The old ___ told us a story."
    app = open_app("lens", checkpoint="tiny-bert", sentence=sentence)
    is_fine(app)
    blank = transformer.trace(tiny_checkpoint("bert"), sentence).source.displays.index("<mask>")
    assert "At **<mask>**" in said(app) and blank > 0


def test_the_first_token_of_a_text_can_be_followed(open_app):
    """The first token is the default focus, so the page chooses the end of the text by itself."""
    app = open_app("lens", checkpoint="tiny-gpt", sentence=SENTENCE)
    assert "After **<s>**" not in said(app)
    choose_text(app, FIRST_CHOSEN, "1")  # the message of a click on the strip
    is_fine(app.run())
    assert "After **<s>**" in said(app) and "1" in app.query_params["lens_start"]
    app = open_app("lens", checkpoint="tiny-gpt", sentence=SENTENCE, lens_start="1")
    assert "After **<s>**" in said(app)
    by_hand = open_app("lens", checkpoint="tiny-gpt", sentence=SENTENCE, token="0")
    assert "After **<s>**" in said(by_hand), "a link that somebody typed"
    app.text_input(key="sentence").set_value("The dog sleeps.").run()
    assert "After **<s>**" not in said(app)


@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-gpt"])
def test_the_word_that_came_can_be_followed(open_app, checkpoint):
    app = open_app("lens", checkpoint=checkpoint, sentence=SENTENCE, target="Le chat.", stack="decoder", token="1")
    choose_text(app, "lens_follow", "came")
    is_fine(app.run())
    assert TEXT["top_never"].split("columns, ")[1] in said(app)
    assert "its own prediction is" in said(app)


def test_the_models_own_words_leave_nothing_to_choose(open_app):
    app = open_app("lens", checkpoint="tiny-translator", sentence=SENTENCE)
    assert not any(buttons.key == "lens_follow" for buttons in app.segmented_control)


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_snippet_prints_what_is_shown(open_app, run_snippet, checkpoint):
    app = open_app("lens", checkpoint=checkpoint, sentence=SENTENCE, stack=STACK[checkpoint], token="1")
    snippet = next(code for code in codes(app) if "import transformer" in code)
    lines = run_snippet(snippet).strip().splitlines()
    assert lines[0].startswith("embedding") and len(lines) == 3
    assert f"**{plain(lines[-1].split()[2])}**" in said(app) or checkpoint == "tiny-sentiment"


def test_tokens_that_are_never_written_are_named(open_app):
    shown = said(open_app("lens", checkpoint="tiny-translator", sentence="The cat sat on the mat."))
    assert "All tokens are included here, even `<pad>`, `<s>`. When the model generates text" in shown


def test_an_old_link_to_the_jacobian_lens_shows_the_logit_lens_and_says_so(open_app):
    app = open_app("lens", checkpoint="tiny-gpt", sentence=SENTENCE, lens_view="jacobian")
    is_fine(app)
    assert any("jacobian" in caption.value and "it was corrected" in caption.value for caption in app.main.caption)
    assert TEXT["caution"] in said(app)
