"""The instructor's desk and its students: joining, views, questions, scores, the end."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import is_fine, said
from tests.triggers import trigger
from ui.classroom import class_state as classes
from ui.classroom import session, stores
from ui.classroom.attempts import Attempts
from ui.classroom.class_state import Question
from ui.words.texts import common, page_text
from views.desk.desk_sections import answer_bars, scores_file

TEXT = page_text("desk")
SECRET = "maple-otter-47"
OWN = "My own sentence."
LESSON = "03-one-head"


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server with a desk, no class, and no wrong attempts yet."""
    monkeypatch.setenv("GLASSFORMER_INSTRUCTOR", SECRET)
    monkeypatch.delenv("GLASSFORMER_REDIS", raising=False)
    monkeypatch.setattr(session, "_attempts", Attempts())
    stores.class_store.cache_clear()
    yield
    stores.class_store.cache_clear()


@pytest.fixture
def desk(open_app: Callable[..., AppTest]) -> AppTest:
    """The desk of a new class."""
    app = unlock(open_app("desk", checkpoint="tiny-translator"), SECRET)
    app.button(key="desk open").click().run()
    is_fine(app)
    return app


def unlock(app: AppTest, secret: str) -> AppTest:
    app.text_input(key="desk secret typed").set_value(secret)
    return next(button for button in app.button if button.label == TEXT["unlock"]).click().run()


def code_of(app: AppTest) -> str:
    return app.session_state["desk: code"]


def state(app: AppTest) -> classes.Class:
    return stores.class_store().read(code_of(app))


def bar(app: AppTest) -> str:
    """Return the first line of the class's bar; "" without one."""
    return next(
        (one.value for one in app.markdown if one.value.startswith((":material/groups:", ":material/co_p"))), ""
    )


def keys(app: AppTest) -> set[str]:
    return {button.key for button in app.button}


def ask(app: AppTest, prompt: str, options: str, correct: int) -> None:
    app.text_area(key="desk prompt choice").set_value(prompt)
    app.text_area(key="desk options").set_value(options).run()
    app.selectbox(key="desk correct").set_value(correct).run()
    app.button(key="desk ask").click().run()


def bars(app: AppTest) -> str:
    """Return the bars of the answers; "" while they are hidden."""
    return "".join(one.proto.body for one in app.get("html") if "<ol class" in one.proto.body)


def follow(app: AppTest, view: classes.View) -> AppTest:
    """Let the browser report that nothing is being typed, as follow.js does, and open the page."""
    trigger(app, "class follow", "ready", view.number)
    return turn_to(app, app.session_state["page state: page"])


def turn_to(app: AppTest, page: str) -> AppTest:
    return app.switch_page(f"pages/{page}.py").run()  # AppTest does not follow a change of page by itself


def test_without_the_setting_there_is_no_desk_and_no_class(open_app, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLASSFORMER_INSTRUCTOR")
    app = open_app("tokens", checkpoint="tiny-translator", **{"class": "BCDFGH"})
    is_fine(app)
    assert "class bar" not in str(app) and not bar(app) and not app.info
    app = open_app("desk", checkpoint="tiny-translator")
    assert "desk secret typed" not in [box.key for box in app.text_input]


def test_only_the_secret_opens_the_desk(open_app) -> None:
    app = open_app("desk", checkpoint="tiny-translator")
    for _ in range(10):
        unlock(app, "not the secret")
        assert [one.value for one in app.warning] == [TEXT["wrong_secret"]]
    unlock(app, SECRET)
    assert [one.value for one in app.warning] == [TEXT["wait"]], "nobody finds it by trying"
    app = unlock(open_app("desk", checkpoint="tiny-translator"), SECRET)
    assert "desk open" in keys(app), "only the one who guesses waits"
    assert SECRET not in str(app.query_params) and "desk secret typed" not in app.session_state


def test_a_student_joins_by_the_link_and_is_someone_else_than_the_next_one(open_app, desk: AppTest) -> None:
    code = code_of(desk)
    students = [open_app("tokens", checkpoint="tiny-translator", **{"class": code}) for _ in range(2)]
    for app in students:
        is_fine(app)
        assert common("class.class", code=code) in bar(app)
        assert app.query_params["class"] == code
    assert bar(students[0]) != bar(students[1])
    assert len(state(desk).students) == 2
    desk.run()
    assert [one.value for one in desk.metric] == ["2", "2"]
    assert page_text("tokens").title in said(desk)


def test_wrong_codes_are_refused_and_limited(open_app, desk: AppTest) -> None:
    app = open_app("tokens", checkpoint="tiny-translator", **{"class": "BCDFGH"})
    assert [one.value for one in app.info] == [common("class.unknown", code="'BCDFGH'")]
    assert not app.run().info, "it is said once"
    assert "class" not in app.query_params
    app = open_app("lessons", checkpoint="tiny-translator")
    for number in range(11):
        app.text_input(key="join code").set_value(f"BCDFG{number}").run()
    app.text_input(key="join code").set_value(code_of(desk)).run()
    assert common("class.attempts") in [one.value for one in app.info]
    assert not state(desk).students
    open_app("tokens", checkpoint="tiny-translator", **{"class": code_of(desk)})
    assert len(state(desk).students) == 1, "only the one who guesses waits"


def test_everybody_to_this_view_and_back_to_the_own_sentence(open_app, desk: AppTest) -> None:
    student = open_app("tokens", checkpoint="tiny-translator", sentence=OWN, **{"class": code_of(desk)})
    desk.switch_page("pages/attention.py").run()
    desk.text_input(key="sentence").set_value("The dog sleeps.").run()
    desk.button(key="class everybody").click().run()
    is_fine(desk)
    view = state(desk).view
    assert (view.page, view.number) == ("attention", 1)
    student.run()
    assert student.session_state["page state: page"] == "tokens", "until the browser has sent what is being typed"
    follow(student, view)
    is_fine(student)
    assert student.session_state["page state: page"] == "attention"
    assert student.session_state["focus"].sentence == "The dog sleeps."
    student.run()
    assert student.session_state["page state: page"] == "attention", "once"
    student.button(key="class own").click().run()
    assert student.session_state["page state: page"] == "tokens"
    is_fine(turn_to(student, "tokens"))
    assert student.session_state["focus"].sentence == OWN
    assert "class own" not in keys(student)


def test_a_question_from_the_desk_to_the_scores(open_app, desk: AppTest) -> None:
    code = code_of(desk)
    students = [open_app("tokens", checkpoint="tiny-translator", **{"class": code}) for _ in range(3)]
    ask(desk, "Is it *so*?", "yes\nno\n=maybe", 1)
    is_fine(desk)
    for app, option in zip(students[:2], (0, 1), strict=True):
        app.run()
        assert r"Is it \*so\*?" in "".join(one.value for one in app.markdown), "an instructor's text is no markup"
        app.radio[0].set_value(option).run()
        app.button(key="class send").click().run()
        assert "class change" in keys(app) and not app.radio
    students[1].button(key="class change").click().run()
    students[1].radio[0].set_value(2).run()
    students[1].button(key="class send").click().run()
    desk.run()
    assert TEXT["hidden"] in said(desk) and not bars(desk), "the class is not biased"
    desk.button(key="desk show_answers").click().run()
    assert "1 · 50%" in bars(desk) and "class=right" not in bars(desk)
    assert common("class.answer", answer="no") not in said(students[0].run())
    desk.button(key="desk reveal").click().run()
    is_fine(desk)
    assert "class=right" in bars(desk)
    for app in students:
        assert common("class.answer", answer="no") in said(app.run())
        assert "class change" not in keys(app)
    assert common("class.no_answer") in said(students[2])
    scores = pd.read_csv(io.BytesIO(scores_file(code, "en")), keep_default_na=False)
    assert scores["1. Is it *so*?"].tolist() == ["yes", "'=maybe", ""], "a spreadsheet runs no formula"
    assert scores[TEXT["scores_right"]].tolist() == [0, 0, 0] and set(scores[TEXT["scores_of"]]) == {1}
    desk.button(key="desk close").click().run()
    assert "desk ask" in keys(desk)
    assert "class send" not in keys(students[0].run())


def test_the_end_deletes_everything_and_tells_everybody(open_app, desk: AppTest) -> None:
    code = code_of(desk)
    student = open_app("tokens", checkpoint="tiny-translator", sentence=OWN, **{"class": code})
    desk.button(key="desk end now").click().run()
    is_fine(desk)
    assert [one.value for one in desk.info] == [common("class.over")]
    assert stores.class_store().codes() == [] and scores_file(code, "en") == b""
    student.run()
    assert [one.value for one in student.info] == [common("class.ended")]
    assert not bar(student) and "class" not in student.query_params
    assert student.session_state["focus"].sentence == OWN
    assert not student.run().info


def test_a_browser_that_comes_back_is_the_same_student(open_app, desk: AppTest, monkeypatch) -> None:
    monkeypatch.setattr(session, "browser_token", lambda: "the cookie of one browser")
    before, after = (open_app("tokens", checkpoint="tiny-translator", **{"class": code_of(desk)}) for _ in range(2))
    assert bar(before) == bar(after)
    assert len(state(desk).students) == 1
    desk.switch_page("pages/attention.py").run()
    desk.button(key="class everybody").click().run()
    for app in (before, after):  # in two tabs
        follow(app.run(), state(desk).view)
        assert app.session_state["page state: page"] == "attention"
    reloaded = open_app("tokens", checkpoint="tiny-translator", **{"class": code_of(desk)})
    follow(reloaded, state(desk).view)
    assert reloaded.session_state["page state: page"] == "tokens", "a view is opened once"


def test_an_unreachable_store_disturbs_no_page(open_app, desk: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    student = open_app("tokens", checkpoint="tiny-translator", sentence=OWN, **{"class": code_of(desk)})

    def fail(*_: object) -> None:
        raise stores.StoreError("ConnectionError")

    for name in ("read", "change", "codes", "end", "open"):
        monkeypatch.setattr(stores.Store, name, fail)
    for app in (student, desk):
        app.run()
        is_fine(app)
        assert common("class.unreachable") in said(app)
    assert student.session_state["focus"].sentence == OWN
    late = open_app("tokens", checkpoint="tiny-translator", **{"class": "BCDFGH"})
    assert [one.value for one in late.info] == [common("class.unreachable")]


def test_after_a_restart_everybody_is_told_that_the_class_is_gone(open_app, desk: AppTest) -> None:
    code = code_of(desk)
    student = open_app("tokens", checkpoint="tiny-translator", sentence=OWN, **{"class": code})
    stores.class_store.cache_clear()  # sessions that are still there, as with a Redis that was restarted
    assert [one.value for one in student.run().info] == [common("class.ended")]
    assert [one.value for one in desk.run().info] == [common("class.gone")]
    student = open_app("tokens", checkpoint="tiny-translator", **{"class": code})
    assert "lost when the server was restarted" in student.info[0].value
    assert TEXT["none_open"] in said(unlock(open_app("desk", checkpoint="tiny-translator"), SECRET))


# ---- answers --------------------------------------------------------------------------------------------------------

CHOICE = Question("Which?", ("`one`", "<b>two</b>"), answer="1", answers={"ann": "1", "bob": "0", "eve": "1"})


def test_every_option_has_a_bar_and_the_correct_one_is_marked_once_it_is_revealed() -> None:
    assert "class=right" not in answer_bars(CHOICE)
    drawn = answer_bars(replace(CHOICE, phase=classes.SOLVED))
    assert "&lt;b&gt;two&lt;/b&gt;" in drawn and "<b>two" not in drawn, "text is never markup"
    assert "2 · 67%" in drawn and "width: 66.7%" in drawn and drawn.count("class=right") == 1
    assert "<b>B</b>" in drawn and "<b>A</b>" not in answer_bars(replace(CHOICE, options=()))
    assert "<bdi><b>A</b> one</bdi>" in answer_bars(replace(CHOICE, lesson=LESSON)), "options of lessons are Markdown"
    assert answer_bars(replace(CHOICE, answers={})).count("width: 0.0%") == 2


def test_the_instructor_removes_a_student_and_closes_the_door(open_app, desk: AppTest) -> None:
    app = open_app("tokens", checkpoint="tiny-translator", sentence=OWN, **{"class": code_of(desk)})
    desk.session_state["desk who"] = True
    desk.run()
    assert desk.button(key="desk remove").disabled
    desk.selectbox(key="desk student").set_value(next(iter(state(desk).students))).run()
    desk.button(key="desk remove").click().run()
    is_fine(desk)
    assert not state(desk).students
    app.run()
    assert [one.value for one in app.info] == [common("class.removed", code=f"'{code_of(desk)}'")]
    assert not bar(app) and app.session_state["focus"].sentence == OWN

    desk.toggle(key="desk door").set_value(True).run()
    late = open_app("tokens", checkpoint="tiny-translator", **{"class": code_of(desk)})
    assert [one.value for one in late.info] == [common("class.closed", code=f"'{code_of(desk)}'")]
    desk.toggle(key="desk door").set_value(False).run()
    open_app("tokens", checkpoint="tiny-translator", **{"class": code_of(desk)})
    assert len(state(desk).students) == 1


def test_who_leaves_is_deleted_and_may_come_back(open_app, desk: AppTest) -> None:
    student = open_app("lessons", checkpoint="tiny-translator", **{"class": code_of(desk)})
    student.button(key="class leave").click().run()
    assert not state(desk).students and not bar(student)
    assert [one.value for one in student.info] == [common("class.left")]
    student.text_input(key="join code").set_value(code_of(desk)).run()
    assert len(state(desk).students) == 1 and bar(student)
