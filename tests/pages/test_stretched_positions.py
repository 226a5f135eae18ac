"""Pages about scaled rotary frequencies: which are scaled and by how much, and other factors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.foreign_checkpoints import STRETCHED, foreign_checkpoint
from tests.pages.conftest import codes, is_fine, said
from ui.words.texts import page_text

SENTENCE = "The cat sat on the mat, and the dog slept."
ANGLES = {"positions view": "angles"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stretched")
    for name in STRETCHED:
        foreign_checkpoint(name, folder)
    return folder


@pytest.mark.parametrize(
    ("checkpoint", "words", "formula"),
    [
        (
            "hf-yarn",
            ["of 4 pairs of channels, 1 unchanged, 2 slowed down by s = 4", "YaRN", "a² ="],
            r"\theta_i / \lambda_i",
        ),
        ("hf-longrope-short", ["here 1 to 2", "up to 100 tokens", "a = 0.8", "a² = 0.64"], r"\theta_i / \lambda_i"),
        ("hf-longrope", ["here 1.5 to 9", "more than 16 tokens", "pair 0 rotates by 0.667 rad"], "aR_m q"),
    ],
)
def test_positions_say_how_waves_are_stretched(
    open_app: Callable, folder: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: str,
    words: list[str], formula: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    app = open_app("positions", checkpoint=checkpoint, sentence=SENTENCE, **ANGLES)
    is_fine(app)
    text = said(app)
    assert all(word in text for word in words), text
    assert formula in "\n".join(latex.value for latex in app.latex)


@pytest.mark.parametrize("checkpoint", ["hf-yarn", "hf-longrope"])
def test_the_arithmetic_of_a_cell_and_its_python(
    open_app: Callable, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_snippet: Callable,
    checkpoint: str,
) -> None:  # fmt: skip
    """The snippet recomputes a rotated query, so it needs the factor and the length of the text."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    app = open_app("attention", checkpoint=checkpoint, sentence=SENTENCE, layer="1", token="3")
    key = app.selectbox(key="attention_key")
    is_fine(key.set_value(key.options[2]).run())
    assert page_text("attention")["arithmetic_factor"].split("{")[0] in said(app)
    snippet = next(code for code in codes(app) if "W_Q =" in code)
    (tmp_path / "checkpoints").unlink()
    (tmp_path / "checkpoints").symlink_to(folder)
    ours, models = map(float, run_snippet(snippet).split())
    assert ours == pytest.approx(models, abs=1e-4)


def test_layers_that_turn_otherwise_are_named(
    open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gemma 3 uses another rotation base for layers with a window than for layers with full attention."""
    foreign_checkpoint("hf-gemma3", tmp_path)
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    for layer, base, same, others in (("0", "10000", "0, 2", "1"), ("1", "1e+06", "1", "0, 2")):
        app = open_app("positions", checkpoint="hf-gemma3", layer=layer, **ANGLES)
        is_fine(app)
        assert f"Layers with these angles: {same}. Layers with other angles: {others};" in said(app)
        assert f"{base}^{{-2i/" in "\n".join(latex.value for latex in app.latex)
