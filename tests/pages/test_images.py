"""A model that reads images: patches replace tokens, and the reader's own image."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT, open_by_address
from tests.pages.conftest import is_fine
from transformer.files.layout import config_of
from transformer.files.opening_file import read_opening
from transformer.pictures import image_files
from ui.shell import own_files
from ui.shell.focus import Focus, fit_sentence
from ui.shell.openings import opening_of
from ui.words.texts import common, model_sentences

FOUR = "00b7000005g32e3009f0cf0006gfg500006fb000001g4000009c000000da0000"
NAME = "vit-digits"


@pytest.fixture(autouse=True)
def shipped(shipped_folder: Path) -> None:
    """Let the app find the shipped checkpoints, unless a test lists others."""


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


def test_the_row_of_a_patch_stands_on_the_picture_beside_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("views.attention.attention_sections.token_rows", lambda *, data, **_: drawn.append(data))
    opened("attention", layer="0", head="3", token="0")
    data, config = drawn[-1], config_of(ROOT / "checkpoints" / NAME)
    (row,) = data["rows"]
    assert row["across"] == config.picture_size // config.patch_size
    start, *found = row["tokens"]
    assert "patch" not in start and [word["patch"] for word in found] == list(range(row["across"] ** 2))
    assert row["picture"].startswith("data:image/svg+xml,")
    assert len({patch["ground"] for patch in found}) > 1 and row["clickable"] and not data["wide"]


KINDS = ("vit", "dinov2_with_registers")


@pytest.fixture
def _listed(guest_folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(guest_folder(*KINDS)))


def open_guest(page: str, kind: str, **address: object) -> AppTest:
    app = open_by_address(page, {"checkpoint": kind, **address})
    is_fine(app)
    return app


def file_of_noise() -> bytes:
    pixels = np.random.default_rng(5).integers(0, 255, (50, 70, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


@pytest.mark.usefixtures("_listed")
def test_registers_are_apart_from_the_picture_in_the_figure_of_all_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("views.attention.attention_sections.token_rows", lambda *, data, **_: drawn.append(data))
    app = open_guest("attention", "dinov2_with_registers", layer=0, token=6)
    (row,) = drawn[-1]["rows"]
    assert [token.get("patch") for token in row["tokens"]] == [None] * 4 + [*range(15)]
    assert row["across"] == 5 and row["picture"].startswith("data:image/png;base64,")
    figures = [figure for figure in app.get("plotly_chart") if "[CLS]" in figure.proto.spec]
    assert len(figures) == 1 and "others" in figures[0].proto.spec


@pytest.mark.usefixtures("_listed")
def test_an_own_image_stays_on_every_page_and_the_address_holds_its_hash() -> None:
    app = open_guest("attention", "vit", layer=1)
    data = file_of_noise()
    text = image_files.image_text(data)
    app.session_state["files: own"] = {text: data}
    app.session_state["focus"] = app.session_state["focus"].__class__(checkpoint="vit", sentence=text)
    app.run()
    is_fine(app)
    assert app.query_params["sentence"] == text and len(text) == 70
    image_files._files.clear()  # the process has dropped it
    app.run()
    is_fine(app)
    assert app.session_state["focus"].sentence == text and image_files.is_kept(text)


@pytest.mark.usefixtures("_listed")
def test_a_link_to_an_image_that_is_not_here_opens_with_another_one_and_says_so() -> None:
    app = open_guest("attention", "vit", sentence=f"image:{'a' * 64}")
    assert app.session_state["focus"].sentence == "image:house"
    assert any(common("note.image_gone")[:40] in caption.value for caption in app.caption)


def test_a_file_that_cannot_be_read_leaves_the_image_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, object] = {}
    monkeypatch.setattr(own_files.st, "session_state", state)
    assert own_files.take_file(b"A dog barks.") == "" and "not a PNG or JPEG" in own_files.problem()
    texts = []
    for colour in range(own_files.MOST_OWN + 1):
        file = BytesIO()
        Image.new("RGB", (8, 8), (colour, 0, 0)).save(file, "PNG")
        texts.append(own_files.take_file(file.getvalue()))
    assert list(own_files.own_files()) == texts[1:] and own_files.problem() == ""


def test_a_typed_example_is_the_readers_and_comes_back_after_a_model_of_images(open_app, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    typed = read_opening(ROOT / "checkpoints" / "en-fr").examples[1].sentence
    app = open_app("embeddings", checkpoint="en-fr")
    app.text_input(key="sentence").set_value(typed).run()
    for name in (NAME, "gpt-en"):
        app.selectbox(key="sidebar checkpoint").set_value(name).run()
    assert app.text_input(key="sentence").value == typed
