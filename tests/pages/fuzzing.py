"""Every text box and address parameter of every page, and texts that break things."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, ButtonGroup, Element, Selectbox, WidgetState

from tests.conftest import open_by_address
from transformer.text.tokenizer import SPECIAL_TOKENS
from ui.shell import choice
from ui.shell.focus import NAMES, NO_CHOICES
from ui.shell.navigation import page_names
from ui.shell.share import BUTTON
from ui.words.texts import common

PAGES = tuple(page_names())
SENTENCE = "The old man ___ the sea."

# Texts that a page must never show as typed, because each would be read as markup. Two words are bold, since pages
# themselves write a word of the sentence in bold.
MARKUP = (
    *("<b>zq</b>", "**zq, zq**", ":red[zq]", ":material/zq:", "[zq](http://zq)", "![zq](http://zq)", "$zq$", "`zq`"),
    "~~zq~~",
)
PIECES = (
    *(*MARKUP, *SPECIAL_TOKENS, "[MASK]", "___", "\n\n# zq", "- zq", "|zq|", "&lt;b&gt;", "<script>zq()</script>"),
    *("\x00", "\x07\x1b[0m", "\ufeff", "\u200b", "\u202e", "\u2028", "\r\n", "\t \n", "\U0010ffff", "ﷺ"),
    *("\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL}", "\N{WAVING BLACK FLAG}\U000e0067\U000e007f", "é\u0301\u0302"),
    *("शब्द", "في الحديقة", "漢字"),
    *("a" * 300, "word " * 120, "{0} {name} %s \\", "'; DROP", "0", "-1", "1e999", "∞", "NaN"),
)  # fmt: skip
_PROBLEM = re.split(r"\{.*?\}", common("problem.unexpected"))[0]


def texts() -> st.SearchStrategy[str]:
    """Strategy for texts that a browser can send: without lone surrogates, which are not valid UTF-8."""
    characters = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
    return st.lists(st.one_of(st.sampled_from(PIECES), characters), min_size=1, max_size=4).map("".join)


@dataclass(frozen=True)
class Box:
    """A text box on ``page``, visible after the buttons in rows ``choices`` ((key, option), …) are set."""

    page: str
    choices: tuple[tuple[str, str], ...]
    key: str


def open_page(page: str, checkpoint: str, /, **address: object) -> AppTest:
    """Return the page as an address opens it."""
    # With Share open: its link contains the whole address, and its note is typed.
    address = {"checkpoint": checkpoint, "sentence": SENTENCE, **address}
    return open_by_address(page, address, state={BUTTON: True})


def boxes_of(app: AppTest) -> list[Element]:
    typed = [box for box in app.selectbox if box.proto.accept_new_options]
    return [*app.text_input, *app.text_area, *typed]


class _Typed(Selectbox):
    """A select box that accepts new text, and sends it as a browser does."""

    @property
    def _widget_state(self) -> WidgetState:
        return WidgetState(id=self.id, string_value=self.value or "")


def type_into(app: AppTest, key: str, text: str) -> AppTest:
    box = next(box for box in boxes_of(app) if box.key == key)
    box.set_value(text)
    for typed in boxes_of(app):
        if isinstance(typed, Selectbox):
            typed.__class__ = _Typed
    if form := getattr(box.proto, "form_id", ""):  # sends nothing before its button is pressed
        next(button for button in app.button if button.form_id == form).click()
    return app.run()


@dataclass(frozen=True)
class Walk:
    """Text boxes and parameters of a page, as it opens and with every option of its rows of buttons.

    Attributes:
        boxes: The text boxes.
        bound: The parameters of the address that are widgets.
    """

    boxes: tuple[Box, ...]
    bound: tuple[str, ...]


@cache
def walk(page: str, checkpoint: str) -> Walk:
    boxes: dict[str, Box] = {}
    app = open_page(page, checkpoint)
    groups = {group.key: group.options for group in app.main.get("button_group") if group.key}
    for key, options in {"": [""], **groups}.items():  # first as it opens
        shown = open_page(page, checkpoint) if key else app
        for option in options:
            choices = ((key, option),) if key else ()
            shown = choose(shown, choices)
            for box in boxes_of(shown):
                if box.key:
                    boxes.setdefault(box.key, Box(page, choices, box.key))
    return Walk(tuple(boxes.values()), tuple(dict.fromkeys(key for where, key in choice.drawn if where == page)))


class _Clicked(ButtonGroup):
    """Select the option with the label ``label``, as a click in the browser does."""

    label = ""

    @property
    def formatted_values(self) -> list[str]:
        return [self.label]


def choose(app: AppTest, choices: Sequence[tuple[str, str]]) -> AppTest:
    for key, option in choices:
        group = next((group for group in app.get("button_group") if group.key == key), None)
        if group is not None and option in group.options:
            group.__class__, group.label = _Clicked, option
            app = app.run()
    return app


def parameters(page: str, checkpoint: str) -> tuple[str, ...]:
    """Return the names that a page reads from the address."""
    return tuple(dict.fromkeys((*walk(page, checkpoint).bound, *NAMES, *NO_CHOICES, "edit", "mask", "branches")))


def elements(app: AppTest | Block) -> Iterator[Element]:
    def inside(block: Block) -> Iterator[Element]:
        for child in block.children.values():
            if isinstance(child, Block):
                yield from inside(child)
            else:
                yield child

    return inside(app._tree if isinstance(app, AppTest) else app)


def is_sound(app: AppTest) -> None:
    """Check that there is no exception, no “went wrong”, and no typed text that is read as markup."""
    assert not app.exception, [exception.message for exception in app.exception]
    wrong = [error.value for error in app.error if error.value.startswith(_PROBLEM)]
    assert not wrong, (wrong, [code.value for code in app.code if code.value.startswith("Traceback")])
    for element in elements(app):
        for text in _read_as_markdown(element):
            for markup in MARKUP:
                at = text.find(markup)
                assert at < 0 or text[at - 1 : at] == "\\", f"{element.type} shows {markup!r} unescaped in {text!r}"


def _read_as_markdown(element: Element) -> Iterator[str]:
    """Return the Markdown of this element; an option is plain text in a select box, but not in a button."""
    if element.type in ("markdown", "caption", "info", "warning", "error", "success", "title", "header", "subheader"):
        yield str(element.value)
    for name in ("label", "help"):
        yield str(getattr(element.proto, name, "") or "")
    if element.type == "button_group":
        yield from map(str, element.options)
