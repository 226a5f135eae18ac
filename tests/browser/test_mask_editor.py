"""The mask editor in a real browser: drag, click, keyboard and undo change the model's mask."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import settle
from tests.browser.scenes import painted

pytestmark = pytest.mark.browser
PAGE = "masks?checkpoint=tiny-translator&sentence=The+cat+sat+on+the+mat.&stack=decoder&target=Le+chat+dort.&mask=own"
MAP = ".st-key-mask-editor canvas"


def middle(page, row, column):
    geometry, box = painted(page.locator(MAP))
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


def says(page: Page, text: str) -> None:
    expect(page.get_by_test_id("stMain")).to_contain_text(text)


def test_a_drag_blocks_all_cells_on_its_way_and_undo_gives_them_back(editor):
    says(editor, "You have not changed anything yet.")
    drag(editor, (3, 0), (5, 0))
    says(editor, "Cells drawn by hand: 3.")
    drag(editor, (0, 2), (0, 2))  # a click allows what was blocked: attention to a later token
    says(editor, "Cells drawn by hand: 4.")
    for _ in range(2):
        editor.get_by_role("button", name="Undo").click()
        settle(editor)
    says(editor, "You have not changed anything yet.")


def test_the_keyboard_draws_too_and_a_blocked_row_is_named(editor):
    canvas = editor.locator(MAP)
    canvas.focus()
    editor.keyboard.press("ArrowDown")  # the cursor appears on the first cell, the only one that this row may attend to
    editor.keyboard.press("Enter")
    settle(editor)
    says(editor, "Cells drawn by hand: 1.")
    says(editor, "“<s>” cannot attend to any token")
