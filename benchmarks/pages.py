"""Cost of every page for one checkpoint, or of a long text on Attention: seconds and memory.

    python -m benchmarks.pages PATH [--only heads,lens] [--sentence "When Mary and John …"]
    python -m benchmarks.pages PATH --tokens 2048      # Attention with a text of that length, made of shipped sentences

The script of a page runs as on the server (``AppTest``), all pages in one process: the checkpoint is open and the
sentence is traced by the first page. A click is the next head, the next layer, or another token: the most expensive one
counts. Drawing in the browser is not included. "The kernels alone" of a long text are the same products of matrices and
the same fused attention on random numbers, on one thread: no pass takes less.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import torch
from streamlit.testing.v1 import AppTest
from torch.nn import functional as F

import transformer
from tests.harness.app_server import REPOSITORY
from tests.harness.process_memory import status_megabytes
from transformer.files.checkpoints import Checkpoint
from transformer.runs.recording_size import pass_bytes
from transformer.text.sentence_files import SHIPPED, read_sentences
from ui.compute import loading
from ui.server.freed_memory import give_back_what_is_freed
from ui.shell.focus import _FOCUS
from ui.shell.navigation import GROUPS

SENTENCE = "When Mary and John went to the store, John gave a drink to"
PAGES = [entry.name for group in GROUPS.values() for entry in group if entry.name != "lessons"]
CLICKS = ({}, {"head": 1}, {"layer": 1}, {"token": 5})
FIRST_VIEW, MEMORY = 5.0, 1500.0  # goals of a long text: processor seconds, MB


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


def click(app: AppTest, **change: int) -> float:
    """Return the seconds of the same page with another focus.

    The session changes, as by a click, and not the address, which does not contain texts of more than 4,000 characters.
    """
    app.session_state[_FOCUS] = replace(app.session_state[_FOCUS], **change)
    return seconds_of(app)


def click_through(app: AppTest) -> Iterator[float]:
    """Yield the seconds of the same page again, then with one change of ``CLICKS`` after the other."""
    for change in CLICKS:
        focus = app.session_state[_FOCUS]
        yield click(
            app, **{name: step if name == "token" else getattr(focus, name) + step for name, step in change.items()}
        )


def problems(app: AppTest) -> list[str]:
    """Return the errors that a page shows."""
    return [element.value for element in (*app.exception, *app.error, *app.warning)]


def text_of(checkpoint: Checkpoint, n_tokens: int) -> str:
    """Return a text of about ``n_tokens`` tokens, and not more."""
    words: list[str] = []
    for sentence in cycle(read_sentences(SHIPPED)):
        longer = [*words, *sentence.split()]
        if len(checkpoint.tokenizer.encode(" ".join(longer))) >= n_tokens:
            return " ".join(words)
        words = longer
    raise AssertionError("there are sentences")


def kernels(checkpoint: Checkpoint, n_tokens: int) -> Callable[[], None]:
    """Return a function that computes all products with weights and the fused attention of one pass."""
    config, model = checkpoint.config, checkpoint.model
    inside = [part for name, part in model.named_modules() if isinstance(part, torch.nn.Linear) and ".layers." in name]
    inputs = {width: torch.randn(1, n_tokens, width) for width in {part.in_features for part in inside}}
    heads = torch.randn(1, config.n_heads, n_tokens, config.d_head)

    @torch.inference_mode()
    def run() -> None:
        for part in inside:
            F.linear(inputs[part.in_features], part.weight)
        for _ in range(config.n_decoder_layers):
            F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)

    return run


def cpu_seconds(action: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def measure_long_text(checkpoint: Checkpoint, name: str, n_tokens: int) -> None:
    """Print what a long text costs: Attention, its clicks, the whole pass, memory above the model."""
    text, n_layers = text_of(checkpoint, n_tokens), checkpoint.config.n_decoder_layers
    short = {"checkpoint": name, "sentence": SENTENCE}
    open_page("attention", short).run()  # libraries are loaded, and the model is open
    before = status_megabytes("VmRSS")
    app = open_page("attention", {**short, "sentence": text})
    print("first view of Attention", f"{seconds_of(app):.1f} s (goal {FIRST_VIEW:g})", *problems(app)[:2])
    opened = app.session_state[_FOCUS]
    print("another head", f"{click(app, head=abs(opened.head - 1)):.2f} s")
    print("the layer before", f"{click(app, layer=abs(opened.layer - 1)):.2f} s")
    print("another row", f"{click(app, token=opened.token - 1):.2f} s")
    print("the last layer", f"{click(app, layer=n_layers - 1):.2f} s")
    peak = status_megabytes("VmHWM") - before
    alone, n_tokens = cpu_seconds(kernels(checkpoint, n_tokens)), len(checkpoint.tokenizer.encode(text))
    begun = time.process_time()
    trace = transformer.trace(checkpoint, text, strategy=transformer.Greedy(1))
    passed = time.process_time() - begun
    layer = cpu_seconds(lambda: trace.attention("decoder", 0))
    print(f"{n_tokens} tokens: the pass {passed:.1f} s, the kernels alone {alone:.1f} s; one layer {layer:.2f} s")
    below = alone * opened.layer / n_layers
    print(f"the kernels of the layers below layer {opened.layer}, which the first view shows: {below:.1f} s")
    complete = pass_bytes(checkpoint.model, target=n_tokens) / 1e6
    print(f"at most {peak:.0f} MB above the model (goal {MEMORY:g}); a complete recording takes {complete:,.0f} MB")


def measure_pages(pages: list[str], address: Mapping[str, str]) -> None:
    """Print a table in Markdown."""
    warm = open_page("tokens", address)
    print(f"opening, and Tokens: {seconds_of(warm):.1f} s; {status_megabytes('VmHWM') / 1000:.2f} GB at most\n")
    print("| page | first view, s | again | dearest click | GB after | GB peak |\n|---|---|---|---|---|---|")
    for page in pages:
        app = open_page(page, address)
        first = seconds_of(app)
        again, *clicks = click_through(app)
        memory = f"{status_megabytes('VmRSS') / 1000:.2f} | {status_megabytes('VmHWM') / 1000:.2f}"
        print(f"| {page} | {first:.1f} | {again:.2f} | {max(clicks):.2f} | {memory} |", *problems(app)[:2], flush=True)


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path, help="a folder, or a GGUF file")
    parser.add_argument("--only", help="pages, with commas between them")
    parser.add_argument("--sentence", default=SENTENCE)
    parser.add_argument("--tokens", type=int, help="of a long text, for a model that continues texts")
    asked = parser.parse_args()
    path = asked.checkpoint.resolve(strict=True)
    loading._typed[path.name] = path
    if asked.tokens:
        give_back_what_is_freed()  # as in the app
        measure_long_text(loading.load_checkpoint(path.name), path.name, asked.tokens)
        return
    pages = asked.only.split(",") if asked.only else PAGES
    measure_pages(pages, {"checkpoint": path.name, "sentence": asked.sentence})


if __name__ == "__main__":
    main()
