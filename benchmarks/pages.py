"""Cost of every page for one checkpoint: processor seconds of first view and clicks, and memory.

    python -m benchmarks.pages PATH [--only heads,lens] [--sentence "When Mary and John …"]

The script of a page runs as on the server (``AppTest``), all pages in one process: the checkpoint is open and the
sentence is traced by the first page. A click is the next head, the next layer, or another token: the most expensive one
counts. Drawing in the browser is not included. Prints a table in Markdown.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.harness.app_server import REPOSITORY
from tests.harness.process_memory import status_megabytes
from ui.compute import loading
from ui.shell.navigation import GROUPS

SENTENCE = "When Mary and John went to the store, John gave a drink to"
PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.name != "lessons"]
CLICKS = ({}, {"head": 1}, {"layer": 1}, {"token": 5})


def seconds_of(app: AppTest) -> float:
    """Return the processor seconds of a run of the script and of long jobs.

    They run in threads of their own. This thread only waits, and scans the installed packages for components, which a
    server does once; its time does not count.
    """
    begun, own = time.process_time(), time.thread_time()
    app.run()
    return time.process_time() - begun - (time.thread_time() - own)


def open_page(page: str, address: Mapping[str, str]) -> AppTest:
    """Return a page that has run once."""
    app = AppTest.from_file(str(REPOSITORY / "app.py"), default_timeout=900)
    if page != "overview":
        app.switch_page(f"pages/{page}.py")
    for name, value in address.items():
        app.query_params[name] = value
    return app


def click_through(app: AppTest) -> Iterator[float]:
    """Yield the seconds of the same page again, then with one change after the other.

    The session changes, as by a click, and not the address, which does not contain texts of more than 4,000 characters.
    """
    from ui.shell.focus import _FOCUS

    for change in CLICKS:
        focus = app.session_state[_FOCUS]
        for name, step in change.items():
            value = step if name == "token" else getattr(focus, name) + step
            app.session_state[_FOCUS] = focus.__class__(**{**vars(focus), name: value})
        yield seconds_of(app)


def problems(app: AppTest) -> list[str]:
    """Return the errors that a page shows."""
    return [element.value for element in (*app.exception, *app.error, *app.warning)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path, help="a folder, or a GGUF file")
    parser.add_argument("--only", help="pages, with commas between them")
    parser.add_argument("--sentence", default=SENTENCE)
    asked = parser.parse_args()
    path = asked.checkpoint.resolve(strict=True)
    loading._typed[path.name] = path
    address = {"checkpoint": path.name, "sentence": asked.sentence}
    warm = open_page("tokens", address)
    print(f"opening, and Tokens: {seconds_of(warm):.1f} s; {status_megabytes('VmHWM') / 1000:.2f} GB at most\n")
    print("| page | first view, s | again | dearest click | GB after | GB peak |\n|---|---|---|---|---|---|")
    for page in asked.only.split(",") if asked.only else PAGES:
        app = open_page(page, address)
        first = seconds_of(app)
        again, *clicks = click_through(app)
        memory = f"{status_megabytes('VmRSS') / 1000:.2f} | {status_megabytes('VmHWM') / 1000:.2f}"
        print(f"| {page} | {first:.1f} | {again:.2f} | {max(clicks):.2f} | {memory} |", *problems(app)[:2], flush=True)


if __name__ == "__main__":
    main()
