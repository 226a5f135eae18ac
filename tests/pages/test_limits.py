"""Input that is too long or too large is refused with a sentence, at once, and stays in its box."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.fuzzing import is_sound, open_page, type_into
from transformer.runs.inputs import MAX_CHARACTERS

LONG = "so " * MAX_CHARACTERS


@pytest.fixture(autouse=True)
def tiny(checkpoints_folder: Path) -> None:
    """Let the app find only the tiny checkpoints."""


def warned(app: AppTest) -> str:
    return " ".join(warning.value for warning in app.warning).replace("\\", "")


@pytest.mark.parametrize(("box", "name"), [("sentence", "sentence"), ("sidebar target", "target")])
def test_a_huge_text_is_not_even_cut_into_tokens_and_megabytes_are_not_kept(
    box: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = transformer.Tokenizer.encode

    def counted(self, text: str, **more: bool) -> list[int]:
        assert len(text) <= MAX_CHARACTERS
        return encode(self, text, **more)

    monkeypatch.setattr(transformer.Tokenizer, "encode", counted)
    app = type_into(open_page("attention", "tiny-translator"), box, LONG)
    is_sound(app)
    assert f"The {name} has {len(LONG):,} characters; at most {MAX_CHARACTERS:,}" in warned(app)
    assert app.text_input(key=box).value == LONG
    assert not type_into(app, box, "The cat.").warning, "everything is as before"
    app = type_into(app, box, "so " * 1_000_000)
    is_sound(app)
    assert "The text has 3,000,000 characters. This server reads at most 40,000" in warned(app)
    kept = getattr(app.session_state["focus"], name)
    assert len(kept) == MAX_CHARACTERS and app.text_input(key=box).value == kept


def test_what_is_named_in_a_note_is_short() -> None:
    address = {"checkpoint": "x" * 100_000, "stack": "y" * 100_000, "language": "z" * 100_000}
    app = open_page("attention", "tiny-translator", **address)
    is_sound(app)
    notes = [caption.value for caption in app.caption if any(5 * letter in caption.value for letter in "xyz")]
    assert len(notes) == 3 and all(len(note) < 300 for note in notes)
