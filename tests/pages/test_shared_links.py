"""A shared link shows the same view to another visitor, on every page, with every control changed.

In a real browser: tests/browser/test_history.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import (
    Button,
    ButtonGroup,
    Dataframe,
    DownloadButton,
    FileUploader,
    NumberInput,
    Selectbox,
    SelectSlider,
    Slider,
    Widget,
    WidgetState,
)

from tests.conftest import ROOT
from tests.pages.fuzzing import PAGES, choose, elements
from ui.shell import choice
from ui.shell.focus import NAMES, NO_CHOICES

VIEW = {
    "checkpoint": "tiny-translator",
    "sentence": "We went to the sea & back.",
    "target": "Nous sommes allés.",
    "stack": "decoder",
    "kind": "cross",
    "layer": "1",
    "head": "1",
    "token": "2",
    "pads": "2",
}
ENCODER = {"stack": "encoder", "kind": "self"}
# Parameters of each view by page; its own section stays, all other controls are changed.
VIEWS: dict[str, list[dict[str, str | list[str]]]] = {
    "overview": [{"language": "fr"}],
    "tokens": [{}],
    "embeddings": [{"embeddings section": "analogies"}, {"embeddings section": "training"}],
    "positions": [{"positions view": "waves"}, {"positions view": "order"}],
    "attention": [{}, {"attention_section": "trust", "language": "fr"}],
    "heads": [{"heads_section": "table", "heads_scope": "corpus"}],
    "add_norm": [{"add norm view": "arithmetic"}, {}],
    "feed_forward": [{}, {"checkpoint": "tiny-gpt", "kind": "self"}],
    "decoding": [
        {},
        {"decoding_section": "tree", "target": ""},
        {"decoding_section": "alignment", "language": "fr"},
        {"checkpoint": "tiny-bert", "sentence": "The ___ is a ___.", **ENCODER},
        {"checkpoint": "tiny-sentiment", **ENCODER},
        {"branches": "5-9,5.6-8", "branch": "2", "target": ""},
    ],
    "masks": [
        {"mask": ["block 1-0,2-3", "allow 0-1"], "masks view": "difference"},
        {"masks view": "padding", **ENCODER},
    ],
    "surgery": [{"edit": ["zero:encoder.0.self.1", "patch:decoder.1.cross.0=It is <b>raining</b> & cold."]}],
    "lens": [{"lens_view": "after every layer"}, {"lens_view": "who wrote it"}],
    "compare": [{"second": "She went to the <i>sea</i>."}, {"compare_mode": "checkpoints", "other": "tiny-gpt"}],
    "training": [{"training section": "now"}, {"training section": "step"}],
    "checkpoint": [{}],
    "lessons": [{"language": "fr"}, {"exercise": "bugs", "patient": "3"}],
    "by_hand": [
        {"hand_words": "0.2.3", "hand_heads": "2", "hand_cells": "WQ.0.1:0.7", "hand_step": "8", "language": "fr"}
    ],
}
# Not part of a view: guesses, a word typed before a button is pressed, the numbers of a figure as a table, a worksheet,
# what is printed, and the section that the view is about.
LEFT = (
    *("guess", "force", "patch-sentence", "as-table", "worksheet", "own-text", "patient", "toy-own", "share"),
    *("by-hand-seed", "by-hand-count"),
)
SECTIONS = ("section", "scope", "view", "mode")
# Differences between two visits that show the same: names of files, the origin of a control's value, and whether there
# is something to undo.
_OF_THE_VISIT = {
    *("id", "value", "default", "rawValue", "rawValues", "setValue", "deferredFileId", "disabled"),
    *("arrowData", "stylerUuid"),  # compared as tables
}

CONTROLS = re.compile(r"choice\.\w+|one_of|(p|page)\.(option|toggle|token)")
# Views that draw the controls missing in ``VIEWS``.
MORE_VIEWS: dict[str, list[dict[str, str | list[str]]]] = {
    "positions": [{"positions view": "heatmap"}],
    "attention": [
        {"attention_section": "general", **ENCODER},
        {"attention_section": "fires", **ENCODER},
        {"attention_section": "trust", "attention_key": "1", **ENCODER},
        {"attention_section": "reading", "attention_left_out": ["1"], **ENCODER},
    ],
    "heads": [{"heads_section": "card", **ENCODER}],
    "add_norm": [{"add norm view": "arithmetic", "checkpoint": "tiny-gpt", "kind": "self"}],
    "feed_forward": [{"feed-forward view": "token"}, {"feed-forward view": "sentence"}, {"feed-forward view": "fires"}],
    "decoding": [{"strategy": "sampling", "target": ""}, {"decoding_section": "strategies", "target": ""}],
    "surgery": [
        {"surgery more": "sublayer"},
        {"surgery more": "patch"},
        {"surgery more": "edge"},
        {"surgery more": "steer", "steer_source": "word"},
        {"surgery more": "steer", "steer_source": "class", "checkpoint": "tiny-sentiment", **ENCODER},
    ],
    "compare": [{"second": "He went to the sea & back.", "target": "", "pads": "0", "compare_more": "vectors"}],
}
# Only with longer texts, words of the tiny tokenizer, images, a narrow layer, a third file of one model, or a layer
# that is known to align best.
IN_NO_VIEW = {
    *("analogy example", "patch channel", "first dimension", "first step", "lens_first"),
    "alignment_layer",
    *("compare_third", "rows shown"),
}


class _Label(str):
    """Return the message that a browser sends for an option of a slider."""


def _sent_by_slider(slider: SelectSlider) -> WidgetState:
    """AppTest's own fails if options are numbers."""
    label = slider.value if isinstance(slider.value, _Label) else slider.format_func(slider.value)
    return WidgetState(id=slider.id, string_array_value={"data": [label]})


def left_in(extra: dict) -> tuple[str, ...]:
    """Return the parameters that stay in a view that adds ``extra`` to the address."""
    return (*LEFT, *(key.replace(" ", "-") for key in extra if any(part in key for part in SECTIONS)))


def change_every_control(app: AppTest, left: tuple[str, ...]) -> list[str]:
    """Change each control once, including controls that appear meanwhile; return their keys."""
    changed: list[str] = []
    while ahead := [control for control in controls(app, left) if control.key not in changed]:
        control = min(ahead, key=lambda one: not isinstance(one, ButtonGroup))  # buttons reset others
        changed.append(control.key)
        change(app, control)
    return changed


def controls(app: AppTest, left: tuple[str, ...]) -> Iterator[Widget]:
    for control in elements(app.main):
        chosen = (
            isinstance(control, Widget)
            and not isinstance(control, Button | DownloadButton | FileUploader)
            and control.key
        )
        waits = getattr(control.proto, "disabled", False) or getattr(control.proto, "form_id", "")
        if chosen and not waits and not any(name in control.key.replace(" ", "-") for name in left):
            yield control


def change(app: AppTest, control: Widget) -> None:
    if isinstance(control, ButtonGroup):
        others = [option for option in control.options if option not in control.formatted_values]
        choose(app, [(control.key, option) for option in others[-1:]])
        return
    if isinstance(control, Selectbox):
        at = -1 if control.index is None else control.index
        control.select_index(at + 1 if at + 1 < len(control.options) else at - 1)
    elif isinstance(control, SelectSlider):
        at = control.options.index(control.format_func(control.value))
        control.set_value(_Label(control.options[at - 1]))
    elif isinstance(control, Slider | NumberInput):
        up = control.value + control.step
        control.set_value(up if control.max is None or up <= control.max else control.value - control.step)
    else:
        control.set_value(not control.value if isinstance(control.value, bool) else "book")
    app.run()


def shown(app: AppTest) -> list[tuple[str, dict, Any]]:
    """Return everything on a page, in order, without empty placeholders of long computations."""
    return [
        (
            element.type,
            {name: part for name, part in MessageToDict(element.proto).items() if name not in _OF_THE_VISIT},
            element.value.to_csv() if isinstance(element, Dataframe) else getattr(element, "value", None),
        )
        for element in elements(app.main)
        if element.type != "empty"
    ]


@pytest.mark.slow
@pytest.mark.sample(of=4)
@pytest.mark.parametrize(("name", "extra"), [(name, extra) for name, views in VIEWS.items() for extra in views])
def test_a_link_shows_the_same_view_to_somebody_else(open_app, monkeypatch, name, extra) -> None:
    monkeypatch.setattr(SelectSlider, "_widget_state", property(_sent_by_slider))
    first = open_app(name, **VIEW | extra)
    change_every_control(first, left_in(extra))
    second = open_app(name, **first.query_params)
    assert not first.exception and not second.exception
    for mine, theirs in zip(shown(first), shown(second), strict=True):
        assert mine == theirs, first.query_params


def keys_in_code(page: str) -> set[str]:
    """Return the controls of a page whose key is a literal where they are drawn."""
    found = set()
    for path in (ROOT / "pages" / f"{page}.py", *(ROOT / "views" / page).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not CONTROLS.fullmatch(ast.unparse(call.func)):
                continue
            found |= {word.value.value for word in call.keywords if word.arg == "key" and _is_text(word.value)}
    return found


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_no_control_has_the_name_of_a_parameter_of_all_pages() -> None:
    """E.g. "class" is the code of a class of students, which would take it from the link."""
    found = [key for name in PAGES for key in keys_in_code(name)]
    assert len(found) > 60, "the search itself finds something"
    assert not {*found} & {*NAMES, *NO_CHOICES}


@pytest.mark.nightly
@pytest.mark.parametrize("name", PAGES)
def test_every_control_is_drawn_in_a_view(open_app, name: str) -> None:
    """The ``VIEWS`` must contain it, so that tests of all controls cover it."""
    for extra in (*VIEWS[name], *MORE_VIEWS.get(name, ())):
        assert not open_app(name, **VIEW | extra).exception
    drawn = {key for page, key in choice.drawn if page == name}
    assert keys_in_code(name) - drawn - IN_NO_VIEW == set()
