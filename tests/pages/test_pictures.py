"""A model that reads images: patches replace tokens, and sections about words are hidden."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT, open_by_address
from tests.pages.conftest import is_fine, said
from transformer.files.layout import config_of
from ui.shell.focus import Focus, fit_sentence
from ui.shell.navigation import ENTRIES
from ui.shell.openings import opening_of
from ui.shell.picture import picture_data
from ui.words.texts import common, model_sentences, page_text, pictures

FOUR = "00b7000005g32e3009f0cf0006gfg500006fb000001g4000009c000000da0000"
NAME = "vit-digits"


@pytest.fixture(autouse=True)
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))


def opened(page: str, **address: object) -> AppTest:
    app = open_by_address(page, {"checkpoint": NAME, "sentence": FOUR, **address})
    is_fine(app)
    return app


def test_a_sentence_gives_way_to_a_picture_and_a_picture_to_a_sentence() -> None:
    focus, (note,) = fit_sentence(Focus(checkpoint=NAME, sentence="A dog barks."))
    assert focus.sentence == opening_of(NAME).first.sentence and "'A dog barks.'" in note
    assert fit_sentence(Focus(checkpoint=NAME, sentence=model_sentences()["default"]))[1] == (), "nobody typed it"
    assert fit_sentence(replaced := Focus(checkpoint=NAME, sentence=FOUR)) == (replaced, ())
    slip = Focus(checkpoint=NAME, sentence=FOUR[1:])
    assert fit_sentence(slip) == (slip, ())
    focus, (note,) = fit_sentence(Focus(checkpoint="en-fr", sentence=FOUR))
    assert focus.sentence == opening_of("en-fr").first.sentence and "image" in note


def test_a_picture_with_a_pixel_too_few_is_refused_in_a_sentence() -> None:
    app = open_by_address("attention", {"checkpoint": NAME, "sentence": FOUR[1:]})
    assert "63 pixels" in app.warning[0].value.replace("\\", "")


def test_the_sheet_and_the_test_pictures() -> None:
    data = picture_data(FOUR, config_of(ROOT / "checkpoints" / NAME))
    assert "".join(data["signs"][level] for level in data["pixels"]) == FOUR
    assert picture_data("cat", config_of(ROOT / "checkpoints" / NAME))["pixels"] == [0] * 64
    texts = [text for _, text in pictures()]
    assert len(data["examples"]) == len(texts) == len(set(texts)) >= 20


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if "image" not in entry.reads])
def test_a_page_about_text_says_in_one_line_that_it_needs_a_model_of_text(name: str) -> None:
    app = opened(name)
    (line,) = app.info
    assert line.value == common("problem.needs_text", name="vit\\-digits") and not app.get("plotly_chart")


def test_the_pages_speak_of_patches_and_leave_out_what_is_about_words() -> None:
    attention = opened("attention", token=0)
    options = [[option.content for option in group.proto.options] for group in attention.get("button_group")]
    assert ["On the image", "The path of this head, step by step", "How far to trust this map"] in options
    embeddings = opened("embeddings", token=2)
    assert any("x_{0} =" in latex.value for latex in embeddings.latex)
    decoding = opened("decoding")
    assert any(subheader.value == "What each patch contributes" for subheader in decoding.subheader)


def test_the_row_of_a_patch_stands_on_the_picture_beside_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("views.attention.shaded.token_rows", lambda *, data, **_: drawn.append(data))
    opened("attention", layer="0", head="3", token="0")
    data, config = drawn[-1], config_of(ROOT / "checkpoints" / NAME)
    (row,) = data["rows"]
    assert row["across"] == config.picture_size // config.patch_size
    start, *found = row["tokens"]
    assert "patch" not in start and [word["patch"] for word in found] == list(range(row["across"] ** 2))
    assert row["picture"].startswith("data:image/svg+xml,")
    assert len({patch["ground"] for patch in found}) > 1 and row["clickable"] and not data["wide"]


def test_attention_names_the_class_token_and_says_why_it_is_chosen() -> None:
    """The sentence says “the class token”, because an image has no `<s>`."""
    app, text = opened("attention", token="0"), page_text("attention")
    assert f"From **{text['class_token']}**, head" in said(app) and "From **<s>**" not in said(app)
    (shown,) = (
        json.loads(part.proto.json) for part in app.get("bidi_component") if part.key == "attention shaded sentence"
    )
    assert shown["hint"].startswith(text["class_token_why"]) and "[CLS]" in shown["rows"][0]["title"]
    patch = opened("attention", token="7")
    assert f"**{text['class_token']}**, head" not in said(patch)


def test_next_leads_to_the_next_page_that_reads_images() -> None:
    """The page after Embeddings is Positions, which has nothing to show for an image."""
    (link,) = [one for one in opened("embeddings").get("page_link") if one.proto.icon.endswith("arrow_forward:")]
    assert link.proto.page == "attention"
