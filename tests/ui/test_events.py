"""What a browser sends is checked: a forged event changes nothing, a click sets the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st

import transformer
from ui.shell import choice, focus_controls, page_state, picture, strip
from ui.shell import focus as shared_focus
from ui.shell.events import one_of, whole_number, whole_numbers
from ui.shell.focus import Focus, select, select_sentence
from ui.shell.strip import strip_rows
from ui.show import chips as chips_module
from ui.show import drawings
from ui.show.chips import Chip, ChipRow, chips, chips_data, read_choice
from ui.show.drawings import Cell, Stroke
from views.attention import attention_sections
from views.decoding import stepper
from views.lens import lens_sections
from views.masks import masks_sections
from views.overview import model_diagram
from views.surgery import edit_list, surgery_sections

FOCUS = Focus(checkpoint="tiny", sentence="A cat.", stack="decoder", kind="cross", layer=1, head=2, token=3)
WRONG = [-2, -1, 1.5, "1", True, None, [], {}, float("nan"), float("inf"), 10**9, 10**400, "x" * 5000]
wrong_values = pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:12])


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a session that is on the page Attention."""
    monkeypatch.setattr(st, "session_state", {})
    shared_focus.store(FOCUS)
    st.session_state[page_state._PAGE] = "attention"
    choice.put("attention_show", "lines")


def says(key: str, **values: object) -> None:
    st.session_state[key] = SimpleNamespace(**values)


# ---- forged and late events -----------------------------------------------------------------------------------------


@wrong_values
def test_what_is_no_position_is_none(wrong: object) -> None:
    assert whole_number(wrong) is None
    for value in ({"row": 0, "card": wrong}, {"row": wrong, "card": 0}, {"row": 0}, wrong):
        assert whole_numbers(value, ("row", "card")) is None
        assert read_choice(value, (3, 1)) is None
    assert drawings.read_cell({"query": 0, "key": wrong}, (3, 4)) is None
    assert drawings.read_cell(wrong, (3, 4)) is None and drawings.read_token({"token": wrong}, 3) is None
    assert drawings.read_head({"layer": 0, "head": wrong}, {(0, 0), (0, 1)}) is None
    for cells, allowed in ((wrong, True), ([0, wrong], True), ([0, 1], None if wrong is True else wrong)):
        assert drawings.read_stroke({"cells": cells, "allowed": allowed}, (3, 4)) is None


def test_what_is_a_position_of_the_drawing_is_read() -> None:
    assert [whole_number(value) for value in (0, 3, 3.0)] == [0, 3, 3]
    assert whole_numbers({"row": 1, "card": 2.0, "more": "x"}, ("row", "card")) == (1, 2)
    assert one_of("encoder", ("encoder", "decoder")) == "encoder"
    assert one_of(["encoder"], ("encoder", "decoder")) is None and one_of("x", ("encoder",)) is None
    cells = [drawings.read_cell({"query": row, "key": 0}, (3, 4)) for row in (2, 3)]
    assert cells == [Cell(2, 0), None]
    assert [drawings.read_token({"token": token}, 3) for token in (2, 3)] == [2, None]
    assert [read_choice({"row": row, "card": 0}, (3, 1)) for row in (1, 2)] == [(1, 0), None]
    shown = {(0, 0), (0, 1)}
    heads = [drawings.read_head({"layer": 0, "head": head}, shown) for head in (1, 2)]
    assert heads == [{"layer": 0, "head": 1}, None]
    stroke = drawings.read_stroke({"cells": [0, 1, 2, 3, 3, 0], "allowed": False}, (3, 4))
    assert stroke == Stroke((Cell(0, 1), Cell(2, 3)), False), "a cell outside is left out"


@wrong_values
def test_a_forged_event_changes_nothing(wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    forged: list[tuple[str, Callable[[], None], dict]] = [
        ("token strip", strip._send_choice, {"chosen": {"stack": "encoder", "token": wrong}}),
        ("token strip", strip._send_choice, {"chosen": {"stack": wrong, "token": 1}}),
        ("token strip", strip._send_choice, {"chosen": {"stack": "middle", "token": 1}}),
        ("token strip", strip._send_choice, {"chosen": {"token": 1}}),
        ("token strip", strip._send_choice, {"chosen": wrong}),
        ("model diagram", model_diagram._choose_layer, {"layer": wrong}),
        ("model diagram", partial(model_diagram._open, {"encoder": ("attention", {})}), {"opened": wrong}),
        (attention_sections._SHADED, attention_sections._follow_shaded, {"chosen": wrong}),
    ]
    if not isinstance(wrong, str):  # a text may be an image with a typing error, which the page reports
        forged.append(("sidebar picture", picture._use_picture, {"chosen": wrong}))
    for key, callback, values in forged:
        says(key, **values)
        before = {name: value for name, value in st.session_state.items() if name != key}
        callback()
        assert {name: value for name, value in st.session_state.items() if name != key} == before, (key, values)
    assert shared_focus.current() == FOCUS


@pytest.mark.parametrize("name", ["head", "kind", "stack"])
def test_a_choice_that_was_not_offered_changes_nothing(name: str) -> None:
    """No browser sends such a value, but a script may, and the focus used to keep it on every page."""
    for chosen in (None, "", "forged"):
        st.session_state[f"choose {name}"] = chosen
        focus_controls._take(f"choose {name}", partial(focus_controls._changes_of, name), (0, 1, "encoder self"))
        assert shared_focus.current() == FOCUS


@pytest.mark.parametrize("late", [
    partial(drawings._hear, stepper.KEY, "step", whole_number, stepper.rest_at),
    partial(drawings._hear, "map", "click", lambda value: value, lambda *_: pytest.fail()),
    strip._send_choice,
    model_diagram._choose_layer,
])  # fmt: skip
def test_what_a_page_says_after_it_has_been_left_changes_nothing(late: Callable[[], None]) -> None:
    """A figure reports the reader's resting position with a delay; by then another page may be open."""
    before = {**st.session_state}
    late()  # its widget is gone
    assert st.session_state == before


# ---- clicks ---------------------------------------------------------------------------------------------------------


def test_a_click_selects_a_head_and_the_token_stays_in_its_stack() -> None:
    for asked, wanted in (
        ({"layer": 0, "head": 5}, {"layer": 0, "head": 5}),
        ({"layer": 0, "head": 5, "stack": "decoder", "kind": "cross"}, {"layer": 0, "head": 5}),
        ({"layer": 0, "head": None}, {"layer": 0}),
        (changed := {"layer": 0, "head": 5, "stack": "encoder", "kind": "self"}, {**changed, "token": 0}),
    ):
        shared_focus.store(FOCUS)
        select(**asked)
        assert shared_focus.current() == replace(FOCUS, **wanted)


def test_a_click_on_the_strip_chooses_a_token_also_the_first_where_pages_begin_at_another_one() -> None:
    for stack, wanted in (("encoder", {"stack": "encoder", "kind": "self"}), ("decoder", {})):
        shared_focus.store(FOCUS)
        says("token strip", chosen={"stack": stack, "token": 2})
        strip._send_choice()
        assert shared_focus.current() == replace(FOCUS, token=2, **wanted)
    strip.choose_token(0, "decoder")
    assert shared_focus.current().token == 0
    for page in ("lens", "positions"):
        assert choice.is_on(strip.FIRST_CHOSEN, page=page)
        owner = page_state._name_of(("tiny", "A cat."))
        assert page_state.of_page(page).owners[strip.FIRST_CHOSEN] == owner
    strip.choose_token(2, "decoder")
    assert not choice.is_on(strip.FIRST_CHOSEN, page="lens")


def test_another_sentence_is_answered_by_the_model_itself() -> None:
    for token, wanted in ((1, 1), (None, 0)):
        shared_focus.store(replace(FOCUS, target="Un chat.", pads=2))
        select_sentence("A dog.", token)
        assert shared_focus.current() == replace(FOCUS, sentence="A dog.", token=wanted, target="", pads=0)


def test_a_choice_is_kept_as_the_address_says_it() -> None:
    choice.put("attention_key", 3)
    assert page_state.choices("attention") == {"attention_show": ("lines",), "attention_key": ("3",)}
    choice.put("attention_key")
    choice.put("heads_stretch", True, page="heads")
    assert page_state.choices("attention") == {"attention_show": ("lines",)}
    assert page_state.choices("heads") == {"heads_stretch": ("true",)}
    for step in (4, 0):  # no step in the address means the one at which the model hesitates
        stepper.rest_at(step)
        assert choice.value("step", page="decoding") == str(step)


def test_a_cell_opens_its_arithmetic_once() -> None:
    attention_sections.cell_opener(None)(Cell(1, 4))
    assert shared_focus.current().token == 1 and page_state.values("attention_key") == ("4",)
    opened = f"{attention_sections.ARITHMETIC}: opened"
    assert st.session_state[opened] == 1
    attention_sections.cell_opener(4)(Cell(1, 4))
    assert st.session_state[opened] == 1, "it is open"


def test_strokes_are_painted_one_over_the_other() -> None:
    choice.put("mask", "window 3", "block 0-1,2-3")
    for cells, allowed in (((0, 1), (1, 1)), True), (((1, 1),), False):
        masks_sections.paint((), Stroke(tuple(Cell(*cell) for cell in cells), allowed))
    assert page_state.values("mask") == ("window 3", "allow 0-1", "block 1-1,2-3")


def test_a_head_is_removed_and_put_in_again() -> None:
    rows, exists = [("encoder", "self", 0), ("decoder", "cross", 1)], np.array([[1, 1, 0, 0], [1] * 4], bool)
    for how, row, wanted in (
        ("zero", 1, ("zero:decoder.1.cross.3",)),
        ("mean", 1, ("mean:decoder.1.cross.3",)),  # one edit of a head
        ("mean", 1, ()),
        ("zero", 0, ()),  # this layer has two heads
    ):
        surgery_sections._choose_head(rows, exists, how, Cell(row, 3))
        assert edit_list.specs() == wanted
    surgery_sections._choose_head(rows, exists, "focus", Cell(0, 1))
    assert shared_focus.current().stack == "encoder"


def test_a_part_opens_the_page_that_shows_it_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, dict]] = []

    def go_to(page: str, **place: object) -> None:
        opened.append((page, place))
        raise StopIteration  # the script ends there

    monkeypatch.setattr(lens_sections, "go_to", go_to)
    columns = [SimpleNamespace(kind="self_attention", head=1), SimpleNamespace(kind="feed_forward", head=-1)]
    for cell in (Cell(0, 0), Cell(1, 1)):
        with pytest.raises(StopIteration):
            lens_sections._open(columns, "decoder", 2, cell)
    at = {"stack": "decoder", "token": 2}
    assert opened == [
        ("attention", {**at, "kind": "self", "layer": 0, "head": 1}),
        ("feed_forward", {**at, "layer": 1}),
    ]


# ---- cards of tokens ------------------------------------------------------------------------------------------------


def test_a_click_on_a_card_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told, mounted = [], {}
    monkeypatch.setattr(chips_module, "token_rows", lambda **how: mounted.update(how))
    chips([ChipRow("reads", (Chip("a"), Chip("b")))], key="k", on_click=lambda *chosen: told.append(chosen))
    for chosen in ({"row": 0, "card": 2}, {"row": 0, "card": 1}):
        says("k", chosen=chosen)
        mounted["on_chosen_change"]()
    assert told == [(0, 1)]


def test_the_legend_explains_only_what_occurs_and_text_travels_as_it_is() -> None:
    """Cards use textContent, so markup is harmless and must not be escaped."""
    row = ChipRow("reads", (Chip("<b>&*`", "7", "word"), Chip("s", "9", "part")), chosen=1)
    data = chips_data([row], legend={"word": "a word", "part": "goes on", "byte": "a byte"}, choose=True)
    assert [entry["tone"] for entry in data["legend"]] == ["word", "part"]
    assert data["rows"][0]["chosen"] == 1 and data["rows"][0]["clickable"]
    assert data["rows"][0]["tokens"][0]["text"] == "<b>&*`"
    for values in ({"tone": "red"}, {"share": 1.5}):
        with pytest.raises(ValueError, match=next(iter(values))):
            Chip("a", **values)


READ, CROSS = Focus(stack="decoder", token=1), Focus(stack="decoder", kind="cross", token=1)


@pytest.mark.parametrize(("focus", "how", "rows"), [  # of each row: its title, whether it is clickable, what is chosen
    (READ, {"all_stacks": False}, [("reads", True, 1)]),
    (CROSS, {"all_stacks": False}, [("source", False, None), ("reads", True, 1)]),
    (READ, {"all_stacks": True}, [("source", True, None), ("reads", True, 1)]),
    (
        Focus(), {"all_stacks": True, "place": ("decoder", 2)},  # the page looks elsewhere
        [("source", True, None), ("reads", True, 2)],
    ),
])  # fmt: skip
def test_the_strip_holds_every_token_as_it_is(tiny_checkpoint, focus: Focus, how: dict, rows: list) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The <b>cat</b>.", target="Le chat.", source_pads=1)
    found = strip_rows(trace, focus, **how)["rows"]
    assert [(row["title"], row["clickable"], row["chosen"]) for row in found] == rows
    for row in found:
        tokens = trace.source if row["title"] == "source" else trace.target
        assert [token["text"] for token in row["tokens"]] == list(tokens.displays)
        assert [token["title"].split()[-1] for token in row["tokens"]] == [str(id) for id in tokens.ids]
        assert [token["kind"] == "special" for token in row["tokens"]] == [token.special for token in tokens]


def test_where_rows_are_named_after_predictions_a_chip_is_the_word_that_its_row_bears(tiny_checkpoint) -> None:
    """A reader saw “ange” selected in the strip, and the row “chaque” marked in the map."""
    trace = transformer.trace(tiny_checkpoint("translator"), "The cat.", target="Le chat.")
    source, target = strip_rows(trace, CROSS, all_stacks=False, predicted=True)["rows"]
    names = [token["text"] for token in target["tokens"]]
    assert names == list(trace.prediction.displays) and "<s>" not in names and names[-1] == "</s>"
    assert names[target["chosen"]] == trace.prediction.displays[1] != trace.target.displays[1]
    assert target["tokens"][0]["sends"]["token"] == 0, "a click on a name selects the row of this name"
    assert (target["title"], [token["text"] for token in source["tokens"]]) == ("predicts", list(trace.source.displays))
    (row,) = strip_rows(transformer.trace(tiny_checkpoint("gpt"), "A."), Focus(), all_stacks=True)["rows"]
    assert row["title"] == "text"
