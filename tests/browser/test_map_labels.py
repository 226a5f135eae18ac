"""Every label of a map can be read: in Presenter mode from the back of a room, and on a small screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

import transformer
from tests.browser.conftest import pause, settle
from tests.browser.seats import Seat
from tests.conftest import ROOT
from tests.nights import by_day

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SENTENCE = "My grandmother bakes apple pie every Sunday after church with the children."
# Width and height of the window, Presenter, and the least height of letters, in pixels.
SCREENS = {"presenter": (1280, 720, "1", 16.0), "laptop": (1280, 720, "0", 11.0), "phone": (390, 844, "0", 11.0)}
ATTENTIONS = ("decoder cross", "encoder self", "decoder self")
CASES = [f"{screen} {attention}" for screen in SCREENS for attention in ATTENTIONS]
BY_DAY = ["presenter decoder cross", "phone encoder self"]  # a laptop has more room per letter than both
# 18 rows stand in a map that ends in the window.
SMALLER = pytest.mark.xfail(strict=True, reason="a projector's map of 18 rows has letters of 14 pixels, not of 16")
# The texts on the canvases at the end, with the height of their letters on the screen; texts that are painted over or
# cleared do not count.
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


def written(page: Page) -> list[tuple[str, float]]:
    """Return the texts on the canvases of a page, with the height of their letters."""
    page.add_init_script(f"({_LISTEN})()")
    page.reload()
    settle(page)
    read = "globalThis.written.map(({ text, size }) => [text, size])"
    found = page.evaluate(read)
    for _ in range(60):  # a busy machine draws late
        pause(page, 500)
        if found == (found := page.evaluate(read)) and found:
            break
    return [tuple(one) for one in found]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(*case.values, id=case.id, marks=(*case.marks, *([SMALLER] if case.id == BY_DAY[0] else [])))
        for case in by_day(CASES, BY_DAY)
    ],
)
def test_a_map_of_twelve_words_shows_every_label(shipped: str, sit: Callable[..., Seat], case: str) -> None:
    screen, stack, kind = case.split()
    width, height, presenter, least = SCREENS[screen]
    checkpoint = transformer.load(ROOT / "checkpoints" / "en-fr")
    trace = transformer.trace(checkpoint, SENTENCE)
    view = trace.attention(stack, 1, kind)
    rows = trace.prediction.labels if kind == "cross" else view.query.labels
    address = {"sentence": SENTENCE, "stack": stack, "kind": kind, "layer": "1", "presenter": presenter}
    query = urlencode({"checkpoint": checkpoint.name, **address})
    found = written(sit(f"{shipped}/attention?{query}", width=width, height=height).page)
    counts = Counter(text for text, _height in found)
    # The dot of a token is drawn separately, in a paler colour.
    for word, count in Counter(label.removeprefix("·") or label for label in (*rows, *view.key.labels)).items():
        assert counts[word] >= count, (word, count, counts)
        assert min(height for text, height in found if text == word) >= least, word
    if presenter == "1":
        assert not any("0." in text and not text.strip("0.") for text in counts), "zeros are left out"
