"""Lessons in the app: start, guess, continue, leave; a copied address; an invalid file; worksheets."""

from __future__ import annotations

import shutil
from collections import OrderedDict
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import choose_text, chosen_texts, is_fine, said
from ui.shell.guidance import guesses
from ui.shell.guidance import lessons as files
from ui.shell.guidance.lessons import find_lesson
from ui.words.texts import page_text

TEXT = page_text("lessons")
NAME = "03-one-head"
LESSON = find_lesson(NAME)
NASTY = "<script>alert(1)</script> **b** `c`"


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


def test_the_page_lists_every_lesson_with_aim_and_duration(open_app) -> None:
    app = open_app("lessons")
    is_fine(app)
    all_lessons = files.lessons()[0]
    for found in all_lessons:
        assert found.title in said(app) and found.aim in said(app)
    assert said(app).count("about") >= len(all_lessons)
    assert [button.label for button in app.button].count(TEXT["start"]) == len(
        all_lessons
    ) + 4  # plus the routes and the exercise
    assert not bar(app)


def test_a_lesson_from_start_to_finish(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("lessons")
    app.button(key="start 01-tiny").click().run()
    focus = app.session_state["focus"]
    assert (focus.lesson, focus.lesson_step, focus.sentence) == ("01-tiny", 1, "The dog sleeps.")
    app.switch_page("pages/tokens.py").run()  # AppTest does not follow a change of page by itself
    is_fine(app)
    assert bar(app) == ":material/school: **Tiny ·** task 1 of 2 · **One**"
    for hidden in page_text("tokens").look_for:
        assert hidden not in said(app)
    assert app.button(key="lesson back").disabled and app.button(key="lesson check").disabled
    assert "Because." not in said(app)

    guess(app, "this", check=False)
    assert "Because." not in said(app), "choosing is not yet guessing"
    app.button(key="lesson check").click().run()
    assert "**this.** This is near. **Hint:** Look again." in said(app) and "Because." not in said(app)
    (question,) = app.radio
    assert set(question.options) == {"that", "those"} and question.value is None
    guess(app, "those")
    assert "those. Those are far. **Answer: that.** Because." in said(app)
    assert not app.radio

    app.button(key="lesson next").click().run()
    focus = app.session_state["focus"]
    assert (focus.lesson_step, focus.layer, focus.head, focus.token) == (2, 1, 1, 2)
    app.switch_page("pages/attention.py").run()
    is_fine(app)
    assert "task 2 of 2" in bar(app) and app.session_state["attention_section"] == "trust"
    assert app.button(key="lesson next").label == TEXT["finish"]
    app.button(key="lesson next").click().run()
    app.switch_page("pages/lessons.py").run()
    assert not bar(app) and "0 of 1 right on the first try, 0 in the end" in said(app)
    assert app.button(key="start 01-tiny").label == TEXT["again"]
    score = TEXT["finished_score"].format(first=0, count=1)
    assert f"{TEXT['finished'].format(title='Tiny')} {score} {TEXT['finished_last']}" in said(app)


def test_what_another_step_has_chosen_is_as_at_first_where_a_step_does_not_name_it(
    open_app, tmp_path, monkeypatch
) -> None:
    common = 'title = "T"\ndo = "Do."\nnotice = "See."\npage = "lens"\n'
    steps = (
        'options = { lens_view = "author", lens_against = "·is" }\n',
        'options = { lens_view = "author" }\nquestion = "?"\nanswer = "A."\nwrong = ["B."]\nexplanation = "So."\n',
    )
    begin = 'title = "L"\naim = "To see."\nminutes = 5\nfocus = { checkpoint = "tiny-translator" }\n'
    lesson(tmp_path, monkeypatch, **{"02_rest": begin + "".join(f"[[step]]\n{common}{step}" for step in steps)})
    app = open_app("lens", checkpoint="tiny-translator", lesson="02-rest", lesson_step="1")
    is_fine(app)
    assert app.session_state["lens_against"] == "·is"
    app.button(key="lesson next").click().run()
    assert app.session_state["lens_view"] == "author" and app.selectbox(key="lens_against").value is None

    guess(app, "A.")
    assert "Right: A.**" in said(app), "a sentence has its own full stop"


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
    choose_text(app, "edit", *["zero:encoder.1.self.0"])  # what a student does
    app.run()
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


def test_a_right_guess_is_said_to_be_right(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("tokens", lesson="01-tiny")
    guess(app, "that")
    assert "Right: that." in said(app) and "Because." in said(app) and not app.radio


def test_the_score_counts_the_first_try_and_a_second_one_is_counted_apart(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("tokens", lesson="01-tiny")
    guess(app, "those")
    guess(app, "that")
    assert "Right: that." in said(app)
    app.switch_page("pages/lessons.py").run()
    assert "0 of 1 right on the first try, 1 in the end" in said(app)


def test_a_question_that_is_left_after_a_wrong_try_counts(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("tokens", lesson="01-tiny")
    guess(app, "those")
    app.switch_page("pages/lessons.py").run()
    assert "0 of 1 right on the first try, 0 in the end" in said(app)


def test_results_are_handed_in_as_a_file(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("tokens", lesson="01-tiny")
    guess(app, "those")
    guess(app, "that")
    drawn = []
    monkeypatch.setattr("views.lessons.results.st.download_button", lambda label, *, data, **_: drawn.append(data()))
    app.switch_page("pages/lessons.py").run()
    html = drawn[-1].decode("utf-8")
    assert "1. Which?" in html and html.index("✗ those") < html.index("✓ that") and "<script" not in html
    assert ">Tiny<" in html.replace("<bdi>", "").replace("</bdi>", "")


def test_options_stand_in_the_order_of_the_browser_also_after_a_reload(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)

    def shown(browser: str) -> tuple[str, ...]:
        monkeypatch.setattr(guesses, "browser_token", lambda: browser)
        (question,) = open_app("tokens", lesson="01-tiny").radio
        return tuple(question.options)

    orders = {browser: shown(browser) for browser in "abcdefgh"}
    assert len(set(orders.values())) > 1
    assert all(shown(browser) == order for browser, order in orders.items())


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
    assert not any(button.key == "lesson sentence" for button in app.button)
    covered = page_text("lessons")["guess_first"]
    assert covered in [caption.value for caption in app.caption]
    app.text_input(key="sentence").set_value("We went.").run()
    assert covered not in [caption.value for caption in app.caption], "nobody can guess, so nothing stays hidden"
    about = page_text("lessons")["about_sentence"].format(sentence=sentence)
    assert about in said(app) and all(radio.disabled for radio in app.radio if radio.key.startswith("lesson choice"))
    app.button(key="lesson sentence").click().run()
    is_fine(app)
    assert about not in said(app) and not any(radio.disabled for radio in app.radio)
    assert app.session_state["focus"].sentence == sentence
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


def test_on_another_page_the_bar_leads_back(open_app, tmp_path, monkeypatch) -> None:
    lesson(tmp_path, monkeypatch)
    app = open_app("positions", lesson="01-tiny", lesson_step="2")
    app.button(key="lesson page").click().run()
    app.switch_page("pages/attention.py").run()
    assert app.session_state["focus"].token == 2
    assert not any(button.key == "lesson page" for button in app.button)


def test_an_address_that_names_a_lesson_alone_opens_its_step(open_app, tmp_path, monkeypatch) -> None:
    """An address written by hand does not open the first head with a text about another one."""
    lesson(tmp_path, monkeypatch)
    app = open_app("attention", lesson="01-tiny", lesson_step="2")
    is_fine(app)
    focus = app.session_state["focus"]
    assert (focus.lesson, focus.lesson_step, focus.token) == ("01-tiny", 2, 2)


def test_an_address_opens_its_step_and_what_is_not_there_is_said(open_app) -> None:
    app = open_app("attention", lesson=NAME, lesson_step="4", sentence="We went to the sea.")
    is_fine(app)
    assert LESSON.steps[3].title in bar(app)
    app = open_app("attention", lesson=NAME, lesson_step="99", sentence="We went to the sea.")
    assert LESSON.steps[-1].title in bar(app)
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


def test_a_folder_without_lessons_says_so(open_app, tmp_path, monkeypatch) -> None:
    shutil.rmtree(lesson(tmp_path, monkeypatch) / "en")
    app = open_app("lessons")
    is_fine(app)
    assert app.info[0].value == TEXT["none"]


def test_worksheets_carry_the_address_that_the_class_uses(open_app, monkeypatch) -> None:
    monkeypatch.setattr("ui.shell.in_class.class_address.own_address", lambda: "http://127.0.0.1:8501")
    monkeypatch.setattr("ui.server.network_address._own_host", lambda: "198.51.100.4")
    drawn = []
    monkeypatch.setattr("views.lessons.lesson_cards._downloads", lambda p, sheet, *, name: drawn.append((name, sheet)))
    app = open_app("lessons")
    assert app.text_input(key="class address").value == "http://127.0.0.1:8501"
    assert TEXT["address_local"] in said(app)

    def links() -> set[str]:
        return {
            exercise.link.partition("?")[0].rpartition("/")[0] for _, sheet in drawn for exercise in sheet().exercises
        }

    monkeypatch.setattr("views.lessons.lesson_cards.step_figures", lambda lesson, focus, text: [()] * len(lesson.steps))
    assert links() == {"http://127.0.0.1:8501"}
    drawn.clear()
    app.text_input(key="class address").set_value("http://school.example/app/").run()
    is_fine(app)
    assert TEXT["address_local"] not in said(app) and links() == {"http://school.example/app"}
    drawn.clear()
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


@pytest.mark.parametrize("text", [HOSTILE, "=1+1", "x" * 4000], ids=["markup", "formula", "long"])
def test_a_hostile_lesson_ends_no_page(open_app, tmp_path, monkeypatch, text: str) -> None:
    """Its texts are Markdown without HTML; parts that do not exist are left out."""
    named = HOSTILE_LESSON.replace('figure = "T", light = ["T"], ', "")
    lesson(tmp_path, monkeypatch, a_02_hostile=named.replace('"T"', f'"{text}"'))
    for page, address in (
        ("lessons", {}),
        *(("attention", {"lesson": "a-02-hostile", "lesson_step": n}) for n in "12"),
    ):
        app = open_app(page, **address)
        assert not app.exception, [error.value for error in app.exception]
        assert not any(element.proto.allow_html and "<script>" in element.value for element in app.markdown)
    assert "start a-02-hostile" in {button.key for button in open_app("lessons").button}
