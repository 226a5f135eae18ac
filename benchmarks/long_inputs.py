"""Every page with as many tokens as the model reads, in a real Chromium: what the server, the wire and the tab take.

python -m benchmarks.long_inputs [--checkpoints en-fr gpt-en] [--pages heads attention] [--views] [--shots FOLDER]

Every page opens with a short sentence; then the long one is typed into the sidebar, as a reader would type it. From
that moment the program counts the bytes that arrive, the time until the page stands still, and the longest task of the
tab, during which it answers no click.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page

from benchmarks.app_server import AppServer
from benchmarks.chromium import PATIENCE, STATE, chromium, new_visitor
from transformer.files.checkpoints import Checkpoint
from transformer.text.sentence_files import SHIPPED, read_sentences

ROOT = Path(__file__).resolve().parents[1]
N_TOKENS = 256
SHORT = "The cat sat on the mat."
CALM = 1.0  # seconds without any change, after which a page counts as standing still
_OPTIONS = "[data-testid=stMain] [role=radio], [data-testid=stMain] [role=tab]"
# Tasks of 50 ms and more, as the browser itself reports them, and the number of pictures that are still to be drawn.
_WATCH = """() => {
    window.longTasks = [];
    const note = list => list.getEntries().forEach(task => window.longTasks.push(task.duration));
    new PerformanceObserver(note).observe({type: "longtask", buffered: false});
}"""


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
    """``server``: seconds until the page's script has run; ``seconds``: until the page stands still; ``longest``: the
    tab's longest task, ``tasks``: all of 50 ms or more, in seconds; ``elements``: DOM elements of the main part."""

    what: str
    server: float
    seconds: float
    kilobytes: float
    longest: float
    tasks: float
    elements: int
    problem: str = ""


class Tab:
    """One page of the app, opened in a tab that shows nothing else."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.received, self.errors, self.changed, self.ran = 0, [], time.monotonic(), time.monotonic()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._count))
        self.page.goto(address)
        self.page.wait_for_selector("[data-testid=stMain] h1", timeout=PATIENCE * 1000)
        self.settle()
        self.page.evaluate(_WATCH)

    def _count(self, frame: str | bytes) -> None:
        self.received += len(frame)
        self.changed = time.monotonic()

    def settle(self) -> float:
        """Wait until nothing has run, arrived or blocked the tab for ``CALM``; the moment of the last change."""
        end, last, tasks = time.monotonic() + PATIENCE, time.monotonic(), 0
        while time.monotonic() - last < CALM:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.page.url} was not ready after {PATIENCE:.0f} s")
            asked = time.monotonic()
            state = self.page.evaluate(STATE)
            found = len(self.page.evaluate("() => window.longTasks ?? []"))
            # An answer that takes long is a tab that is busy.
            if state != "notRunning":
                self.ran = time.monotonic()
            if state != "notRunning" or found != tasks or time.monotonic() - asked > 0.2:
                last, tasks = time.monotonic(), found
            last = max(last, self.changed)
            self.page.wait_for_timeout(50)
        return last

    def measure(self, what: str, act: Callable[[], None]) -> Measured:
        """Do it, wait until the page stands still, and return what it took."""
        self.page.evaluate("() => { window.longTasks = []; }")
        self.received, begun = 0, time.monotonic()
        act()
        self.page.wait_for_timeout(150)
        end = self.settle()
        tasks = self.page.evaluate("() => window.longTasks")
        elements = self.page.evaluate("() => document.querySelectorAll('[data-testid=stMain] *').length")
        shown = self.page.locator("[data-testid=stMain] [data-testid=stAlert]").all_inner_texts()
        problem = "; ".join([*self.errors, *(text[:120] for text in shown)])
        longest, whole = max(tasks, default=0) / 1e3, sum(tasks) / 1e3
        ran = (self.ran if self.ran > begun else self.changed) - begun  # too short to notice: until the last message
        return Measured(what, ran, end - begun, self.received / 1e3, longest, whole, elements, problem)

    def type_sentence(self, text: str) -> None:
        box = self.page.get_by_test_id("stSidebar").locator("textarea").first
        box.fill(text)
        box.press("Control+Enter")

    def choices(self) -> list[str]:
        """The labels of the page's buttons and tabs that are not chosen."""
        return self.page.locator(_OPTIONS).evaluate_all(
            """options => options.filter(one => ![one.ariaChecked, one.ariaSelected].includes("true"))
                .map(one => one.innerText.trim())"""
        )

    def choose(self, label: str) -> None:
        """Does nothing where an earlier choice has removed the option."""
        if (option := self.page.locator(_OPTIONS).get_by_text(label, exact=True)).count():
            option.first.click()


def measure(
    address: str, checkpoint: Checkpoint, pages: Sequence[str], *, views: bool, shots: Path | None
) -> Iterator[tuple[str, Measured]]:
    """For every page: what the long sentence costs, then what each view that a reader can choose costs."""
    sentence, name = long_sentence(checkpoint), checkpoint.name
    with chromium() as browser:
        for page in pages:
            context = new_visitor(browser)
            query = urlencode({"checkpoint": name, "sentence": SHORT})
            tab = Tab(context.new_page(), f"{address}/{page}?{query}")
            yield page, tab.measure("", lambda tab=tab: tab.type_sentence(sentence))
            if shots:
                _photograph(tab, shots / f"{name}_{page}.png")
            for number, label in enumerate(tab.choices() if views else (), start=1):
                found = tab.measure(label, lambda tab=tab, label=label: tab.choose(label))
                if found.kilobytes:  # else it was gone, or it was there already
                    yield page, found
                if shots:
                    _photograph(tab, shots / f"{name}_{page}_{number}.png")
            context.close()


def _photograph(tab: Tab, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tab.page.screenshot(path=path)


def main(arguments: Sequence[str] | None = None) -> None:
    from transformer import load
    from ui.shell.navigation import GROUPS

    every = [entry.name for group in GROUPS.values() for entry in group]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoints", nargs="+", default=["en-fr", "gpt-en"])
    parser.add_argument("--pages", nargs="+", default=every, choices=every, metavar="PAGE")
    parser.add_argument("--views", action="store_true", help="also every view that a page lets one choose")
    parser.add_argument("--shots", type=Path, help="a folder for a picture of each")
    options = parser.parse_args(arguments)
    print("| checkpoint | page | script has run (s) | stands still (s) | received (KB) | longest task (s) | elements |")
    print("|---|---|---|---|---|---|---|")
    with AppServer() as server:
        for name in options.checkpoints:
            checkpoint = load(ROOT / "checkpoints" / name)
            every = measure(server.base, checkpoint, options.pages, views=options.views, shots=options.shots)
            for page, found in every:
                where = f"{page}: {found.what}" if found.what else page
                numbers = f"{found.server:.2f} | {found.seconds:.2f} | {found.kilobytes:,.0f} | {found.longest:.2f}"
                note = " ".join(found.problem.split())
                print(f"| {name} | {where} | {numbers} | {found.elements:,} |{note and f' {note}'}", flush=True)


if __name__ == "__main__":
    main()
