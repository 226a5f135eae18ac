"""Attention and Heads in Chromium: hovering, clicking cells and heads, views restored from addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest
from playwright.sync_api import Page, expect

import transformer
from charts.toolkit.shades import colour_at
from charts.toolkit.style import SEQUENTIAL, three_digits
from tests.browser.conftest import settle
from tests.browser.scenes import painted
from ui.words.texts import page_text

pytestmark = pytest.mark.browser

TEXT, HEADS = page_text("attention"), page_text("heads")
PLACE = "checkpoint=tiny-translator&stack=decoder&kind=cross&layer=1&head=1&token=1&target=Le+vieil+homme."
SENTENCE = "The cat sat on the mat."


@pytest.fixture
def trace(tiny_checkpoint: Callable[[str], transformer.Checkpoint]) -> transformer.Trace:
    """The trace that the opened page must show."""
    return transformer.trace(tiny_checkpoint("translator"), SENTENCE, "Le vieil homme.")


def open_at(visit: Callable[..., Page], address: str, **how: object) -> Page:
    page = visit(address, **how)
    page.locator("[class*='st-key-code '], [class*=st-key-code-]").last.wait_for(timeout=60_000)
    page.locator("canvas[data-geometry]").first.wait_for(timeout=60_000)
    settle(page)
    return page


def cell(page: Page, row: int, column: int, *, drawing: int = 0) -> tuple[float, float]:
    """Return the centre of a cell as a position on the page."""
    canvas = page.locator("canvas[data-geometry]").nth(drawing)
    canvas.scroll_into_view_if_needed()
    place, box = painted(canvas)
    return (
        box["x"] + place["x"] + (column + 0.5) * place["stepX"],
        box["y"] + place["y"] + (row + 0.5) * place["stepY"],
    )


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_a_cell_says_its_weight_and_opens_its_arithmetic_and_its_address_brings_it_back(
    app: str, visit: Callable[..., Page], trace: transformer.Trace
) -> None:
    page, view = open_at(visit, f"{app}/attention?{PLACE}"), trace.attention("decoder", 1, "cross")
    page.mouse.move(*cell(page, 2, 3))
    tip = page.locator(".tip:visible").first
    tip.wait_for(timeout=60_000)
    shown = re.search(r"exactly ([\d.e−-]+)", tip.inner_text()).group(1)
    assert float(shown.replace("−", "-")) == pytest.approx(float(view.weights[1, 2, 3]), rel=1e-5)
    arithmetic = page.locator(".st-key-attention-arithmetic")
    assert arithmetic.count() == 0
    page.mouse.click(*cell(page, 2, 3))
    arithmetic.wait_for(timeout=60_000)
    settle(page)
    row, read, column = trace.prediction.labels[2], trace.target.labels[2], view.key.labels[3]
    row, read, column = (label.removeprefix("·") for label in (row, read, column))
    wanted = (f"Weight of ‘{column}’ for ‘{row}’", f"Query: from ‘{read}’, the last token read.")
    for words in wanted:
        expect(arithmetic).to_contain_text(words)
    weight = f"{float(view.weights[1, 2, 3]):.9g}"
    expect(arithmetic).to_contain_text(f"Recorded in the model: {weight}")
    asked = parameters(page)
    assert (asked["token"], asked["attention_key"]) == ("2", "3")

    again = open_at(visit, page.url)
    expect(again.locator(".st-key-attention-arithmetic")).to_contain_text(wanted[0])


def test_a_click_on_a_predicted_token_follows_the_row_that_bears_its_name(
    app: str, visit: Callable[..., Page], trace: transformer.Trace
) -> None:
    page = open_at(visit, f"{app}/attention?{PLACE}")
    chips = page.locator(".strip button.token")
    expect(chips).to_have_text(list(trace.prediction.displays))
    expect(chips.nth(1), "an older link keeps its row").to_have_attribute("aria-pressed", "true")
    chips.nth(3).click()
    page.wait_for_url(re.compile(r"token=3"))
    word = trace.prediction.labels[3].removeprefix("·")
    page.get_by_text(f"To predict {word}, head 1").first.wait_for(timeout=60_000)
    expect(chips.nth(3)).to_have_attribute("aria-pressed", "true")


def test_the_shaded_sentence_has_the_colours_of_the_row_and_a_click_follows_a_word(
    app: str, visit: Callable[..., Page], tiny_checkpoint: Callable[[str], transformer.Checkpoint]
) -> None:
    sentence = "The <img src=x onerror=alert(1)> sat."
    address = f"{app}/attention?checkpoint=tiny-bert&layer=1&head=1&token=2&masked=none&sentence={quote_plus(sentence)}"
    page = open_at(visit, address, width=1280, height=720, dark=True)
    view = transformer.trace(tiny_checkpoint("bert"), sentence).attention("encoder", 1)
    words = page.locator(".shaded .word")
    expect(words).to_have_count(len(view.key))
    assert page.locator(".shaded img").count() == 0
    assert [text.strip() for text in words.all_text_contents()] == [
        (token.display.removeprefix("·") or token.display).strip() for token in view.key
    ]
    words.nth(3).hover()
    said = page.locator(".shaded .hint")
    expect(said).to_contain_text("It receives most attention from: ")
    weight, by = said.inner_text().split(". It receives most attention from: ")
    assert weight.endswith(three_digits(float(view.weights[1, 2, 3]))) and len(by.split(", ")) <= 3
    ground = words.nth(3).evaluate("node => getComputedStyle(node).backgroundColor")
    wanted = colour_at(float(view.weights[1, 2, 3]), colours=SEQUENTIAL)
    assert ground == "rgb({}, {}, {})".format(*(int(wanted[at : at + 2], 16) for at in (1, 3, 5)))
    box = words.first.bounding_box()
    assert box["y"] + box["height"] <= 720, "on the first screen"
    words.nth(4).click()
    settle(page)
    page.wait_for_url(re.compile(r"token=4"))
    expect(words.nth(4)).to_have_attribute("aria-pressed", "true")
    words.nth(4).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"token=5"))


def test_a_click_on_a_step_and_on_a_cell_of_its_scores(app: str, visit: Callable[..., Page]) -> None:
    page = open_at(visit, f"{app}/attention?{PLACE}")
    page.get_by_text(TEXT["steps"][1], exact=True).click()
    settle(page)
    page.locator("canvas[data-geometry]").nth(1).wait_for(timeout=60_000)
    page.mouse.click(*cell(page, 0, 1, drawing=1))
    page.locator(".st-key-attention-arithmetic").wait_for(timeout=60_000)
    settle(page)
    assert parameters(page)["attention_step"] == "2"
    assert "token" not in parameters(page)  # an address without a token begins at the first one


@pytest.mark.parametrize(("width", "dark"), [(800, True), pytest.param(1440, False, marks=pytest.mark.nightly)])
def test_every_step_draws_something(app: str, visit: Callable[..., Page], width: int, dark: bool) -> None:
    page = open_at(visit, f"{app}/attention?{PLACE}&pads=2", width=width, dark=dark)
    for number in range(1, len(TEXT["steps"]) + 1):
        if number > 1:
            page.get_by_role("button", name=TEXT["next"], exact=True).click()
            settle(page)
        assert parameters(page).get("attention_step", "1") == str(number)
        page.wait_for_function(
            """() => document.querySelectorAll(".js-plotly-plot .main-svg").length > 0 ||
                [...document.querySelectorAll("*")]
                    .filter((element) => element.shadowRoot?.querySelector("canvas[data-geometry]")).length > 1"""
        )


def test_a_head_clicked_on_the_grid_is_the_head_of_the_attention_page(app: str, visit: Callable[..., Page]) -> None:
    page = open_at(visit, f"{app}/heads?{PLACE}")
    canvas = page.locator("canvas[data-geometry]").first
    geometry, box = painted(canvas)
    tiles = geometry["parts"][0]
    assert len(tiles) == 4 and geometry["large"]
    x, y, width, height = tiles[2]  # layer 1, head 0
    page.mouse.click(box["x"] + x + width / 2, box["y"] + y + height / 2)
    page.get_by_text("Layer 1, head 0").first.wait_for(timeout=60_000)
    settle(page)
    page.get_by_text(HEADS["open"]).click()
    page.get_by_text(TEXT["section_path"]).wait_for(timeout=60_000)
    settle(page)
    asked = parameters(page)
    assert (asked["layer"], asked.get("head", "0"), asked["kind"]) == ("1", "0", "cross")
    assert urlsplit(page.url).path.endswith("/attention")


def test_a_head_clicked_among_the_authors_of_a_word_opens_where_it_looked(app: str, visit: Callable[..., Page]) -> None:
    page = open_at(visit, f"{app}/lens?{PLACE}&lens_view=who+wrote+it")
    page.mouse.click(*cell(page, 1, 2))  # heads of cross-attention follow two heads of self-attention
    page.get_by_text(TEXT["section_path"]).wait_for(timeout=60_000)
    settle(page)
    asked = parameters(page)
    assert urlsplit(page.url).path.endswith("/attention")
    assert (asked["layer"], asked.get("head", "0"), asked["kind"], asked["token"]) == ("1", "0", "cross", "1")
