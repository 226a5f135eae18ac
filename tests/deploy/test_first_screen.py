"""The title is in Streamlit's page at each of its addresses, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import streamlit
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from deploy.first_screen import FirstScreen

INDEX = Path(streamlit.__file__).parent / "static" / "index.html"


def client() -> TestClient:
    routes = [
        Route("/", lambda _: FileResponse(INDEX)),
        Route("/other", lambda _: HTMLResponse("<p>no root</p>")),
        Route("/text", lambda _: PlainTextResponse('<div id="root"></div>')),
        Route("/gone", lambda _: HTMLResponse('<div id="root"></div>', status_code=404)),
    ]
    app = FirstScreen(GZipMiddleware(Starlette(routes=routes)))
    return TestClient(app, headers={"Accept": "text/html,*/*", "Accept-Encoding": "gzip"})


def test_streamlit_s_page_has_the_title_and_its_true_length() -> None:
    answer = client().get("/")
    page = INDEX.read_text(encoding="utf-8")
    assert '<div id="root"></div>' in page, "Streamlit still has the element that the title follows"
    assert "<strong>Glassformer</strong>" in answer.text and int(answer.headers["content-length"]) == len(
        answer.content
    )
    before, after = answer.text.split('<div id="first-screen"')
    assert page.startswith(before) and page.endswith(after.partition("</script>")[2])
    assert "etag" not in answer.headers, "a browser must not take the file for the page that it has"


def test_everything_else_stays_as_it_is() -> None:
    for path, text in (("/other", "<p>no root</p>"), ("/text", '<div id="root"></div>')):
        assert client().get(path).text == text
    assert client().get("/gone").text == '<div id="root"></div>'
    assert client().get("/", headers={"Accept": "*/*"}).text == INDEX.read_text(encoding="utf-8")
