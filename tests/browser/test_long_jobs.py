"""Long computations in real browsers: they take turns, each can be cancelled, and none is done twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.seats import Seats

pytestmark = pytest.mark.browser
SOON = 60_000  # milliseconds
HARNESS = Path(__file__).with_name("long_jobs_harness.py")


@pytest.fixture(scope="module")
def address(start_app: Callable[..., str], checkpoints_folder: Path) -> str:
    return start_app(checkpoints_folder, script=HARNESS)


@pytest.fixture
def open_session(seats: Seats, address: str) -> Iterator[Callable[[str], Page]]:
    """``open_session(key)`` opens another student's tab that requests that computation."""
    with ExitStack() as taken:

        def open_one(key: str) -> Page:
            page = taken.enter_context(seats.taken()).page
            page.goto(f"{address}/?key={key}")
            expect(page.get_by_role("heading", name=key)).to_be_visible(timeout=SOON)
            return page

        yield open_one


def bar(page: Page, words: str) -> Locator:
    return page.get_by_test_id("stProgress").filter(has_text=words)


def test_four_at_two_places_take_turns(open_session: Callable[[str], Page]) -> None:
    """No job waits until another one is done, because these never end."""
    pages = [open_session(f"endless {number}") for number in range(4)]
    first, second, *_, fourth = pages
    for page in pages:
        expect(bar(page, "Counting")).to_be_visible(timeout=SOON)
    first.get_by_role("button", name="Cancel").click()
    expect(first.get_by_text("was stopped")).to_be_visible(timeout=SOON)
    # A closed browser frees its slot, too.
    second.context.close()
    expect(bar(fourth, "Counting")).to_be_visible(timeout=SOON)
    # After cancelling, a reader can request it again.
    first.get_by_role("button", name="Compute it").click()
    expect(bar(first, "Counting")).to_be_visible(timeout=SOON)


def test_who_does_something_else_goes_on_where_the_work_was(open_session: Callable[[str], Page]) -> None:
    page = open_session("b1")
    expect(bar(page, "Counting")).to_be_visible(timeout=SOON)
    expect(bar(page, "Counting")).to_contain_text(re.compile(r"… ([3-9]|\d\d) "), timeout=SOON)
    page.get_by_role("button", name="Something else").click()
    expect(page.get_by_text("something else was done")).to_be_visible(timeout=SOON)
    # The same job continues: its time does not start again.
    expect(bar(page, "Counting")).to_be_visible(timeout=SOON)
    seconds = int(bar(page, "Counting").inner_text().split("…")[1].split()[0])
    assert seconds >= 3


def test_the_same_work_is_done_once_for_two(open_session: Callable[[str], Page]) -> None:
    pages = [open_session("c1"), open_session("c1"), open_session("c2")]
    for page in pages:  # three sessions, two slots: two sessions share one
        expect(bar(page, "Counting")).to_be_visible(timeout=SOON)
    # Cancelling in one session does not cancel it for the other.
    pages[0].get_by_role("button", name="Cancel").click()
    expect(pages[0].get_by_text("was stopped")).to_be_visible(timeout=SOON)
    expect(pages[1].get_by_text("found: done")).to_be_visible(timeout=SOON)
