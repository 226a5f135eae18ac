"""The frame of all pages in a real browser: the focus in the address, in the widgets, on every page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import choose_place, chosen_place, eventually, open_page, settle
from tests.browser.seats import Seats

pytestmark = pytest.mark.browser
SENTENCE = "My brother drinks <b>cold</b> coffee & **tea**."


def address(page: Page) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def type_sentence(page: Page, sentence: str) -> None:
    box = page.get_by_role("textbox", name="Sentence")
    box.fill(sentence)
    box.press("Enter")
    settle(page)


def open_by_navigation(page: Page, title: str) -> None:
    open_page(page, title)


def choose(page: Page, what: str, value: object) -> None:
    choose_place(page, what, value)
    settle(page)


def chosen(page: Page, what: str) -> str:
    return chosen_place(page, what)


def test_the_first_request_of_a_fresh_server_may_be_the_address_of_a_page(
    start_app: Callable[..., str], checkpoints_folder: Path, seats: Seats
) -> None:
    """Streamlit's own list of files in pages/, which used to appear for seconds, is never visible."""
    with seats.taken() as seat:
        page = seat.page
        page.add_init_script(  # an observer that stays with the tab
            """new MutationObserver(() => {
                if (document.querySelector("[data-testid^=stSidebarNav]")) window.filesSeen = true;
            }).observe(document, {childList: true, subtree: true});"""
        )
        page.goto(f"{start_app(checkpoints_folder)}/attention?layer=1&head=1")
        settle(page)
        assert page.evaluate("window.filesSeen") is None
        expect(page.get_by_role("textbox", name="Sentence")).to_have_value("The cat sat on the mat.")
        expect(page.get_by_test_id("stTopNav").get_by_role("link", name="Overview")).to_be_visible()
        assert address(page) == {"layer": "1", "head": "1"}
        assert (chosen(page, "Layer"), chosen(page, "Head")) == ("1", "1")


def test_the_first_request_of_a_fresh_server_may_be_the_address_of_a_former_page(
    start_app: Callable[..., str], checkpoints_folder: Path, seats: Seats
) -> None:
    with seats.taken() as seat:
        page = seat.page
        page.goto(f"{start_app(checkpoints_folder)}/paths?layer=1&head=1")
        settle(page)
        expect(page.get_by_role("heading", name="Compare", exact=True, level=1)).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)  # "Page not found"
        assert address(page) == {"layer": "1", "head": "1", "compare_more": "vectors"}


@pytest.mark.nightly  # every run opens addresses in new tabs with all controls changed (test_history.py, test_links.py)
def test_a_copied_address_gives_the_same_view_to_someone_else(app: str, visit: Callable[..., Page]) -> None:
    """Two people, each with their own focus, until one opens a copied address of the other."""
    first, second = visit(f"{app}/attention"), visit(f"{app}/attention")
    assert address(first) == {}
    type_sentence(first, SENTENCE)
    choose(first, "Attention", "cross")
    choose(first, "Layer", 1)
    choose(first, "Head", 1)
    assert address(first) == {"sentence": SENTENCE, "stack": "decoder", "kind": "cross", "layer": "1", "head": "1"}
    choose(second, "Head", 1)
    open_by_navigation(second, "Tokens")
    expect(second.get_by_role("textbox", name="Sentence")).to_have_value("The cat sat on the mat.")
    assert address(second) == {"head": "1"}

    second.goto(first.url)
    settle(second)
    expect(second.get_by_role("textbox", name="Sentence")).to_have_value(SENTENCE)
    assert [chosen(second, what) for what in ("Attention", "Layer", "Head")] == ["cross", "1", "1"]
    assert second.url == first.url

    second.reload()
    settle(second)
    assert second.url == first.url
    assert chosen(second, "Attention") == "cross"


@pytest.mark.nightly  # every run clicks a layer after typing, with and without a pause (test_typing.py)
def test_what_was_typed_is_kept_when_something_is_clicked_at_once(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention")
    box = page.get_by_role("textbox", name="Sentence")
    for n, pause in enumerate((0, 20, 50)):  # milliseconds; for a person's pace see test_typing.py
        sentence = f"This is sentence {n}."
        box.fill(sentence)
        box.press("Enter")
        page.wait_for_timeout(pause)
        choose_place(page, "Layer", 1 - n % 2)
        settle(page)
        assert eventually(page, lambda: address(page).get("sentence"), sentence)
        expect(box).to_have_value(sentence)


def test_back_and_forward_bring_back_what_was_looked_at(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention")
    choose(page, "Layer", 1)
    choose(page, "Head", 1)
    open_by_navigation(page, "Tokens")
    for step, path, expected in (
        (page.go_back, "/attention", {"layer": "1", "head": "1"}),
        (page.go_back, "/attention", {"layer": "1"}),
        (page.go_back, "/attention", {}),
        (page.go_forward, "/attention", {"layer": "1"}),
    ):
        step()
        assert eventually(page, lambda: (urlsplit(page.url).path, address(page)), (path, expected))
        settle(page)
        assert eventually(page, lambda: chosen(page, "Layer"), expected.get("layer", "0"))
        assert eventually(page, lambda: chosen(page, "Head"), expected.get("head", "0"))


def test_what_does_not_exist_falls_back_to_the_nearest_and_says_so(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?checkpoint=nowhere&layer=99&head=x&token=500&pads=999")
    for sentence in (
        "There is no checkpoint 'nowhere' here; showing 'tiny-translator'.",
        "There is no layer 99 (this model has layers 0–1); showing layer 1.",
        "The address has head='x', which is not a whole number; it is ignored.",
        "There is no token 500",
        "999 padding tokens are more than the 16 that fit on a screen; adding 16.",
    ):
        expect(page.get_by_test_id("stMain")).to_contain_text(sentence, use_inner_text=True)
    assert address(page)["layer"] == "1"
    assert "head" not in address(page)


def test_a_sentence_that_cannot_be_used_gets_a_sentence_and_stays_in_its_box(
    app: str, visit: Callable[..., Page]
) -> None:
    page = visit(f"{app}/attention")
    for sentence in ("", "   ", "word " * 400):
        type_sentence(page, sentence)
        expect(page.get_by_test_id("stAlert")).to_be_visible()
        expect(page.get_by_role("textbox", name="Sentence")).to_have_value(sentence)
        assert "Traceback" not in page.inner_text("body")
        type_sentence(page, "The dog sleeps.")
        expect(page.get_by_test_id("stAlert")).to_have_count(0)


def test_an_example_is_chosen_from_a_menu_that_shows_each_sentence(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/tokens")
    page.get_by_test_id("stSidebar").get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem", name="Emoji I love you 😀!", exact=True).click()
    settle(page)
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value("I love you 😀!")
    assert address(page) == {"sentence": "I love you 😀!"}


def test_a_block_of_the_diagram_opens_its_page_with_the_focus(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/?sentence=The+dog+sleeps.&layer=0")  # a place, or the sentence would open at its own
    page.get_by_role("button", name="Decoder, Layer 1", exact=True).click()
    settle(page)
    assert address(page) == {"sentence": "The dog sleeps.", "layer": "1"}
    page.get_by_role("button", name="Cross-attention, position").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/attention?**")
    settle(page)
    assert address(page) == {"sentence": "The dog sleeps.", "layer": "1", "stack": "decoder", "kind": "cross"}


FOCUSED = """() => {
    let node = document.activeElement;
    while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
    return node?.dataset?.stop ?? "";
}"""


def test_the_diagram_is_one_stop_of_the_keyboard_with_arrows_inside(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/")
    diagram = page.get_by_role("toolbar", name="Arrow keys move")
    blocks = diagram.get_by_role("button")
    stops = "nodes => nodes.filter(node => node.tabIndex === 0).length"
    assert eventually(page, lambda: blocks.evaluate_all(stops), 1)
    blocks.first.focus()
    for key, expected in (
        ("ArrowUp", "encoder.embedding"),
        ("ArrowRight", "decoder.embedding"),
        ("ArrowUp", "decoder.positions"),
        ("ArrowDown", "decoder.embedding"),
        ("End", "decoder.logits"),
        ("ArrowUp", "decoder.logits"),  # there is no block above
        ("Home", "encoder.tokens"),
    ):
        page.keyboard.press(key)
        assert page.evaluate(FOCUSED) == expected, key
    page.keyboard.press("End")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "", "the next stop is outside of the diagram"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED) == "decoder.logits", "back where it was left"
    diagram.get_by_role("button", name="Decoder, Layer 0", exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settle(page)
    assert address(page) == {"layer": "1"}
    stays = eventually(page, lambda: page.evaluate(FOCUSED), "Decoder 1")
    assert stays, "the diagram is drawn anew, and the keyboard stays in it"


def test_every_page_leads_on_to_the_next_and_to_any_other_with_the_focus(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/?sentence=The+dog+sleeps.&layer=1")
    kept = {"sentence": "The dog sleeps.", "layer": "1"}
    page.get_by_role("link", name="Next: Tokens").click()
    page.wait_for_url("**/tokens?**")
    settle(page)
    assert address(page) == kept
    page.get_by_role("link", name="Next: Embeddings").click()
    page.wait_for_url("**/embeddings?**")
    settle(page)
    assert address(page) == kept
    page.get_by_role("link", name="Previous: Tokens").click()
    page.wait_for_url("**/tokens?**")
    settle(page)
    assert address(page) == kept
    for title in ("Attention", "Attention"):  # then the page that is open
        open_by_navigation(page, title)
        assert address(page) == kept and urlsplit(page.url).path == "/attention"
        expect(page.get_by_role("textbox", name="Sentence")).to_have_value("The dog sleeps.")
        assert chosen(page, "Layer") == "1"


def test_the_keyboard_is_seen_in_the_navigation(app: str, visit: Callable[..., Page]) -> None:
    page, grounds = visit(f"{app}/tokens"), []
    page.get_by_test_id("stTopNavLink").first.focus()
    page.keyboard.press("Tab")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        settle(page)
        ring, ground = page.evaluate(
            """() => {
                const style = getComputedStyle(document.activeElement);
                const ground = getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor;
                return [`${style.outlineWidth} ${style.outlineStyle} ${style.outlineColor}`, ground];
            }"""
        )
        assert ring.startswith("3px solid "), ring
        assert contrast(ring.removeprefix("3px solid "), ground) >= 3, (ring, ground)
        grounds.append(ground)
    assert grounds[0] != grounds[1]


def contrast(one: str, other: str) -> float:
    """Return the WCAG 2.2 contrast of two colours as a browser reports them."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_share_copies_by_buttons_that_have_names(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?sentence=The+dog+sleeps.")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Copy the link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "sentence=The+dog+sleeps." in page.evaluate("() => navigator.clipboard.readText()")
    for code in page.get_by_test_id("stCode").all():
        cut = code.locator("code").evaluate("n => n.parentElement.scrollWidth > n.parentElement.clientWidth + 1")
        assert not cut, "a line that is cut off"


def test_a_model_with_one_stack_has_one_column(app: str, visit: Callable[..., Page]) -> None:
    for checkpoint, column, other in (("tiny-gpt", "Decoder", "Encoder"), ("tiny-sentiment", "Encoder", "Decoder")):
        page = visit(f"{app}/?checkpoint={checkpoint}")
        expect(page.get_by_role("region", name=column, exact=True)).to_have_count(1)
        expect(page.get_by_role("region", name=other, exact=True)).to_have_count(0)


def test_on_paper_there_is_no_sidebar_and_no_formula_is_cut(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?layer=1&head=1")
    formulas = page.locator(".katex-display")
    expect(formulas.first).to_be_attached()
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    page.set_viewport_size({"width": 718, "height": 1000})  # of A4 without its margins
    cut = """every => every.filter((one) => one.scrollWidth > one.clientWidth + 2)
        .map((one) => one.querySelector("annotation")?.textContent)"""
    assert eventually(page, lambda: formulas.evaluate_all(cut), [])
