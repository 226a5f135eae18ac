"""The frame of every document: head, style, colours for light and dark, and a policy that lets nothing in or out."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

_STYLE = Path(__file__).with_name("document.css")
# As in charts/canvas/page.html: no host is asked for anything, whatever somebody typed.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"


def document(
    title: str,
    body: str,
    *,
    language: str = "en",
    style: str = "",
    script: str = "",
    said: Mapping[str, str] | None = None,
) -> str:
    """The whole file. ``title`` is plain text.

    ``body`` is HTML, ``style`` CSS and ``script`` JavaScript of our own: what a person may have typed is escaped in
    them already. ``said`` (title, checkpoint, sentence …) stands in the head as ``<meta name="glassformer:…">``.

    Raises ``ValueError`` for a style or script that would end its own element.
    """
    for name, code in (("style", style), ("script", script)):
        if f"</{name}" in code.lower():
            raise ValueError(f"the {name} of a document holds </{name}, which would end it; write it another way")
    tags = "".join(
        f'<meta name="glassformer:{escape(name)}" content="{escape(text)}">\n' for name, text in (said or {}).items()
    )
    scripted = f'<script type="module">\n{script}\n</script>\n' if script else ""
    return (
        f'<!doctype html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n{tags}"
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}{style}</style>\n</head>\n"
        f"<body>\n{body}\n{scripted}</body>\n</html>\n"
    )
