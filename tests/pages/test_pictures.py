"""A model that reads images: patches replace tokens, and sections about words are hidden."""

from __future__ import annotations

import json
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT, open_by_address
from tests.pages.conftest import is_fine, said
from transformer.files.layout import config_of
from ui.shell.focus import Focus, fit_sentence
from ui.shell.openings import opening_of
from ui.shell.page import Page
from ui.shell.picture import picture_data
from ui.words.texts import model_sentences, other_pictures, page_text, pictures
from views.tokens.patch_ids import patches

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
    app = open_by_address("tokens", {"checkpoint": NAME, "sentence": FOUR[1:]})
    assert "63 pixels" in app.warning[0].value.replace("\\", "")


def test_the_sheet_and_the_test_pictures() -> None:
    data = picture_data(FOUR, config_of(ROOT / "checkpoints" / NAME))
    assert "".join(data["signs"][level] for level in data["pixels"]) == FOUR
    assert picture_data("cat", config_of(ROOT / "checkpoints" / NAME))["pixels"] == [0] * 64
    texts = [text for _, text in pictures()]
    assert len(data["examples"]) == len(texts) == len(set(texts)) >= 20
    assert {label for label, _ in other_pictures(FOUR)} == set("0123456789")
    assert FOUR not in dict(other_pictures(FOUR)).values()


def test_the_pages_speak_of_patches_and_leave_out_what_is_about_words() -> None:
    attention = opened("attention", token=0)
    options = [[option.content for option in group.proto.options] for group in attention.get("button_group")]
    assert ["On the image", "The path of this head, step by step", "How far to trust this map"] in options
    tokens = opened("tokens", token=2)
    assert any(
        "11 \\cdot 17^{3} + 7 \\cdot 17^{2} + 16 \\cdot 17^{1} + 3 \\cdot 17^{0} = 56345" in latex.value
        for latex in tokens.latex
    )
    embeddings = opened("embeddings", token=2)
    assert any("x_{0} =" in latex.value for latex in embeddings.latex)
    decoding = opened("decoding")
    assert any(subheader.value == "What each patch contributes" for subheader in decoding.subheader)
    compare = opened("compare")
    options = [[option.content for option in group.proto.options] for group in compare.get("button_group")]
    assert ["two images", "two layers"] in options
    assert FOUR not in "".join(caption.value for caption in compare.caption), "64 signs are no name of a picture"


def test_the_tokens_of_a_picture_are_its_squares_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one row of cards per row of patches: side by side they form the image."""
    drawn = []
    monkeypatch.setattr("views.tokens.patch_ids.chips", lambda rows, **more: drawn.append((rows, more["picture"])))
    patches(p := page_of(FOUR, token=7))
    (before, *rows), picture = drawn[0]
    assert [chip.text for chip in before.chips] == ["[CLS]"] and before.chips[0].patch is None
    assert [row.chosen for row in drawn[0][0]] == [None, None, 2, None, None], "the seventh token is r2c3"
    assert [[chip.patch for chip in row.chips] for row in rows] == np.arange(16).reshape(4, 4).tolist()
    assert (picture["across"], picture["down"]) == (4, 4)
    image = ElementTree.fromstring(unquote(picture["picture"].removeprefix("data:image/svg+xml,")))
    inks = [float(shape.get("fill-opacity")) for shape in image if shape.get("x")]
    levels = [p.checkpoint.tokenizer.signs.index(sign) for sign in FOUR]
    np.testing.assert_allclose(inks, np.array(levels) / 16, atol=1e-3)


def page_of(picture: str, *, token: int) -> Page:
    return Page("tokens", Focus(checkpoint=NAME, sentence=picture, token=token))


def test_the_row_of_a_patch_stands_on_the_picture_beside_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("views.attention.shaded._component", lambda *, data, **_: drawn.append(data))
    opened("attention", layer="0", head="3", token="0")
    data, config = drawn[-1], config_of(ROOT / "checkpoints" / NAME)
    assert data["across"] == config.picture_size // config.patch_size
    start, *found = data["words"]
    assert not start["patch"] and all(word["patch"] for word in found) and len(found) == data["across"] ** 2
    assert data["picture"].startswith("data:image/svg+xml,")
    assert len({patch["ground"] for patch in found}) > 1 and data["clickable"] and not data["wide"]


def test_attention_names_the_class_token_and_says_why_it_is_chosen() -> None:
    """The sentence says “the class token”, because an image has no `<s>`."""
    app, text = opened("attention"), page_text("attention")
    assert f"From **{text['class_token']}**, head" in said(app) and "From **<s>**" not in said(app)
    (row,) = (
        json.loads(part.proto.json) for part in app.get("bidi_component") if part.key == "attention shaded sentence"
    )
    assert row["hint"].startswith(text["class_token_why"]) and "[CLS]" in row["title"]
    patch = opened("attention", token="7")
    assert f"**{text['class_token']}**, head" not in said(patch)


def test_masks_frames_the_blocked_patch_in_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr("ui.shell.picture.st.image", lambda picture, **_: drawn.append(picture))
    blocked = opened("masks").selectbox(key="mask word").value
    x, y = 2 * (blocked % 4), 2 * (blocked // 4)
    (picture,) = drawn
    assert f'x="{x + 0.15}" y="{y + 0.15}" width="1.7"' in picture and picture.count("stroke=") == 1
