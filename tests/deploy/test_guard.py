"""What the server says beside its answers, and what it does not answer at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from deploy.guard import CONTENT_SECURITY_POLICY, HEADERS, Guard

ROOT = Path(__file__).resolve().parents[2]
PATHS = ("/", "/_stcore/health", "/_stcore/metrics", "/_stcore/upload_file/{session}/{file}")


@pytest.fixture
def client() -> Iterator[TestClient]:
    """A server that answers everything, behind the guard."""
    routes = [Route(path, lambda _: PlainTextResponse("here"), methods=["GET", "PUT", "DELETE"]) for path in PATHS]
    with TestClient(Guard(Starlette(routes=routes)), base_url="http://127.0.0.1:8501") as client:
        yield client


def test_a_page_may_ask_no_other_server(client: TestClient) -> None:
    for path in ("/", "/no/such"):
        answer = client.get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
    directives = dict(part.split(" ", 1) for part in CONTENT_SECURITY_POLICY.split("; "))
    assert directives["img-src"] == "'self' data: blob:"
    allowed = {word for words in directives.values() for word in words.split()}
    assert not any("*" in word or "//" in word or word in ("http:", "https:") for word in allowed)


def test_the_proxy_says_the_same() -> None:
    assert f'"{CONTENT_SECURITY_POLICY}"' in (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
