"""A copied address contains the changes made on a page, and omits what makes no sense there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.conftest import choose_text, chosen_texts, is_fine, said
from tests.pages.fuzzing import PAGES
from transformer.runs.mask_choices import MaskChoices

Open = Callable[..., AppTest]
SENTENCE = "The old man ___ the sea."
EDITS = ["zero:encoder.0.self.1", "patch:decoder.1.cross.0=It is <b>raining</b> & cold.", "drop:encoder.1.feed_forward"]


GONE = {
    "checkpoint": "gone", "fingerprint": "0123456789abcdef", "language": "tlh", "layer": "99", "head": "99",
    "token": "999", "edit": "zero:encoder.9.self.0", "mask": "no_such 1", "second": "", "other": "gone",
    "decoding_section": "gone", "step": "999", "branches": "99999-1", "patient": "-5", "scheme": "gone",
    "strategy": "gone", "seed": "x", "lens_rows": "gone", "masks view": "gone", "add norm view": "gone",
    "unit": "x", "swap first": "99", "lesson": "gone",
}  # fmt: skip
SAID_OF_GONE = (
    "There is no checkpoint 'gone' here; showing 'tiny-translator'.",
    "There is no translation into the language 'tlh' (available: en, fr); showing English.",
    "(fingerprint 0123456789ab) than those of tiny-translator",
    "There is no layer 99 (this model has layers 0–1); showing layer 1.",
    "There is no head 99 (this model has heads 0–1); showing head 1.",
    "There is no lesson 'gone'",
)


def in_address(app: AppTest, parameter: str) -> list[str]:
    value = app.query_params.get(parameter, [])
    return value if isinstance(value, list) else [value]


def test_edits_are_in_the_address_and_come_out_of_it(open_app: Open) -> None:
    first = open_app("surgery", sentence=SENTENCE)
    assert in_address(first, "edit") == []
    choose_text(first, "edit", *EDITS)
    is_fine(first.run())
    assert in_address(first, "edit") == EDITS

    second = open_app("surgery", sentence=SENTENCE, edit=EDITS)
    is_fine(second)
    assert list(chosen_texts(second, "edit")) == EDITS
    assert in_address(second, "edit") == EDITS
    assert [metric.value for metric in second.metric] == [metric.value for metric in first.metric]


def test_edits_that_make_no_sense_are_named_and_left_out(open_app: Open) -> None:
    wrong = ["zero:encoder.9.self.1", "<script>", "zero:decoder.0.cross.1", ""]
    app = open_app("surgery", sentence=SENTENCE, edit=wrong, checkpoint="tiny-gpt")
    is_fine(app)
    assert in_address(app, "edit") == []
    assert "zero:encoder.9.self.1" in said(app) and "<script>" in said(app)


def test_edits_come_back_to_the_address_with_the_page(open_app: Open) -> None:
    app = open_app("surgery", sentence=SENTENCE, edit=EDITS[:1])
    app.switch_page("pages/tokens.py").run()
    is_fine(app)
    app.switch_page("pages/surgery.py").run()
    assert in_address(app, "edit") == EDITS[:1]


def test_a_choice_stays_in_the_address_while_its_control_is_not_drawn(open_app: Open) -> None:
    app = open_app("attention", sentence=SENTENCE, attention_step="5 softmax")
    for section in ("general", "path"):
        is_fine(app.segmented_control(key="attention_section").set_value(section).run())
        assert in_address(app, "attention_step") == ["5"]
    assert app.segmented_control(key="attention_step").value == 5


MASKS = [
    MaskChoices(everywhere=False),
    MaskChoices(preset="no_causal"),
    MaskChoices(preset="window", size=3, everywhere=False),
    MaskChoices(preset="itself", cells={(2, 0): True, (1, 1): False}),
    MaskChoices(cells={(1, 0): False, (2, 0): False, (2, 1): True}, everywhere=False),
]


@pytest.mark.parametrize("choices", MASKS)
def test_a_mask_is_in_the_address_and_comes_out_of_it(
    open_app: Open, tiny_checkpoint: Callable, choices: MaskChoices
) -> None:
    focus = {"stack": "decoder", "checkpoint": "tiny-gpt"}
    app = open_app("masks", sentence=SENTENCE, mask=list(choices.to_texts()), **focus)
    is_fine(app)
    view = transformer.trace(tiny_checkpoint("gpt"), SENTENCE).attention("decoder", 0)
    assert MaskChoices.from_texts(app.session_state["mask history"][-1]).specs(view) == choices.specs(view)
    assert in_address(app, "mask") == list(choices.to_texts())


def test_a_mask_that_makes_no_sense_is_left_out(open_app: Open) -> None:
    wrong = ["no_such", "window 999999999999", "block 900-1", "allow x-y,1-", "keys", "allow ²-1"]
    app = open_app("masks", sentence=SENTENCE, mask=wrong, checkpoint="tiny-gpt")
    is_fine(app)
    found = MaskChoices.from_texts(app.session_state["mask history"][-1])
    assert (found.preset, found.cells) == ("window", {}) and in_address(app, "mask") == ["window 2"]


def test_the_second_sentence_and_the_other_checkpoint(open_app: Open) -> None:
    app = open_app("compare", sentence=SENTENCE, second="A young <i>man</i> & a boat.")
    is_fine(app)
    assert app.text_input(key="second").value == "A young <i>man</i> & a boat."
    assert in_address(app, "second") == ["A young <i>man</i> & a boat."]
    by_itself = open_app("compare", sentence=SENTENCE).text_input(key="second").value
    app.text_input(key="second").set_value(by_itself).run()
    assert in_address(app, "second") == []

    app = open_app("compare", sentence=SENTENCE, other="tiny-sentiment")
    choose_text(app, "compare_mode", "checkpoints")
    is_fine(app.run())
    assert app.selectbox(key="other").value == "tiny-sentiment"
    assert in_address(app, "other") == ["tiny-sentiment"]


@pytest.mark.parametrize("page", PAGES)
def test_a_link_to_what_is_no_longer_there_says_so_on_every_page(open_app: Open, page: str) -> None:
    app = open_app(page, **GONE)
    assert not app.exception and not app.error
    found = "\n".join([said(app), *(element.value.replace("\\", "") for element in (*app.info, *app.warning))])
    for sentence in SAID_OF_GONE:
        assert sentence in found, sentence
    if page == "surgery":
        assert GONE["edit"] in found and in_address(app, "edit") == []
    assert not {"checkpoint", "language", "lesson"} & set(app.query_params)
    assert in_address(app, "layer") == ["1"]
