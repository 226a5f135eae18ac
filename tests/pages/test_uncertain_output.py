"""The first screen says that a small model makes mistakes where its output is improbable."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import ROOT
from tests.pages.conftest import is_fine, said
from tests.shipped import SHIPPED
from transformer.files.model_card import card_of, training_examples
from ui.words.texts import common

SENTENCE = "My grandmother bakes apple pie every Sunday."


@pytest.mark.parametrize("page", ["overview", "decoding"])
def test_an_improbable_translation_is_called_that_of_a_model_that_makes_mistakes(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """The translation of “bakes” is “s'arrange”, and the whole output has p = 0.0107."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app(page, checkpoint="en-fr", sentence=SENTENCE)
    is_fine(app)
    key = {"overview": "uncertain.least", "decoding": "uncertain.line"}[page]
    words = common(key, written="", word="s'arrange", probability="= 0.0107", count="161,496").strip()
    assert words in said(app)
    sure = open_app(page, checkpoint="en-fr", sentence="I love you.")
    is_fine(sure)
    assert words.partition({"overview": "s'arrange", "decoding": "0.0107"}[page])[0] not in said(sure)


def test_every_trained_checkpoint_says_on_how_many_examples() -> None:
    counts = {path.name: training_examples(card_of(path)) for path in SHIPPED}
    assert all(counts.values()) and counts["en-fr"] == 161_496
    assert training_examples("A card of another library.") is None
