"""Lessons: start, guess, continue, leave; an invalid file; worksheets; the exercise about bugs."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import three_digits
from tests.pages.conftest import KINDS, choose_text, chosen_texts, is_fine, said
from transformer.config import ModelConfig
from transformer.faults.catalogue import diagnoses, diagnosis_of
from transformer.faults.fault_checks import CHECKS, checked_model
from transformer.faults.forward_faults import experiment_with_bug, padded
from ui.shell.guidance import guesses
from ui.shell.guidance import lessons as files
from ui.shell.guidance.lessons import find_course
from ui.words.texts import page_text

TEXT = page_text("lessons")
NAME = "03-one-head"
LESSON = find_course(NAME)


def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> Path:
    """Return a folder of lessons made of a tiny one and of ``texts``, which the app reads."""
    folder = tmp_path / "lessons"
    (folder / "en").mkdir(parents=True)
    tiny = """
        title = "Tiny"
        aim = "To see."
        minutes = 5
        focus = { checkpoint = "tiny-translator", sentence = "The dog sleeps." }
        step = [
          { page = "tokens", title = "One", do = "Do.", notice = "See.", question = "Which?", answer = "that", explanation = "Because.", hint = "Look again.", wrong = [["this", "This is near."], ["those", "Those are far."]] },
          { page = "attention", title = "Two", do = "Go.", notice = "Look.", focus = { layer = 1, head = 1, token = 2 }, options = { attention_section = "trust" } },
        ]
    """  # noqa: E501
    for name, text in {"01-tiny": tiny, **texts}.items():
        (folder / "en" / f"{name.replace('_', '-')}.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(files, "LESSONS", folder)
    return folder


def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    """Return what makes each file that the page offers from now on, by its name."""
    files: dict[str, Callable[[], str]] = {}

    def keep(label: str, made: Callable[[], str], *, file_name: str, **look: str) -> None:
        files[file_name] = made

    monkeypatch.setattr("views.lessons.lessons_sections.download", keep)
    return files


def bar(app: AppTest) -> str:
    """Return the first line of the bar; "" without a lesson."""
    return next((element.value for element in app.markdown if ":material/school:" in element.value), "")


def guess(app: AppTest, option: str, *, check: bool = True) -> None:
    (question,) = app.radio
    index = next(
        one for one in range(len(question.options) + 1) if question.format_func(one) == option
    )  # 2nd try: one less
    question.set_value(index).run()
    if check:
        app.button(key="lesson check").click().run()


def test_a_lesson_from_start_to_finish(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    files = downloads(monkeypatch)
    app = open_app("lessons")
    app.button(key="start 01-tiny").click().run()
    focus = app.session_state["focus"]
    assert (focus.lesson, focus.lesson_step, focus.sentence) == ("01-tiny", 1, "The dog sleeps.")
    app.switch_page("pages/tokens.py").run()  # AppTest does not follow a change of page by itself
    is_fine(app)
    assert "Tiny" in bar(app) and "One" in bar(app)
    assert not any(hidden in said(app) for hidden in page_text("tokens").look_for), "what to look for would tell"
    assert app.button(key="lesson back").disabled and app.button(key="lesson check").disabled
    guess(app, "this", check=False)
    assert "This is near." not in said(app), "choosing is not yet guessing"
    app.button(key="lesson check").click().run()
    assert "This is near." in said(app) and "Look again." in said(app) and "Because." not in said(app)
    (question,) = app.radio
    assert set(question.options) == {"that", "those"} and question.value is None
    guess(app, "those")
    assert "Those are far." in said(app) and "Because." in said(app) and not app.radio

    app.button(key="lesson next").click().run()
    focus = app.session_state["focus"]
    assert (focus.lesson_step, focus.layer, focus.head, focus.token) == (2, 1, 1, 2)
    app.switch_page("pages/attention.py").run()
    is_fine(app)
    assert "Two" in bar(app) and app.session_state["attention_section"] == "trust"
    app.button(key="lesson next").click().run()
    app.switch_page("pages/lessons.py").run()
    assert not bar(app) and TEXT["finished_score"].format(first=0, count=1) in said(app)
    assert app.button(key="start 01-tiny").label == TEXT["again"]
    html = next(text for made in files.values() if "✗" in (text := made()))
    assert "1. Which?" in html and html.index("✗ this") < html.index("✗ those") and "<script" not in html


def test_a_step_sets_up_its_changes_and_the_next_one_clears_them(open_app, tmp_path, monkeypatch) -> None:
    begin = 'title = "Changes"\naim = "To see."\nminutes = 5\nfocus = { checkpoint = "tiny-translator" }\n'
    common = 'title = "T"\ndo = "Do."\nnotice = "See."\n'
    steps = [
        'page = "surgery"\nedit = "zero:encoder.0.self.1"\n',
        'page = "surgery"\n',
        'page = "masks"\nmask = ["itself", "layer"]\n',
        'page = "masks"\n',
        'page = "compare"\nsecond = "A dog."\n',
        'page = "compare"\n',
    ]
    lesson(tmp_path, monkeypatch, **{"02_changes": begin + "".join(f"[[step]]\n{common}{step}" for step in steps)})
    place = {"checkpoint": "tiny-translator", "lesson": "02-changes"}
    app = open_app("surgery", lesson_step="1", **place)
    is_fine(app)
    assert list(chosen_texts(app, "edit")) == ["zero:encoder.0.self.1"]
    choose_text(app, "edit", "zero:encoder.1.self.0").run()  # what a student does
    assert list(chosen_texts(app, "edit")) == ["zero:encoder.1.self.0"]
    app.button(key="lesson next").click().run()
    assert list(chosen_texts(app, "edit")) == []

    app = open_app("masks", lesson_step="3", **place)
    assert app.session_state["mask history"][-1] == ["itself", "layer"]
    app.button(key="lesson next").click().run()
    assert app.session_state["mask history"][-1] in ([], ["own"]), "the model's own mask"

    app = open_app("compare", lesson_step="5", **place)
    assert app.text_input(key="second").value == "A dog."
    app.button(key="lesson next").click().run()
    assert app.text_input(key="second").value != "A dog."
    is_fine(app)


def test_what_an_address_holds_is_not_overruled_by_its_step(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("surgery", lesson="01-tiny", edit=["zero:encoder.0.self.0"])
    assert list(chosen_texts(app, "edit")) == ["zero:encoder.0.self.0"]


def test_a_hint_is_there_after_a_reload_but_not_for_another_browser(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    monkeypatch.setattr(guesses, "browser_token", lambda: "the cookie of one browser")
    monkeypatch.setattr(guesses, "_by_browser", OrderedDict())
    app = open_app("tokens", lesson="01-tiny")
    guess(app, "those")
    hint = "lesson choice 01-tiny 1 2"
    assert [one.key for one in app.radio] == [hint]
    assert [one.key for one in open_app("tokens", lesson="01-tiny").radio] == [hint], "as after a reload"
    monkeypatch.setattr(guesses, "browser_token", lambda: "another")
    assert [one.key for one in open_app("tokens", lesson="01-tiny").radio] != [hint]


def test_beside_another_sentence_a_button_leads_back_to_that_of_the_task(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("tokens", lesson="01-tiny")
    sentence = app.session_state["focus"].sentence
    app.text_input(key="sentence").set_value("We went.").run()
    assert all(radio.disabled for radio in app.radio if radio.key.startswith("lesson choice"))
    app.button(key="lesson sentence").click().run()
    is_fine(app)
    assert not any(radio.disabled for radio in app.radio) and app.session_state["focus"].sentence == sentence
    assert not any(button.key == "lesson sentence" for button in app.button)


def test_leaving_leaves_the_page_as_it_is(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("attention", lesson="01-tiny", lesson_step="2", sentence="We went.", layer="1")
    assert "task 2 of 2" in bar(app)
    app.button(key="lesson leave").click().run()
    assert not bar(app)
    focus = app.session_state["focus"]
    assert (focus.lesson, focus.lesson_step, focus.sentence, focus.layer) == ("", 1, "We went.", 1)
    assert "lesson" not in app.query_params and "lesson_step" not in app.query_params
    assert page_text("attention").look_for[0] in said(app)


def test_an_address_opens_its_step_and_what_is_not_there_is_said(open_app) -> None:
    app = open_app("attention", lesson=NAME, lesson_step="4", sentence="We went to the sea.")
    is_fine(app)
    assert LESSON.steps[3].title in bar(app)
    app = open_app("attention", lesson=NAME, lesson_step="99", sentence="We went to the sea.")
    assert LESSON.steps[-1].title in bar(app)
    assert f"There is no task 99 in this lesson (it has {len(LESSON.steps)})" in said(app)
    last = LESSON.steps[-1]
    app = open_app(last.page, lesson=NAME, lesson_step="99")  # such an address opens the view of its step
    assert last.title in bar(app)
    assert f"There is no task 99 in this lesson (it has {len(LESSON.steps)})" in said(app)
    app = open_app("attention", lesson="no-such **lesson**", sentence="We went to the sea.")
    assert not bar(app) and "There is no lesson 'no-such **lesson**' here" in said(app)
    assert "lesson" not in app.query_params


def test_a_broken_file_is_named_and_the_others_work(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch, a_02_broken='title = "Broken"\naim = "A"\nminutes = 5\n[[step]]\npage = "tokens"\n')
    app = open_app("lessons")
    assert not app.exception and not app.error
    message = app.warning[0].value.replace("\\", "")
    assert "lessons/en/a-02-broken.toml, step 1: title is missing" in message and len(app.warning) == 1
    assert app.button(key="start 01-tiny") and "Tiny" in said(app)


def test_worksheets_carry_the_address_that_the_class_uses(open_app, monkeypatch) -> None:
    monkeypatch.setattr("ui.classroom.class_address.own_address", lambda: "http://127.0.0.1:8501")
    monkeypatch.setattr("ui.classroom.class_address._own_host", lambda: "198.51.100.4")
    monkeypatch.setattr(
        "views.lessons.lessons_sections.step_figures", lambda p, lesson, focus: [()] * len(lesson.steps)
    )
    files = downloads(monkeypatch)
    app = open_app("lessons")
    assert app.text_input(key="class address").value == "http://127.0.0.1:8501"
    assert TEXT["address_local"] in said(app)

    def links() -> set[str]:
        html = next(made for name, made in files.items() if name.endswith("-worksheet.html"))()
        return {link.partition("?")[0].rpartition("/")[0] for link in re.findall('href="([^"]+)"', html)}

    assert links() == {"http://127.0.0.1:8501"}
    app.text_input(key="class address").set_value("http://school.example/app/").run()
    is_fine(app)
    assert TEXT["address_local"] not in said(app) and links() == {"http://school.example/app"}
    app.text_input(key="class address").set_value("javascript:alert(1)").run()
    assert len(app.warning) == 1 and links() == {"http://127.0.0.1:8501"}


HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> [l](javascript:alert(3)) $\\\\frac{$ :material/home: "
    "{0} %s \u202e \u0301 #"
)
HOSTILE_LESSON = """
title = "T"
aim = "T"
minutes = 5
focus = { checkpoint = "../../etc", sentence = "T", layer = 999, head = 999, token = 999 }
step = [
  { page = "attention", title = "T", do = "T", notice = "T", question = "T", answer = "b", wrong = [["T", "T"]], hint = "T", explanation = "T", figure = "T", light = ["T"], options = { attention_section = "T", attention_step = 99999, "T" = "T" }, edit = ["zero:encoder.99.self.99"], mask = ["window 99999"], second = "T" },
  { page = "tokens", title = "T", do = "T", notice = "T" },
]
"""  # noqa: E501


def test_a_hostile_lesson_ends_no_page(open_app, tmp_path, monkeypatch) -> None:
    """Its texts are Markdown without HTML; parts that do not exist are left out."""
    named = HOSTILE_LESSON.replace('figure = "T", light = ["T"], ', "")
    lesson(tmp_path, monkeypatch, a_02_hostile=named.replace('"T"', f'"{HOSTILE}"'))
    for page, address in (("lessons", {}), ("attention", {"lesson": "a-02-hostile", "lesson_step": "1"})):
        app = open_app(page, **address)
        assert not app.exception, [error.value for error in app.exception]
        assert not any(element.proto.allow_html and "<script>" in element.value for element in app.markdown)


BUGS = page_text("lessons")["bugs"]
SENTENCE = "We went to the sea."


@pytest.fixture
def open_exercise(open_app: Callable[..., AppTest]) -> Callable[..., AppTest]:
    def open_case(checkpoint: str, number: int = 0, sentence: str = SENTENCE) -> AppTest:
        app = open_app("lessons", checkpoint=checkpoint, sentence=sentence, exercise="bugs", patient=str(number))
        is_fine(app)
        return app

    return open_case


def first_case(fault: str, config: ModelConfig) -> int:
    return next(number for number in count() if diagnosis_of(number, config).fault == fault)


def outputs(app: AppTest) -> list[str]:
    """Return the outputs of both models; the page's question is the first heading of this size."""
    return [line.removeprefix("##### ") for line in said(app).splitlines() if line.startswith("##### ")][1:]


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", KINDS)
def test_every_case_can_be_guessed(open_exercise, tiny_checkpoint, checkpoint: str) -> None:
    config = tiny_checkpoint(checkpoint).config
    app = open_exercise(checkpoint)
    for number in range(len(diagnoses(config))):
        app.number_input(key="patient").set_value(number).run()
        is_fine(app)
        assert not app.success and not app.info and not app.dataframe, "the pictures come first"
        fault = diagnosis_of(number, config).fault
        app.button(key=f"guess {fault}").click().run()
        is_fine(app)
        assert len(app.success) == 1 and len(app.dataframe) == 1
        assert app.button(key="guess scale").disabled


@pytest.mark.sample
@pytest.mark.parametrize("fault", ["scale", "positions", "padding", "norm"])
def test_the_numbers_and_the_checks_of_the_snippet_are_the_library_s(
    open_exercise, tiny_checkpoint, run_snippet, fault: str
) -> None:
    checkpoint = tiny_checkpoint("translator")
    app = open_exercise("tiny-translator", first_case(fault, checkpoint.config))
    trace = transformer.trace(checkpoint, SENTENCE)
    found = experiment_with_bug(transformer.trace_of(padded(trace.run, len(trace.source))), fault)
    assert outputs(app)[0] == " ".join(found.answer_before.text.split())[:80] + "…" * (
        len(found.answer_before.text) > 80
    )
    app.button(key=f"guess {fault}").click().run()
    table = app.dataframe[-1].value
    checked, healthy = checked_model(trace, fault), checked_model(trace)
    assert list(table[BUGS["this_case"]]) == [three_digits(check(checked).value) for check in CHECKS.values()]
    assert list(table[BUGS["healthy"]]) == [three_digits(check(healthy).value) for check in CHECKS.values()]
    assert list(table[BUGS["column_fires"]]) == [BUGS["fires" if name == fault else "passes"] for name in CHECKS]
    assert re.search(rf"Finding\(check='{fault}'[^)]*fires=True", run_snippet(app).splitlines()[-1])


def test_from_the_list_to_the_exercise_to_the_next_case_and_back(open_app: Callable[..., AppTest]) -> None:
    app = open_app("lessons", checkpoint="tiny-translator", sentence=SENTENCE)
    app.button(key="start exercise").click().run()
    is_fine(app)
    app.button(key="another patient").click().run()
    assert app.number_input(key="patient").value == 1
    app.button(key="leave exercise").click().run()
    is_fine(app)
    assert app.button(key="start exercise")
