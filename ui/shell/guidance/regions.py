"""Parts of a page that a lesson step covers until the guess, or highlights, by their keys.

A covered part keeps its place, so that nothing moves when it is uncovered, but it is hidden from sight, from the
keyboard and from screen readers. The rules hold as long as the bar contains the line that asks for the guess: a
fragment removes that line and everything is visible at once, without a new run of the page.
"""

import re
from collections.abc import Sequence

PAGE = "page"  # everything below the tokens of the sentence
ASKED = "lesson cover"  # key of the bar's line that asks for the guess
NAME = re.compile(r"\w[\w -]*")  # key of a part of a page

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
    "animation: lesson-light 0.9s ease-in-out 3;"  # browsers with reduced motion ignore this animation
)
_PULSE = (
    "@media (prefers-reduced-motion: no-preference) { @keyframes lesson-light { "
    "50% { outline-offset: 7px; outline-color: light-dark(#f0a35e, #c2570c); } } }"
)


def style(*, covers: Sequence[str], lights: Sequence[str], sentence: str) -> str:
    """Return the style sheet of one step, "" if it has none; ``sentence`` is shown on covered parts."""
    sheet = []
    for name in covers:
        if name == PAGE:
            hidden, veils = [_BELOW], [f"{_BAR}::before"]
        else:
            hidden = [f"{_BAR} ~ {_class(name)}", f"{_BAR} ~ * {_class(name)}"]
            veils = [f"{one}::after" for one in hidden]
            sheet.append(_rule(hidden, "position: relative;"))
        sheet.append(_rule([*hidden, *(f"{one} *" for one in hidden)], "visibility: hidden !important;"))
        sheet.append(_rule(veils, f"{_VEIL} content: {_quote(sentence)};"))
        if name == PAGE:  # lesson_bar.js measures its position
            place = "position: fixed; inset: var(--lesson-veil-top, 8rem) 1rem calc(var(--lesson-bar, 10rem) + 0.5rem)"
            sheet.append(_rule(veils, f"{place} calc(var(--lesson-left, 0px) + 1rem); pointer-events: none;"))
    if lights:
        sheet += [_rule([_class(name) for name in lights], _LIGHT), _PULSE]
    return f"<style>{''.join(sheet)}</style>" if sheet else ""


def _rule(selectors: Sequence[str], declarations: str) -> str:
    return f"{', '.join(selectors)} {{ {declarations} }}\n"


def _class(name: str) -> str:
    """Return the class that Streamlit derives from a key."""
    return f".st-key-{name.replace(' ', '-')}"


def _quote(text: str) -> str:
    """Return a CSS string that is safe within a style element."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("<", "\\3c ") + '"'
