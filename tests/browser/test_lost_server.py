"""A server dies while a reader types, and another takes its place: nothing that was typed is lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import asked, sentence_box, settle
from tests.browser.hand import KEY, Hand
from tests.harness.app_server import AppServer

pytestmark = pytest.mark.browser
OLD, NEW = "The cat sat.", "One bird sings and two dogs"
BACK = 120_000  # milliseconds; Streamlit waits longer and longer between attempts to reconnect


def test_who_types_on_while_the_server_is_lost(server: AppServer, chromium: Browser) -> None:
    with chromium.new_context(reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto(f"{server.base}/attention?sentence={OLD}&layer=1")
        settle(page)
        box = sentence_box(page)
        Hand(page).write(box, NEW[:20])
        server.__exit__()
        try:
            page.keyboard.type(f"{NEW[20:]}?", delay=KEY)
            page.keyboard.press("Backspace")
            expect(page.get_by_role("dialog")).to_be_visible()  # Streamlit's, which takes the keyboard while it is open
        finally:
            server.__enter__()  # another process at the same address, also for the tests that follow
        for more in ("", "."):
            if more:
                page.keyboard.type(more, delay=KEY)  # the caret is where it was
                page.keyboard.press("Enter")
            expect(box).to_have_value(NEW + more, timeout=BACK)
            is_read = "text => new URLSearchParams(location.search).get('sentence') === text"
            page.wait_for_function(is_read, arg=NEW + more, timeout=BACK)
            settle(page)
            letters = "".join(page.locator(".strip .token").all_inner_texts())
            assert "twodogs" in "".join(filter(str.isalpha, letters)), "the model has read it"
            assert asked(page)["layer"] == "1"
            expect(page.get_by_test_id("stException")).to_have_count(0)
