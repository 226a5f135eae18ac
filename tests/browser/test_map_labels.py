"""Every label of a map can be read: in Presenter mode from the back of a room, and on a small screen."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

import transformer
from tests.browser.conftest import settle
from tests.browser.seats import Seat
from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SENTENCE = "My grandmother bakes apple pie every Sunday after church with the children."
# What a canvas writes, with the height of its letters on the screen.
_LISTEN = """() => {
  globalThis.written = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
    const size = parseFloat(this.font.match(/([\\d.]+)px/)[1]);
    const scale = Math.hypot(this.getTransform().a, this.getTransform().b) / devicePixelRatio;
    globalThis.written.push([text, size * scale]);
    return write.call(this, text, ...more);
  };
}"""


def written(page: Page) -> dict[str, float]:
    """Return what stands on the canvases of a page, with the least height of its letters."""
    page.add_init_script(f"({_LISTEN})()")
    page.reload()
    settle(page)
    page.wait_for_timeout(500)
    found: dict[str, float] = {}
    for text, height in page.evaluate("globalThis.written"):
        found[text] = min(height, found.get(text, height))
    return found


@pytest.mark.parametrize(
    ("width", "height", "presenter", "least"),
    [(1280, 720, "1", 16.0), (1280, 720, "0", 11.0), (390, 844, "0", 11.0)],
    ids=["presenter", "laptop", "phone"],
)
@pytest.mark.parametrize(("stack", "kind"), [("decoder", "cross"), ("encoder", "self"), ("decoder", "self")])
def test_a_map_of_twelve_words_shows_every_label(
    shipped: str, sit: Callable[..., Seat], stack: str, kind: str, width: int, height: int, presenter: str, least: float
) -> None:
    checkpoint = transformer.load(ROOT / "checkpoints" / "en-fr")
    trace = transformer.trace(checkpoint, SENTENCE)
    view = trace.attention(stack, 1, kind)
    rows = trace.prediction.labels if kind == "cross" else view.query.labels
    address = {"sentence": SENTENCE, "stack": stack, "kind": kind, "layer": "1", "presenter": presenter}
    query = urlencode({"checkpoint": checkpoint.name, **address})
    found = written(sit(f"{shipped}/attention?{query}", width=width, height=height).page)
    for label in {*rows, *view.key.labels}:
        word = label.removeprefix("·") or label  # the dot of a token is written for itself, paler
        assert word in found, (label, sorted(found))
        assert found[word] >= least, (label, found[word])
    if presenter == "1":
        assert not any(number.strip("0.") == "" and "0." in number for number in found), "zeros are left out"
