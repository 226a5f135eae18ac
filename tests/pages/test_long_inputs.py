"""As many tokens as a model reads, on every page: a picture each, and the elements of one do not become thousands."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from benchmarks.long_inputs import long_sentence
from tests.conftest import ROOT, open_by_address
from tests.pages.conftest import said
from tests.pages.fuzzing import PAGES, choose, is_sound
from ui.words.texts import page_text

KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
# The views that are slowest, or were: (page, key of the buttons, option).
VIEWS = [
    ("positions", "positions view", "view_sum"),
    ("add_norm", "add norm view", "tab_updates"),
    ("decoding", "decoding_section", "section_tree"),
    ("decoding", "decoding_section", "section_alignment"),
    ("attention", "attention_section", "section_trust"),
    ("masks", "masks view", "view_steps"),
    ("training", "training section", "section_step"),
    ("embeddings", "embeddings section", "section_training"),
]


def opened(page: str, checkpoint: str, sentence: str) -> AppTest:
    return open_by_address(page, {"checkpoint": checkpoint, "sentence": sentence}, timeout=180)


@cache
def longest(name: str) -> str:
    """As long as a checkpoint that ships can read."""
    return long_sentence(transformer.load(ROOT / "checkpoints" / name))


def read_all_of_it(app: AppTest) -> None:
    """Nothing was refused."""
    is_sound(app)
    assert not app.warning, [warning.value for warning in app.warning]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("checkpoint", KINDS)
def test_a_tiny_model_to_its_limit(tiny_checkpoint: Callable, checkpoint: str, page: str) -> None:
    sentence = long_sentence(tiny_checkpoint(checkpoint))
    limit = tiny_checkpoint(checkpoint).config.max_length - (checkpoint == "tiny-gpt")
    loaded = tiny_checkpoint(checkpoint)
    trace = transformer.trace(loaded, sentence)
    assert len(trace.tokens(trace.stacks[0])) == limit
    read_all_of_it(opened(page, checkpoint, sentence))


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = ROOT / "checkpoints"
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    return folder


# Patching makes a pass for every place: at 256 tokens minutes of work, whose progress the page shows and which can be
# cancelled. The tiny models go through it to their limit.
@pytest.mark.parametrize("page", [page for page in PAGES if page != "paths"])
@pytest.mark.parametrize("name", ["en-fr", "gpt-en"])
def test_256_tokens_of_a_model_that_ships(shipped: Path, name: str, page: str) -> None:
    read_all_of_it(opened(page, name, longest(name)))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "key", "option"), VIEWS, ids=[option for *_, option in VIEWS])
def test_256_tokens_of_the_slowest_views(shipped: Path, page: str, key: str, option: str) -> None:
    app = opened(page, "en-fr", longest("en-fr")).run()
    found = next((group.key for group in app.get("button_group") if group.key and group.key.startswith(key)), "")
    read_all_of_it(choose(app, [(found, page_text(page)[option])]))


@pytest.mark.parametrize("name", ["bert-en", "sentiment"])
def test_a_model_that_reads_fewer_says_how_many(shipped: Path, name: str) -> None:
    long = longest("en-fr")
    app = opened("attention", name, long)
    is_sound(app)
    assert "this model reads at most 128" in app.warning[0].value.replace("\\", "")
    assert next(box for box in app.text_area if box.key == "sidebar sentence").value == long


def test_the_lens_looks_at_a_long_text_piece_by_piece(tiny_checkpoint: Callable) -> None:
    text = page_text("lens")
    app = opened("lens", "tiny-gpt", long_sentence(tiny_checkpoint("gpt")))
    read_all_of_it(app)
    assert text["window_caption"].format(first=55, last=94, count=95) in said(app)
    app.slider(key="lens_first").set_value(3).run()
    assert text["window_caption"].format(first=3, last=42, count=95) in said(app)
    app.slider(key="lens_first").set_value(0).run()
    short = opened("lens", "tiny-bert", "The cat sat on the mat.")
    assert not [slider for slider in short.slider if slider.key == "lens_first"]


def test_the_heads_of_a_long_text_say_how_to_see_them(tiny_checkpoint: Callable) -> None:
    text = page_text("heads")
    app = opened("heads", "tiny-translator", long_sentence(tiny_checkpoint("translator")))
    hint = text["dark"].format(count=96, switch=text["stretch"]).replace("**", "")
    assert hint in said(app).replace("**", "")
    app.toggle(key="heads_stretch").set_value(True).run()
    read_all_of_it(app)
    assert hint not in said(app).replace("**", "")
