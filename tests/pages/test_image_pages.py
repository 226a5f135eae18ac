"""Pages of models that read image files: patches, registers, and the reader's own image."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from tests.conftest import open_by_address
from tests.pages.conftest import is_fine
from tests.transformer.guests.tiny_image_guests import image_checkpoint
from transformer.pictures import image_files
from ui.shell import own_files
from ui.words.texts import common

KINDS = ("vit", "dinov2_with_registers", "siglip")
SHOWN = ("overview", "attention", "heads", "embeddings", "decoding", "checkpoint")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("images")
    for kind in KINDS:
        image_checkpoint(kind, made)
    return made


@pytest.fixture(autouse=True)
def _listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))


def opened(page: str, kind: str, **address: object) -> AppTest:
    app = open_by_address(page, {"checkpoint": kind, **address})
    is_fine(app)
    return app


def file_of_noise() -> bytes:
    pixels = np.random.default_rng(5).integers(0, 255, (50, 70, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("page", SHOWN)
def test_a_page_shows_an_image(page: str, kind: str) -> None:
    app = opened(page, kind, sentence="image:boat", layer=1, head=2, token=3)
    said = [each.value for each in (*app.info, *app.warning)]
    if page == "decoding" and kind != "vit":
        assert len(said) == 1 and "gives every image a vector" in said[0]
    else:
        assert not said


@pytest.mark.parametrize("page", ["tokens", "training"])
def test_a_page_about_text_says_that_it_needs_a_model_of_text(page: str) -> None:
    (line,) = opened(page, "vit").info
    assert line.value == common("problem.needs_text", name="vit")


def test_registers_are_apart_from_the_picture_in_the_figure_of_all_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("views.attention.shaded.token_rows", lambda *, data, **_: drawn.append(data))
    app = opened("attention", "dinov2_with_registers", layer=0, token=6)
    (row,) = drawn[-1]["rows"]
    assert [token.get("patch") for token in row["tokens"]] == [None] * 4 + [*range(15)]
    assert row["across"] == 5 and row["picture"].startswith("data:image/png;base64,")
    figures = [figure for figure in app.get("plotly_chart") if "[CLS]" in figure.proto.spec]
    assert len(figures) == 1 and "others" in figures[0].proto.spec


def test_an_own_image_stays_on_every_page_and_the_address_holds_its_hash() -> None:
    app = opened("attention", "vit", layer=1)
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


def test_a_link_to_an_image_that_is_not_here_opens_with_another_one_and_says_so() -> None:
    app = opened("attention", "vit", sentence=f"image:{'a' * 64}")
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
