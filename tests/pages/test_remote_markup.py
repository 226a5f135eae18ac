"""No text of a checkpoint makes a browser contact another server: names, classes and cards stay text."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.fuzzing import PAGES, elements
from transformer.text.tokenizer import Tokenizer
from ui.words.texts import without_pictures

Open = Callable[..., AppTest]
EVIL = "![{}](http://evil.test/p.png)"
KINDS = ("sentiment", "gpt", "translator")
ADDRESSES = "https://evil.test www.evil.test a@evil.test"
# Elements that show texts unchanged: code, text boxes, tables; components and charts use textContent.
AS_IT_IS = {
    *("code", "text_input", "text_area", "selectbox", "arrow_data_frame", "plotly_chart", "bidi_component"),
    *("arrow_vega_lite_chart", "html", "download_button", "imgs", "file_uploader", "iframe"),
}
_CODE = re.compile(r"`[^`\n]*`")
_ADDRESS = re.compile(r"https?://evil|www\.evil|\w@evil|www\.\w+\.test")
_PICTURE = re.compile(r"(?<!\\)!\\?\[[^\]]*\]\\?\(")


def shown_markdown(app: AppTest) -> Iterator[tuple[str, str]]:
    """Return every string of each page element with its type, except elements that draw text unchanged."""
    for element in elements(app):
        if element.type not in AS_IT_IS and getattr(element, "proto", None) is not None:
            yield from ((element.type, text) for text in _strings(element.proto))


def _strings(message: object) -> Iterator[str]:
    for field, value in message.ListFields():
        many = [value] if isinstance(value, str) or not hasattr(value, "__len__") else value
        if field.name == "columns" and isinstance(value, str):  # by their names, which the table draws as they are
            yield from map(json.dumps, json.loads(value or "{}").values())
        elif field.type == field.TYPE_STRING and field.name not in ("id", "element_id"):
            yield from (one for one in many if isinstance(one, str))
        elif field.type == field.TYPE_MESSAGE:
            yield from (text for one in many if hasattr(one, "ListFields") for text in _strings(one))


def pictures(app: AppTest) -> list[tuple[str, str]]:
    """Return the parts that are not code, where markup would take effect."""
    found = [(kind, _CODE.sub("", text)) for kind, text in shown_markdown(app)]
    return [(kind, text) for kind, text in found if "evil.test" in text and _PICTURE.search(text)]


def links(app: AppTest) -> list[tuple[str, str]]:
    """Return texts with an unescaped address, which a browser would turn into a link."""
    found = [(kind, _CODE.sub("", text)) for kind, text in shown_markdown(app)]
    return [(kind, text) for kind, text in found if _ADDRESS.search(text.replace("\\", ""))]


@pytest.fixture
def hostile(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with checkpoints whose classes, words and names are addresses and pictures."""
    for kind in KINDS:
        shutil.copytree(checkpoints_folder / f"tiny-{kind}", tmp_path / f"www.{kind}.test")
    config = json.loads((path := tmp_path / "www.sentiment.test" / "config.json").read_text())
    path.write_text(
        json.dumps({**config, "class_names": [f"{EVIL.format(name)} {ADDRESSES}" for name in ("yes", "no")]})
    )
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    own = Tokenizer.display
    monkeypatch.setattr(Tokenizer, "display", lambda self, id: f"{EVIL.format(own(self, id))}{ADDRESSES}")
    return tmp_path


@pytest.mark.slow
@pytest.mark.sample(of=5)
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("checkpoint", KINDS)
def test_no_text_becomes_a_link_or_a_picture_on_any_page(hostile, open_app, page, checkpoint) -> None:
    app = open_app(page, checkpoint=f"www.{checkpoint}.test", sentence=f"The cat {ADDRESSES}", note=f"See {ADDRESSES}")
    assert not app.exception
    assert any("See " in text for _, text in shown_markdown(app))
    assert links(app) == []
    assert pictures(app) == []


def test_a_card_shows_no_picture_of_another_server(hostile: Path, open_app: Open) -> None:
    card = hostile / "www.gpt.test" / "README.md"
    card.write_text(f"# A card\n\n{EVIL.format('card')} and !!{EVIL.format('two')} \\{EVIL}\n")
    app = open_app("checkpoint", checkpoint="www.gpt.test", sentence="The cat sat on the mat.")
    assert not app.exception
    assert any("A card" in text for _, text in shown_markdown(app))
    assert pictures(app) == []


def test_a_card_keeps_its_words_and_its_pictures_become_links() -> None:
    assert without_pictures("a ![b](http://c) d") == "a [b](http://c) d"
    for text in ("![a](b)", "!![a](b)", "\\![a](b)", "!!!![a][b]"):
        assert "![" not in without_pictures(text)
