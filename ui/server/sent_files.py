"""Requests to Streamlit's own addresses: uploads within limits, and what a public server keeps closed.

A file that would not fit into memory is refused before it is read. The limits apply per visitor and to all visitors
together. The announced size of a request counts for its visitor from the first byte. For all visitors together, only
bytes that have arrived count, so that a visitor who announces a file without sending it takes nothing from the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from ui.server.settings import public, settings
from ui.server.streamlit_private import (
    check_requests,
    config,
    drop_files_without_visitor,
    is_connected,
    rerun,
    sent_bytes,
)

MAX_FILE_MB = 100  # checkpoints are the largest files that are uploaded, and ours are small
MOST_FILES = 100  # per visitor; a checkpoint in shards has about 20
STALL_SECONDS = 60  # time without a byte after which an upload is aborted
_UPLOAD, _METRICS = "/_stcore/upload_file/{session_id}/{file_id}", "/_stcore/metrics"
UPLOAD_SECONDS = 600  # for one file: 100 MB at 1.4 megabits per second


class Refusal(NamedTuple):
    """HTTP status and sentence for a refused file.

    ``key`` names the sentence that the page shows, ``most`` its number; both are empty if only a program, not a page,
    can send such a request.
    """

    status: int
    sentence: str
    key: str = ""
    most: int = 0


@dataclass(eq=False)
class _Upload:
    """A request in progress, with its announced size and what has arrived."""

    size: int
    arrived: int = 0


_uploads: dict[str, list[_Upload]] = {}  # session → its requests in progress
_refused: dict[str, Refusal] = {}  # session → the last refusal, until its page has shown it


def guard_requests() -> None:
    """Check requests from now on, and let Streamlit accept files unless the server is public.

    ``.streamlit/config.toml`` allows no files: under ``streamlit run`` nothing limits them before the app has run once.
    """
    _check_from_now_on()
    allowed = config.get_option("server.maxUploadSize")
    if public() == bool(allowed):
        config.set_option("server.maxUploadSize", 0 if public() else MAX_FILE_MB)


@lru_cache(maxsize=1)
def _check_from_now_on() -> None:
    check_requests(_check)


async def _check(
    path: str, scope: Scope, receive: Receive, send: Send, pass_on: Callable[..., Awaitable[None]]
) -> None:
    if path.endswith(_UPLOAD) and scope["method"] == "PUT":
        await _take_file(scope["path_params"]["session_id"], scope, receive, send, pass_on)
    elif path.endswith(_METRICS) and public():
        await PlainTextResponse("Not Found", 404)(scope, receive, send)
    else:
        await pass_on(scope, receive, send)


async def _take_file(
    session: str, scope: Scope, receive: Receive, send: Send, pass_on: Callable[..., Awaitable[None]]
) -> None:
    """Answer one ``PUT`` of a file: by ``pass_on`` if there is space for it, else by a refusal."""
    size = _announced_size(Headers(scope=scope))
    if refusal := _refusal(session, size):
        _report(session, refusal)
        await PlainTextResponse(refusal.sentence, refusal.status)(scope, receive, send)
        return

    with _counted(session, size) as upload:
        end = asyncio.get_running_loop().time() + UPLOAD_SECONDS

        async def receive_within_limits() -> Message:
            left = end - asyncio.get_running_loop().time()
            try:
                message = await asyncio.wait_for(receive(), min(left, STALL_SECONDS))
            except TimeoutError:
                sentence = f"no byte came for {STALL_SECONDS} seconds, or the file took more than {UPLOAD_SECONDS}"
                raise HTTPException(408, f"The upload was given up: {sentence}.") from None
            upload.arrived += len(message.get("body", b""))
            if full := _server_full():
                upload.arrived = 0  # so that only as many uploads end as must
                _report(session, full)
                raise HTTPException(full.status, full.sentence)
            return message

        await pass_on(scope, receive_within_limits, send)


def _report(session: str, refusal: Refusal) -> None:
    """Let the page of a session show why a file was refused."""
    if refusal.key:
        if len(_refused) > 1000:
            _refused.clear()
        _refused[session] = refusal
        rerun(session)


def take_refusal(session: str) -> Refusal | None:
    """Return, once, why a file of this session was last refused."""
    return _refused.pop(session, None)


def _refusal(session: str, size: int | None) -> Refusal | None:
    if public():
        return Refusal(403, "This server is public and accepts no files.")
    if not is_connected(session):
        return Refusal(
            403,
            "No page of this server asked for this file. Reload the page and choose it again. Behind a proxy, each "
            "browser must stay on one server (session affinity).",
        )
    if size is None:
        return Refusal(411, "The request must say in Content-Length how many bytes it has.")
    own, held, announced = settings().visitor_uploads_mb, sent_bytes().get(session, ()), _uploads.get(session, ())
    if len(held) + len(announced) >= MOST_FILES:
        sentence = f"A visitor may send {MOST_FILES} files at a time. Reload the page to start again."
        return Refusal(429, sentence, "many_files", MOST_FILES)
    if sum(held) + sum(upload.size for upload in announced) + size > own * 1_000_000:
        sentence = f"A visitor may send {own} MB at a time. Remove a file from the form, or reload the page."
        return Refusal(413, sentence, "visitor_full", own)
    return _server_full(size)


def _server_full(more: int = 0) -> Refusal | None:
    """Return the refusal of ``more`` bytes if all visitors together have sent too much, else ``None``."""
    most = settings().uploads_mb
    if _arrived() + more > most * 1_000_000:
        drop_files_without_visitor()
        if _arrived() + more > most * 1_000_000:
            sentence = f"The server holds at most {most} MB of sent files, and others use them. Try again in a minute."
            return Refusal(429, sentence, "server_full", most)
    return None


def _arrived() -> int:
    """Return the bytes of all visitors that are in memory."""
    in_progress = (upload.arrived for uploads in _uploads.values() for upload in uploads)
    return sum(map(sum, sent_bytes().values())) + sum(in_progress)


def _announced_size(headers: Headers) -> int | None:
    """Return the bytes of the request's body; ``None`` if it states none, or may end elsewhere."""
    announced = headers.get("content-length", "")
    is_number = announced.isascii() and announced.isdigit()
    return int(announced) if is_number and "transfer-encoding" not in headers else None


@contextmanager
def _counted(session: str, size: int) -> Iterator[_Upload]:
    upload, uploads = _Upload(size), _uploads.setdefault(session, [])
    uploads.append(upload)
    try:
        yield upload
    finally:
        uploads.remove(upload)
        if not uploads:
            _uploads.pop(session, None)
