"""Metadata of a saved figure, read with only the standard library and Pillow."""

from __future__ import annotations

import io
import json
import re
import zlib
from html.parser import HTMLParser
from xml.etree import ElementTree

from PIL import Image

SVG = "{http://www.w3.org/2000/svg}"


def said_by(content: bytes, suffix: str) -> dict[str, str]:
    """Return the metadata in a file: title, checkpoint, fingerprint, texts, view and software."""
    if suffix == "svg":
        return json.loads(ElementTree.fromstring(content).find(f"{SVG}metadata").text)
    if suffix == "png":
        with Image.open(io.BytesIO(content)) as picture:
            picture.load()
            return {name.lower(): str(text) for name, text in picture.text.items()}
    if suffix == "html":
        reader = _MetaTags()
        reader.feed(content.decode("utf-8"))
        return reader.said
    return json.loads(pdf_information(content)["Keywords"])


class _MetaTags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        name = found.get("name") or ""
        if tag == "meta" and name.startswith("glassformer:"):
            self.said[name.removeprefix("glassformer:")] = found["content"] or ""


def pdf_information(content: bytes) -> dict[str, str]:
    """Return the string entries of the file's Info dictionary."""
    assert content.startswith(b"%PDF-1.") and content.rstrip().endswith(b"%%EOF")
    entries = re.findall(rb"/(Title|Subject|Keywords|Creator) \(((?:\\.|[^\\)])*)\)", content, re.DOTALL)
    return {name.decode(): _string(text) for name, text in entries}


def _string(text: bytes) -> str:
    """Decode a PDF string (PDF 1.7, sections 7.3.4.2 and 7.9.2.2)."""
    escapes = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
    plain = re.sub(rb"\\(.)", lambda found: escapes.get(found[1], found[1]), text, flags=re.DOTALL)
    return plain[2:].decode("utf-16-be") if plain.startswith(b"\xfe\xff") else plain.decode("latin-1")


def pdf_page(content: bytes) -> tuple[float, float]:
    """Return width and height in points."""
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", content)
    return float(box[1]), float(box[2])


def pdf_streams(content: bytes) -> list[bytes]:
    """Return every stream, inflated if it is deflated."""
    found = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
    return [zlib.decompress(stream) if stream[:1] == b"\x78" else stream for stream in found]


def pdf_letters(content: bytes) -> set[str]:
    """Return the text in its embedded fonts by their ToUnicode tables."""
    tables = [stream.decode("latin-1") for stream in pdf_streams(content) if b"beginbfchar" in stream]
    return {chr(int(code, 16)) for table in tables for code in re.findall(r"<[0-9a-f]+><([0-9a-f]{4})>", table, re.I)}
