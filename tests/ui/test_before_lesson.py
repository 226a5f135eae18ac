"""The view before a lesson: as text and back, and with a sentence that was typed during the lesson."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ui.shell.focus import Focus, address_of, opening_focus
from ui.shell.guidance.before_lesson import own_sentence, read_view, restored_focus, with_own_sentence, write_view

MINE = Focus("sentiment", "Ça va? 100 % & <b>", layer=2, head=1, token=3)
CHOICES = {"attention_section": ("trust",), "edit": ("zero:encoder.0.self.1", "zero:encoder.0.self.2")}


@pytest.mark.parametrize(
    "focus", [MINE, replace(MINE, sentence=""), Focus("en-fr", "A.", stack="decoder", kind="cross")]
)
def test_a_view_is_read_as_it_was_written(focus: Focus) -> None:
    assert read_view(write_view("attention", focus, CHOICES)) == ("attention", focus, CHOICES)


def test_an_opening_is_written_short_and_read_whole() -> None:
    opening = opening_focus()
    view = write_view("overview", opening, {})
    assert view == "overview?" and read_view(view) == ("overview", opening, {})


def test_a_view_from_an_address_may_say_anything() -> None:
    page, focus, choices = read_view("nonsense?layer=two&lesson=tour&came_from=x&note=n&a=1&a=2&=")
    assert (page, focus.layer, focus.lesson, focus.came_from) == ("nonsense", 0, "", "")
    assert choices == {"a": ("1", "2"), "": ("",)}
    assert read_view("")[0] == ""


@pytest.mark.usefixtures("shipped_folder")
def test_a_typed_sentence_takes_the_place_of_the_one_before() -> None:
    view = write_view("attention", MINE, CHOICES)
    now = Focus("sentiment", "Mine.", lesson="tour", came_from=view)
    assert with_own_sentence(now, given="Mine.", page="masks") == view, "it is the step's"
    page, focus, choices = read_view(with_own_sentence(now, given="Theirs.", page="masks"))
    assert (page, choices) == ("attention", CHOICES) and focus == replace(MINE, sentence="Mine.", token=0)
    other = replace(now, checkpoint="en-fr")
    assert with_own_sentence(other, given="Theirs.", page="masks") == view, "it was typed for another kind of model"
    translator = replace(now, checkpoint="en-fr-sharp", came_from=write_view("overview", opening_focus("en-fr"), {}))
    assert read_view(with_own_sentence(translator, given="Theirs.", page="masks"))[1].sentence == "Mine."
    by_a_link = replace(now, came_from="")
    assert with_own_sentence(by_a_link, given="Mine.", page="masks") == ""
    page, focus, choices = read_view(with_own_sentence(by_a_link, given="Theirs.", page="masks"))
    assert (page, focus.checkpoint, focus.sentence, focus.lesson, choices) == ("masks", "sentiment", "Mine.", "", {})


@pytest.mark.usefixtures("shipped_folder")
def test_a_sentence_is_the_readers_own_if_the_model_does_not_open_with_it() -> None:
    mine = replace(opening_focus("en-fr"), sentence="Mine.", target="Le mien.")
    for view, checkpoint, found in (
        (write_view("overview", mine, {}), "en-fr", ("Mine.", "Le mien.")),
        (write_view("overview", mine, {}), "en-fr-sharp", ("Mine.", "Le mien.")),
        (write_view("overview", mine, {}), "gpt-en", None),  # another kind of model
        (write_view("overview", opening_focus("en-fr"), {}), "en-fr", None),
        ("", "en-fr", None),
    ):
        assert own_sentence(view, checkpoint=checkpoint) == found


def test_language_and_presenter_stay_as_they_are_now() -> None:
    assert not restored_focus(MINE).keys() & {"language", "presenter"}
    assert restored_focus(MINE)["lesson"] == "" and restored_focus(MINE)["head"] == 1


def test_only_the_own_address_holds_the_view() -> None:
    during = replace(MINE, lesson="tour", came_from="overview?layer=1")
    assert address_of(during)["came_from"] == "overview?layer=1"
    assert "came_from" not in address_of(during, whole=True)
