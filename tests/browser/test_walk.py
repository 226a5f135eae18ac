"""One walk through all pages in an open session: what a first screen shows, on every window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

import transformer
from tests.browser.axe import lasting
from tests.browser.conftest import (
    PHONE,
    PROJECTOR,
    asked,
    eventually,
    go,
    key,
    open_page,
    path,
    place_box,
    sentence_box,
    settle,
    title_of,
    type_sentence,
)
from tests.browser.drawing import Drawing
from tests.browser.seats import Seat
from tests.conftest import ROOT
from transformer.files.opening_file import read_opening
from transformer.runs.traces import Trace
from ui.shell.navigation import ENTRIES, NO_SENTENCE, Entry, page_names

pytestmark = pytest.mark.browser
PAGES = [ENTRIES[name] for name in page_names()]
FIGURES = {entry.name for entry in PAGES} - {"lessons", "checkpoint", "by_hand"}
# Pages on which a longer line above the figure may push it out of a smaller window, or that stand in French and dark.
TIGHT = ("overview", "heads", "attention", "decoding", "surgery", "compare")
BAKES = "My grandmother bakes apple pie every Sunday."
TWELVE = "My grandmother bakes apple pie every Sunday after church with the children."
TWENTY = "The old man who lives near the river told us a long story about his brother yesterday."
PROMPT = "The old man who lived by the sea told us a story about a ship and the storm."
QUESTION = "When the bus did not come yesterday, did your little sister really walk all the way home in the rain?"
RUN_AGAIN = ("masks", "tokens", "training")
MOST_CONTROLS, MOST_WORDS = 20, 120
# Where the sidebar and every word counts; elsewhere controls of the main area, and words outside of controls.
FIRST = ("overview", "attention", "decoding", "tokens")
SPARE = ("add_norm", "feed_forward", "heads", "masks", "surgery", "embeddings", "checkpoint", "positions")
# Streamlit's own files; each loads more files. Plotly's is 5 MB, 1.4 MB compressed. A page that starts or stops needing
# one is entered here.
PLOTLY, VEGA = "PlotlyChart", "ArrowVegaLiteChart"
CHARTS = {PLOTLY: "stPlotlyChart", VEGA: "stVegaLiteChart"}  # the elements that they draw
NEEDS = {
    PLOTLY: {"checkpoint", "tokens", "embeddings", "positions", "add_norm", "feed_forward", "decoding", "lens"},
    VEGA: {"training"},
}
# For the first figure in the page, including shadow roots: the share of its height in the window.
_SHARE = """() => {
  const large = (node) => {
    const box = node.getBoundingClientRect();
    return node.checkVisibility() && box.width > 250 && box.height > 110;
  };
  const figures = [];
  const walk = (node) => {
    if (node.matches?.("canvas, .js-plotly-plot, svg.marks, .diagram, .chips") && large(node)) figures.push(node);
    else for (const child of [...(node.shadowRoot?.children ?? []), ...(node.children ?? [])]) walk(child);
  };
  walk(document.querySelector("[data-testid=stMain]"));
  if (!figures.length) return null;
  const box = figures[0].getBoundingClientRect();
  return Math.max(0, Math.min(innerHeight, box.bottom) - Math.max(0, box.top)) / box.height;
}"""
_ALL = """const all = (root) => [...root.querySelectorAll("*")].flatMap((node) =>
    [node, ...(node.shadowRoot ? all(node.shadowRoot) : [])]);"""
# What can be operated, in main area and sidebar: the options of one choice are one control, and so are the tokens of a
# sentence, i.e. controls of one kind beside each other. `text` counts the words outside of controls.
_COUNT = """() => {
  const onScreen = (node) => {
    const box = node.getBoundingClientRect();
    return node.checkVisibility({opacityProperty: true, visibilityProperty: true}) && box.width > 1 && box.height > 1
      && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  };
  ALL
  const operable = "button, a[href], input, textarea, select, summary, [role=tab], [role=slider], [role=combobox]";
  const [main, side] = ["stMain", "stSidebar"].map((id) => document.querySelector(`[data-testid=${id}]`));
  const isArrow = (node) => node.matches("[data-testid=stSelectbox] button"); // of a list, which is one control
  const found = [main, side].filter(Boolean).flatMap(all)
    .filter((node) => node.matches(operable) && !isArrow(node) && onScreen(node));
  const controls = found.filter((node) => !found.some((other) => other !== node && other.contains(node)));
  const groups = new Set(controls.map((node) => {
    const group = node.closest("[role=radiogroup], [role=tablist], [data-testid=stButtonGroup]");
    if (group) return group;
    const alike = [...(node.parentElement?.children ?? [])].filter((one) => one.classList[0] === node.classList[0]);
    return alike.length > 3 ? node.parentElement : node;
  }));
  const words = (root, without = "style, script") => [...root.childNodes].reduce((sum, node) => {
    if (node.nodeType === Node.ELEMENT_NODE)
      return sum + (node.matches(without) ? 0 : words(node.shadowRoot ?? node, without));
    if (node.nodeType !== Node.TEXT_NODE || !node.parentElement || !onScreen(node.parentElement)) return sum;
    return sum + (node.textContent.match(/[\\p{L}]{2,}/gu) ?? []).length;
  }, 0);
  return {
    controls: groups.size, inMain: controls.filter((node) => main.contains(node)).length,
    words: words(main), text: words(main, "style, script, button, summary, svg, h1, .katex"),
  };
}""".replace("ALL", _ALL)
# What can be tapped in the main area and is less than 36 pixels high. A slider of Streamlit has a large knob instead;
# a link within a sentence is as high as a line.
_LOW = """() => {
  ALL
  const size = (node) => ((node.matches("input") && node.closest("label")) || node).getBoundingClientRect();
  return all(document.querySelector("[data-testid=stMain]"))
    .filter((node) => node.matches("button, a[href], input, select, summary") && node.checkVisibility(
      {opacityProperty: true, visibilityProperty: true}) && !node.closest("[data-testid=stSlider], p"))
    .filter((node) => size(node).width > 2 && size(node).height < 35.5)
    .map((node) => `${node.innerText || node.ariaLabel || node.className}: ${size(node).height}`);
}""".replace("ALL", _ALL)
# What is drawn on the canvases after the last clearing: each text with the height of its letters on the screen.
_LISTEN = """() => {
  globalThis.written = [];
  const pen = CanvasRenderingContext2D.prototype;
  const { fillText, fillRect, clearRect } = pen;
  const at = (context, x, y) => context.getTransform().transformPoint(new DOMPoint(x, y));
  pen.fillText = function (text, x, y, ...more) {
    const size = parseFloat(this.font.match(/([\\d.]+)px/)[1]);
    const { a, b } = this.getTransform();
    const wide = this.measureText(text).width;
    const shift = { center: 0, right: -wide / 2, end: -wide / 2 }[this.textAlign] ?? wide / 2;
    const scale = Math.hypot(a, b) / devicePixelRatio;
    globalThis.written.push({ canvas: this.canvas, text, size: size * scale, middle: at(this, x + shift, y) });
    return fillText.call(this, text, x, y, ...more);
  };
  const covering = (paint) => function (x, y, width, height) {
    const [from, to] = [at(this, x, y), at(this, x + width, y + height)];
    globalThis.written = globalThis.written.filter(({ canvas, middle }) => canvas !== this.canvas
      || middle.x < from.x || middle.x > to.x || middle.y < from.y || middle.y > to.y);
    return paint.call(this, x, y, width, height);
  };
  pen.fillRect = covering(fillRect);
  pen.clearRect = covering(clearRect);
}"""


def shows(page: Page, least: float) -> float:
    """Return the visible share of the main figure once it is stable, since figures may appear late."""
    page.wait_for_function(f"() => ({_SHARE})() !== null", timeout=120_000, polling=100)
    looks = [0.0]

    def stays() -> bool:
        looks.append(page.evaluate(_SHARE) or 0.0)  # it may have been taken away meanwhile, to be drawn anew
        return min(looks[-2:]) >= least

    eventually(page, stays)
    return min(looks[-2:])


def draws(page: Page, entry: Entry, sentence: str) -> None:
    """Check that the page shows the sentence, the choices of its address, something drawn, and no error."""
    if entry.name not in NO_SENTENCE:
        expect(sentence_box(page)).to_have_value(sentence)
    for name in ("Layer", "Head"):
        if place_box(page, name).count() and name.lower() in asked(page):
            expect(place_box(page, name)).to_have_value(f"{name} {asked(page)[name.lower()]}")
    drawings = "canvas, .js-plotly-plot, .sheet td, svg.marks, [data-testid=stMetric], [class*=st-key-start-]"
    expect(page.locator(drawings).filter(visible=True).first).to_be_visible()
    assert not page.get_by_test_id("stAlertContentError").count(), entry.name


def charts(page: Page) -> set[str]:
    return {library for library, chart in CHARTS.items() if page.get_by_test_id(chart).count()}


def needed(name: str) -> set[str]:
    return {library for library, names in NEEDS.items() if name in names}


def crowded(page: Page, name: str) -> str:
    """Return what there is too much of at once on a first view, or ""."""
    found = page.evaluate(_COUNT)
    if name in FIRST:
        controls, words = found["controls"], found["words"]
    elif name in SPARE:
        controls, words = found["inMain"], found["text"]
    else:
        return ""
    return f"{name}: {found}" if not (3 < controls <= MOST_CONTROLS and 5 < words <= MOST_WORDS) else ""


def walk(page: Page, names: Iterator[str] | tuple[str, ...], language: str = "en") -> Iterator[str]:
    for name in names:
        page.set_viewport_size(PROJECTOR)
        open_page(page, title_of(name, language))
        yield name


def is_in_one_row(page: Page) -> None:
    """Check that checkpoint, sentence, kind, layer and head stand in one row."""
    edges = page.locator(".st-key-sentence, .st-key-sentence-row [class*=st-key-choose]").evaluate_all(
        "all => all.map((node) => node.getBoundingClientRect().bottom)"
    )
    assert len(edges) == 4 and max(edges) - min(edges) < 10
    name = key(page, "sidebar-checkpoint").locator("input")
    expect(name).to_have_value(read_opening(ROOT / "checkpoints" / "en-fr").name["en"])
    assert name.evaluate("node => node.scrollWidth <= node.clientWidth"), "the checkpoint's name is whole"


def libraries(seat: Seat) -> set[str]:
    """Return which libraries the tab has fetched."""
    return {urlsplit(url).path.rpartition("/")[2].split(".")[0] for url in seat.requests} & CHARTS.keys()


def bytes_of_a_rerun(seat: Seat) -> int:
    for _ in range(2):  # the browser reports its cached messages only after the first run
        seat.forget_frames()
        seat.page.locator("h1").first.click()
        seat.page.keyboard.press("r")
        settle(seat.page)
    return sum(seat.received)


@pytest.mark.sample
@pytest.mark.parametrize("quarter", range(4))
def test_every_page_draws_on_the_first_screen_and_is_accessible(sit: Callable[..., Seat], quarter: int) -> None:
    """Visit a quarter of the pages: each figure is on the first screen; every second quarter is dark.

    A page fetches the libraries that it needs, and no other; when it runs again, only what changed is sent.
    """
    # Of eight words: the opening sentence has twelve, with which Masks has 22 controls.
    address = "?checkpoint=en-fr&sentence=The+young+man+is+reading+a+white+book."
    seat = sit(address, **PROJECTOR, dark=quarter % 2 == 1)
    page, problems, entries, fetched = seat.page, [], {entry.name: entry for entry in PAGES[quarter::4]}, set()
    sentence = sentence_box(page).input_value()
    for number, name in enumerate(walk(page, tuple(entries))):
        draws(page, entries[name], sentence)
        if name in FIGURES and (seen := shows(page, 0.99)) < 0.99:
            problems.append(f"{name}: {seen:.0%} of the figure are on a projector's screen")
        fetched |= needed(name)
        # Some charts follow the first figure.
        if not eventually(page, lambda name=name: charts(page), needed(name), seconds=10):
            problems.append(f"{name} draws by {charts(page)}")
        if libraries(seat) != fetched:
            problems.append(f"up to {name}, {libraries(seat)} were fetched")
        problems += filter(None, [crowded(page, name)])
        within = "[data-testid=stMain]" if number else "html"  # what is around every page is checked only once
        problems += [f"{name}: {line}" for line in lasting(page, rules=(), within=within)]
        if name == "attention":
            is_in_one_row(page)
        if name in RUN_AGAIN and not 0 < (count := bytes_of_a_rerun(seat)) <= 30_000:  # before compression
            problems.append(f"{name} sends {count} bytes again")
        if name in TIGHT:
            page.set_viewport_size({"width": 1024, "height": 768})
            if (seen := shows(page, 0.7)) < 0.7:
                problems.append(f"{name}: {seen:.0%} of the figure are on a small screen")
    assert not problems, "\n".join(problems)


def in_french_and_dark(visit: Callable[..., Page], trace: Trace) -> Iterator[str]:
    eight_words = "The+young+man+is+reading+a+white+book."
    page = visit(f"?language=fr&checkpoint=en-fr&sentence={eight_words}", **PROJECTOR, dark=True)
    for name in walk(page, TIGHT, "fr"):
        yield from ends_in_the_window(page, f"{name} in French")
        yield from (f"{name}: {line}" for line in lasting(page))
        yield crowded(page, name)


def while_somebody_presents(visit: Callable[..., Page], trace: Trace) -> Iterator[str]:
    address = "attention?checkpoint=en-fr&sentence=The+cat+sat+on+the+mat.&stack=decoder&kind=cross&layer=1"
    page = visit(address, **PROJECTOR)
    plain = Drawing(page).state["stepX"]
    key(page, "sidebar-presenter").locator("label").first.click()
    settle(page)
    yield from ends_in_the_window(page, "attention presented", 0.99)
    assert Drawing(page).state["stepX"] > 1.1 * plain, "a presented map grows"
    for name in walk(page, ("heads", "masks")):
        yield from ends_in_the_window(page, f"{name} presented", 0.99)
    open_page(page, title_of("attention"))
    type_sentence(page, TWELVE)  # 18 rows, which end in the window: they have letters of 14 pixels, not of 16
    are_readable(page, [*trace.prediction.labels, *trace.attention("decoder", 1, "cross").key.labels], 13.5)
    type_sentence(page, "The old man told us a story.")
    for name in walk(page, ("decoding", "overview")):
        yield from ends_in_the_window(page, f"{name} presented")


def of_twenty_words(visit: Callable[..., Page], trace: Trace) -> Iterator[str]:
    page = visit(f"heads?sentence={TWENTY}", **PROJECTOR)
    yield from ends_in_the_window(page, "heads of twenty words")
    open_page(page, title_of("masks"))
    yield from ends_in_the_window(page, "masks of twenty words")
    go(page, f"?checkpoint=gpt-en&sentence={PROMPT}")
    yield from ends_in_the_window(page, "overview of a long prompt")
    for name, figure in (("", "living-picture"), ("decoding", "stepper")):
        go(page, f"{name}?{urlencode({'presenter': 1, 'sentence': QUESTION})}")
        Drawing(page)
        box = key(page, figure).bounding_box()
        if box["height"] <= 300 or box["y"] + box["height"] > PROJECTOR["height"] + 4:  # which is padding
            yield f"{figure} of twenty words, presented: {box}"


@pytest.mark.sample
@pytest.mark.parametrize("walked", [in_french_and_dark, while_somebody_presents, of_twenty_words])
def test_figures_end_on_the_first_screen(
    visit: Callable[..., Page], trace: Trace, walked: Callable[[Callable[..., Page], Trace], Iterator[str]]
) -> None:
    problems = [*filter(None, walked(visit, trace))]
    assert not problems, "\n".join(problems)


def ends_in_the_window(page: Page, what: str, share: float = 0.95) -> Iterator[str]:
    if (seen := shows(page, share)) < share:
        yield f"{what}: {seen:.0%}"


@pytest.mark.sample(of=2)
@pytest.mark.parametrize("name", ["decoding", "training", "checkpoint", "lens", "by_hand", ""])
def test_on_a_phone_nothing_is_wider_and_everything_can_be_tapped(visit: Callable[..., Page], name: str) -> None:
    fits_a_phone(visit(f"{name}?checkpoint=en-fr&sentence={BAKES}", **PHONE), name or "overview")


def fits_a_phone(page: Page, name: str) -> None:
    """Check that a page is as wide as the screen and that what can be tapped is high enough."""
    title = page.get_by_role("heading", name=title_of(name), exact=True, level=1).bounding_box()
    row = key(page, "sentence-row").bounding_box()
    assert row["y"] < 20 and title["y"] >= row["y"] + row["height"]
    assert title["height"] < 32, "the title takes one line"
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth") <= PHONE["width"]
    assert eventually(page, lambda: page.evaluate(_LOW), []), page.evaluate(_LOW)


def test_a_map_on_a_phone_is_read_and_what_is_typed_there_is_taken(visit: Callable[..., Page], trace: Trace) -> None:
    place = {"stack": "encoder", "kind": "self", "layer": 1}
    page = visit(f"attention?{urlencode({'checkpoint': 'en-fr', 'sentence': TWELVE, **place})}", **PHONE)
    view = trace.attention("encoder", 1, "self")
    are_readable(page, [*view.query.labels, *view.key.labels], 11.0)
    go(page, f"attention?checkpoint=en-fr&sentence={BAKES}")
    fits_a_phone(page, "attention")
    look_for = key(page, "look-for").locator("details")
    look_for.locator("summary").click()  # it unfolds above the figure, which it never covers
    figure = Drawing(page)
    expect(figure.canvas).to_be_in_viewport(ratio=0.4)
    lower, upper = look_for.bounding_box(), figure.painted()[1]
    assert lower["y"] + lower["height"] <= upper["y"]
    type_sentence(page, "We like old songs.")
    open_page(page, title_of("heads"))
    expect(sentence_box(page)).to_have_value("We like old songs.")
    sentence_box(page).fill("Who has the key?")  # a draft is taken when the reader taps elsewhere
    page.get_by_role("heading", level=1).click()
    assert eventually(page, lambda: asked(page)["sentence"], "Who has the key?")
    assert path(page) == "/heads"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), TWELVE)


def are_readable(page: Page, labels: list[str], least: float) -> None:
    """Check that the map writes every label, in letters at least so many pixels high."""
    page.evaluate(_LISTEN)
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    page.emulate_media(color_scheme="light" if dark else "dark")  # everything is drawn anew
    # The dot of a token is drawn separately, in a paler colour.
    wanted = Counter(label.removeprefix("·") or label for label in labels)

    def written() -> bool:
        found = page.evaluate("globalThis.written.map(({ text, size }) => [text, size])")
        looks.append([(text, size) for text, size in found if text in wanted])
        return len(looks) > 1 and looks[-1] == looks[-2] and Counter(text for text, _ in looks[-1]) >= wanted

    looks: list[list[tuple[str, float]]] = []
    assert eventually(page, written), (looks[-1], wanted)
    assert min(size for _, size in looks[-1]) >= least, looks[-1]
