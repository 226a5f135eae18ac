"""The Overview page: the output with its probabilities, and the links to other pages."""

from __future__ import annotations

import math
import re

import pytest

import transformer
from tests.pages.conftest import KINDS, is_fine, metrics, said, with_e
from transformer.files.opening_file import read_opening
from transformer.predictions.answer_probabilities import read_answer
from ui.words.texts import page_text

TEXT = page_text("overview")
SENTENCE = "The old man told us a story."
HIDDEN_WORD = "The old ___ told us a story."  # its last longer word that is one token


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_answer_and_its_probability_are_those_of_the_model(open_app, tiny_checkpoint, checkpoint):
    app = open_app("overview", checkpoint=checkpoint, sentence=SENTENCE, masked="")
    is_fine(app)
    loaded = tiny_checkpoint(checkpoint)
    read = HIDDEN_WORD if checkpoint == "tiny-bert" else SENTENCE
    answer = read_answer(transformer.trace(loaded, read))
    shown = metrics(app)
    assert shown[TEXT["parameters"]] == f"{loaded.model.n_parameters:,}"
    assert float(with_e(shown[TEXT["probability"]])) == pytest.approx(answer.probability, rel=6e-3)
    if checkpoint != "tiny-bert":
        assert " ".join(answer.text.split()) in said(app)


def test_the_number_of_values_is_that_of_the_trace(open_app, tiny_checkpoint):
    app = open_app("overview", checkpoint="tiny-bert", sentence=SENTENCE)
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    shown = metrics(app)
    assert shown[TEXT["numbers"]] == f"{sum(trace.values(name).size for name in trace.names()):,}"


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_snippet_gives_the_same_probability(open_app, run_snippet, checkpoint):
    sentence = "The ___ man." if checkpoint == "tiny-bert" else SENTENCE
    app = open_app("overview", checkpoint=checkpoint, sentence=sentence)
    is_fine(app)
    printed = run_snippet(app)
    shown = metrics(app)
    given = [float(found) for found in re.findall(r"probability=([0-9.e-]+)", printed)]
    assert float(with_e(shown[TEXT["probability"]])) == pytest.approx(math.prod(given), rel=6e-3)


def test_the_tour_begins_on_the_first_screen(open_app, shipped_folder) -> None:
    app = open_app("overview", checkpoint="en-fr")
    assert app.button(key="take the tour").label == TEXT["tour"].format(minutes=3)
    app = open_app("overview", checkpoint="en-fr", lesson="tour")
    assert "take the tour" not in [button.key for button in app.button], "who takes it already is not asked again"


@pytest.mark.sample("language")
@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("page", ["overview", "decoding"])
def test_a_classifier_of_reviews_says_on_what_it_was_trained_beside_its_prediction(
    open_app, shipped_folder, page, language
) -> None:
    told = read_opening(shipped_folder / "sentiment").trained_on[language]
    for checkpoint, count in {"sentiment": 1, "bert-en": 0}.items():
        app = open_app(page, checkpoint=checkpoint, sentence="She baked a cake.", language=language)
        is_fine(app)
        assert said(app).count(told) == count
