"""``?embed=true``: one figure without the frame, and the HTML that Share offers for it."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.pages.conftest import is_fine
from ui.shell import embedded
from ui.shell.share import BUTTON
from ui.words.texts import page_text


def test_in_a_frame_the_page_is_the_same_and_a_style_hides_what_is_around_the_figure(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def styles() -> list[str]:
        app = open_app("heads", lesson="01-tokens-and-vectors")
        is_fine(app)
        assert page_text("heads").title in [title.value for title in app.title]
        return [html.proto.body for html in app.get("html") if "data-on-the-way" in html.proto.body]

    assert not styles()
    monkeypatch.setattr(embedded, "is_embedded", lambda: True)  # as with embed=true in the address
    assert len(styles()) == 1


@pytest.mark.parametrize("height", [0, 453])
def test_share_offers_the_line_where_there_is_a_figure(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch, height: int
) -> None:
    monkeypatch.setattr("ui.shell.share.heights", lambda: (height, 720))
    app = open_app("heads")
    app.session_state[BUTTON] = True
    app.run()
    is_fine(app)
    lines = [code.value for code in app.code if code.value.startswith("<iframe")]
    assert len(lines) == bool(height)
    assert all(f'height="{height + 16}"' in line for line in lines)


def test_nothing_in_an_address_leaves_the_line(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.shell.share.heights", lambda: (453, 720))
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
