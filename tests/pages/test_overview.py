"""The Overview page: the output with its probabilities, and the links to other pages."""

from __future__ import annotations

import pytest

import transformer
from tests.conftest import ROOT
from tests.pages.conftest import codes, is_fine, said, with_e
from transformer.predictions.answer_probabilities import read_answer
from ui.words.texts import page_text

TEXT = page_text("overview")
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SENTENCE = "The old man told us a story."
HIDDEN_WORD = "The old ___ told us a story."  # its last longer word that is one token


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_answer_and_its_probability_are_those_of_the_model(open_app, tiny_checkpoint, checkpoint):
    app = open_app("overview", checkpoint=checkpoint, sentence=SENTENCE, masked="")
    is_fine(app)
    loaded = tiny_checkpoint(checkpoint)
    read = HIDDEN_WORD if checkpoint == "tiny-bert" else SENTENCE
    answer = read_answer(transformer.trace(loaded, read))
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown[TEXT["parameters"]] == f"{loaded.model.n_parameters:,}"
    assert float(with_e(shown[TEXT["probability"]])) == pytest.approx(answer.probability, rel=6e-3)
    if checkpoint != "tiny-bert":
        assert " ".join(answer.text.split()) in said(app)


def test_a_sentence_without_a_blank_is_filled_where_its_last_longer_word_was(open_app, tiny_checkpoint):
    app = open_app("overview", checkpoint="tiny-bert", sentence=SENTENCE, masked="")
    is_fine(app)
    (part,) = read_answer(transformer.trace(tiny_checkpoint("bert"), HIDDEN_WORD)).parts
    assert f"The old :primary[**{part.display.removeprefix('·')}**] told us a story." in said(app)
    assert TEXT["masked_word"].format(word="man") in said(app)
    assert app.session_state["focus"].sentence == SENTENCE, "what was typed stays"
    typed = open_app("overview", checkpoint="tiny-bert", sentence="The ___ man.")
    assert not any(TEXT["masked_word"].split("”")[1] in line for line in said(typed).splitlines())
    short = open_app("overview", checkpoint="tiny-bert", sentence="to us", masked="")
    is_fine(short)
    assert TEXT["no_blank"] in said(short)


def test_a_given_answer_is_not_called_the_model_s(open_app):
    app = open_app("overview", checkpoint="tiny-translator", sentence=SENTENCE, target="Le vieil homme.")
    is_fine(app)
    assert TEXT["forced"] in said(app) and "Le vieil homme." in said(app)
    assert TEXT["answers.encoder-decoder"] not in said(app)


def test_the_number_of_values_is_that_of_the_trace(open_app, tiny_checkpoint):
    app = open_app("overview", checkpoint="tiny-bert", sentence=SENTENCE)
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown[TEXT["numbers"]] == f"{sum(trace.values(name).size for name in trace.names()):,}"


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_snippet_gives_the_same_probability(open_app, run_snippet, checkpoint):
    sentence = "The ___ man." if checkpoint == "tiny-bert" else SENTENCE
    app = open_app("overview", checkpoint=checkpoint, sentence=sentence)
    is_fine(app)
    printed = run_snippet(codes(app)[-1])
    shown = {metric.label: metric.value for metric in app.metric}
    assert float(with_e(shown[TEXT["probability"]])) == pytest.approx(float(printed.splitlines()[0]), rel=6e-3)


def test_the_tour_begins_on_the_first_screen(open_app, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("overview", checkpoint="en-fr")
    assert app.button(key="take the tour").label == TEXT["tour"].format(minutes=3)
    app = open_app("overview", checkpoint="en-fr", lesson="tour")
    assert "take the tour" not in [button.key for button in app.button], "who takes it already is not asked again"


def test_no_tour_without_the_model_that_it_is_about(open_app) -> None:
    assert "take the tour" not in [button.key for button in open_app("overview").button]
