"""Long texts on every page: 64 tokens in every run; the model's maximum and 512 tokens at night."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from operator import getitem
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

import transformer
from tests.conftest import ROOT, TINY_CONFIGS, open_by_address
from tests.long_texts import long_sentence
from tests.nights import in_turn
from tests.pages.conftest import said
from tests.pages.fuzzing import PAGES, choose, is_sound
from ui.words.filled import filled
from ui.words.texts import page_text

KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
# Views that are or were slowest: (page, key of the buttons, option).
VIEWS = [
    ("positions", "positions view", "view_sum"),
    ("add_norm", "add norm view", "tab.updates"),
    ("decoding", "decoding_section", "section.tree"),
    ("decoding", "decoding_section", "section.alignment"),
    ("attention", "attention_section", "section_trust"),
    ("masks", "masks view", "view.steps"),
    ("training", "training section", "section.step"),
    ("embeddings", "embeddings section", "section.training"),
]


def opened(page: str, checkpoint: str, sentence: str) -> AppTest:
    return open_by_address(page, {"checkpoint": checkpoint, "sentence": sentence}, timeout=180)


@cache
def of_length(name: str, n_tokens: int) -> str:
    """Return a text for a shipped checkpoint."""
    return long_sentence(transformer.load(ROOT / "checkpoints" / name), n_tokens)


def read_all_of_it(app: AppTest) -> None:
    """Check that nothing was refused."""
    is_sound(app)
    assert not app.warning, [warning.value for warning in app.warning]


@pytest.mark.slow
@pytest.mark.parametrize(("checkpoint", "page"), in_turn(KINDS, PAGES))
def test_a_tiny_model_to_its_limit(tiny_checkpoint: Callable, checkpoint: str, page: str) -> None:
    loaded = tiny_checkpoint(checkpoint)
    sentence = long_sentence(loaded, loaded.config.max_length)
    trace = transformer.trace(loaded, sentence)
    assert len(trace.tokens(trace.stacks[0])) == loaded.config.max_length - (checkpoint == "tiny-gpt")
    read_all_of_it(opened(page, checkpoint, sentence))


@pytest.fixture(scope="module")
def long_models(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: transformer.Tokenizer) -> Path:
    """Return a folder with the tiny models, which here read 512 tokens."""
    folder = tmp_path_factory.mktemp("long")
    for name, values in TINY_CONFIGS.items():
        torch.manual_seed(0)
        config = transformer.ModelConfig(vocabulary_size=tiny_tokenizer.vocabulary_size, max_length=512, **values)
        transformer.save(folder / name, transformer.build_model(config), tiny_tokenizer)
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize(("checkpoint", "page"), in_turn(KINDS, PAGES))
def test_512_tokens(long_models: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: str, page: str) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(long_models))
    read_all_of_it(opened(page, checkpoint, long_sentence(transformer.load(long_models / checkpoint), 512)))


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = ROOT / "checkpoints"
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    return folder


LONG = pytest.mark.parametrize("n_tokens", [64, pytest.param(256, marks=pytest.mark.nightly)])


@pytest.mark.slow
@LONG
@pytest.mark.parametrize(("name", "page"), in_turn(("en-fr", "gpt-en"), PAGES, one_in=2))
def test_a_model_that_ships(shipped: Path, name: str, page: str, n_tokens: int) -> None:
    """In every run on half of the pages, since a tiny model reaches its limit on each of them."""
    read_all_of_it(opened(page, name, of_length(name, n_tokens)))


@pytest.mark.slow
@LONG
@pytest.mark.parametrize(("page", "key", "option"), VIEWS, ids=[option for *_, option in VIEWS])
def test_the_slowest_views(shipped: Path, page: str, key: str, option: str, n_tokens: int) -> None:
    app = opened(page, "en-fr", of_length("en-fr", n_tokens)).run()
    found = next((group.key for group in app.get("button_group") if group.key and group.key.startswith(key)), "")
    text = reduce(getitem, option.split("."), page_text(page))
    read_all_of_it(choose(app, [(found, text)]))


@pytest.mark.parametrize("name", ["bert-en", "sentiment"])
def test_a_model_that_reads_fewer_says_how_many(shipped: Path, name: str) -> None:
    long = of_length("en-fr", 256)
    app = opened("attention", name, long)
    is_sound(app)
    assert "this model reads at most 128" in app.warning[0].value.replace("\\", "")
    assert app.text_input(key="sentence").value == long


def test_the_lens_looks_at_a_long_text_piece_by_piece(tiny_checkpoint: Callable) -> None:
    text = page_text("lens")
    app = opened("lens", "tiny-gpt", long_sentence(tiny_checkpoint("gpt"), 96))
    read_all_of_it(app)
    assert text["window_caption"].format(first=85, last=94, count=95) in said(app)
    app.slider(key="lens_first").set_value(3).run()
    assert text["window_caption"].format(first=3, last=12, count=95) in said(app)
    app.slider(key="lens_first").set_value(0).run()
    short = opened("lens", "tiny-bert", "The cat sat.")
    assert not [slider for slider in short.slider if slider.key == "lens_first"]


def test_the_heads_of_a_long_text_say_how_to_see_them(tiny_checkpoint: Callable) -> None:
    text = page_text("heads")
    app = opened("heads", "tiny-translator", long_sentence(tiny_checkpoint("translator"), 96))
    hint = filled(text["dark"], {"count": 96, "switch": text["stretch"]}, markdown=False).replace("**", "")
    assert hint in said(app).replace("**", "")
    app.toggle(key="heads_stretch").set_value(True).run()
    read_all_of_it(app)
    assert hint not in said(app).replace("**", "")
