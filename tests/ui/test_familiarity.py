"""The line about an unusual sentence appears for such sentences, and for no others."""

from __future__ import annotations

import pytest

import transformer
from tests.conftest import ROOT
from tests.foreign_checkpoints import foreign_checkpoint
from ui.shell.sentence_notes import guess_language, unlike_training
from ui.words.texts import model_sentences


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat sat on the mat and it was old.", "en"),
        ("Le chat est sur le tapis.", "fr"),
        ("Die Katze ist nicht auf der Matte.", "de"),
        ("El gato está en las casas, pero no es muy viejo.", "es"),
        ("Il gatto è nella casa con gli amici.", "it"),
        ("Tom loves Mary.", ""),
        ("", ""),
    ],
)
def test_the_language_of_a_sentence_is_guessed_or_left_open(text: str, language: str) -> None:
    assert guess_language(text) == language


pytestmark = pytest.mark.usefixtures("shipped_folder")  # whose recipes are known


@pytest.fixture(scope="module")
def checkpoint() -> transformer.Checkpoint:
    return transformer.load(ROOT / "checkpoints" / "en-fr")


def line(checkpoint: transformer.Checkpoint, sentence: str, name: str = "en-fr") -> str:
    return unlike_training(transformer.trace(checkpoint, sentence, target="Oui."), name)


def test_the_ready_sentences_are_like_the_training_but_for_those_of_other_letters(checkpoint) -> None:
    unusual = {name for name, sentence in model_sentences()["example"].items() if line(checkpoint, sentence)}
    assert "alphabet" in unusual and unusual <= {"alphabet", "emoji", "blank"}
    assert not [one for pair in model_sentences()["pair"].values() for one in pair.values() if line(checkpoint, one)]


def test_another_language_and_a_long_text_are_said(checkpoint) -> None:
    french = line(checkpoint, "Le chat est sur le tapis.")
    assert "it looks like French, but this model was trained on English" in french
    long = line(checkpoint, "and then " * 40)
    assert "81 tokens, while training had at most 64" in long
    assert line(checkpoint, "Le chat est sur le tapis.", name="upload") == "", "nobody knows how that was trained"


def test_what_a_model_wrote_itself_says_nothing_about_the_sentence(tiny_checkpoint) -> None:
    """A decoder-only model's output follows the sentence in the same sequence."""
    trace = transformer.trace(tiny_checkpoint("gpt"), "The cat sat.", "日本語の文字" * 3)
    assert sum(token.display.startswith("⟨") for token in trace.target) > 0.5 * len(trace.target)
    assert not unlike_training(trace, "upload")


def test_unknown_tokens_are_not_called_bytes(tmp_path) -> None:
    checkpoint = transformer.load(foreign_checkpoint("hf-bert", tmp_path))
    said = unlike_training(transformer.trace(checkpoint, "☃ ☂ ♞ cat"), "upload")
    assert "not in its vocabulary" in said
    assert "bytes" not in said
