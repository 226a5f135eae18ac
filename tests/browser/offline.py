"""A page opened as a file in a browser that blocks all requests, and parts of a saved PDF."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

# What a text that is markup could become.
FOREIGN = "a[href^='javascript'], a[*|href^='http://example'], img[src='x'], [onerror], [onload], [onclick]"


@contextmanager
def opened_offline(chromium: Browser, file: Path, *, dark: bool = False) -> Iterator[Page]:
    """Open a file; at the end, check that there were no errors, no requests, and no script of a text ran."""
    context = chromium.new_context(
        viewport={"width": 1000, "height": 900}, color_scheme="dark" if dark else "light", offline=True
    )
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: problems.extend(_asked(request.url, file)))
    page.goto(file.as_uri())
    yield page
    problems += ["a script of a text ran"] * (page.evaluate("window.hacked ?? null") is not None)
    problems += [f"{file.name} has {one}" for one in FOREIGN.split(", ") if page.locator(one).count()]
    context.close()
    assert not problems, problems


def _asked(url: str, file: Path) -> list[str]:
    return [] if url == file.as_uri() or url.startswith(("data:", "blob:")) else [f"asked for {url}"]


def pdf_page(content: bytes) -> tuple[float, float]:
    """Return width and height in points."""
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", content)
    return float(box[1]), float(box[2])


def pdf_streams(content: bytes) -> list[bytes]:
    """Return every stream, inflated if it is deflated."""
    found = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
    # A decompressor that does not ask for the checksum, of which a line break may look like the end of the stream.
    return [zlib.decompressobj().decompress(stream) if stream[:1] == b"\x78" else stream for stream in found]


def pdf_letters(content: bytes) -> set[str]:
    """Return the text in its embedded fonts by their ToUnicode tables."""
    tables = [stream.decode("latin-1") for stream in pdf_streams(content) if b"beginbfchar" in stream]
    return {chr(int(code, 16)) for table in tables for code in re.findall(r"<[0-9a-f]+><([0-9a-f]{4})>", table, re.I)}
