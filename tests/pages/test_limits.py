"""Input that is too long or too large is refused with a sentence, at once, and stays in its box."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.nights import by_day
from tests.pages.conftest import chosen_texts, said
from tests.pages.fuzzing import is_sound, open_page, type_into
from transformer.runs.inputs import MAX_CHARACTERS
from ui.shell.guidance import lessons
from ui.shell.share import LONGEST_NOTE
from views.surgery import edit_list

LONG = "so " * MAX_CHARACTERS


@pytest.fixture(autouse=True)
def tiny(checkpoints_folder: Path) -> None:
    """Let the app find only the tiny checkpoints."""


def warned(app: AppTest) -> str:
    return " ".join(warning.value for warning in app.warning).replace("\\", "")


@pytest.mark.parametrize(("box", "what"), [("sentence", "sentence"), ("sidebar target", "target")])
def test_a_huge_text_is_not_even_cut_into_tokens(box: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = transformer.Tokenizer.encode

    def counted(self, text: str, **more: bool) -> list[int]:
        assert len(text) <= MAX_CHARACTERS
        return encode(self, text, **more)

    monkeypatch.setattr(transformer.Tokenizer, "encode", counted)
    app = type_into(open_page("attention", "tiny-translator"), box, LONG)
    is_sound(app)
    assert f"The {what} has {len(LONG):,} characters; at most {MAX_CHARACTERS:,}" in warned(app)
    assert app.text_input(key=box).value == LONG
    # After choosing an example, everything is as before.
    assert not type_into(app, box, "The cat.").warning


@pytest.mark.parametrize(("box", "name"), [("sentence", "sentence"), ("sidebar target", "target")])
def test_megabytes_are_not_kept_in_the_session(box: str, name: str) -> None:
    app = type_into(open_page("attention", "tiny-translator"), box, "so " * 1_000_000)
    is_sound(app)
    assert "The text has 3,000,000 characters. This server reads at most 40,000" in warned(app)
    kept = getattr(app.session_state["focus"], name)
    assert len(kept) == MAX_CHARACTERS
    assert app.text_input(key=box).value == kept


def test_only_so_many_edits_are_made_and_the_others_named() -> None:
    wanted = [f"scale:encoder.0.self.0={number}" for number in range(900)]
    app = open_page("surgery", "tiny-translator", edit=wanted)
    is_sound(app)
    assert list(chosen_texts(app, "edit")) == wanted[: edit_list.MOST]
    words = said(app)
    assert wanted[edit_list.MOST] in words and f"and {900 - edit_list.MOST - 5:,} more" in words
    assert len(words) < 20_000


def test_an_edit_with_a_huge_sentence_is_not_made() -> None:
    app = open_page("surgery", "tiny-translator", edit=["patch:encoder.0.self.0=" + LONG, "zero:encoder.0.self.1"])
    is_sound(app)
    assert list(chosen_texts(app, "edit")) == ["zero:encoder.0.self.1"] and "patch:encoder.0.self.0=so" in said(app)


def test_no_edit_is_added_to_a_full_list() -> None:
    full = [f"scale:encoder.0.self.0={number}" for number in range(edit_list.MOST)]

    def script() -> None:
        import streamlit as st

        from views.surgery import edit_list

        if st.button("add"):
            edit_list.add("zero:encoder.1.self.1")
        st.markdown(str(len(edit_list.specs())))

    app = AppTest.from_function(script)
    app.session_state["page state: set"] = {"surgery": {"edit": tuple(full)}}
    app.run().button[0].click().run()
    assert app.markdown[0].value == str(edit_list.MOST)
    assert app.session_state["surgery edits: dropped"] == ("zero:encoder.1.self.1",)


def test_only_the_beginning_of_a_long_note_is_shown_and_that_is_said() -> None:
    app = open_page("overview", "tiny-translator", note="Look! " * 1000)
    is_sound(app)
    assert "longer" in app.info[0].value and len(app.info[0].value.replace("\\", "")) < LONGEST_NOTE + 100


@pytest.mark.parametrize("parameter", ["layer", "head", "token", "pads", "step", "lesson_step", "shuffles", "patient"])
@pytest.mark.parametrize("value", by_day(["9" * 5000, "-5", "1e3", "٣", "0x10", " 1 "], ["9" * 5000, "٣"]))
def test_numbers_that_are_none(parameter: str, value: str) -> None:
    page = {"step": "decoding", "shuffles": "positions", "patient": "lessons"}.get(parameter, "attention")
    app = open_page(page, "tiny-translator", **{parameter: value})
    is_sound(app)
    assert all(len(caption.value) < 400 for caption in app.caption[:3])


def test_what_is_named_in_a_note_is_short() -> None:
    address = {"checkpoint": "x" * 100_000, "stack": "y" * 100_000, "language": "z" * 100_000}
    app = open_page("attention", "tiny-translator", **address)
    is_sound(app)
    notes = [caption.value for caption in app.caption if any(5 * letter in caption.value for letter in "xyz")]
    assert len(notes) == 3 and all(len(note) < 300 for note in notes)


def test_lesson_files_have_limits(tmp_path: Path) -> None:
    folder = tmp_path / "en"
    folder.mkdir()
    step = '[[step]]\npage = "tokens"\ntitle = "t"\ndo = "d"\nnotice = "n"\n'
    head = 'title = "T"\naim = "A"\nminutes = 5\n'
    for name, content, problem in (
        ("1-long", head + "# " + "x" * lessons.LONGEST_FILE, "bytes; a lesson has at most"),
        ("2-many", head + step * (lessons.MAX_STEPS + 1), f"has {lessons.MAX_STEPS + 1} steps"),
    ):
        (folder / f"{name}.toml").write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=problem):
            lessons.read_lesson(folder / f"{name}.toml")
    (folder / "3-fits.toml").write_text(head + step * lessons.MAX_STEPS, encoding="utf-8")
    assert len(lessons.read_lesson(folder / "3-fits.toml").steps) == lessons.MAX_STEPS


def test_a_limit_of_the_library_itself(tiny_checkpoint: Callable) -> None:
    with pytest.raises(transformer.InputError, match="at most 40,000 are allowed"):
        transformer.trace(tiny_checkpoint("gpt"), LONG)
