"""The reader's own image: given in a real browser, kept on the next page, refused if it is damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.browser.conftest import open_page, settle
from tests.transformer.guests.tiny_image_guests import image_checkpoint

pytestmark = pytest.mark.browser


@pytest.fixture
def _vit(checkpoints_folder: Path) -> Iterator[None]:
    """Add a checkpoint that reads images, for this test only."""
    made = image_checkpoint("vit", checkpoints_folder)
    yield
    shutil.rmtree(made)


@pytest.mark.usefixtures("_vit")
def test_an_own_image_is_read_and_stays_on_the_next_page(app: str, visit: Callable[..., Page]) -> None:
    page = visit(f"{app}/attention?checkpoint=vit&layer=1")
    chooser = page.get_by_test_id("stFileUploaderDropzoneInput")
    chooser.set_input_files({"name": "cat.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n, no image"})
    expect(page.get_by_text("not a PNG or JPEG image")).to_be_visible()
    pixels = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    chooser.set_input_files({"name": "cat.png", "mimeType": "image/png", "buffer": file.getvalue()})
    page.wait_for_function("() => /sentence=image(:|%3A)[0-9a-f]{64}/.test(location.search)")
    expect(page.get_by_text("not a PNG or JPEG image")).to_be_hidden()
    address = page.evaluate("location.search")
    open_page(page, "Embeddings")
    settle(page)
    expect(page.get_by_role("application").first).to_be_visible()
    text = next(part for part in address.split("&") if "image" in part).split("=")[1]
    assert text in page.evaluate("location.search")
