"""A reader's action in a figure determines the new state, by a pure function without a session."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tests.conftest import ROOT
from ui.shell import strip
from ui.shell.actions import (
    OpenPage,
    PaintMask,
    Reveal,
    SelectCell,
    SelectChip,
    SelectHead,
    SelectLocation,
    SelectSentence,
    SelectStep,
    SelectToken,
    SetChoice,
)
from ui.shell.focus import Focus
from ui.shell.reducer import State, reduce
from views.attention import attention_controls
from views.decoding import stepper
from views.lens import author
from views.masks import editor
from views.surgery import edit_list, operations

FOCUS = Focus(checkpoint="tiny", sentence="A cat.", stack="decoder", kind="cross", layer=1, head=2, token=3)
STATE = State(FOCUS, "attention", {"attention": {"attention_show": ("lines",)}, "masks": {}})


def test_a_head_is_looked_at_and_the_token_stays() -> None:
    assert reduce(STATE, SelectHead(0, 5)).focus == replace(FOCUS, layer=0, head=5)
    same = SelectHead(0, 5, stack="decoder", kind="cross")
    assert reduce(STATE, same).focus == replace(FOCUS, layer=0, head=5), "the same stack again is no other one"


def test_another_stack_begins_at_its_first_token() -> None:
    after = reduce(STATE, SelectHead(0, 5, stack="encoder", kind="self")).focus
    assert after == replace(FOCUS, stack="encoder", kind="self", layer=0, head=5, token=0)
    assert reduce(STATE, SelectToken(4, "encoder")).focus == replace(FOCUS, stack="encoder", kind="self", token=4)
    assert reduce(STATE, SelectToken(4, "decoder")).focus == replace(FOCUS, token=4)
    assert reduce(STATE, SelectToken(0)).focus == replace(FOCUS, token=0)


def test_a_location_changes_what_it_names() -> None:
    assert reduce(STATE, SelectLocation(layer=0)).focus == replace(FOCUS, layer=0)
    assert reduce(STATE, SelectLocation("encoder", "self", 0, 0, 0)).focus == Focus("tiny", "A cat.")


def test_another_sentence_is_answered_by_the_model_itself() -> None:
    state = replace(STATE, focus=replace(FOCUS, target="Un chat.", pads=2))
    after = reduce(state, SelectSentence("A dog.", 1)).focus
    assert after == replace(FOCUS, sentence="A dog.", token=1, target="", pads=0)
    assert reduce(state, SelectSentence("A dog.")).focus.token == 0


def test_a_choice_is_kept_as_the_address_says_it() -> None:
    after = reduce(STATE, SetChoice("attention_key", (3,)))
    assert after.choices["attention"] == {"attention_show": ("lines",), "attention_key": ("3",)}
    assert after.focus == FOCUS and STATE.values("attention_key") == (), "nothing is changed in place"
    assert reduce(after, SetChoice("attention_key")).choices == STATE.choices
    other = reduce(STATE, SetChoice("heads_stretch", (True,), page="heads"))
    assert other.choices["heads"] == {"heads_stretch": ("true",)}
    assert other.choices["attention"] == STATE.choices["attention"]


def test_a_page_is_opened_at_a_place() -> None:
    after = reduce(STATE, OpenPage("heads", SelectLocation(layer=0)))
    assert after.opens == "heads" and after.focus.layer == 0 and after.page == "attention"
    assert reduce(STATE, Reveal("attention arithmetic")).reveals == ("attention arithmetic",)


@pytest.mark.parametrize(
    "action", [SelectCell(0, 0), SelectChip(0, 0), SelectStep(1), PaintMask((SelectCell(0, 0),), allowed=True)]
)
def test_what_means_nothing_by_itself_says_so(action: object) -> None:
    with pytest.raises(TypeError, match="means="):
        reduce(STATE, action)


def test_a_cell_opens_its_arithmetic_once() -> None:
    after = reduce(STATE, SelectCell(1, 4), attention_controls.cell_opener(None))
    assert after.focus.token == 1 and after.values("attention_key") == ("4",)
    assert after.reveals == (attention_controls.ARITHMETIC,)
    again = attention_controls.cell_opener(4)
    assert reduce(after, SelectCell(1, 4), again) == after, "it is open"


def test_strokes_are_painted_one_over_the_other() -> None:
    state = replace(STATE, page="masks", choices={"masks": {"mask": ("window 3", "block 0-1,2-3")}})
    for cells, allowed in (((0, 1), (1, 1)), True), (((1, 1),), False):
        stroke = PaintMask(tuple(SelectCell(*cell) for cell in cells), allowed)
        state = reduce(state, stroke, editor.paint)
    assert state.values("mask") == ("window 3", "allow 0-1", "block 1-1,2-3")


def test_a_step_of_a_text_is_said_also_if_it_is_the_first() -> None:
    """No step in the address means the one at which the model hesitates."""
    state = replace(STATE, page="decoding")
    after = reduce(state, SelectStep(4), stepper.rests_at)
    assert after.values("step") == ("4",)
    assert reduce(after, SelectStep(0), stepper.rests_at).values("step") == ("0",)


def test_the_first_token_of_the_strip_is_meant_where_pages_begin_at_another_one() -> None:
    after = reduce(STATE, SelectToken(0, "decoder"), strip.choose_token)
    assert after.focus.token == 0
    assert {page: after.choices[page][strip.FIRST_CHOSEN] for page in ("lens", "positions")} == {
        "lens": ("1",),
        "positions": ("1",),
    }
    assert set(after.owners.values()) == {("tiny", "A cat.")}
    after = reduce(after, SelectToken(2, "decoder"), strip.choose_token)
    assert strip.FIRST_CHOSEN not in after.choices["lens"]


def test_a_head_is_removed_and_put_in_again() -> None:
    rows, heads = [("encoder", "self", 0), ("decoder", "cross", 1)], [2, 4]
    state = replace(STATE, page="surgery")

    def click(state: State, how: str, row: int, head: int) -> State:
        def means(state: State, cell: SelectCell) -> tuple:
            return operations._choose_head(rows, heads, how, state, cell)

        return reduce(state, SelectCell(row, head), means)

    once = click(state, "zero", 1, 3)
    assert once.values(edit_list.EDIT) == ("zero:decoder.1.cross.3",)
    assert click(once, "zero", 1, 3).values(edit_list.EDIT) == ()
    assert click(once, "mean", 1, 3).values(edit_list.EDIT) == ("mean:decoder.1.cross.3",), "one edit of a head"
    assert click(state, "zero", 0, 3) == state, "this layer has two heads"
    assert click(state, "focus", 0, 1).focus.stack == "encoder"


def test_a_part_opens_the_page_that_shows_it_in_full() -> None:
    class Part:
        def __init__(self, kind: str, head: int) -> None:
            self.kind, self.head = kind, head

    columns = [Part("self_attention", 1), Part("feed_forward", -1)]
    actions = author._open(columns, "decoder", 2, STATE, SelectCell(0, 0))
    assert actions == (OpenPage("attention", SelectLocation("decoder", "self", 0, 1, 2)),)
    actions = author._open(columns, "decoder", 2, STATE, SelectCell(1, 1))
    assert actions == (OpenPage("feed_forward", SelectLocation("decoder", None, 1, None, 2)),)


def test_actions_need_no_streamlit() -> None:
    tree = ast.parse((ROOT / "ui" / "shell" / "actions.py").read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert modules == {"__future__", "dataclasses"}


def test_no_figure_has_a_private_path() -> None:
    """Every event of a canvas figure, a card or a block goes through ``send``."""
    for name in ("show/drawings.py", "show/chips/__init__.py", "shell/strip/__init__.py"):
        tree = ast.parse((ROOT / "ui" / name).read_text(encoding="utf-8"))
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert "send" in called and not {"shared_focus.change", "go_to", "choice.put"} & called, name
