"""Amount of code that a click runs: calls and files, for one click on each of nine pages.

    python -m benchmarks.clicks [--page attention] [--top 20]

A page is opened by its address, the same click is made twice at different positions, and the second one is counted, so
that one-time work is excluded. A call is whatever Python's profiler reports as one, in every thread: a generator counts
each time it is resumed. It is a count, not a time, so other load on the machine does not affect it.
"""

import argparse
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType

from streamlit.testing.v1 import AppTest

from harness.app_server import REPOSITORY
from harness.widget_states import event_state

SENTENCE = "My dog is big and my cat is small."
_APART = ("tests", "benchmarks", "harness", ".venv")  # measuring code, and code from outside of the project


@dataclass(frozen=True)
class Click:
    """A click on one component of a page.

    Attributes:
        component: Key of the component, e.g. of a figure, or of a control.
        event: Event that the component sends; "press" and "choose" are for buttons and sliders.
        values: What it sends the first and the second time.
        address: Parameters of the page's address besides the sentence.
    """

    component: str
    event: str
    values: tuple[object, object]
    address: Mapping[str, str]


CLICKS = {
    "attention": Click(
        "attention map",
        "click",
        ({"query": 4, "key": 2}, {"query": 5, "key": 3}),
        {"stack": "decoder", "kind": "cross", "layer": "1", "head": "2"},
    ),
    "heads": Click(
        "heads grid",
        "click",
        ({"layer": 1, "head": 3}, {"layer": 2, "head": 5}),
        {"stack": "decoder", "kind": "cross"},
    ),
    "decoding": Click("stepper", "step", (1, 2), {}),
    "masks": Click(
        "mask editor",
        "edit",
        ({"cells": [3, 2], "allowed": False}, {"cells": [4, 1], "allowed": False}),
        {"stack": "encoder", "kind": "self", "layer": "1", "head": "2"},
    ),
    "compare": Click(
        "compare heads",
        "click",
        ({"query": 1, "key": 2}, {"query": 2, "key": 3}),
        {"second": "My dog is big and my dog is small.", "stack": "encoder", "kind": "self"},
    ),
    "bugs": Click("another patient", "press", (None, None), {"patient": "0"}),
    "training": Click(
        "training_step",
        "choose",
        ("200", "400"),
        {"training section": "time", "stack": "encoder", "kind": "self"},
    ),
    "lens": Click(
        "token strip",
        "chosen",
        ({"stack": "decoder", "token": 3}, {"stack": "decoder", "token": 5}),
        {"stack": "decoder"},
    ),
    "paths": Click("patching", "click", ({"query": 1, "key": 1}, {"query": 2, "key": 1}), {}),
}


def open_page(page: str) -> AppTest:
    """Return a page that has run once, as its address opens it."""
    app = AppTest.from_file(str(REPOSITORY / "app.py"), default_timeout=600)
    app.switch_page(f"pages/{page}.py")
    for name, value in {**CLICKS[page].address, "sentence": SENTENCE}.items():
        app.query_params[name] = value
    return app.run()


def click(app: AppTest, made: Click, value: object) -> None:
    """Send what the browser sends for a click, and let the page run."""
    if made.event == "press":
        app.button(key=made.component).click().run()
        return
    if made.event == "choose":
        app.select_slider(key=made.component).set_value(value).run()
        return
    shown = [element.proto.id for element in app if element.type == "bidi_component"]
    (found,) = [id for id in shown if id.endswith(f"-{made.component}")]
    states = app._tree.get_widget_states()
    states.widgets.append(event_state(found, made.event, value))
    app._run(states)


def count_calls(run: Callable[[], object]) -> Counter[str]:
    """Run a function and count the calls of the project's functions, by ``file:function``."""
    calls: Counter[str] = Counter()
    root = f"{REPOSITORY}{os.sep}"
    apart = tuple(f"{root}{name}{os.sep}" for name in _APART)

    def count(frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(root) and not file.startswith(apart):
            calls[f"{file[len(root) :]}:{frame.f_code.co_name}"] += 1

    threading.setprofile(count)  # a script runs in a thread of its own
    try:
        run()
    finally:
        threading.setprofile(None)
    return calls


def measure_click(page: str) -> Counter[str]:
    """Count the calls of the second click on a page.

    Raises:
        RuntimeError: If the page shows an error.
    """
    made, app = CLICKS[page], open_page(page)
    click(app, made, made.values[0])
    calls = count_calls(lambda: click(app, made, made.values[1]))
    if problems := [element.value for element in (*app.exception, *app.error)]:
        raise RuntimeError(f"the {page} page shows an error, so its click was not counted: {'; '.join(problems)}")
    return calls


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", choices=CLICKS, help="this page only")
    parser.add_argument("--top", type=int, default=0, metavar="N", help="list the N functions that are called most")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print("| page | calls | files |\n|---|---|---|")
    for page in [arguments.page] if arguments.page else CLICKS:
        calls = measure_click(page)
        print(f"| {page} | {calls.total():,} | {len({name.partition(':')[0] for name in calls})} |", flush=True)
        for name, times in calls.most_common(arguments.top):
            print(f"{times:8,}  {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
