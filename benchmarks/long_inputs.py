"""Every page with as many tokens as the model reads, in a real Chromium: what the server, the wire and the tab take.

python -m benchmarks.long_inputs [--checkpoints en-fr gpt-en] [--pages heads attention] [--views] [--shots FOLDER]

For every page: it is opened with a short sentence; then the long one is typed into the sidebar, as a reader would. From
that moment on the bytes that arrive are counted, the time until the page stands still, and the longest task of
the tab: for so long no click is answered.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from transformer.checkpoint import Checkpoint
from transformer.sentence_file import SHIPPED, read_sentences

ROOT = Path(__file__).resolve().parents[1]
N_TOKENS = 256
SHORT = "The cat sat on the mat."
FIRST = {"overview": ""}  # the page that the app opens with has no name in the address
CALM = 1.0  # seconds without any change, after which a page counts as standing still
_LIMIT = 180.0
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
# Tasks of 50 ms and more, as the browser itself reports them, and the number of pictures that are still to be drawn.
_WATCH = """() => {
    window.longTasks = [];
    const note = list => list.getEntries().forEach(task => window.longTasks.push(task.duration));
    new PerformanceObserver(note).observe({type: "longtask", buffered: false});
}"""
_STATE = """() => document.querySelector("[data-testid=stSkeleton]") ? "waiting"
    : document.querySelector("[data-testid=stApp]")?.dataset.testScriptState"""


def long_sentence(checkpoint: Checkpoint, n_tokens: int = N_TOKENS) -> str:
    """Whole shipped sentences, then single words, so that the model reads ``n_tokens`` (special ones included), or as
    many as it takes; one fewer where what it writes comes behind them."""
    config = checkpoint.config
    most = min(n_tokens, config.max_length) - (not config.has_encoder)
    words = " ".join(read_sentences(SHIPPED)).split()
    text, used = "", 0
    while used < len(words) and _length(checkpoint, longer := f"{text} {words[used]}".strip()) <= most:
        text, used = longer, used + 1
    while _length(checkpoint, f"{text} a") <= most:
        text = f"{text} a"
    return text


def _length(checkpoint: Checkpoint, text: str) -> int:
    """With special tokens: ``<s>``, ``</s>`` or both."""
    return len(checkpoint.tokenizer.encode(text)) + (2 if checkpoint.config.kind == "encoder-only" else 1)


@dataclass(frozen=True)
class Measured:
    """``seconds``: until the page stands still; ``longest``: the tab's longest task, in seconds; ``elements``: DOM
    elements of the page's main part."""

    what: str
    seconds: float
    kilobytes: float
    longest: float
    tasks: float
    elements: int
    problem: str = ""


class Tab:
    """One page of the app in a tab of its own."""

    def __init__(self, context, address: str) -> None:
        self.page = context.new_page()
        self.received, self.errors, self.changed = 0, [], time.monotonic()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self.page.goto(address)
        self.page.wait_for_selector("[data-testid=stMain] h1", timeout=_LIMIT * 1000)
        self.settle()
        self.page.evaluate(_WATCH)

    def _count(self, frame: str | bytes) -> None:
        self.received += len(frame)
        self.changed = time.monotonic()

    def settle(self) -> float:
        """Wait until nothing has run, arrived or blocked the tab for ``CALM``; returns the moment of the last change."""
        end, last, tasks = time.monotonic() + _LIMIT, time.monotonic(), 0
        while time.monotonic() - last < CALM:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.page.url} was not ready after {_LIMIT:.0f} s")
            asked = time.monotonic()
            state = self.page.evaluate(_STATE)
            found = len(self.page.evaluate("() => window.longTasks ?? []"))
            # An answer that takes long is a tab that is busy.
            if state != "notRunning" or found != tasks or time.monotonic() - asked > 0.2:
                last, tasks = time.monotonic(), found
            last = max(last, self.changed)
            self.page.wait_for_timeout(50)
        return last

    def measure(self, what: str, act) -> Measured:
        self.page.evaluate("() => { window.longTasks = []; }")
        self.received, begun = 0, time.monotonic()
        act()
        self.page.wait_for_timeout(150)
        end = self.settle()
        tasks = self.page.evaluate("() => window.longTasks")
        elements = self.page.evaluate("() => document.querySelectorAll('[data-testid=stMain] *').length")
        shown = self.page.locator("[data-testid=stMain] [data-testid=stAlert]").all_inner_texts()
        problem = "; ".join([*self.errors, *(text[:120] for text in shown)])
        return Measured(
            what, end - begun, self.received / 1e3, max(tasks, default=0) / 1e3, sum(tasks) / 1e3, elements, problem
        )

    def type_sentence(self, text: str) -> None:
        box = self.page.get_by_test_id("stSidebar").locator("textarea").first
        box.fill(text)
        box.press("Control+Enter")

    def choices(self) -> list[str]:
        """What can be chosen and is not, of the page's buttons in a row and its tabs."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll("[data-testid=stMain] [role=radio], [data-testid=stMain] [role=tab]")]
                .filter(e => ![e.ariaChecked, e.ariaSelected].includes("true")).map(e => e.innerText.trim())"""
        )

    def choose(self, label: str) -> None:
        """Nothing happens where what was chosen before has taken it away."""
        options = self.page.locator("[data-testid=stMain] [role=radio], [data-testid=stMain] [role=tab]")
        if (option := options.get_by_text(label, exact=True)).count():
            option.first.click()


@contextmanager
def serve(port: int = 0) -> Iterator[str]:
    """The app with the repository's checkpoints on loopback."""
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), "--server.fileWatcherType", "none"]
    process = subprocess.Popen(
        [*command, "--server.port", str(port)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + _LIMIT
    try:
        while True:
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
                break
            except OSError:
                if time.monotonic() > end or process.poll() is not None:
                    raise
                time.sleep(0.2)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=20)


def measure(
    address: str, checkpoint: Checkpoint, pages: Sequence[str], *, views: bool, shots: Path | None
) -> Iterator[tuple[str, Measured]]:
    """For every page what the long sentence costs, then what each of its views costs that one can choose."""
    from playwright.sync_api import sync_playwright

    sentence, name = long_sentence(checkpoint), checkpoint.name
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_ARGUMENTS)
        for page in pages:
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            query = urlencode({"checkpoint": name, "sentence": SHORT})
            tab = Tab(context, f"{address}/{FIRST.get(page, page)}?{query}")
            yield page, tab.measure("", lambda tab=tab: tab.type_sentence(sentence))
            if shots:
                _photograph(tab, shots / f"{name}_{page}.png")
            for number, label in enumerate(tab.choices() if views else (), start=1):
                yield page, tab.measure(label, lambda tab=tab, label=label: tab.choose(label))
                if shots:
                    _photograph(tab, shots / f"{name}_{page}_{number}.png")
            context.close()
        browser.close()


def _photograph(tab: Tab, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tab.page.screenshot(path=path)


def main(arguments: Sequence[str] | None = None) -> None:
    from transformer import load
    from ui.navigation import GROUPS

    every = [entry.name for group in GROUPS.values() for entry in group]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoints", nargs="+", default=["en-fr", "gpt-en"])
    parser.add_argument("--pages", nargs="+", default=every, choices=every, metavar="PAGE")
    parser.add_argument("--views", action="store_true", help="also every view that a page lets one choose")
    parser.add_argument("--shots", type=Path, help="a folder for a picture of each")
    parser.add_argument("--address", help="of a server that runs already")
    options = parser.parse_args(arguments)
    print("| checkpoint | page | picture after (s) | received (KB) | longest task (s) | elements |")
    print("|---|---|---|---|---|---|")

    def rows(address: str) -> None:
        for name in options.checkpoints:
            checkpoint = load(ROOT / "checkpoints" / name)
            for page, found in measure(address, checkpoint, options.pages, views=options.views, shots=options.shots):
                where = f"{page}: {found.what}" if found.what else page
                numbers = f"{found.seconds:.2f} | {found.kilobytes:,.0f} | {found.longest:.2f} | {found.elements:,}"
                print(f"| {name} | {where} | {numbers} |{found.problem and f' {found.problem}'}", flush=True)

    if options.address:
        rows(options.address)
    else:
        with serve() as address:
            rows(address)


if __name__ == "__main__":
    main()
