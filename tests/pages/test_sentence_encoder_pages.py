"""Every page with an encoder without a head: its figures, or one line about why there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

import transformer
from charts.toolkit.style import three_digits
from tests.pages.conftest import is_fine, said
from tests.transformer.guests.test_sentence_encoders import TEXTS, saved
from transformer.layers.embedding_space import parts_of_cosine
from ui.shell.navigation import ENTRIES

PAGES = [name for name, entry in ENTRIES.items() if entry.exists and name != "lessons"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("encoders")
    (root / "encoder").mkdir()
    saved(root / "encoder")
    return root


@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_it_or_says_why_not(
    open_app, folders: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folders))
    app = open_app(page, checkpoint="encoder", sentence=TEXTS[0])
    is_fine(app)
    without = [line.value for line in app.info if "encoder without an output head" in line.value]
    assert bool(without) == (ENTRIES[page].of_output)
    assert "turns a sentence into a vector" in said(app), "in the sidebar"
    if page != "by_hand":  # it speaks of other models, too, as do the definitions of terms
        about_blanks = [line for line in said(app).splitlines() if "blank" in line and not line.startswith("- **")]
        assert not about_blanks, "it fills none"


def test_compare_says_the_cosine_and_where_it_comes_from(
    open_app, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list = []
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folders))
    monkeypatch.setattr("views.compare.two_sentences.show_map", lambda figure, **_: drawn.append(figure))
    app = open_app("compare", checkpoint="encoder", sentence=TEXTS[0], second=TEXTS[1])
    is_fine(app)
    checkpoint = transformer.load(folders / "encoder")
    parts = parts_of_cosine(*(transformer.trace(checkpoint, text) for text in TEXTS))
    assert f"Cosine of the two vectors: **{three_digits(float(parts.sum()))}**" in said(app)
    assert drawn[-1].arrays["values"] == pytest.approx(parts, abs=1e-6)
