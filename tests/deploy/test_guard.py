"""Response headers of the server, and requests that it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from deploy.guard import CONTENT_SECURITY_POLICY, HEADERS, Guard
from ui.server import sent_files
from ui.server.settings import hosts
from ui.server.streamlit_private import config

ROOT = Path(__file__).resolve().parents[2]
PATHS = ("/", "/_stcore/health", "/_stcore/metrics", "/_stcore/upload_file/{session}/{file}", "/_stcore/agent/{what}")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    names = ("server.allowedHosts", "server.maxUploadSize", "server.baseUrlPath")
    before = {name: config.get_option(name) for name in names}
    yield
    for name, value in before.items():
        config.set_option(name, value)


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


def test_a_page_is_no_server_of_its_own_and_no_error_in_the_console(client: TestClient) -> None:
    """The browser asks below the page's address first, and then here unless the answer is 2xx."""
    for asked in ("/_stcore/health", "/_stcore/host-config"):
        assert client.get(f"/heads{asked}").status_code == 300
    assert client.get("/_stcore/health").status_code == 200
    config.set_option("server.baseUrlPath", "glass")
    assert client.get("/glass/heads/_stcore/health").status_code == 300
    assert client.get("/glass/_stcore/health").status_code == 404, "the app's own answer: here it has none"


def test_a_public_server_takes_no_files_and_shows_no_metrics(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, metrics = "/_stcore/upload_file/session/file", "/_stcore/metrics"
    assert client.get("/_stcore/agent/mcp").status_code == 200
    assert client.put(file).status_code == client.get(metrics).status_code == 200
    monkeypatch.setenv("GLASSFORMER_PUBLIC", "1")
    assert client.put(file, content=b"").status_code == 403, "an empty one, too"
    assert client.get(metrics).status_code == 404
    for path in ("interact", "mcp", "openapi.json"):
        assert client.get(f"/_stcore/agent/{path}").status_code == 404
    assert client.get("/_stcore/health").status_code == client.get("/").status_code == 200


def test_who_names_another_host_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    config.set_option("server.allowedHosts", hosts("127.0.0.1"))
    for name, status in {"evil.com:8613": 421, "localhost:8501": 200, "127.0.0.1": 200, "[::1]:8501": 200}.items():
        assert client.get("/", headers={"Host": name}).status_code == status, name
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/", headers={"Host": "evil.com"}):
        pass


def test_a_probe_that_names_the_pod_by_its_address_is_answered(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_HOSTS", "glassformer.example.org")
    config.set_option("server.allowedHosts", hosts("0.0.0.0"))
    kubelet = {"Host": "10.1.2.3:8501"}
    assert client.get("/_stcore/health", headers=kubelet).status_code == 200
    for path in ("/", "/_stcore/metrics", "/_stcore/health/", "/heads/_stcore/health", "/x/../_stcore/metrics"):
        assert client.get(path, headers=kubelet).status_code == 421, path
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/_stcore/health", headers=kubelet):
        pass
    config.set_option("server.baseUrlPath", "glass")
    assert client.get("/glass/_stcore/health", headers=kubelet).status_code == 404, "the app's own answer: here none"


def test_the_names_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hosts("127.0.0.1") == ["localhost", "127.0.0.1", "::1"]
    assert hosts("0.0.0.0") == [], "of a class: by whatever address it is reached"
    monkeypatch.setenv("GLASSFORMER_PUBLIC", "1")
    assert hosts("127.0.0.1") == [], "behind a proxy of its own"
    monkeypatch.setenv("GLASSFORMER_HOSTS", "glassformer.example.org,[fe80::1]")
    assert hosts("0.0.0.0")[:2] == ["glassformer.example.org", "fe80::1"]


def test_a_public_server_is_closed_without_the_guard_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under ``streamlit run`` there is no guard in front of it."""
    monkeypatch.setattr(Route, "handle", Route.handle)
    sent_files._check_from_now_on.cache_clear()
    routes = [Route(path, lambda _: PlainTextResponse("here"), methods=["GET", "PUT"]) for path in PATHS[2:4]]
    routes[1] = Route(sent_files._UPLOAD, routes[1].endpoint, methods=["PUT"])
    with TestClient(Starlette(routes=routes)) as client:
        assert client.get(PATHS[2]).status_code == 200
        monkeypatch.setenv("GLASSFORMER_PUBLIC", "1")
        sent_files.guard_requests()
        assert config.get_option("server.maxUploadSize") == 0
        assert client.get(PATHS[2]).status_code == 404
        assert client.put("/_stcore/upload_file/session/file", content=b"").status_code == 403, "an empty one, too"
    sent_files._check_from_now_on.cache_clear()


def test_the_proxy_says_the_same() -> None:
    assert f'"{CONTENT_SECURITY_POLICY}"' in (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
