"""Controls whose value is part of a page's view, kept in the session and in the address.

Each is drawn like Streamlit's own, with the parameter of the address as its ``key``:

    if choice.toggle(p.text["stretch"], key="attention_stretch"):
        …

It keeps its value while it is not drawn, also on other pages. ``default`` is the value that the URL omits. ``owner`` is
the object of the choice, such as the sentence; for another one, the choice is reset to its default.
``whole_page=True`` runs the whole page when the value changes, because it affects more than the control's fragment,
such as the choices in the sidebar. A value in an address that the control cannot have is corrected, and a line on the
page says so.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ui.server.streamlit_private import runs_a_fragment
from ui.shell import focus as shared_focus
from ui.shell import page_state
from ui.words.texts import as_plain, common, quote

# Former names of options, in addresses that people may have kept.
FORMER = {
    "attention_heads_one": tuple(f"{head} {number}" for head in ("head", "tête") for number in range(64)),
    "click_focus": ("looks at it", "la regarde"),
    "click_mean": ("leaves only its mean", "n’en laisse que la moyenne"),
    "click_zero": ("cuts it out", "la retire"),
    "colour_divergence": ("KL to the answer", "KL à la réponse"),
    "follow_came": ("the one that came", "celui qui est venu"),
    "mode_kinds": ("trois sortes de modèle",),
    "mode_layers": ("two layers, block by block", "deux couches, bloc par bloc"),
    "order_shuffle": ("all are shuffled",),
    "order_swap": ("two tokens swapped",),
    "patches_heads": ("put back one head", "remettre une tête", "put back a head", "tête remise", "une tête remise"),
    "patches_tokens": (
        "put back one vector",
        "remettre un vecteur",
        "put back a token",
        "jeton remis",
        "un vecteur remis",
    ),
    "section_early": ("curves", "Curves", "Courbes"),
    "section_picture": ("On the picture",),
    "section_table": ("tests", "finder", "from this token to that one", "de ce jeton à celui-là"),
    "section_reading": ("section_words", "words", "Whole words", "Mots entiers"),
    "show_lines": ("Lignes",),
    "step_3": ("3 ÷ √dₖ",),
    "tab_parameters": ("Learned numbers", "Nombres appris"),
    "view_author": ("who wrote it", "qui l’a écrit"),
    "view_layers": ("after every layer", "après chaque couche"),
    "what_change": (
        "change of ln p(answer)",
        "variation de ln p(réponse)",
        "p",
        "what_p",
        "change in p(output)",
        "variation de p(sortie)",
        "change in log p(output)",
        "variation de log p(sortie)",
    ),
}
_NO_OWNER = object()
_WHOLE_PAGE = "choice: a fragment has changed the whole page"
_TRUTHS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}
_LONGEST_NUMBER = 20  # characters
_LARGER = 1.3  # width of a control for the letters of a presentation: 22 px instead of 17
# Every control drawn in this process, by page and key, with its kind, for tests that go through all of them.
drawn: dict[tuple[str, str], str] = {}


def labels() -> Literal["visible", "collapsed"]:
    """Return the visibility of labels above a figure: presenters know them and need the space."""
    return "collapsed" if shared_focus.is_presenting() else "visible"


def value(key: str, default: str = "", *, page: str = "") -> str:
    """Return the text of a choice before its control is drawn, or without a control."""
    return (page_state.values(key, page=page) or (default,))[-1]


def is_on(key: str, *, default: bool = False, page: str = "") -> bool:
    """Return whether a ``toggle`` is on, even if it is not drawn."""
    return _TRUTHS.get(value(key, page=page), default)


def integer(key: str) -> int | None:
    """Return a choice of at most five digits as a number, or ``None``; it needs no control.

    Any other text is corrected.
    """
    text = value(key)
    if text.isascii() and text.isdecimal() and len(text) < 6:
        return int(text)
    correct(key, ())
    return None


def put(key: str, *texts: object, page: str = "", owner: object = None) -> None:
    """Change a choice outside of its control, e.g. in a button's callback; no text means its default."""
    page_state.keep(key, tuple(map(page_state.text_of, texts)), page=page, adopted=True, owner=owner)
    _write_from_a_fragment()


def toggle(label: str, *, key: str, default: bool = False, owner: object = _NO_OWNER, **more: Any) -> bool:
    """Draw a switch, "true" or "false" in the address."""
    return _draw(st.toggle, label, key, _read(key, owner, default, _truth), default, **more)


def slider(
    label: str,
    low: float,
    high: float,
    default: float | tuple[float, float],
    step: float | None = None,
    format: str | None = None,
    *,
    key: str,
    owner: object = _NO_OWNER,
    **more: Any,
) -> Any:
    """Draw a slider, for a range if ``default`` is a pair."""
    reading = partial(_number, low=low, high=high)
    if isinstance(default, tuple):
        found = _read_all(key, owner, default, reading)
        if found[0] > found[1]:
            found = found[::-1]
    else:
        found = _read(key, owner, default, reading)
    more |= {"step": step, "format": format} | more
    return _draw(st.slider, label, key, found, default, low, high, **more)


def number(label: str, low: int, high: int, default: int, *, key: str, owner: object = _NO_OWNER, **more: Any) -> int:
    """Draw a box for an integer."""
    found = _read(key, owner, default, partial(_number, low=low, high=high))
    return _draw(st.number_input, label, key, found, default, low, high, **more)


def text(
    label: str, default: str = "", *, key: str, owner: object = _NO_OWNER, several_lines: bool = False, **more: Any
) -> str:
    """Draw a text box."""
    box = st.text_area if several_lines else st.text_input
    return _draw(box, label, key, _read(key, owner, default, str), default, **more)


def several(
    label: str, options: Sequence[Any], default: Sequence[Any], *, key: str, owner: object = _NO_OWNER, **more: Any
) -> list:
    """Draw a list from which several options can be chosen."""
    if owner is not _NO_OWNER:
        page_state.belongs_to(key, owner)
    known, texts = _known(options), page_state.values(key)
    found = [known[text] for text in dict.fromkeys(texts) if text in known] if texts else list(default)
    if texts and len(found) < len([text for text in texts if text]):
        correct(key, _texts_besides_default(found, list(default)))
    return _draw(st.multiselect, label, key, found, list(default), options, **more)


def select_slider(label: str, options: Sequence[Any], default: Any, *, key: str, **more: Any) -> Any:
    """Draw a slider over a few options."""
    return _choose(st.select_slider, label, options, default, key=key, **more)


def buttons(label: str, options: Sequence[Any], default: Any, *, key: str, pills: bool = False, **more: Any) -> Any:
    """Draw a row of buttons, one of which is chosen; the address contains the option itself.

    Labels of buttons are Markdown. Options may come from a checkpoint, so they are shown as plain text by default.
    """
    row = st.pills if pills else st.segmented_control
    more = {"format_func": lambda option: as_plain(str(option))} | more
    return _choose(row, label, options, default, key=key, required=True, **more)


def select(label: str, options: Sequence[Any], default: Any = None, *, key: str, **more: Any) -> Any:
    """Draw a list; the address contains the option itself. ``default=None`` chooses nothing at first.

    ``accept_new_options`` allows any text. ``called`` maps other names in addresses to options.
    """
    return _choose(st.selectbox, label, options, default, key=key, **more)


def one_of(
    label: str,
    names: Mapping[Any, Sequence[str]],
    first: Any = None,
    *,
    key: str,
    in_list: bool = False,
    in_slider: bool = False,
    **more: Any,
) -> Any:
    """Draw one of the keys of ``names``, as buttons, ``in_list`` or ``in_slider``.

    Addresses that people have kept may contain an option's name in any language instead: ``names`` lists for every
    option its current and former names.
    """
    row = st.select_slider if in_slider else st.selectbox if in_list else st.segmented_control
    more |= {"required": True} if row is st.segmented_control else {}
    shown = {option: words[0] for option, words in names.items()}
    more |= {"called": _called(names), "format_func": shown.__getitem__}
    return _choose(row, label, list(names), next(iter(names)) if first is None else first, key=key, **more)


def read_option(key: str, names: Mapping[Any, Sequence[str]], first: Any, *, owner: object = _NO_OWNER) -> Any:
    """Return what ``one_of`` returns, before it is drawn, or if another control shows it."""
    return _read(key, owner, first, _known(list(names), _called(names)).get)


def _called(names: Mapping[Any, Sequence[str]]) -> dict[str, Any]:
    return {name: option for option, called in names.items() for name in called}


def _known(options: Sequence[Any], called: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the options by their texts in an address."""
    return {**(called or {}), **{page_state.text_of(option): option for option in options}}


def _choose(
    widget: Callable[..., Any],
    label: str,
    options: Sequence[Any],
    default: Any,
    *,
    key: str,
    owner: object = _NO_OWNER,
    called: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    known = _known(options, called)
    reading = (lambda text: known.get(text, text or None)) if more.get("accept_new_options") else known.get
    return _draw(widget, label, key, _read(key, owner, default, reading), default, options, **more)


def collapsible(label: str, *, key: str, **more: Any) -> DeltaGenerator:
    """Draw a collapsible part of the page; ``open`` of the result is true once the reader has opened it."""
    page, found = page_state.current_page(), _read(key, _NO_OWNER, False, _truth)
    drawn[page, key] = "expander"
    if st.session_state.get(key, False) != found:
        st.session_state[key] = found
    return st.expander(label, key=key, on_change=_report, args=(page, key), **more)


def _read(key: str, owner: object, default: Any, reading: Callable[[str], Any]) -> Any:
    """Return the value of a choice, or ``default`` if ``reading`` returns ``None`` for its text."""
    return _read_all(key, owner, (default,), reading)[-1]


def _read_all(key: str, owner: object, default: tuple, reading: Callable[[str], Any]) -> tuple:
    if owner is not _NO_OWNER:
        page_state.belongs_to(key, owner)
    texts = page_state.values(key)
    if len(default) == 1:
        texts = texts[-1:]
    elif len(texts) == 1:
        texts = tuple(texts[0].split(","))
    if not texts:
        return default
    found = tuple(map(reading, texts))
    if sense := len(found) == len(default) and None not in found:
        nearest = all(_is_that_number(text, value) for text, value in zip(texts, found, strict=True))
    else:
        found, nearest = default, False
    correct(key, _texts_besides_default(found, default), with_note=not (sense and nearest))
    return found


def _texts_besides_default(found: Sequence, default: Sequence) -> tuple[str, ...]:
    """Return a value as the texts of an address, which has none for the default."""
    return () if found == default else page_state.texts_of(found)


def correct(key: str, texts: Sequence[str], *, with_note: bool = True) -> None:
    """Store the texts that are shown if others were requested, with a note if an address requested them."""
    if (asked := page_state.values(key)) != tuple(texts):
        if with_note and page_state.is_brought(key):
            shared_focus.add_note(common("note.choice", name=key, text=quote(" ".join(asked))))
        page_state.keep(key, texts)
        _write_from_a_fragment()


def _is_that_number(text: str, found: Any) -> bool:
    """Return whether a number is exactly the requested one; true for anything that is not a number."""
    try:
        return isinstance(found, (bool, str)) or not isinstance(found, (int, float)) or float(text) == found
    except ValueError:  # an option that was requested by name
        return True


def _draw(
    widget: Callable[..., Any], label: str, key: str, found: Any, default: Any, *arguments: Any, **more: Any
) -> Any:
    """Draw a widget that shows ``found``."""
    if more.pop("whole_page", False):
        if st.session_state.pop(_WHOLE_PAGE, False) and runs_a_fragment():
            st.rerun()
        more |= {"on_change": _run_whole_page}
    drawn[page_state.current_page(), key] = widget.__name__
    if isinstance(width := more.get("width"), int) and shared_focus.is_presenting():
        more["width"] = round(width * _LARGER)
    if key not in st.session_state or st.session_state[key] != found:
        st.session_state[key] = found
    page_state.show(key, default)
    shown = widget(label, *arguments, key=key, persist_state="session", **more)
    _write_from_a_fragment()
    return shown


def _run_whole_page() -> None:
    """Let the next run of a fragment run the page, which a callback cannot."""
    st.session_state[_WHOLE_PAGE] = runs_a_fragment()


def _report(page: str, key: str) -> None:
    """Keep whether a collapsible part is open, which Streamlit itself does not keep."""
    page_state.keep(key, ("true",) if st.session_state.get(key) else (), page=page)
    _write_from_a_fragment()


def _write_from_a_fragment() -> None:
    if runs_a_fragment():
        shared_focus.write_address()


def _truth(text: str) -> bool | None:
    return _TRUTHS.get(text)


def _number(text: str, *, low: float, high: float) -> float | None:
    """Return the nearest number that the control can have; ``None`` if the text is not a number."""
    if len(text) > _LONGEST_NUMBER:
        return None
    try:
        found = float(text)
        near = min(max(found, low), high)
        return type(low)(near) if math.isfinite(found) else None
    except ValueError:
        return None
