"""A server dies while a reader types, and another takes over, as with two replicas behind a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import settle
from tests.browser.counting_proxy import CountingProxy
from tests.browser.hand import KEY, Hand
from tests.harness.app_server import AppServer
from tests.harness.browser_session import BrowserSession
from tests.own_thread import in_own_thread

pytestmark = pytest.mark.browser
OLD, NEW = "The cat sat.", "One bird sings and two dogs"
BACK = 60_000  # milliseconds; for busy machines


@pytest.fixture(scope="module")
def ports(checkpoints_folder: Path) -> Iterator[tuple[int, int]]:
    """Two servers, neither of which knows the sessions of the other."""
    environment = {"GLASSFORMER_CHECKPOINTS": str(checkpoints_folder), "OMP_NUM_THREADS": "1"}
    with ExitStack() as running:
        one, other = (running.enter_context(AppServer("deploy.serve", environment=environment)) for _ in range(2))
        yield one.port, other.port


@pytest.fixture
def typist(ports: tuple[int, int], chromium: Browser) -> Iterator[tuple[Page, Callable[[], None]]]:
    """Return a page with half a sentence in its box, and a function that makes it lose its server."""
    with CountingProxy("127.0.0.1", ports[0]) as wire, chromium.new_context() as context:
        page = context.new_page()
        page.goto(f"{wire.base}/attention?sentence={OLD}&layer=1")
        settle(page)
        Hand(page).write(page.get_by_role("textbox", name="Sentence", exact=True), NEW[:12])
        yield page, lambda: wire.lead_to(ports[1])


def is_read(page: Page, sentence: str) -> None:
    """Check the box, the address and the model's input; the rest of the view is unchanged."""
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value(sentence, timeout=BACK)
    asked = "text => new URLSearchParams(location.search).get('sentence') === text"
    page.wait_for_function(asked, arg=sentence, timeout=BACK)
    settle(page)
    read = "".join(page.locator(".strip .token").all_inner_texts())
    assert "twodogs" in "".join(filter(str.isalpha, read))
    assert parse_qs(urlsplit(page.url).query)["layer"] == ["1"]
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_who_types_on_while_the_server_is_lost(typist: tuple[Page, Callable[[], None]]) -> None:
    page, lose = typist
    lose()
    page.keyboard.type(NEW[12:] + "?", delay=KEY)
    page.keyboard.press("Backspace")
    is_read(page, NEW)
    page.keyboard.type(".", delay=KEY)  # the caret is where it was
    page.keyboard.press("Enter")
    is_read(page, f"{NEW}.")


@pytest.mark.nightly  # the test above covers the same by day
def test_what_the_lost_server_had_not_answered(typist: tuple[Page, Callable[[], None]]) -> None:
    page, lose = typist
    page.keyboard.type(NEW[12:], delay=KEY)
    page.keyboard.press("Enter")
    lose()
    is_read(page, NEW)


@pytest.mark.nightly  # the test above covers the same by day
def test_what_it_had_answered_stays_and_typing_goes_on(typist: tuple[Page, Callable[[], None]]) -> None:
    page, lose = typist
    settle(page)
    lose()
    page.keyboard.type(NEW[12:], delay=KEY)
    is_read(page, NEW)


def test_a_phone_that_sleeps_comes_back_to_its_session(ports: tuple[int, int]) -> None:
    """The sentence is not in the address with which it returns: only the session knows it."""

    async def sleep_and_return() -> tuple[set[str], str]:
        async with BrowserSession(f"http://127.0.0.1:{ports[0]}") as phone:
            await phone.open("tokens")
            await phone.type_into("sentence", NEW)
            ids = {phone.session_id}
            await phone.close()
            await asyncio.sleep(3)
            await phone.open("tokens")
            state = phone.state(phone.find("sentence"))
            return ids | {phone.session_id}, state.string_value

    ids, sentence = in_own_thread(asyncio.run, sleep_and_return())
    assert len(ids) == 1 and "" not in ids and sentence == NEW


@pytest.mark.nightly  # every run checks for how long the app's servers keep a session (tests/ui/test_settings.py)
def test_after_the_time_of_the_setting_the_session_is_gone(checkpoints_folder: Path) -> None:
    async def sleep_and_return(base: str) -> tuple[str, str]:
        async with BrowserSession(base) as phone:
            await phone.open("tokens")
            first = phone.session_id
            await phone.close()
            await asyncio.sleep(3)
            await phone.open("tokens")
            return first, phone.session_id

    environment = {"GLASSFORMER_CHECKPOINTS": str(checkpoints_folder), "OMP_NUM_THREADS": "1"}
    with AppServer(options=("--server.disconnectedSessionTTL=1",), environment=environment) as server:
        first, second = in_own_thread(asyncio.run, sleep_and_return(server.base))
    assert first and second and first != second
