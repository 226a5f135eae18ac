"""Uploads to Streamlit's own address are limited per visitor and in total, however the server starts."""

from __future__ import annotations

import asyncio
import http.client
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.harness.app_server import ENTRIES, AppServer
from tests.harness.browser_session import XSRF_COOKIE, BrowserSession, _xsrf_token
from tests.own_thread import in_own_thread
from ui.server import sent_files

pytestmark = pytest.mark.slow

BOUNDARY = b"part"
OF_THE_DAY = pytest.mark.sample("server", together=True)  # one way to start it in every run, both at night
LARGE = 90_000_000  # bytes: the weights of a checkpoint
IN_ALL_MB = 400


@pytest.fixture(scope="module", params=sorted(ENTRIES))
def server(request: pytest.FixtureRequest) -> Iterator[AppServer]:
    environment = {"GLASSFORMER_UPLOADS_MB": str(IN_ALL_MB), "OMP_NUM_THREADS": "1"}
    with AppServer(request.param, environment=environment) as server:
        yield server


def multipart(size: int) -> bytes:
    head = b'--%s\r\nContent-Disposition: form-data; name="f"; filename="model.safetensors"\r\n\r\n' % BOUNDARY
    return head + bytes(size) + b"\r\n--%s--\r\n" % BOUNDARY


@asynccontextmanager
async def visitor(server: AppServer) -> AsyncIterator[BrowserSession]:
    async with BrowserSession(server.base) as session:
        await session.open("checkpoint")
        yield session


async def addresses(session: BrowserSession, count: int) -> list[str]:
    """Return the upload addresses that a visitor's page receives for dropped files."""
    message = BackMsg()
    message.file_urls_request.request_id = "1"
    message.file_urls_request.file_names.extend(f"file {number}" for number in range(count))
    await session._socket.send(message.SerializeToString())
    while True:
        answer = ForwardMsg.FromString(await session._socket.recv())
        if answer.WhichOneof("type") == "file_urls_response":
            return [urls.upload_url for urls in answer.file_urls_response.file_urls]


def headers_of(server: AppServer) -> dict[str, str]:
    token = _xsrf_token(server.base)
    said = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY.decode()}"}
    return said | {"Cookie": f"{XSRF_COOKIE}={token}", "X-Xsrftoken": token}


def put(server: AppServer, path: str, body: bytes, **headers: str) -> int:
    """Send one file and return the status, which may arrive before everything is sent."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    said = headers_of(server) | headers
    with suppress(BrokenPipeError, ConnectionResetError):  # refused before it was read
        connection.request("PUT", urlsplit(path).path, body=body, headers=said)
    try:
        return connection.getresponse().status
    except (ConnectionResetError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


async def put_at_once(server: AppServer, paths: Sequence[str], body: bytes) -> Counter[int]:
    return Counter(await asyncio.gather(*(asyncio.to_thread(put, server, path, body) for path in paths)))


@OF_THE_DAY
def test_many_large_files_at_once_are_bounded(server: AppServer) -> None:
    """Limits hold for one visitor and for many; after they leave, the space is free again."""
    body = multipart(LARGE)

    async def attack() -> None:
        async with visitor(server) as one:
            before = server.megabytes
            assert (await put_at_once(server, await addresses(one, 10), body))[204] == 2
            assert server.megabytes - before < 250
        async with AsyncExitStack() as stack:
            everybody = [await stack.enter_async_context(visitor(server)) for _ in range(7)]
            paths = [(await addresses(session, 1))[0] for session in everybody]
            statuses = await put_at_once(server, paths, body)
            assert statuses[204] == 4, "what the first visitor sent is free, as that visitor has left"
            assert server.megabytes - before < IN_ALL_MB + 200
        invented = [f"/_stcore/upload_file/{number}/{number}" for number in range(6)]
        assert not (await put_at_once(server, invented, body))[204]
        async with visitor(server) as late:
            assert put(server, (await addresses(late, 1))[0], body) == 204

    in_own_thread(asyncio.run, attack())
    assert server.alive


@OF_THE_DAY
def test_small_requests_that_a_page_would_not_send_are_refused(server: AppServer) -> None:
    async def attack() -> None:
        async with visitor(server) as one:
            mine = (await addresses(one, 1))[0]
            assert put(server, "/_stcore/upload_file/0/0", multipart(3)) == 403
            assert put(server, mine, iter([multipart(3)])) == 411, "chunks, of which nobody knows how many come"
            assert put(server, mine, multipart(3), **{"Transfer-Encoding": "chunked"}) in (400, 411)
            folder = mine.rpartition("/")[0]  # an address that was made up counts like one that a page was given
            many = [put(server, f"{folder}/{number}", multipart(0)) for number in range(sent_files.MOST_FILES + 3)]
            assert many == [204] * sent_files.MOST_FILES + [429] * 3

    in_own_thread(asyncio.run, attack())


@OF_THE_DAY
def test_files_that_are_announced_and_not_sent_take_no_space_from_others(server: AppServer) -> None:
    def announce(path: str) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        connection.putrequest("PUT", urlsplit(path).path)
        for name, value in (headers_of(server) | {"Content-Length": f"{LARGE}"}).items():
            connection.putheader(name, value)
        connection.endheaders(multipart(1000)[:500])
        return connection

    async def attack() -> None:
        async with AsyncExitStack() as stack:
            silent = [await stack.enter_async_context(visitor(server)) for _ in range(3)]
            for session in silent:
                for path in await addresses(session, 2):
                    stack.callback(announce(path).close)
            async with visitor(server) as honest:
                assert put(server, (await addresses(honest, 1))[0], multipart(LARGE)) == 204

    in_own_thread(asyncio.run, attack())


def test_an_upload_that_goes_on_for_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_files, "UPLOAD_SECONDS", 0.5)
    for name, value in (("_refusal", None), ("_server_full", None)):
        monkeypatch.setattr(sent_files, name, lambda *_, value=value: value)

    async def one_byte_now_and_then() -> Message:
        await asyncio.sleep(0.1)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass

    async def upload() -> None:
        scope = {"type": "http", "headers": [(b"content-length", b"90000000")]}
        await sent_files._take_file("session", scope, one_byte_now_and_then, None, read)

    with pytest.raises(HTTPException, match="took more than") as error:
        in_own_thread(asyncio.run, asyncio.wait_for(upload(), 20))
    assert error.value.status_code == 408 and not sent_files._uploads


@OF_THE_DAY
def test_a_page_says_that_its_file_was_refused(server: AppServer) -> None:
    async def refused() -> list[str]:
        async with visitor(server) as session:
            for path in await addresses(session, 3):
                put(server, path, multipart(LARGE))
            async with asyncio.timeout(60):
                while True:
                    message = ForwardMsg.FromString(await session._socket.recv())
                    if message.delta.new_element.WhichOneof("type") == "toast":
                        return message.delta.new_element.toast.body

    assert "a visitor may send 200 MB at a time" in in_own_thread(asyncio.run, refused())
