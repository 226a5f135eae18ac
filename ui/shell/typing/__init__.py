"""Boxes whose text is applied after a pause in typing, at once on Enter, and before a click elsewhere.

Streamlit's own boxes apply it on Ctrl+Enter or when the focus leaves.
"""

from pathlib import Path

from ui.shell.events import component
from ui.words.texts import common

_component = component("typing", Path(__file__).with_name("typing.js"))
# Keys of all boxes that are followed, on any page.
BOXES = ("sidebar sentence", "sidebar target", "second", "lens_second", "patch sentence")


def follow_typing(*, line: bool = True) -> None:
    """Follow the boxes, once on every page.

    ``line`` draws a small Run button, and a line about when the page follows; below the sentence.
    """
    words = {name: common(f"typing.{name}") for name in ("run", "run_help", "follows", "waits")}
    boxes = [f"st-key-{key.replace(' ', '-')}" for key in BOXES]
    # "again" is a run that nobody requested; it tells a server that replaces another about the boxes.
    data = {"boxes": boxes, "line": line, "words": words}
    _component(key="typing", data=data, on_again_change=lambda: None)
