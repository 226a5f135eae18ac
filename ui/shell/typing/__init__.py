"""Boxes that are followed while somebody types: what stands in them is taken after a pause, at once on Enter, and
before a click elsewhere is heard. Streamlit's own boxes take it on Ctrl+Enter or when the focus leaves."""

from pathlib import Path

from ui.shell.events import component
from ui.words.texts import common

_component = component("typing", Path(__file__).with_name("typing.js"))
# The keys of all boxes that are followed, on whatever page they stand.
BOXES = ("sidebar sentence", "sidebar target", "second", "paths corrupted", "lens_second", "patch sentence")


def follow_typing(*, line: bool = True) -> None:
    """Once on every page. ``line``: a small Run button, and beside it when the page follows; below the sentence."""
    words = {name: common(f"typing.{name}") for name in ("run", "run_help", "follows", "waits")}
    boxes = [f"st-key-{key.replace(' ', '-')}" for key in BOXES]
    # "again": a run that nobody asked for, by which a server that has taken the place of another learns of the boxes.
    data = {"boxes": boxes, "line": line, "words": words}
    _component(key="typing", data=data, on_again_change=lambda: None)
