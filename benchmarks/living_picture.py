"""The living picture: its size, the time of a frame, of unfolding and until it appears; and its film.

    python -m benchmarks.living_picture                 # tables in Markdown
    python -m benchmarks.living_picture --film FILE     # a moving WebP of one run, for README.md
    python -m benchmarks.living_picture --questions FOLDER  # what a first visitor asks, answered by five models

Weights are real if an included model has the size, otherwise random: the work is the same.
"""

import argparse
import io
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

import torch
from PIL import Image
from playwright.sync_api import Browser, Page

import transformer
from charts.canvas.figure import CanvasFigure
from charts.canvas.living_picture_canvas import living_picture_canvas
from harness.app_server import REPOSITORY, AppServer
from harness.chromium import Tab, chromium, new_visitor
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.runs.traces import Trace
from ui.shell.focus import Focus
from ui.show.living_picture import living_picture_figure

SENTENCE = "The cat sat on the mat."
BEGIN = {"stack": "decoder", "kind": "cross", "layer": 1, "head": 0, "token": 1}
# Time of the page's own work in each frame.
_FRAMES = """(() => {
  const own = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (work) => own((now) => {
    const begin = performance.now();
    work(now);
    window.workOf.push(performance.now() - begin);
  });
  window.workOf = [];
})();"""
_AT = "document.querySelector('main').shadowRoot"
# Overview in an earlier version: blocks instead of the picture, and the whole page at once.
_BEFORE = """import runpy
import ui.shell.below, ui.show.living_picture
ui.show.living_picture.living_picture = lambda p: None
ui.shell.below.below_the_picture = lambda draw: draw()
runpy.run_path({app!r})
"""
_ROUNDS = 9


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen measurements and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--film", type=Path, metavar="FILE", help="write a moving picture of one run there instead")
    parser.add_argument("--questions", type=Path, metavar="FOLDER", help="write pictures of the answers there instead")
    options = parser.parse_args(arguments)
    with chromium() as browser:
        if options.questions:
            questions(browser, options.questions)
            return 0
        if options.film:
            film(browser, options.film)
            return 0
        print("\n".join(payloads()), end="\n\n")
        print("\n".join(frames(browser)), end="\n\n")
        print("\n".join(first_pictures(browser)))
    return 0


# --- sizes ----------------------------------------------------------------------------------------------------------


def trace_of_shape(layers: int, heads: int, *, source: int, target: int) -> Trace:
    """Return a trace of a random translation model with that many layers and tokens."""
    checkpoint = transformer.load("checkpoints/en-fr")
    config = replace(checkpoint.config, n_encoder_layers=layers, n_decoder_layers=layers, n_heads=heads)
    torch.manual_seed(0)
    model = type(checkpoint.model)(config).eval()
    words = " ".join(["the"] * (source - 1))
    return transformer.trace(replace(checkpoint, model=model), words, target=" ".join(["le"] * (target - 1)))


def decoder_of_shape(layers: int, heads: int, tokens: int) -> Trace:
    """Return a trace of a random decoder-only model with that many layers and tokens."""
    checkpoint = transformer.load("checkpoints/gpt-en")
    config = replace(checkpoint.config, n_decoder_layers=layers, n_heads=heads, d_model=64 * heads, d_ff=256 * heads)
    torch.manual_seed(0)
    model = type(checkpoint.model)(config).eval()
    words = " ".join(["the"] * (tokens // 2))
    return transformer.trace(replace(checkpoint, model=model), words, target=words)


def payloads() -> Iterator[str]:
    """Yield the rows of the table of sizes."""
    yield "| what is sent | tokens | KB | with one layer of each stack unfolded, KB |"
    yield "|---|---|---|---|"
    for name, trace in (
        ("en-fr, its example", transformer.trace(transformer.load("checkpoints/en-fr"), SENTENCE)),
        ("3 + 3 layers × 8 heads", trace_of_shape(3, 8, source=16, target=16)),
        ("6 + 6 layers × 8 heads", trace_of_shape(6, 8, source=32, target=32)),
        ("12 layers × 12 heads", decoder_of_shape(12, 12, 64)),
    ):
        whole = len(picture(trace).packed()) / 1000
        inside = [(stack, 0) for stack in trace.stacks]
        unfolded = len(living_picture_canvas(living_picture_numbers(trace, inside=inside)).packed()) / 1000
        tokens = " + ".join(str(len(trace.tokens(stack))) for stack in trace.stacks)
        yield f"| {name} | {tokens} | {whole:.0f} | {unfolded:.0f} |"


def picture(trace: Trace, *, inside: bool = False, **begin: object) -> CanvasFigure:
    """Return the canvas of a trace."""
    layers = [(stack, layer) for stack in trace.stacks for layer in range(trace.n_layers(stack))] if inside else ()
    return living_picture_canvas(living_picture_numbers(trace, inside=layers), begin=begin)


# --- time -----------------------------------------------------------------------------------------------------------


@contextmanager
def open_figure(browser: Browser, figure: CanvasFigure, *, width: int = 1280, height: int = 720) -> Iterator[Page]:
    """Open the figure as a separate page."""
    with tempfile.TemporaryDirectory() as folder, new_visitor(browser) as context:
        file = figure.save(Path(folder) / "picture.html")
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.add_init_script(_FRAMES)
        page.goto(file.as_uri())
        page.locator("canvas[data-geometry]").wait_for()
        page.wait_for_timeout(500)
        yield page


def frames(browser: Browser) -> Iterator[str]:
    """Yield the rows of the table of frame times."""
    yield "| 1280 × 720 | own work a frame while it plays, median | 95 % | unfolding, from the key to the paint |"
    yield "|---|---|---|---|"
    en_fr = transformer.trace(transformer.load("checkpoints/en-fr"), SENTENCE)
    for name, trace in (
        ("en-fr, 8 + 13 tokens", en_fr),
        ("6 + 6 layers, 32 + 32 tokens", trace_of_shape(6, 8, source=32, target=32)),
    ):
        with open_figure(browser, picture(trace, inside=True)) as page:
            page.evaluate("window.workOf.length = 0")
            page.evaluate(f"{_AT}.querySelector('.play').click()")
            page.wait_for_timeout(12_000)
            work = [one for one in page.evaluate("window.workOf") if one > 0.05]
            page.evaluate(f"{_AT}.querySelector('.play').click()")
            page.wait_for_timeout(500)
            unfolding = []
            for _ in range(5):
                unfolding.append(page.evaluate(_unfold()))
                page.wait_for_timeout(300)
        yield (f"| {name} | {median(work):.1f} ms | {quantiles(work, n=20)[-1]:.1f} ms | {median(unfolding):.0f} ms |")


def _unfold() -> str:
    """Return a script that measures Enter, two frames, Escape: the time until the unfolded part is drawn."""
    return f"""() => new Promise((done) => {{
      const canvas = {_AT}.querySelector("canvas");
      const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", {{ key, bubbles: true }}));
      const begin = performance.now();
      press("Enter");
      requestAnimationFrame(() => requestAnimationFrame(() => {{
        const took = performance.now() - begin;
        press("Escape");
        done(took);
      }}));
    }})"""


def first_pictures(browser: Browser) -> Iterator[str]:
    """Yield the times from a first-time visitor's navigation to the first drawing, for both servers."""
    figures = {
        "the blocks, as before": ".diagram .block",
        "the living picture": ".living-picture canvas[data-geometry]",
    }
    with tempfile.TemporaryDirectory() as folder, AppServer() as now:
        script = Path(folder) / "app.py"
        script.write_text(_BEFORE.format(app=str(REPOSITORY / "app.py")), encoding="utf-8")
        with AppServer(script=str(script)) as before:
            places = [(server.base, figure) for server, figure in zip((before, now), figures.values(), strict=True)]
            # The first round loads the model.
            took = [[_time_to_open(browser, *place) for place in places] for _ in range(_ROUNDS + 1)][1:]
    yield "| Overview begins with | painted after, median | least | most |"
    yield "|---|---|---|---|"
    for name, times in zip(figures, zip(*took, strict=True), strict=True):
        yield f"| {name} | {median(times):.0f} ms | {min(times):.0f} ms | {max(times):.0f} ms |"
    yield f"\nratio of the medians: {median(one for _, one in took) / median(one for one, _ in took):.2f}"


def _time_to_open(browser: Browser, address: str, figure: str) -> float:
    with new_visitor(browser) as context:
        return Tab(context).open(address, figure=figure)


# --- five questions --------------------------------------------------------------------------------------------------

# The stop at which the figure answers a first visitor's question, and whether that is about the encoder.
QUESTIONS = {
    "1 what are the numbers": ("unfold embedding", True),
    "2 who looks at whom": ("self_attention", True),
    "3 where does the word come from": ("word", False),
    "4 what does a layer change": ("unfold feed_forward", True),
    "5 what is softmax doing": ("unfold {kind}_attention", False),
}


def questions(browser: Browser, folder: Path) -> None:
    """Write an image of 1280 × 720 for each question and model: ``folder/model, question.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, trace, opening in models_to_ask():
        for question, (stop, reading) in QUESTIONS.items():
            stack = trace.stacks[0 if reading else -1]
            kind = "cross" if len(trace.stacks) > 1 and not reading else "self"
            own = {part: opening[part] for part in ("layer", "head", "token") if stack == opening["stack"]}
            place = {"layer": 0, "head": 0, "token": 2, **own, "stack": stack, "kind": kind}
            numbers = living_picture_numbers(trace, inside=[(stack, place["layer"])])
            figure = living_picture_figure(numbers, trace, Focus(**place), links=False, stop=stop.format(kind=kind))
            with open_figure(browser, figure) as page:
                page.screenshot(path=folder / f"{name}, {question}.png")
        print(name)


def models_to_ask() -> Iterator[tuple[str, Trace, dict]]:
    """Yield name, trace and opening of one model per kind and a random one of GPT-2 small's shape."""
    for name in ("en-fr", "gpt-en", "bert-en", "vit-digits"):
        file = REPOSITORY / "checkpoints" / name / "opening.toml"
        opening = tomllib.loads(file.read_text(encoding="utf-8"))["opening"]
        yield name, transformer.trace(transformer.load(f"checkpoints/{name}"), opening["sentence"]), opening
    trace = decoder_of_shape(12, 12, 24)
    yield "GPT-2 small's shape", trace, {"stack": "decoder", "layer": 5, "head": 0, "token": len(trace.target) // 2}


# --- the film -------------------------------------------------------------------------------------------------------


def film(browser: Browser, file: Path, *, step: int = 100) -> None:
    """Write a moving WebP of the run, one image per ``step`` milliseconds; equal images are merged."""
    trace = transformer.trace(transformer.load("checkpoints/en-fr"), SENTENCE)
    shots: list[tuple[bytes, int]] = []
    with open_figure(browser, picture(trace, inside=True, **BEGIN), width=1000, height=740) as page:
        stage = page.locator("main")

        def shoot(times: int) -> None:
            for _ in range(times):
                png = stage.screenshot()
                if shots and shots[-1][0] == png:
                    shots[-1] = (png, shots[-1][1] + step)
                else:
                    shots.append((png, step))

        shoot(1)
        shots[-1] = (shots[-1][0], 1800)
        last = int(page.evaluate(f"{_AT}.querySelector('input').max"))
        for beat in range(last + 1):
            for fraction in (0.2, 0.4, 0.6, 0.8, 1.0):
                page.evaluate(f"glassformerDrawing.show({beat}, {fraction})")
                shoot(1)
            shots[-1] = (shots[-1][0], 900 if beat < last else 1500)
        page.locator("canvas").focus()
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        page.evaluate(f"{_AT}.activeElement?.blur()")
        shoot(1)
        shots[-1] = (shots[-1][0], 4000)
    pictures = [Image.open(io.BytesIO(png)).convert("RGB") for png, _ in shots]
    durations = [duration for _, duration in shots]
    pictures[0].save(file, save_all=True, append_images=pictures[1:], duration=durations, loop=0, quality=60, method=4)
    print(f"{file}  {file.stat().st_size:,} bytes, {len(pictures)} pictures, {sum(durations) / 1000:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
