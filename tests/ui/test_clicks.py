"""A click in a figure sets the state, in its callback, before the page runs once."""

from __future__ import annotations

from dataclasses import replace

import pytest
import streamlit as st

from ui.shell import choice, page_state, strip
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus, select, select_sentence
from ui.show.drawings import Cell, Stroke
from views.attention import attention_controls
from views.decoding import stepper
from views.lens import author
from views.masks import masks_sections
from views.surgery import edit_list, operations

FOCUS = Focus(checkpoint="tiny", sentence="A cat.", stack="decoder", kind="cross", layer=1, head=2, token=3)


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a session that is on the page Attention."""
    monkeypatch.setattr(st, "session_state", {})
    shared_focus.keep(FOCUS)
    st.session_state[page_state._PAGE] = "attention"
    choice.put("attention_show", "lines")


def focus_after(**values: object) -> Focus:
    shared_focus.keep(FOCUS)
    select(**values)
    return shared_focus.current()


def test_a_head_is_selected_and_the_token_stays() -> None:
    assert focus_after(layer=0, head=5) == replace(FOCUS, layer=0, head=5)
    same = focus_after(layer=0, head=5, stack="decoder", kind="cross")
    assert same == replace(FOCUS, layer=0, head=5), "the same stack again is no other one"
    assert focus_after(layer=0, head=None) == replace(FOCUS, layer=0)


def test_another_stack_begins_at_its_first_token() -> None:
    after = focus_after(layer=0, head=5, stack="encoder", kind="self")
    assert after == replace(FOCUS, stack="encoder", kind="self", layer=0, head=5, token=0)
    for stack, wanted in (("encoder", {"stack": "encoder", "kind": "self"}), ("decoder", {}), ("", {})):
        shared_focus.keep(FOCUS)
        strip.choose_token(4, stack)
        assert shared_focus.current() == replace(FOCUS, token=4, **wanted)


def test_another_sentence_is_answered_by_the_model_itself() -> None:
    for token, wanted in ((1, 1), (None, 0)):
        shared_focus.keep(replace(FOCUS, target="Un chat.", pads=2))
        select_sentence("A dog.", token)
        assert shared_focus.current() == replace(FOCUS, sentence="A dog.", token=wanted, target="", pads=0)


def test_a_choice_is_kept_as_the_address_says_it() -> None:
    choice.put("attention_key", 3)
    assert page_state.choices("attention") == {"attention_show": ("lines",), "attention_key": ("3",)}
    choice.put("attention_key")
    choice.put("heads_stretch", True, page="heads")
    assert page_state.choices("attention") == {"attention_show": ("lines",)}
    assert page_state.choices("heads") == {"heads_stretch": ("true",)}


def test_a_cell_opens_its_arithmetic_once() -> None:
    attention_controls.cell_opener(None)(Cell(1, 4))
    assert shared_focus.current().token == 1 and choice.values("attention_key") == ("4",)
    opened = f"{attention_controls.ARITHMETIC}: opened"
    assert st.session_state[opened] == 1
    attention_controls.cell_opener(4)(Cell(1, 4))
    assert st.session_state[opened] == 1, "it is open"


def test_strokes_are_painted_one_over_the_other() -> None:
    choice.put("mask", "window 3", "block 0-1,2-3")
    for cells, allowed in (((0, 1), (1, 1)), True), (((1, 1),), False):
        masks_sections.paint((), Stroke(tuple(Cell(*cell) for cell in cells), allowed))
    assert choice.values("mask") == ("window 3", "allow 0-1", "block 1-1,2-3")


def test_a_step_of_a_text_is_said_also_if_it_is_the_first() -> None:
    """No step in the address means the one at which the model hesitates."""
    for step in (4, 0):
        stepper.rest_at(step)
        assert choice.value("step", page="decoding") == str(step)


def test_the_first_token_of_the_strip_is_meant_where_pages_begin_at_another_one() -> None:
    strip.choose_token(0, "decoder")
    assert shared_focus.current().token == 0
    for page in ("lens", "positions"):
        assert choice.is_on(strip.FIRST_CHOSEN, page=page)
        owner = page_state._name_of(("tiny", "A cat."))
        assert st.session_state[page_state._OWNERS][page][strip.FIRST_CHOSEN] == owner
    strip.choose_token(2, "decoder")
    assert not choice.is_on(strip.FIRST_CHOSEN, page="lens")


def test_a_head_is_removed_and_put_in_again() -> None:
    rows, heads = [("encoder", "self", 0), ("decoder", "cross", 1)], [2, 4]

    def edits_after(how: str, row: int, head: int) -> tuple[str, ...]:
        operations._choose_head(rows, heads, how, Cell(row, head))
        return choice.values(edit_list.EDIT)

    assert edits_after("zero", 1, 3) == ("zero:decoder.1.cross.3",)
    assert edits_after("mean", 1, 3) == ("mean:decoder.1.cross.3",), "one edit of a head"
    assert edits_after("mean", 1, 3) == ()
    assert edits_after("zero", 0, 3) == (), "this layer has two heads"
    edits_after("focus", 0, 1)
    assert shared_focus.current().stack == "encoder"


def test_a_part_opens_the_page_that_shows_it_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    class Part:
        def __init__(self, kind: str, head: int) -> None:
            self.kind, self.head = kind, head

    class Opened(Exception):
        pass

    def go_to(page: str, **place: object) -> None:
        raise Opened(page, place)

    monkeypatch.setattr(author, "go_to", go_to)
    columns, at = [Part("self_attention", 1), Part("feed_forward", -1)], {"stack": "decoder", "token": 2}
    for cell, page, place in (
        (Cell(0, 0), "attention", {**at, "kind": "self", "layer": 0, "head": 1}),
        (Cell(1, 1), "feed_forward", {**at, "layer": 1}),
    ):
        with pytest.raises(Opened) as opened:
            author._open(columns, "decoder", 2, cell)
        assert opened.value.args == (page, place)
