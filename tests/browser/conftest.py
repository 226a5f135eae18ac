"""One app and one real Chromium for all journeys of a process.

A test that uses ``visit`` fails if the page throws an error, shows a Streamlit exception, writes an error to the
console, or contacts any host other than 127.0.0.1. The app is served as for a class (``deploy.serve``), with the
checkpoints of the repository.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.seats import Seat, Seats
from tests.conftest import ROOT
from tests.harness.app_server import AppServer
from tests.transformer.guests.tiny_image_guests import image_checkpoint
from ui.words.texts import ROOT as TEXTS
from ui.words.translations import read_texts

SECRET = "maple-otter-47"  # of the instructor
SETTINGS = {"OMP_NUM_THREADS": "1", "GLASSFORMER_INSTRUCTOR": SECRET}
PROJECTOR, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
_SETTLE_LIMIT = 120_000  # milliseconds, like all times in Playwright
# Whether the page has been idle for a moment: nothing runs, and clicks have been answered (a busy server reports late
# that it runs, and never reports to a part of a page that is gone). Each wait has its own number and starts counting
# again.
_CALM = """(wait) => {
    const asked = window.askedAt > (window.heardAt ?? 0) && performance.now() - window.askedAt < 10000;
    const calm = !asked && document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
        && !document.querySelector("[data-testid=stSkeleton]");
    if (!calm || window.calmSince?.wait !== wait) window.calmSince = {wait, at: performance.now()};
    return calm && performance.now() - window.calmSince.at >= 300;
}"""
_WAITS = itertools.count()
expect.set_options(timeout=60_000)  # 5 s by default; a busy machine may take longer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The app, which has a checkpoint that reads images as well."""
    made = image_checkpoint("vit", tmp_path_factory.mktemp("images"))
    folders = {"GLASSFORMER_CHECKPOINTS": f"{ROOT / 'checkpoints'}{os.pathsep}{made.parent}"}
    with AppServer("deploy.serve", environment=SETTINGS | folders) as server:
        yield server


@pytest.fixture(scope="session")
def app(request: pytest.FixtureRequest) -> str:
    """Address of the app: of one that was started by hand, or of ``server``."""
    return os.environ.get("RUNNING_APP") or request.getfixturevalue("server").base


@pytest.fixture(scope="session")
def seats(chromium: Browser) -> Seats:
    """Tabs shared by all tests of this process, one after the other."""
    return Seats(chromium)


@pytest.fixture
def sit(seats: Seats, app: str) -> Iterator[Callable[..., Seat]]:
    """Return ``sit("attention?layer=1", width=1440, dark=False)``, which yields an unshared tab."""
    with ExitStack() as taken:

        def open_at(address: str = "", **how: object) -> Seat:
            seat = taken.enter_context(seats.taken(**how))
            seat.page.goto(address if ":" in address.split("?")[0] else f"{app}/{address}")
            if seat.page.url.startswith("http"):
                settle(seat.page)
            else:
                seat.page.locator("canvas[data-geometry]").first.wait_for()
            return seat

        yield open_at


@pytest.fixture
def visit(sit: Callable[..., Seat]) -> Callable[..., Page]:
    """Return ``visit("attention?layer=1", width=1440)``, which opens a settled page, or a file."""
    return lambda address="", **how: sit(address, **how).page


def settle(page: Page) -> None:
    """Wait until the script has stopped and has not started again for a moment."""
    page.wait_for_function(_CALM, arg=next(_WAITS), polling=50, timeout=_SETTLE_LIMIT)


def go(page: Page, address: str) -> None:
    """Open another address of the app in the same tab."""
    page.goto(f"{'/'.join(page.url.split('/')[:3])}/{address}")
    settle(page)


def asked(page: Page) -> dict[str, str]:
    """Return the parameters of the page's address."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def path(page: Page) -> str:
    return urlsplit(page.url).path


def title_of(name: str, language: str = "en") -> str:
    return read_texts(TEXTS, name, language)["title"]


def sentence_box(page: Page, language: str = "en") -> Locator:
    name = read_texts(TEXTS, "common", language)["sentence"]["name"]
    return page.get_by_role("textbox", name=name, exact=True)


def type_sentence(page: Page, sentence: str) -> None:
    sentence_box(page).fill(sentence)
    sentence_box(page).press("Enter")
    settle(page)


def is_kept(page: Page, sentence: str) -> None:
    """Check the box, the address and the page: the model has read the text."""
    settle(page)
    expect(sentence_box(page)).to_have_value(sentence)
    assert eventually(page, lambda: asked(page).get("sentence"), sentence), page.url
    expect(page.get_by_test_id("stException")).to_have_count(0)


def key(page: Page, name: str) -> Locator:
    """Return what Python has given a key."""
    return page.locator(f".st-key-{name.replace(' ', '-')}").filter(visible=True).first


def place_box(page: Page, what: str) -> Locator:
    """Return the list beside the sentence: "Attention", "Layer" or "Head"."""
    return page.get_by_test_id("stMain").get_by_role("combobox", name=what)


def choose_place(page: Page, what: str, value: object) -> None:
    """Choose an entry of a list beside the sentence, as a reader does."""
    place_box(page, what).click()
    name = str(value) if what == "Attention" else f"{what} {value}"
    page.get_by_role("option", name=name, exact=True).click()
    settle(page)


def eventually(page: Page, read: Callable[[], object], expected: object = True, *, seconds: float = 30.0) -> bool:
    """Return whether ``read()`` returns ``expected`` within some seconds."""
    end = time.monotonic() + seconds
    while (found := read()) != expected and time.monotonic() < end:
        page.wait_for_timeout(100)
    return found == expected


def pause(page: Page, milliseconds: int) -> None:
    """Wait by the page's own clock and for two frames.

    However busy the page is, its shorter timers have run by then and what they changed is drawn.
    """
    page.evaluate(
        """milliseconds => new Promise((done) => setTimeout(
            () => requestAnimationFrame(() => requestAnimationFrame(done)), milliseconds))""",
        milliseconds,
    )


def link_to(page: Page, title: str) -> Locator:
    """Return the link in the row of pages; a page of the laboratory has an icon beside its name."""
    return page.get_by_test_id("stTopNavLink").filter(has=page.get_by_text(title, exact=True))


def is_open(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", name=title, exact=True, level=1)).to_be_visible()
    settle(page)


def open_page(page: Page, title: str) -> None:
    """Open another page as a reader does, through the row of pages or the menu of the others."""
    link = link_to(page, title)
    shown = "node => getComputedStyle(node.closest('.rc-overflow-item')).opacity !== '0'"
    if link.count() and link.evaluate(shown):
        link.click()
    else:
        for menu in page.get_by_test_id("stTopNavSection").all():
            if not menu.evaluate(shown):
                continue
            menu.click()
            entries = page.get_by_test_id("stTopNavDropdownLink")
            expect(entries.first).to_be_visible()
            entry = entries.filter(has=page.get_by_text(title, exact=True))
            if entry.count():
                entry.click()
                break
            page.keyboard.press("Escape")
        else:  # a page that is in no menu is opened from another one
            onward = page.locator(".st-key-onward").get_by_role("link").filter(has_text=title)
            assert onward.count(), f"nothing leads to the page {title!r}"
            onward.click()
    is_open(page, title)
