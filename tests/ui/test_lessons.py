"""Lesson files: reading, errors of invalid files, and that every step can be opened."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ui.shell.focus import Focus
from ui.shell.guidance import lessons as lesson_files
from ui.shell.guidance.lessons import LESSONS, MAX_STEPS, Lesson, Step, find_course, lessons, read_lesson, routes

ENGLISH, FRENCH = lessons("en")[0], lessons("fr")[0]
GOOD = """
title = "T"
aim = "A"
minutes = 5
[focus]
layer = 1
[[step]]
page = "attention"
title = "One"
do = "Do."
notice = "See."
question = "Which?"
answer = "b"
wrong = ["a", ["c", "No."]]
hint = "Look."
explanation = "Because."
focus = { head = 1 }
[[step]]
page = "tokens"
title = "Two"
do = "Do."
notice = "See."
"""
ASKS, ASKS_NOT = 'answer = "b"', 'page = "tokens"'  # a line of each step


def written(tmp_path: Path, text: str, *, language: str = "en", name: str = "01-mine") -> Path:
    path = tmp_path / language / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_becomes_a_lesson(tmp_path: Path) -> None:
    lesson = read_lesson(written(tmp_path, GOOD))
    assert (lesson.name, lesson.title, lesson.minutes) == ("01-mine", "T", 5)
    assert [bool(step.question) for step in lesson.steps].count(True) == 1
    assert lesson.steps[0] == Step(
        page="attention", title="One", do="Do.", notice="See.", question="Which?", answer="b",
        explanation="Because.", hint="Look.", wrong=(("a", ""), ("c", "No.")), focus={"layer": 1, "head": 1},
        covers=("page",),
    )  # fmt: skip
    assert lesson.steps[0].choices == ("b", "a", "c") and lesson.steps[0].feedback_on(2) == "No."
    assert not lesson.steps[1].covers, "nothing is asked"
    assert lesson.steps[1].focus == {"layer": 1} and not lesson.steps[1].question


def test_a_lesson_has_at_most_so_many_steps(tmp_path: Path) -> None:
    head, _, step = GOOD.split("[[step]]")
    assert len(read_lesson(written(tmp_path, head + f"[[step]]{step}" * MAX_STEPS)).steps) == MAX_STEPS
    with pytest.raises(ValueError, match=f"has {MAX_STEPS + 1} steps"):
        read_lesson(written(tmp_path, head + f"[[step]]{step}" * (MAX_STEPS + 1)))


def test_a_step_about_a_checkpoint_that_is_not_installed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def models() -> list[str]:
        return [step.focus["checkpoint"] for step in find_course("11-other-models").steps]

    everything = models()
    assert "bert-en-pairs" in everything
    monkeypatch.setattr("ui.shell.guidance.lessons.REPOSITORY", tmp_path)
    assert models() == [name for name in everything if name != "bert-en-pairs"]


def test_a_step_may_set_up_edits_a_mask_and_a_second_sentence(tmp_path: Path) -> None:
    more = 'edit = ["zero:encoder.0.self.1", "drop:encoder.1.feed_forward"]\nmask = "window 3"\nsecond = "A dog."\n'
    first, second = read_lesson(written(tmp_path, GOOD.replace('page = "tokens"', f'page = "tokens"\n{more}'))).steps
    assert first.changes == {"edit": (), "mask": (), "second": ()}
    assert second.changes == {
        "edit": ("zero:encoder.0.self.1", "drop:encoder.1.feed_forward"),
        "mask": ("window 3",),
        "second": ("A dog.",),
    }


def test_a_step_says_what_it_covers_or_why_nothing(tmp_path: Path) -> None:
    def first(line: str) -> Step:
        return read_lesson(written(tmp_path, GOOD.replace('answer = "b"', f'answer = "b"\n{line}'))).steps[0]

    assert first('figure = "attention path"').covers == ("attention path",), "the figure that it is about"
    assert first('cover = ["answers", "numbers"]').covers == ("answers", "numbers")
    assert first('open = "counting is the task"').covers == ()
    assert first('open = "counting is the task"').uncovered == "counting is the task"
    assert first('light = "token strip"').lights == ("token strip",)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_every_guess_covers_something_or_its_file_says_why_not(language: str) -> None:
    """Written in the file itself, so that the author of a step decides it."""
    for path in sorted((LESSONS / language).glob("*.toml")):
        written_steps = tomllib.loads(path.read_text(encoding="utf-8"))["step"]
        for number, (raw, step) in enumerate(zip(written_steps, read_lesson(path).steps, strict=True), 1):
            assert ("cover" in raw) + ("open" in raw) == bool(step.question), f"{path}, step {number}"
            assert bool(step.covers) != bool(step.uncovered)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_an_answer_has_room_in_two_lines(language: str) -> None:
    """At 1280 pixels a line of the bar holds some 170 letters; the browser's test measures it."""
    for lesson in lessons(language)[0]:
        for number, step in enumerate(lesson.steps, 1):
            said = f"{step.question} {step.answer} {step.explanation}"
            assert len(said) <= 330, f"{lesson.name}, step {number}"


def test_a_step_sets_every_place_and_leaves_the_rest() -> None:
    step = Step("attention", "t", "d", "n", focus={"layer": 2, "sentence": "Hello."})
    before = Focus(checkpoint="mine", sentence="Old.", target="x", head=5, token=3, pads=2, language="fr")
    after = step.focused(before, default=Focus(checkpoint="en-fr"))
    assert after == Focus(checkpoint="en-fr", sentence="Hello.", layer=2, language="fr")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "T"', 'title = "T', r"lessons/en/01-mine.toml is not valid TOML"),
        ('title = "T"', "", r"01-mine.toml: title is missing"),
        ("minutes = 5", "minutes = 0", r"01-mine.toml: minutes is 0"),
        ("minutes = 5", "minuts = 5", r"01-mine.toml has 'minuts'; did you mean minutes"),
        ('page = "tokens"', 'page = "token"', r"step 2: there is no page 'token'; did you mean tokens"),
        ('do = "Do."\nnotice = "See."\nquestion', 'notice = "See."\nquestion', r"step 1: do is missing"),
        ('wrong = ["a", ', 'wrong = [["a"], ', r"step 1: wrong is \[\['a'\], .*; write a list of wrong options"),
        ('wrong = ["a", ["c", "No."]]', "wrong = []", r"step 1: wrong is \[\]"),
        ('wrong = ["a", ', 'wrong = ["b", ', r"step 1: two options have the same text"),
        ('answer = "b"', "answer = 3", r"step 1: answer is 3, not a text"),
        ('question = "Which?"', "", r"step 1 has answer but no question"),
        ('explanation = "Because."', "", r"step 1: explanation is missing"),
        ("focus = { head = 1 }", "focus = { haed = 1 }", r"step 1, focus has 'haed'; did you mean head"),
        ("focus = { head = 1 }", "focus = { head = -1 }", r"step 1, focus: head is -1; it must be an integer"),
        ("focus = { head = 1 }", 'focus = { stack = "coder" }', r"stack is 'coder'; choose encoder or decoder"),
        ("focus = { head = 1 }", "focus = { sentence = 3 }", r"sentence is 3; it must be a string"),
        ("focus = { head = 1 }", "options = 3", r"step 1: options is 3"),
        ("layer = 1", 'layer = "1"', r"01-mine.toml, focus: layer is '1'"),
        (GOOD[GOOD.index("[[step]]") :], "", r"01-mine.toml has no steps"),
        *((ASKS, f"{ASKS}\n{line}", message) for line, message in (
            ('cover = "page"\nopen = "why"', "step 1 has cover and open"),
            ("cover = 3", "step 1: cover is 3; write the key of a part"),
            ('light = ["a { b"]', r"step 1: light is \['a \{ b'\]"),
        )),
        *((ASKS_NOT, f"{ASKS_NOT}\n{line}", message) for line, message in (
            ('cover = "page"', "step 2 has cover but no question"),
            ('open = "why"', "step 2 has open but no question"),
            ('edit = "zero"', "step 2: edit is 'zero'"),
            ("edit = 3", "step 2: edit is 3"),
            ('mask = ["blocks 2-3"]', "step 2: mask is 'blocks 2-3'"),
            ('mask = ["block 2"]', "step 2: mask is 'block 2'"),
            ('second = ["a", "b"]', "it takes exactly one"),
            ('second = ""', "step 2: second is"),
        )),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_with_step_and_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(ValueError, match=message):
        read_lesson(written(tmp_path, GOOD.replace(old, new, 1)))


def test_a_broken_file_leaves_the_others_alone_and_english_speaks_where_a_translation_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lesson_files, "LESSONS", tmp_path)
    written(tmp_path, GOOD)
    written(tmp_path, GOOD.replace('"T"', '"Second"'), name="02-other")
    written(tmp_path, GOOD.replace('"T"', '"Deuxième"'), name="02-other", language="fr")
    written(tmp_path, "title = ", name="01-mine", language="fr")
    found, problems = lessons("fr")
    assert [lesson.title for lesson in found] == ["T", "Deuxième"]
    assert len(problems) == 1 and "lessons/fr/01-mine.toml" in problems[0]
    assert lessons("xx")[0][1].title == "Second"
    assert find_course("03") is None and find_course("no-such") is None
    assert find_course("05-other").name == "02-other", "its number when the link was copied"


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr(lesson_files, "LESSONS", tmp_path)
    path = written(tmp_path, GOOD)
    assert [lesson.title for lesson in lessons("en")[0]] == ["T"]
    written(tmp_path, GOOD.replace('"T"', '"New"'))
    os.utime(path, ns=(1, 1))
    assert [lesson.title for lesson in lessons("en")[0]] == ["New"]


def test_there_are_twelve_lessons_of_five_to_nine_steps_in_both_languages() -> None:
    for found in (ENGLISH, FRENCH):
        assert len(found) == 12
        assert all(5 <= len(lesson.steps) <= 9 for lesson in found)
    assert not lessons("en")[1] and not lessons("fr")[1]
    assert {path.name for path in (LESSONS / "en").glob("*.toml")} == {path.name for path in (LESSONS / "fr").glob("*")}


@pytest.mark.parametrize(("english", "french"), list(zip(ENGLISH, FRENCH, strict=True)), ids=lambda lesson: lesson.name)
def test_the_translation_asks_the_same_at_the_same_places(english: Lesson, french: Lesson) -> None:
    assert english.title != french.title and english.minutes == french.minutes
    for one, other in zip(english.steps, french.steps, strict=True):
        assert (one.page, one.focus, one.options) == (other.page, other.focus, other.options)
        assert (one.covers, one.lights, one.figure) == (other.covers, other.lights, other.figure)
        assert len(one.choices) == len(other.choices)
        assert one.do != other.do


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_tour_is_six_short_stops_with_a_question_each(language: str) -> None:
    tour = find_course("tour", language)
    assert tour == routes(language)[0][0] and len(tour.steps) == 6 and all(step.question for step in tour.steps)
    assert {step.page for step in tour.steps} == {"overview"}, "it stays with one picture"
    read = " ".join(" ".join((step.do, step.notice, step.question, *step.choices)) for step in tour.steps)
    assert len(read.split()) <= 160 * tour.minutes, "who reads 200 words a minute has a fifth of it left for the pages"


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_routes_fit_into_their_time_and_ask_in_the_order_of_the_lessons(language: str) -> None:
    time = {step.title: lesson.minutes / len(lesson.steps) for lesson in lessons(language)[0] for step in lesson.steps}
    found = [route for route in routes(language)[0] if route.name != "tour"]
    assert [route.minutes for route in found] == [45, 90]
    for route in found:
        needed = sum(time[step.title] for step in route.steps)
        assert 0.7 * route.minutes <= needed <= 0.77 * route.minutes, "a quarter is for talking"
        assert find_course(route.name, language) == route and all(step.question for step in route.steps)
    assert "W_O" in " ".join(step.title for step in found[1].steps)
    assert find_course("03-one-head", language).steps[6].options["attention_step"] == 7
    assert find_course("no-such", language) is None
