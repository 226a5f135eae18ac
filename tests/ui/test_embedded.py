"""``?embed=true``: one figure without frame, and the line of HTML that Share offers for it."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.pages.conftest import is_fine
from ui.shell import embedded
from ui.shell.navigation import GROUPS
from ui.shell.share import BUTTON
from ui.words.texts import page_text

PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.exists and entry.name != "lessons"]


@pytest.fixture
def in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Streamlit answers where the address says ``embed=true``."""
    for module in ("page", "frame", "navigation", "embedded"):
        monkeypatch.setattr(f"ui.shell.{module}.embedded", lambda: True)


@pytest.mark.usefixtures("in_a_frame")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_in_a_frame_has_neither_title_nor_texts_around_it(open_app: Callable, page: str) -> None:
    app = open_app(page, lesson="01-tokens-and-vectors")
    is_fine(app)
    text = page_text(page)
    assert not [title for title in app.title if title.value == text.title]
    assert not [written for written in app.markdown if text.question in written.value]
    assert BUTTON not in app.session_state


def test_share_offers_the_line_for_another_page(open_app: Callable) -> None:
    first = open_app("heads", sentence='"><script>alert(1)</script> & <b>', layer="1")
    first.session_state[BUTTON] = True
    first.run()
    is_fine(first)
    line = next(code.value for code in first.code if code.value.startswith("<iframe"))
    tags: list[tuple[str, dict]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append((tag, dict(attributes)))
    parser.feed(line)
    assert [tag for tag, _ in tags] == ["iframe"]
    asked = parse_qs(urlsplit(tags[0][1]["src"]).query)
    assert (asked["embed"], asked["layer"]) == (["true"], ["1"])
    assert asked["sentence"] == ['"><script>alert(1)</script> & <b>']
    assert tags[0][1]["title"] == page_text("heads").title


def test_outside_of_a_frame_nothing_is_hidden(open_app: Callable) -> None:
    app = open_app("heads")
    assert not embedded.embedded()
    assert page_text("heads").title in [title.value for title in app.title]
