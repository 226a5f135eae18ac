"""The web page on loopback: bytes of a first visit, start, response to a keystroke, and memory.

    python -m glassformer web site --checkpoints en-fr gpt-en
    python -m benchmarks.web_page site [--keystrokes 20]

The browser is a fresh headless Chromium for every model. "First picture" begins with the navigation and ends when the
living picture is drawn; a keystroke begins when the model runs (120 ms after the key, because the page waits for
another one) and ends when the new picture is drawn.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import re
import shutil
import statistics
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, sync_playwright

from tests.harness.chromium import ARGUMENTS, EXECUTABLES

SENTENCE = "My brother is tall, but my sister is small."  # 11 tokens, 16 in French
DRAWN = ".figure[data-shown][aria-busy=false]"


class _Counting(http.server.SimpleHTTPRequestHandler):
    """A plain file server that counts the bytes that it sends."""

    sent = 0

    def copyfile(self, source, outputfile) -> None:
        content = source.read()
        type(self).sent += len(content)
        outputfile.write(content)

    def log_message(self, *_said: object) -> None:
        pass


def measure(browser: Browser, address: str, model: str, keystrokes: int) -> dict[str, float]:
    """Return the measurements of one model, in megabytes, seconds and milliseconds."""
    _Counting.sent = 0
    page = browser.new_context().new_page()
    began = time.perf_counter()
    page.goto(f"{address}/?checkpoint={model}&language=en")
    page.wait_for_selector(DRAWN, timeout=300_000)
    first = time.perf_counter() - began
    megabytes = _Counting.sent / 1e6
    page.reload()
    began = time.perf_counter()
    page.wait_for_selector(DRAWN, timeout=300_000)
    again = time.perf_counter() - began
    took = []
    field = page.locator("textarea").first
    drawn = model == "vit-digits"  # an image; the keystroke changes its last pixel
    text, other = (field.input_value()[:-1] + sign for sign in "01") if drawn else (SENTENCE, f"{SENTENCE}.")
    for _number in range(keystrokes + 2):  # the first two are warm-up
        text, other = other, text
        field.fill(text)
        page.wait_for_url(lambda url, text=text: parse_qs(urlsplit(url).query)["sentence"] == [text])
        took.append(page.evaluate("glassformerTook"))
    tokens = page.evaluate("Object.values(glassformerSite.found.stacks).map((stack) => stack.length)")
    memory = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
    page.close()
    return {
        "first visit, MB": megabytes,
        "first picture, s": first,
        "second visit, s": again,
        "keystroke, ms": statistics.median(took[2:]),
        "tokens": sum(tokens),
        "page's heap, MB": memory,
    }


def main() -> None:
    """Measure every model of a site and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path, help="the folder that `python -m glassformer web` wrote")
    parser.add_argument("--keystrokes", type=int, default=20)
    options = parser.parse_args()
    data = re.search(r'id="site">(.*?)</script>', (options.site / "index.html").read_text(encoding="utf-8"), re.DOTALL)
    models = [model["checkpoint"] for model in json.loads(data[1])["models"]] if data else []
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Counting, directory=str(options.site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    executable = next(found for name in EXECUTABLES if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        for number, model in enumerate(models):
            browser = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
            found = measure(browser, address, model, options.keystrokes)
            browser.close()
            if number == 0:
                print("| model | " + " | ".join(found) + " |")
                print("|---" * (len(found) + 1) + "|")
            print(f"| {model} | " + " | ".join(f"{value:.4g}" for value in found.values()) + " |", flush=True)
    server.shutdown()


if __name__ == "__main__":
    main()
