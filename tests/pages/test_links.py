"""A copied address contains the changes made on a page, and omits what makes no sense there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine, said
from tests.pages.fuzzing import PAGES

Open = Callable[..., AppTest]
SENTENCE = "The old man ___ the sea."

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


def test_a_second_sentence_that_the_page_would_choose_is_not_in_the_address(open_app: Open) -> None:
    by_itself = open_app("compare", sentence=SENTENCE).text_input(key="second").value
    app = open_app("compare", sentence=SENTENCE, second="A young <i>man</i> & a boat.")
    assert in_address(app, "second") == ["A young <i>man</i> & a boat."]
    is_fine(app.text_input(key="second").set_value(by_itself).run())
    assert in_address(app, "second") == []


@pytest.mark.parametrize(("name", "text"), [("step", "999"), ("step", "two"), ("branches", "99999-1")])
def test_a_value_that_no_control_reads_is_told_as_any_other(open_app: Open, name: str, text: str) -> None:
    is_fine(app := open_app("decoding", **{name: text}))
    assert f"{name}='{text}'" in said(app) and text not in in_address(app, name)


@pytest.mark.sample(of=3)
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
