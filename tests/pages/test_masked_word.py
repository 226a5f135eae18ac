"""A model that fills in blanks reads a sentence with the same word masked on every page."""

from __future__ import annotations

import json
from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine, said
from ui.shell.focus import address_of, default_of, with_changes
from ui.words.texts import common, page_text

SENTENCE = "The old man told us a story."


def control(app: AppTest) -> list:
    return [box for box in app.selectbox if box.label == common("masked.word")]


def read(app: AppTest) -> list[str]:
    """Return the tokens in the strip."""
    (strip,) = (component for component in app.get("bidi_component") if component.key == "token strip")
    return [token["text"] for row in json.loads(strip.proto.json)["rows"] for token in row["tokens"]]


def test_the_masked_word_goes_along_from_page_to_page(open_app: Callable) -> None:
    app = open_app("overview", checkpoint="tiny-bert", sentence=SENTENCE, masked="")
    is_fine(app)
    (box,) = control(app)
    assert box.value == "2" and box.options[2] == "Masked: man"
    assert page_text("overview")["masked_word"].format(word="man") in said(app)
    for page in ("attention", "decoding", "lens"):
        app.switch_page(f"pages/{page}.py").run()
        is_fine(app)
        assert read(app).count("<mask>") == 1, page
    box = control(app)[0].set_value("1")
    box.run()
    is_fine(app)
    assert app.session_state["focus"].masked == "1"
    app.switch_page("pages/overview.py").run()
    assert page_text("overview")["masked_word"].format(word="old") in said(app)
    control(app)[0].set_value("none").run()
    is_fine(app)
    app.switch_page("pages/decoding.py").run()
    is_fine(app)
    assert "<mask>" not in read(app)
    assert page_text("decoding")["no_blank"].partition("{")[0].replace("**", "") in said(app).replace("**", "")


def test_a_link_masks_the_same_word_and_an_unknown_one_is_corrected(open_app: Callable) -> None:
    app = open_app("attention", checkpoint="tiny-bert", sentence=SENTENCE, masked="0")
    is_fine(app)
    assert read(app)[1] == "<mask>" and control(app)[0].value == "0"
    address = address_of(app.session_state["focus"])
    assert address["masked"] == "0" and default_of(address).masked == ""
    wrong = open_app("tokens", checkpoint="tiny-bert", sentence=SENTENCE, masked="99")
    assert control(wrong)[0].value == "2" and "masked='99'" in said(wrong)


def test_only_such_a_model_has_the_control(open_app: Callable) -> None:
    assert not control(open_app("tokens", checkpoint="tiny-gpt", sentence=SENTENCE))
    assert not control(open_app("tokens", checkpoint="tiny-bert", sentence="The ___ man."))


def test_the_choice_stays_while_the_rest_of_the_sentence_is_edited(open_app: Callable) -> None:
    focus = open_app("tokens", checkpoint="tiny-bert", sentence=SENTENCE, masked="1").session_state["focus"]
    assert with_changes(focus, sentence="The old man told us nothing.")[0].masked == "1"
    assert with_changes(focus, sentence="An entirely different sentence.")[0].masked == ""


def test_words_that_occur_twice_can_be_told_apart(open_app: Callable) -> None:
    (box,) = control(open_app("tokens", checkpoint="tiny-bert", sentence="the cat saw the man", masked=""))
    assert box.options == [
        *(f"Masked: {word}" for word in ("the (1)", "cat", "saw", "the (2)", "man")),
        common("masked.none"),
    ]
