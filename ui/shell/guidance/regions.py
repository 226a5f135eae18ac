"""What a step of a lesson covers while its guess is open, and what it lights up: parts of the page, by their keys.

A covered part keeps its place, so that nothing moves when it is uncovered, but it is hidden from sight, from the
keyboard and from screen readers. The rules hold as long as the bar holds the line that asks for the guess: a fragment
takes that line away and all is seen at once, though the page does not run again.
"""

import re
from collections.abc import Sequence

PAGE = "page"  # everything below the tokens of the sentence
ASKED = "lesson cover"  # the line of the bar that asks for the guess
NAME = re.compile(r"\w[\w -]*")  # a key of a part of a page

_BAR = f'[data-testid="stLayoutWrapper"]:has(> .st-key-lesson-bar .st-key-{ASKED.replace(" ", "-")})'
_BELOW = f"{_BAR} ~ *:not(.st-key-token-strip)"
_VEIL = (
    "position: absolute; z-index: 5; inset: 0; display: grid; place-items: center; visibility: visible; "
    "border: 1px solid light-dark(#c3c9d3, #424b5a); border-radius: 0.5rem; padding: 0.3rem; text-align: center; "
    "background: repeating-linear-gradient(135deg, light-dark(#eef0f4, #20262f) 0 10px, "
    "light-dark(#e6eaf0, #262d38) 10px 20px); color: light-dark(#2d3643, #d5dce6);"
)
_LIGHT = (
    "outline: 3px solid light-dark(#c2570c, #ffb066); outline-offset: 3px; border-radius: 0.5rem; "
    "animation: lesson-light 0.9s ease-in-out 3;"  # a browser that should move nothing knows no such animation
)
_PULSE = (
    "@media (prefers-reduced-motion: no-preference) { @keyframes lesson-light { "
    "50% { outline-offset: 7px; outline-color: light-dark(#f0a35e, #c2570c); } } }"
)


def style(*, covers: Sequence[str], lights: Sequence[str], sentence: str) -> str:
    """The style sheet of one step; "" where it has none. ``sentence`` stands on what is covered."""
    sheet = []
    for name in covers:
        if name == PAGE:
            hidden, veils = [_BELOW], [f"{_BAR}::before"]
        else:
            hidden = [f"{_BAR} ~ {_class(name)}", f"{_BAR} ~ * {_class(name)}"]
            veils = [f"{one}::after" for one in hidden]
            sheet.append(_rule(hidden, "position: relative;"))
        sheet.append(_rule([*hidden, *(f"{one} *" for one in hidden)], "visibility: hidden !important;"))
        sheet.append(_rule(veils, f"{_VEIL} content: {_quoted(sentence)};"))
        if name == PAGE:  # where it stands, lesson_bar.js measures
            place = "position: fixed; inset: var(--lesson-veil-top, 8rem) 1rem calc(var(--lesson-bar, 10rem) + 0.5rem)"
            sheet.append(_rule(veils, f"{place} calc(var(--lesson-left, 0px) + 1rem); pointer-events: none;"))
    if lights:
        sheet += [_rule([_class(name) for name in lights], _LIGHT), _PULSE]
    return f"<style>{''.join(sheet)}</style>" if sheet else ""


def _rule(selectors: Sequence[str], declarations: str) -> str:
    return f"{', '.join(selectors)} {{ {declarations} }}\n"


def _class(name: str) -> str:
    """As Streamlit makes it of a key."""
    return f".st-key-{name.replace(' ', '-')}"


def _quoted(text: str) -> str:
    """As a string of CSS, inside of a style element."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("<", "\\3c ") + '"'
