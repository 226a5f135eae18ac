"""Two replicas behind nginx, as in deploy/compose.yaml: one dies and is replaced, one is stopped.

No view is lost, although every reader was connected to one of the two.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import SETTINGS, asked, eventually, is_open, place_box, sentence_box, title_of
from tests.browser.hand import KEY, Hand
from tests.harness.app_server import AppServer
from tests.harness.nginx import nginx_before

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
SOON = 120_000  # milliseconds; Streamlit waits longer and longer between attempts to reconnect
N_READERS = 2


@pytest.fixture(scope="module")
def replicas() -> Iterator[list[AppServer]]:
    servers = [AppServer("deploy.serve", environment=SETTINGS) for _ in range(2)]
    with ExitStack() as running:
        for server in servers:
            running.enter_context(server)
        yield servers


@pytest.fixture(scope="module")
def proxy(replicas: list[AppServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of nginx before the replicas."""
    with nginx_before([server.port for server in replicas], tmp_path_factory.mktemp("nginx")) as port:
        yield f"http://127.0.0.1:{port}"


def is_whole(page: Page) -> None:
    """Check that the chosen view is still there and responds."""
    is_open(page, title_of("attention"))
    expect(place_box(page, "Layer")).to_have_value("Layer 1", timeout=SOON)
    wanted = str(1 - int(asked(page).get("head", "0")))
    for _ in range(10):  # a click during reconnection is lost, so click again, as a reader would
        place_box(page, "Head").click()
        page.get_by_role("option", name=f"Head {wanted}", exact=True).click()
        if eventually(page, lambda: asked(page).get("head", "0"), wanted, seconds=8):
            break
    expect(place_box(page, "Head")).to_have_value(f"Head {wanted}", timeout=SOON)
    assert asked(page)["layer"] == "1" and "Je suis" in sentence_box(page).input_value()
    expect(page.locator("canvas[data-geometry]").first).to_be_visible(timeout=SOON)


def test_the_loss_of_one_and_a_rolling_restart_lose_no_view(
    replicas: list[AppServer], proxy: str, chromium: Browser
) -> None:
    contexts = [chromium.new_context() for _ in range(N_READERS)]
    pages = [context.new_page() for context in contexts]
    try:
        for page in pages:
            page.goto(f"{proxy}/attention?sentence=Je+suis+l%C3%A0.&layer=1")
            is_whole(page)
        cookies = [cookie for context in contexts for cookie in context.cookies() if cookie["name"] == "glassformer"]
        # the cookie by which nginx chooses the replica
        assert len({cookie["value"] for cookie in cookies}) == N_READERS
        first, second = replicas
        boxes = [sentence_box(page) for page in pages]
        for page, box in zip(pages, boxes, strict=True):
            Hand(page).write(box, "Je suis ")
        first._process.kill()  # without notice, as when a machine is lost
        for page in pages:
            page.keyboard.type("ici.", delay=KEY)
        for page, box in zip(pages, boxes, strict=True):
            is_whole(page)
            expect(box).to_have_value("Je suis ici.", timeout=SOON)  # including what was typed in the meantime
        replaced(first)
        second._process.terminate()  # the replicas are replaced one by one, as for a new version
        second._process.wait(timeout=60)
        for page in pages:
            is_whole(page)
    finally:
        for context in contexts:
            context.close()


def replaced(server: AppServer) -> None:
    """Start a new process on the same port, ready to serve."""
    server.__exit__()
    server.__enter__()
    time.sleep(6)  # nginx retries a failed replica after five seconds
