"""The mask editor in a real browser: drag, click, keyboard and undo change the model's mask."""

from __future__ import annotations

import json

import pytest

from tests.browser.conftest import settle

pytestmark = pytest.mark.browser
PAGE = "masks?checkpoint=tiny-translator&sentence=The+cat+sat+on+the+mat.&stack=decoder&target=Le+chat+dort.&mask=own"
MAP = ".st-key-mask-editor canvas"


def middle(page, row, column):
    canvas = page.locator(MAP)
    box, geometry = canvas.bounding_box(), json.loads(canvas.get_attribute("data-geometry"))
    return (
        box["x"] + geometry["x"] + (column + 0.5) * geometry["stepX"],
        box["y"] + geometry["y"] + (row + 0.5) * geometry["stepY"],
    )


def drag(page, start, end):
    page.mouse.move(*middle(page, *start))
    page.mouse.down()
    page.mouse.move(*middle(page, *end), steps=2)  # a fast drag, in which the mouse skips cells
    page.mouse.up()
    settle(page)


@pytest.fixture
def editor(visit, app):
    page = visit(f"{app}/{PAGE}")
    page.locator(MAP).wait_for()
    return page


def text_of(page):
    return page.locator("[data-testid=stMain]").inner_text()


def test_a_drag_blocks_all_cells_on_its_way_and_undo_gives_them_back(editor):
    assert "You have not changed anything yet." in text_of(editor)
    drag(editor, (3, 0), (5, 0))
    assert "Cells drawn by hand: 3." in text_of(editor)
    drag(editor, (0, 2), (0, 2))  # a click allows what was blocked: attention to a later token
    assert "Cells drawn by hand: 4." in text_of(editor)
    for _ in range(2):
        editor.get_by_role("button", name="Undo").click()
        settle(editor)
    assert "You have not changed anything yet." in text_of(editor)


def test_the_keyboard_draws_too_and_a_blocked_row_is_named(editor):
    canvas = editor.locator(MAP)
    canvas.focus()
    editor.keyboard.press("ArrowDown")  # the cursor appears on the first cell, the only one that this row may attend to
    editor.keyboard.press("Enter")
    settle(editor)
    assert "Cells drawn by hand: 1." in text_of(editor)
    assert "“<s>” cannot attend to any token" in text_of(editor)
