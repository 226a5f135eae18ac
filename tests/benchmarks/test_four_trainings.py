"""A fifth visitor is served within seconds while four tabs train on a public server."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator

import pytest

from tests.harness.app_server import AppServer
from tests.harness.browser_session import BrowserSession
from ui.words.texts import page_text

pytestmark = pytest.mark.nightly
RUNNING = re.search(r"} (\w[^{]*), step", page_text("training")["now_running"]).group(1)
LONGEST = 60.0  # seconds; without fair shares, the visitor waited until a training ended


@pytest.fixture(scope="module")
def server() -> Iterator[AppServer]:
    with AppServer("deploy.serve", environment={"GLASSFORMER_PUBLIC": "1", "OMP_NUM_THREADS": "1"}) as running:
        yield running


async def look_again(visitor: BrowserSession) -> None:
    """The page does it by itself; a training that nobody looks at ends."""
    await asyncio.sleep(1)
    await visitor.rerun()


async def begin_training(visitor: BrowserSession, seed: int) -> None:
    await visitor.open("training", {"training section": "now", "toy seed": str(seed)})
    await visitor.click("toy start")


def trains(visitor: BrowserSession) -> bool:
    return any(RUNNING in str(shown.element) for shown in visitor.screen.values())


async def test_a_fifth_visitor_waits_less_than_a_minute_beside_four_who_train(server: AppServer) -> None:
    tabs = [BrowserSession(server.base) for _ in range(4)]
    over, seen = asyncio.Event(), set()

    async def train(seed: int) -> None:
        await begin_training(tabs[seed], seed)
        while not over.is_set():
            await look_again(tabs[seed])
            if trains(tabs[seed]):
                seen.add(seed)

    training = [asyncio.create_task(train(seed)) for seed in range(4)]
    async with asyncio.timeout(4 * LONGEST):
        while len(seen) < 4:
            assert not any(task.done() for task in training)
            await asyncio.sleep(0.5)
    waited = {}
    async with BrowserSession(server.base) as fifth:
        waited["a page"] = (await fifth.open("attention", {"sentence": "A bird sings."})).seconds
        waited["another sentence"] = (await fifth.type_into("sentence", "Who has the key?")).seconds
        waited["a sweep over all heads"] = (await fifth.go_to("surgery")).seconds
    async with BrowserSession(server.base) as fifth:
        begun = time.monotonic()
        await begin_training(fifth, 5)
        while not trains(fifth):
            await look_again(fifth)
        waited["a training"] = time.monotonic() - begun
    assert not any(task.done() for task in training), "the four went on"
    over.set()
    await asyncio.gather(*training)
    for tab in tabs:
        await tab.close()
    assert max(waited.values()) < LONGEST, waited
    print(waited)
