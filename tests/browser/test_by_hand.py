"""The sheet in a browser: its numbers equal the torch modules'; readers can change and guess them."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import lasting
from tests.browser.conftest import settle
from tests.nights import by_day
from transformer.toy.by_hand import HEAD_COUNTS, MAX_WORDS, forward_pass, load_sheet
from ui.words.texts import page_text
from views.by_hand.by_hand_view_model import SheetChoices
from views.by_hand.papers import paper

pytestmark = pytest.mark.browser
PAGE = "by_hand?checkpoint=tiny-translator&hand_step=sheet"
STEP = "by_hand?checkpoint=tiny-translator"
PERSON = 120  # milliseconds between two keys
SHOW = "(frame, texts) => { frame.sheet.show(texts); return frame.sheet.numbers; }"


@pytest.fixture
def sheet(visit, app) -> Page:
    page = visit(f"{app}/{PAGE}")
    page.locator(".sheet td").first.wait_for()
    settle(page)
    return page


def cell(page: Page, key: str):
    return page.locator(f'.sheet td[data-cell="{key}"]')


def test_the_page_opens_on_one_step_and_leads_to_the_next_word(visit, app) -> None:
    page = visit(f"{app}/{STEP}", width=1280, height=720)
    tables = page.locator(".sheet table")
    expect(page.locator(".sheet .bar")).to_contain_text("Step 1 of 19")
    expect(tables).to_have_count(3)
    expect(page.locator(".formula")).to_have_text("√d·E[the₅, 1] = √4 · 1.4 = 2.80")
    assert page.locator(".sheet td").first.evaluate("td => parseFloat(getComputedStyle(td).fontSize)") >= 20
    onward, results = page.get_by_role("button", name="Next step"), set()
    for number in range(2, 20):
        onward.click()
        expect(page.locator(".sheet .bar")).to_contain_text(f"Step {number} of 19")
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
    page.get_by_role("button", name="Back").click()
    page.wait_for_url(re.compile("hand_step=18"))
    page.get_by_role("button", name="Whole sheet").click()
    expect(tables).to_have_count(32)
    page.wait_for_url(re.compile("hand_step=sheet"))
    page.get_by_role("button", name="Whole sheet").click()
    expect(tables).to_have_count(3)
    page.wait_for_url(lambda url: "hand_step" not in url)


def random_edits(seed: int) -> SheetChoices:
    """Return random words, one head or two, and changed numbers in up to thirty cells."""
    draw = random.Random(seed)
    parameters = load_sheet().parameters
    cells = {}
    for _ in range(draw.randrange(31)):
        name = draw.choice(sorted(parameters))
        row, column = (draw.randrange(size) for size in parameters[name].shape)
        cells[name, row, column] = draw.randint(-30, 30) / 10
    words = tuple(draw.randrange(8) for _ in range(draw.randint(1, MAX_WORDS)))
    return SheetChoices(words, draw.choice(HEAD_COUNTS), cells)


def test_every_number_is_that_of_the_recorded_pass(sheet: Page) -> None:
    frame = sheet.locator(".sheet")
    for seed in range(40):
        choices = random_edits(seed)
        computed = frame.evaluate(SHOW, choices.to_texts() | {"step": "sheet"})
        recorded = forward_pass(load_sheet().edited(choices.cells, n_heads=choices.n_heads), choices.words)
        assert computed.keys() == recorded.keys()
        for name, numbers in recorded.items():
            np.testing.assert_allclose(computed[name], numbers, rtol=0, atol=1e-5, err_msg=f"{name}, seed {seed}")
        shown = {
            key for key, _ in frame.evaluate("frame => [...frame.sheet.cells].map(([k, td]) => [k, td.textContent])")
        }
        rows = {"P": len(choices.words)}
        whole = {
            f"{name}.{r}.{c}"
            for name, n in recorded.items()
            for r in range(rows.get(name, len(n)))
            for c in range(len(n[0]))
        }
        assert shown == whole, "no number is left out"


def test_the_whole_sheet_is_on_a_screen_of_1280_by_720_and_can_be_read(sheet: Page) -> None:
    sheet.set_viewport_size({"width": 1280, "height": 720})
    settle(sheet)
    for heads in ("1 head", "2 heads"):
        sheet.get_by_role("button", name=heads).click()
        settle(sheet)
        boxes = sheet.locator(".sheet").evaluate(
            "f => [...f.sheet.cells.values(), f.sheet.foot].map((n) => { const b = n.getBoundingClientRect();"
            " return [b.left, b.top, b.right, b.bottom, parseFloat(getComputedStyle(n).fontSize)]; })"
        )
        foot_top = boxes[-1][1]
        assert min(box[0] for box in boxes) >= 0 and max(box[2] for box in boxes) <= 1280
        assert boxes[-1][3] <= 720 and max(box[3] for box in boxes[:-1]) <= foot_top
        assert min(box[4] for box in boxes) >= 11
        sizes = sheet.locator(".sheet :is(h3, h4)").evaluate_all(
            "all => all.map((n) => parseFloat(getComputedStyle(n).fontSize))"
        )
        assert min(sizes) >= 14


def test_a_reader_changes_a_number_and_takes_it_back(sheet: Page) -> None:
    expect(sheet.locator(".result .next b")).to_have_text("mat")
    cell(sheet, "WK.1.1").click()
    for _ in range(3):
        sheet.keyboard.press("ArrowUp", delay=PERSON)
    sheet.keyboard.press("Enter", delay=PERSON)
    expect(cell(sheet, "WK.1.1")).to_have_text("−0.7")
    expect(cell(sheet, "K.1.1")).to_have_class(re.compile("lit"))
    expect(cell(sheet, "Q.1.1")).not_to_have_class(re.compile("lit"))
    expect(sheet.get_by_role("status").filter(has_text="is now −0.7")).to_have_count(1)
    sheet.wait_for_url(re.compile("hand_cells=WK.1.1"))
    settle(sheet)
    expect(cell(sheet, "WK.1.1")).to_have_text("−0.7")  # the page ran again
    with sheet.expect_download() as download:
        sheet.get_by_role("button", name="Print").click()
    choices = SheetChoices.from_texts(words="", heads="", cells="WK.1.1:-0.7")
    assert download.value.path().read_text("utf-8") == paper(choices, text=page_text("by_hand"))
    sheet.get_by_role("button", name="Undo").click()
    expect(cell(sheet, "WK.1.1")).to_have_text("−1.0")
    sheet.get_by_role("button", name="Redo").click()
    expect(cell(sheet, "WK.1.1")).to_have_text("−0.7")
    sheet.get_by_role("button", name="Reset").click()
    expect(cell(sheet, "WK.1.1")).to_have_text("−1.0")
    sheet.wait_for_url(lambda url: "hand_cells" not in url)


def test_typing_dragging_and_the_keyboard_alone(sheet: Page) -> None:
    cell(sheet, "E.0.0").click()
    sheet.keyboard.type("-0,25", delay=PERSON)
    sheet.keyboard.press("Enter")
    expect(cell(sheet, "E.0.0")).to_have_text("−0.25")
    box = cell(sheet, "P.0.0").bounding_box()
    sheet.mouse.move(box["x"] + 10, box["y"] + 8)
    sheet.mouse.down()
    sheet.mouse.move(box["x"] + 30, box["y"] + 8, steps=4)
    sheet.mouse.up()
    expect(cell(sheet, "P.0.0")).to_have_text("−0.3")
    sheet.keyboard.press("Control+z")
    expect(cell(sheet, "P.0.0")).to_have_text("−0.5")
    cell(sheet, "WQ.0.0").focus()
    sheet.keyboard.press("ArrowRight")
    sheet.keyboard.press("ArrowDown")
    sheet.keyboard.type("1", delay=PERSON)
    sheet.keyboard.press("Enter")
    expect(cell(sheet, "WQ.1.1")).to_have_text("1.0")
    cell(sheet, "WQ.1.1").press("Enter")
    sheet.keyboard.type("7", delay=PERSON)
    sheet.keyboard.press("Escape")
    expect(cell(sheet, "WQ.1.1")).to_have_text("1.0")


def test_escape_takes_back_what_was_typed_and_nothing_before_it(sheet: Page) -> None:
    """The typed number begins like the old one, so the first key changes nothing."""
    cell(sheet, "E.0.0").click()
    sheet.keyboard.type("3", delay=PERSON)
    sheet.keyboard.press("Enter")
    expect(cell(sheet, "E.6.2")).to_have_text("−1.0")
    cell(sheet, "E.6.2").click()
    sheet.keyboard.type("-1.5", delay=PERSON)
    sheet.keyboard.press("Escape")
    expect(cell(sheet, "E.6.2")).to_have_text("−1.0")
    expect(cell(sheet, "E.0.0")).to_have_text("3.0")


def test_a_cell_tells_its_formula_its_sources_and_its_code(sheet: Page) -> None:
    cell(sheet, "Q.1.1").hover()
    formula = sheet.locator(".formula")
    expect(formula).to_have_text("Q[cat₂, 2] = 1.80·(−0.1) + (−3.80)·(−0.4) + (−2.60)·(−0.1) + 0.20·(−1.3) = 1.34")
    assert sheet.locator(".source").evaluate_all("all => all.map((td) => td.dataset.cell)") == [
        *(f"x.1.{k}" for k in range(4)),
        *(f"WQ.{k}.1" for k in range(4)),
        "bQ.0.1",
    ]
    expect(sheet.locator(".code")).to_contain_text("transformer/attention.py:")
    cell(sheet, "scores0.1.3").hover()
    expect(formula).to_contain_text("attends only to itself and to the words before it")
    cell(sheet, "weights0.2.1").click()
    sheet.locator(".about a").click()
    expect(sheet.get_by_role("heading", name="Attention", exact=True, level=1)).to_be_visible()


def test_a_number_is_predicted_and_then_revealed(sheet: Page) -> None:
    sheet.get_by_role("button", name="Predict, then reveal").click()
    expect(sheet.locator(".result .next b")).to_have_text("?")
    cell(sheet, "x.1.0").click()
    sheet.keyboard.type("3", delay=PERSON)
    sheet.keyboard.press("Enter")
    expect(sheet.locator(".verdict").last).to_have_text("Too high. Try again, or show it.")
    sheet.keyboard.type("1.8", delay=PERSON)
    sheet.keyboard.press("Enter")
    expect(cell(sheet, "x.1.0")).to_have_text("1.80")
    expect(cell(sheet, "x.1.1")).to_have_text("?")
    cell(sheet, "x.1.1").click()
    sheet.get_by_role("button", name="Show it").click()
    expect(cell(sheet, "x.1.1")).to_have_text("−3.80")
    sheet.get_by_role("button", name="Predict, then reveal").click()
    cell(sheet, "Q.0.0").click()
    sheet.get_by_role("button", name="Hide, then guess").click()
    sheet.keyboard.type("0.5", delay=PERSON)
    sheet.keyboard.press("Enter")
    expect(cell(sheet, "Q.0.0")).to_have_text("0.50")


def test_two_heads_other_words_and_back_through_the_history(sheet: Page) -> None:
    sheet.get_by_role("button", name="2 heads").click()
    expect(cell(sheet, "weights1.4.3")).to_have_text("0.83")
    sheet.wait_for_url(re.compile("hand_heads=2"))
    sheet.get_by_label("Word 4").select_option("the")
    sheet.get_by_label("Word 3").select_option("saw")
    sheet.get_by_role("button", name="Remove the last word").click()
    expect(sheet.locator(".result .next")).to_have_text("the cat saw the → dog")
    sheet.wait_for_url(re.compile("hand_words=0.1.4.0"))
    settle(sheet)
    sheet.get_by_role("button", name="Append the predicted word").click()
    expect(sheet.locator(".result .next")).to_have_text("the cat saw the dog → .")


def test_an_address_opens_the_sheet_in_french(visit, app) -> None:
    page = visit(f"{app}/{PAGE}&language=fr&hand_words=0.2.4.0&hand_cells=P.3.0:0.7")
    expect(page.locator(".result .next")).to_have_text("le chien voit le → chat")
    expect(cell(page, "P.3.0")).to_have_text("0,7")
    expect(page.get_by_role("button", name="Prédire, puis révéler")).to_be_visible()


def test_a_phone_scrolls_the_paper_only(sheet: Page) -> None:
    sheet.set_viewport_size({"width": 390, "height": 844})
    settle(sheet)
    paper = sheet.locator(".paper").evaluate("n => [n.scrollWidth, n.clientWidth]")
    assert paper[0] > paper[1]
    main = sheet.get_by_test_id("stMain").evaluate("n => [n.scrollWidth, n.clientWidth]")
    assert main[0] <= main[1]


@pytest.mark.parametrize("dark", by_day([False, True], [True]))  # the sheet of one step is looked at in light
def test_nothing_serious_for_axe(visit, app, dark: bool) -> None:
    page = visit(f"{app}/{PAGE}", dark=dark)
    cell(page, "WQ.0.0").click()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    settle(page)
    assert not lasting(page, rules=(), within=".st-key-by-hand-page")


@pytest.mark.parametrize("dark", by_day([False, True], [False]))
def test_nothing_serious_for_axe_in_one_step(visit, app, dark: bool) -> None:
    page = visit(f"{app}/{STEP}&hand_step=18", dark=dark)
    expect(page.locator(".sheet td.target")).to_have_count(1)
    assert not lasting(page, rules=(), within=".st-key-by-hand-page")
