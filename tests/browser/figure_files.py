"""Parts of a saved PDF, read with only the standard library."""

from __future__ import annotations

import re
import zlib


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
