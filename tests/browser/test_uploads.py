"""A checkpoint uploaded through the form by a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import settle

pytestmark = pytest.mark.browser
FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")


def choose(page: Page, *files: Path | dict) -> None:
    page.get_by_text("Open a custom checkpoint").click()
    page.get_by_test_id("stFileUploaderDropzoneInput").first.set_input_files(list(files))


def test_a_checkpoint_is_opened_by_its_files(app: str, visit: Callable[..., Page], checkpoints_folder: Path) -> None:
    page = visit(f"{app}/checkpoint")
    choose(page, *(checkpoints_folder / "tiny-gpt" / name for name in FILES))
    page.get_by_role("button", name="Open these files").click()
    page.wait_for_function("() => location.search.includes('checkpoint=received-')")
    settle(page)
    expect(page.get_by_text("This checkpoint was uploaded here.")).to_be_visible()


def test_a_file_that_has_no_space_left_is_refused_in_a_sentence(app: str, chromium: Browser) -> None:
    """In a context of its own, because the console reports every refused file as an error."""
    tiny = [{"name": f"{number}.txt", "mimeType": "text/plain", "buffer": b"x"} for number in range(102)]
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(f"{app}/checkpoint")
        settle(page)
        choose(page, *tiny)
        expect(page.get_by_text("a visitor may send 100 files at a time")).to_be_visible(timeout=60_000)
