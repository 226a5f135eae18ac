"""What a page does by itself in the browser: stepper, training, given files, keys of a remote."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from urllib.parse import urlencode

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import lasting
from tests.browser.conftest import (
    PROJECTOR,
    asked,
    eventually,
    go,
    is_open,
    key,
    open_page,
    path,
    pause,
    sentence_box,
    settle,
    title_of,
)
from tests.browser.drawing import Drawing
from tests.browser.seats import Seat
from tests.conftest import ROOT
from ui.words.glossary_terms import glossary
from ui.words.texts import page_text

pytestmark = pytest.mark.browser
SENTENCE = "The old man told us a story."
FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")
FOCUSED = """() => {
    let node = document.activeElement;
    while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
    return node?.dataset?.stop ?? "";
}"""


# Within the page: on a slow machine, a step that is pressed from outside counts as a rest.
_FOUR_STEPS = """async (canvas) => {
    const pictures = [];
    while (pictures.length < 4) {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        pictures.push(canvas.toDataURL());
    }
    return pictures;
}"""


def test_the_stepper_answers_at_once_and_tells_python_where_the_reader_rests(sit: Callable[..., Seat]) -> None:
    seat = sit(f"decoding?{urlencode({'sentence': SENTENCE, 'step': 0})}")
    page, drawing = seat.page, Drawing(seat.page.locator(".stepper"))
    current, said = page.locator(".stepper [aria-current=step]"), page.locator(".stepper .sentence")
    expect(current).to_be_visible()
    settle(page)
    seat.forget_frames()
    first = said.inner_text()
    shown = drawing.canvas.evaluate(_FOUR_STEPS)
    assert seat.sent == seat.received == [] and len({*shown}) == 4
    assert drawing.state["step"] == 4
    assert eventually(page, lambda: asked(page).get("step"), "4")
    settle(page)
    assert len(seat.sent) == 1
    page.keyboard.press("Home")
    expect(said).to_have_text(first, use_inner_text=True)
    page.locator(".stepper .line button").nth(3).click()
    page.locator(".st-key-attention_heads").get_by_role("radio").last.click()  # before the rest is over
    assert eventually(page, lambda: asked(page).get("step"), "3")
    settle(page)
    assert drawing.state["step"] == 3 and asked(page)["attention_heads"] == "one"
    box = sentence_box(page)
    box.click()
    box.press("ArrowRight")  # arrow keys in a box stay there
    assert drawing.state["step"] == 3


def test_a_training_draws_itself_until_stop_and_is_there_again_later(visit: Callable[..., Page]) -> None:
    page = visit("training?training+section=now")
    step = page.get_by_test_id("stMetricValue").first
    pictures = (page.locator("[data-testid=stVegaLiteChart] .marks").first, page.locator("canvas[data-geometry]").first)
    for picture in pictures:
        expect(picture).to_be_visible(timeout=90_000)
    settle(page)
    key(page, "toy-start").get_by_role("button").click()
    expect(step).not_to_have_text("0", timeout=90_000)
    for picture in pictures:  # updated in place: the same elements are still there later
        picture.evaluate("element => { element.dataset.seen = 'before'; }")
    at = step.inner_text()
    expect(step).not_to_have_text(at, timeout=90_000)
    for picture in pictures:
        expect(picture).to_have_attribute("data-seen", "before")
    key(page, "toy-stop").get_by_role("button").click()
    expect(key(page, "toy-stop").get_by_role("button")).to_be_disabled(timeout=90_000)
    settle(page)
    stopped = step.inner_text()
    open_page(page, title_of("tokens"))
    open_page(page, title_of("training"))
    expect(step).to_have_text(stopped)


def test_an_own_checkpoint_and_an_own_image(visit: Callable[..., Page], app: str) -> None:
    page = visit("attention?checkpoint=vit-digits&layer=1", width=1024, height=768)
    page.locator(".patches .token").nth(16).wait_for()
    patches = page.locator(".patches .token").evaluate_all("all => all.map((one) => one.getBoundingClientRect().top)")
    assert len(patches) == 17 and len(set(patches)) == 1, "a class token and 16 patches, in one row"
    go(page, "attention?checkpoint=vit&layer=1")
    chooser = page.get_by_test_id("stFileUploaderDropzoneInput")
    file = BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)).save(file, "PNG")
    for content, kept in ((b"\x89PNG\r\n\x1a\n, no image", False), (file.getvalue(), True)):
        before = page.url
        chooser.set_input_files({"name": "own.png", "mimeType": "image/png", "buffer": content})
        refused = page.get_by_test_id("stAlert").first
        expect(refused).to_be_visible() if not kept else page.wait_for_url(lambda url, old=before: url != old)
        settle(page)
        assert (page.url != before) == kept
    image = asked(page)["sentence"]
    open_page(page, title_of("embeddings"))
    expect(page.get_by_role("application").first).to_be_visible()
    assert asked(page)["sentence"] == image

    def give(page: Page, *files: object) -> Locator:
        page.get_by_test_id("stMain").get_by_test_id("stExpander").filter(
            has=page.get_by_test_id("stFileUploader")
        ).locator("summary").click()
        page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(list(files))
        return page.get_by_role("button", name=page_text("checkpoint")["own_open"])

    go(page, "checkpoint")
    give(page, *(ROOT / "checkpoints" / "gpt-en" / name for name in FILES)).click()
    page.wait_for_function("() => location.search.includes('checkpoint=received-')")
    settle(page)
    other = page.context.new_page()  # without ``visit``, because the console reports every refused file as an error
    other.goto(f"{app}/checkpoint")
    settle(other)
    give(other, *({"name": f"{n}.txt", "mimeType": "text/plain", "buffer": b"x"} for n in range(102)))
    expect(other.get_by_test_id("stFileUploader").get_by_text("100").first).to_be_visible()
    other.close()


def test_page_up_and_page_down_of_a_remote(visit: Callable[..., Page]) -> None:
    def press(*keys: str) -> None:
        for one in keys:
            pause(page, 500)  # the script that hears the keys comes after the page
            page.keyboard.press(one)
            settle(page)

    page = visit("attention?layer=1", **PROJECTOR)
    press("PageDown")
    assert path(page) == "/attention"
    size = page.get_by_role("heading", level=1).evaluate("title => parseFloat(getComputedStyle(title).fontSize)")
    key(page, "sidebar-presenter").locator("label").first.click()
    settle(page)
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    assert page.get_by_role("heading", level=1).evaluate("title => parseFloat(getComputedStyle(title).fontSize)") > size
    press("PageDown")
    assert path(page) == "/heads" and asked(page) == {"presenter": "1", "layer": "1"}
    Drawing(page).canvas.focus()
    press("PageUp", "PageUp")
    assert path(page) == "/positions"
    sentence_box(page).focus()
    press("PageDown")
    assert path(page) == "/positions", "who types turns no page"
    go(page, "attention?presenter=1&lesson=03-one-head&lesson_step=1")
    press("PageDown")
    assert asked(page)["lesson_step"] == "2"

    go(page, "?presenter=1&checkpoint=gpt-en")  # the picture is played before the page turns
    slider = page.get_by_role("slider").first
    last = slider.get_attribute("max")
    press("PageDown")
    expect(slider).to_have_value("0")
    press("PageDown", "PageDown", "PageUp")
    expect(slider).to_have_value("1")
    slider.press("End")
    expect(slider).to_have_value(last)
    press("PageDown")
    assert path(page) == "/tokens"


def test_the_diagram_is_one_stop_of_the_keyboard_and_opens_pages_with_the_focus(visit: Callable[..., Page]) -> None:
    page = visit("?sentence=The+dog+sleeps.&layer=0")
    blocks = page.locator(".diagram [data-stop]")
    stops = "nodes => nodes.filter(node => node.tabIndex === 0).length"
    assert eventually(page, lambda: blocks.evaluate_all(stops), 1)
    blocks.first.focus()
    for pressed, wanted in (
        *(("ArrowUp", "encoder.embedding"), ("ArrowRight", "decoder.embedding"), ("End", "decoder.logits")),
        *(("ArrowUp", "decoder.logits"), ("Tab", ""), ("Shift+Tab", "decoder.logits"), ("Home", "encoder.tokens")),
    ):
        page.keyboard.press(pressed)
        assert page.evaluate(FOCUSED) == wanted, pressed
    page.locator(".diagram [data-stop='Decoder 1']").click()
    assert eventually(page, lambda: asked(page), {"sentence": "The dog sleeps.", "layer": "1"})
    settle(page)
    assert page.evaluate(FOCUSED) == "Decoder 1", "the diagram is drawn anew, and the keyboard stays in it"
    page.locator(".diagram [data-stop='decoder.embedding']").focus()
    page.keyboard.press("Enter")
    is_open(page, title_of("embeddings"))
    assert asked(page)["layer"] == "1"
    page.locator(".st-key-onward").get_by_role("link").last.click()
    is_open(page, title_of("positions"))
    assert asked(page)["sentence"] == "The dog sleeps." and asked(page)["layer"] == "1"


def test_from_a_page_to_a_term_to_its_example_and_back(visit: Callable[..., Page]) -> None:
    page = visit("masks?checkpoint=gpt-en&sentence=The%20dog%20sleeps.", **PROJECTOR)

    def entries() -> list[str]:
        keys = page.locator("[class*='st-key-term-']").evaluate_all("nodes => nodes.flatMap((n) => [...n.classList])")
        return [part.removeprefix("st-key-term-") for part in keys if part.startswith("st-key-term-")]

    key(page, "glossary").get_by_role("button").first.click()
    assert eventually(page, entries, [term.key.replace("_", "-") for term in glossary("masks")])
    box = page.locator("[data-testid=stPopoverBody] input")
    box.fill("attention sink")
    box.press("Enter")
    assert eventually(page, lambda: entries()[:1], ["sink"])
    assert not lasting(page)
    before = asked(page)
    key(page, "show-sink").get_by_role("button").click()
    assert eventually(page, lambda: asked(page) != before)
    settle(page)
    page.go_back()
    is_open(page, title_of("masks"))
    assert asked(page)["sentence"] == "The dog sleeps."
    go(page, "glossary?glossary_search=Sink")  # a former page
    is_open(page, title_of("overview"))
    assert eventually(page, lambda: entries()[:1], ["sink"])
