"""A newcomer's walk from the first screen through all pages, with every kind of checkpoint.

With en-fr: tests/browser/test_first_screen.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, open_page
from tests.browser.test_shell import address
from transformer.files.opening_file import Example, read_opening
from ui.shell.navigation import GROUPS, NO_SENTENCE, Entry
from ui.words.texts import ROOT as TEXTS
from ui.words.translations import read_texts

pytestmark = pytest.mark.browser
PAGES = [entry for group in GROUPS.values() for entry in group if entry.exists]
FOLLOW = GROUPS["follow"]
# What a page can draw, or the one line that explains why it shows nothing; a lesson to start; a term.
DRAWINGS = ", ".join(
    (
        ".js-plotly-plot",
        ".sheet td",
        "canvas",
        "svg.marks",
        "[data-testid=stMetric]",
        "[data-testid=stAlertContentInfo]",
        "[class*=st-key-start-]",
        "[class*=st-key-term-]",
    )
)
SHIPPED = ROOT / "checkpoints"
# What is chosen beside the sentence, by the name of the choice.
MARKED = """() => Object.fromEntries([...document.querySelectorAll(".st-key-beside-sentence [role=combobox]")]
  .map((box) => [box.ariaLabel, box.value.replace(`${box.ariaLabel} `, "")]))"""


def walk(
    page: Page, sentence: str, look: Callable[[Entry], None] = lambda entry: None, *, language: str = "en",
    names: Collection[str] = (),
) -> None:  # fmt: skip
    """Visit all pages, or those in ``names``; ``look`` checks more on each page."""
    for entry in (entry for entry in PAGES if not names or entry.name in names):
        open_page(page, read_texts(TEXTS, entry.name, language)["title"])
        draws(page, entry, sentence, language=language)
        look(entry)


def opening(checkpoint: str) -> Example:
    """Return the defaults of an address that names only a checkpoint."""
    return read_opening(SHIPPED / checkpoint).first


def draws(page: Page, entry: Entry, sentence: str, *, language: str = "en") -> None:
    """Check that the page shows this sentence in its box, its marked choices, a figure, and no error."""
    if entry.name not in NO_SENTENCE:
        name = read_texts(TEXTS, "common", language)["sentence"]["name"]
        expect(page.get_by_role("textbox", name=name, exact=True)).to_have_value(sentence)
    marked, asked = page.evaluate(MARKED), address(page)
    # An address without a view opens as its checkpoint does; one with a view adds the first head, layer and token.
    silent = not asked.keys() - {"checkpoint", "language", "presenter"}
    first = opening(asked.get("checkpoint", "en-fr")).place if silent else {}
    for name in {"Layer", "Head"} & marked.keys():
        begins = str(first.get(name.lower(), 0))
        assert marked[name] == asked.get(name.lower(), begins), f"{entry.name} marks {marked}"
    assert all(marked[name] for name in {"Attention", "Stack"} & marked.keys()), f"{entry.name}: {marked}"
    wrong = page.locator("[data-testid=stAlertContentError]").all_inner_texts()
    assert not wrong, f"{entry.name}: {wrong}"
    drawn = page.locator(DRAWINGS).filter(visible=True).first
    expect(drawn, f"{entry.name} draws nothing").to_be_visible()


def test_all_nine_pages_are_there() -> None:
    assert all(entry.exists for entry in FOLLOW) and len(FOLLOW) == 9


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "width", "dark"), [("gpt-en", 800, True), ("bert-en", 1440, False)])
def test_the_shipped_checkpoints_go_through_all_pages(
    shipped: str, visit: Callable[..., Page], name: str, width: int, dark: bool
) -> None:
    """One checkpoint of each other architecture.

    Every run opens en-fr in Chromium (tests/browser/test_first_screen.py), and all checkpoints without a browser
    (tests/pages/test_shipped_checkpoints.py).
    """
    walk(visit(f"{shipped}/?checkpoint={name}", width=width, dark=dark), opening(name).sentence)


MODELS = sorted(path for path in SHIPPED.iterdir() if not (path / "vectors.safetensors").exists())


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_every_shipped_checkpoint_has_its_card_and_curves(path: Path) -> None:
    for file in ("config.json", "model.safetensors", "tokenizer.json", "README.md", "history.csv"):
        assert (path / file).is_file(), f"{path.name} lacks {file}"
