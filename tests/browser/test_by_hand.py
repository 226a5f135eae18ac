"""The By-hand sheet in a browser: its numbers equal the torch modules'; readers change and guess them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import lasting
from tests.browser.conftest import PHONE, PROJECTOR, go, settle
from transformer.toy.by_hand import HEAD_COUNTS, MAX_WORDS, SheetChoices, forward_pass, load_sheet
from ui.words.texts import page_text
from views.by_hand.by_hand_sections import paper

pytestmark = pytest.mark.browser
SHEET = "by_hand?hand_step=sheet"
TEXT = page_text("by_hand")
SHOW = "(frame, texts) => { frame.sheet.show(texts); return frame.sheet.numbers; }"
# Left, top, right, bottom and size of letters of every cell, and of the foot at the end.
BOXES = """frame => [...frame.sheet.cells.values(), frame.sheet.foot].map((node) => {
  const { left, top, right, bottom } = node.getBoundingClientRect();
  return [left, top, right, bottom, parseFloat(getComputedStyle(node).fontSize)]; })"""


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=TEXT[name], exact=True)


def cell(page: Page, key: str) -> Locator:
    return page.locator(f'.sheet td[data-cell="{key}"]')


def edit(page: Page, key: str, *keys: str) -> None:
    """Click a cell and type, at a person's pace."""
    cell(page, key).click()
    for one in keys:
        if len(one) > 1 and one[0].isupper():
            page.keyboard.press(one, delay=120)
        else:
            page.keyboard.type(one, delay=120)


def random_edits(seed: int) -> SheetChoices:
    """Return random words, one head or two, and changed numbers in up to thirty cells."""
    draw, parameters, cells = random.Random(seed), load_sheet().parameters, {}
    for _ in range(draw.randrange(31)):
        name = draw.choice(sorted(parameters))
        row, column = (draw.randrange(size) for size in parameters[name].shape)
        cells[name, row, column] = draw.randint(-30, 30) / 10
    words = tuple(draw.randrange(8) for _ in range(draw.randint(1, MAX_WORDS)))
    return SheetChoices(words, draw.choice(HEAD_COUNTS), cells)


def test_one_step_leads_to_the_next_up_to_the_next_word(visit: Callable[..., Page]) -> None:
    page = visit("by_hand", **PROJECTOR)
    tables, onward = page.locator(".sheet table"), page.locator(".sheet .onward")
    expect(tables).to_have_count(3)
    assert page.locator(".sheet td").first.evaluate("td => parseFloat(getComputedStyle(td).fontSize)") >= 20
    assert not lasting(page, rules=(), within=".st-key-by-hand-page")
    results = set()
    for number in range(2, 20):
        onward.click()
        expect(page.locator(".sheet .bar")).to_contain_text(re.compile(rf"\b{number}\b"))
        boxes = page.locator(".sheet :is(table, .foot)").evaluate_all(
            "all => all.map((n) => { const b = n.getBoundingClientRect(); return [b.left, b.right, b.bottom]; })"
        )
        assert all(0 <= left and right <= 1280 and bottom <= 720 for left, right, bottom in boxes), number
        assert page.locator(".sheet td.source").count(), number
        results.add(page.locator(".sheet td.target").get_attribute("data-cell"))
    assert len(results) == 18 and "probabilities.4.6" in results
    expect(page.locator(".formula .answer")).to_have_text("0.86")
    expect(onward).to_be_disabled()
    page.wait_for_url(re.compile("hand_step=19"))


def test_every_number_is_that_of_the_recorded_pass_and_fits_the_screen(visit: Callable[..., Page]) -> None:
    page = visit(SHEET, **PROJECTOR)
    frame = page.locator(".sheet")
    cell(page, "WQ.0.0").wait_for()
    for heads in range(2):
        frame.locator(".group").first.get_by_role("button").nth(heads).click()
        settle(page)
        boxes = np.array(frame.evaluate(BOXES))
        assert boxes[:, 0].min() >= 0 and boxes[:, 2].max() <= 1280 and boxes[-1, 3] <= 720
        assert boxes[:-1, 3].max() <= boxes[-1, 1] and boxes[:, 4].min() >= 11
    for seed in range(40):
        choices = random_edits(seed)
        computed = frame.evaluate(SHOW, choices.to_texts() | {"step": "sheet"})
        recorded = forward_pass(load_sheet().edited(choices.cells, n_heads=choices.n_heads), choices.words)
        assert computed.keys() == recorded.keys()
        for name, numbers in recorded.items():
            np.testing.assert_allclose(computed[name], numbers, rtol=0, atol=1e-5, err_msg=f"{name}, seed {seed}")
        shown = set(frame.evaluate("frame => [...frame.sheet.cells.keys()]"))
        rows = {"P": len(choices.words)}
        assert shown == {
            f"{name}.{row}.{column}"
            for name, numbers in recorded.items()
            for row in range(rows.get(name, len(numbers)))
            for column in range(len(numbers[0]))
        }, "no number is left out"


def test_a_reader_changes_numbers_takes_them_back_and_prints(visit: Callable[..., Page]) -> None:
    page = visit(SHEET)
    edit(page, "WK.1.1", "ArrowUp", "ArrowUp", "ArrowUp", "Enter")
    expect(cell(page, "WK.1.1")).to_have_text("−0.7")
    expect(cell(page, "K.1.1")).to_have_class(re.compile("lit"))
    expect(cell(page, "Q.1.1")).not_to_have_class(re.compile("lit"))
    page.wait_for_url(re.compile("hand_cells=WK.1.1"))
    settle(page)
    expect(cell(page, "WK.1.1")).to_have_text("−0.7")  # the page ran again
    with page.expect_download() as download:
        button(page, "print").click()
    choices = SheetChoices.from_texts(words="", heads="", cells="WK.1.1:-0.7")
    assert download.value.path().read_text("utf-8") == paper(choices, text=TEXT)
    for name, value in (("sheet_undo", "−1.0"), ("sheet_redo", "−0.7"), ("sheet_reset", "−1.0")):
        button(page, name).click()
        expect(cell(page, "WK.1.1")).to_have_text(value)
    page.wait_for_url(lambda url: "hand_cells" not in url)

    edit(page, "E.0.0", "-0,25", "Enter")
    expect(cell(page, "E.0.0")).to_have_text("−0.25")
    box = cell(page, "P.0.0").bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + 8, steps=4)
    page.mouse.up()
    expect(cell(page, "P.0.0")).to_have_text("−0.3")
    page.keyboard.press("Control+z")
    expect(cell(page, "P.0.0")).to_have_text("−0.5")
    edit(page, "E.6.2", "-1.5", "Escape")  # it begins like the old number, so the first key changes nothing
    expect(cell(page, "E.6.2")).to_have_text("−1.0")
    expect(cell(page, "E.0.0")).to_have_text("−0.25")
    cell(page, "WQ.0.0").focus()
    for one in ("ArrowRight", "ArrowDown", "1", "Enter"):
        page.keyboard.press(one, delay=120)
    expect(cell(page, "WQ.1.1")).to_have_text("1.0")


def test_a_cell_tells_its_formula_and_is_predicted_before_it_is_revealed(visit: Callable[..., Page]) -> None:
    page = visit(SHEET)
    cell(page, "Q.1.1").hover()
    expect(page.locator(".formula")).to_contain_text(
        "1.80·(−0.1) + (−3.80)·(−0.4) + (−2.60)·(−0.1) + 0.20·(−1.3) = 1.34"
    )
    sources = [*(f"x.1.{k}" for k in range(4)), *(f"WQ.{k}.1" for k in range(4)), "bQ.0.1"]
    assert page.locator(".source").evaluate_all("all => all.map((td) => td.dataset.cell)") == sources
    expect(page.locator(".code")).to_contain_text("transformer/attention.py:")
    button(page, "sheet_predict").click()
    expect(page.locator(".result .next b")).to_have_text("?")
    edit(page, "x.1.0", "3", "Enter")
    expect(page.locator(".verdict")).to_be_visible()
    page.keyboard.type("1.8", delay=120)
    page.keyboard.press("Enter")
    expect(cell(page, "x.1.0")).to_have_text("1.80")
    expect(cell(page, "x.1.1")).to_have_text("?")
    cell(page, "x.1.1").click()
    button(page, "sheet_reveal").click()
    expect(cell(page, "x.1.1")).to_have_text("−3.80")


def test_two_heads_other_words_french_and_a_phone(visit: Callable[..., Page]) -> None:
    page = visit(f"{SHEET}&hand_heads=2&hand_words=0.1.4.0")
    expect(page.locator(".result .next")).to_have_text("the cat saw the → dog")
    page.locator(".sheet select").nth(3).select_option("cat")
    page.wait_for_url(re.compile("hand_words=0.1.4.1"))
    page.emulate_media(color_scheme="dark")
    go(page, f"{SHEET}&language=fr&hand_words=0.2.4.0&hand_cells=P.3.0:0.7")
    expect(page.locator(".result .next")).to_have_text("le chien voit le → chat")
    expect(cell(page, "P.3.0")).to_have_text("0,7")
    assert not lasting(page, rules=(), within=".st-key-by-hand-page")
    page.set_viewport_size(PHONE)
    settle(page)
    scrolls = "node => node.scrollWidth > node.clientWidth"
    assert page.locator(".paper").evaluate(scrolls) and not page.get_by_test_id("stMain").evaluate(scrolls)
