"""The bars of a class above every page, and the texts of its questions.

The student's bar has the instructor's question. Both look for news every two seconds, without the rest of the page.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from ui.classroom import class_state as classes
from ui.classroom import session
from ui.classroom.class_state import SOLVED, Class, Question
from ui.classroom.stores import StoreError
from ui.shell import focus as shared_focus
from ui.shell.admission import admit
from ui.shell.events import component, nothing
from ui.shell.fragments import fragment
from ui.shell.guidance.guesses import shuffled_options
from ui.shell.guidance.lesson_bar import BAR_STYLE
from ui.shell.guidance.lessons import ANSWER, Lesson, Step, find_course
from ui.shell.navigation import DESK, pages
from ui.words.texts import as_plain, common, count_text, language

POLL = 2.0  # seconds
_STYLE = Path(__file__).with_suffix(".css")
_CHANGES = "class: number of the answer that is being changed"
_follow = component("class_follow", Path(__file__).with_name("follow.js"))


def class_bar(page: str) -> None:
    """Draw the bar of this session's class, if there is one; on a server without a desk, nothing at all."""
    if not session.classes_exist():
        return
    if note := session.take_note():
        st.info(note, icon=":material/groups:")
    if session.code() and page != DESK:
        bar = _instructor_bar
    elif shared_focus.class_code() and not session.code():
        bar = _student_bar
    else:
        return
    st.html(BAR_STYLE)
    st.html(_STYLE)
    fragment(bar, run_every=POLL)(page)


# Questions and names as a reader sees them, in the language of the run


@dataclass(frozen=True)
class QuestionText:
    """Markdown of a question as a reader sees it; ``answer`` is the correct one, "" if there is none."""

    prompt: str
    options: tuple[str, ...]
    answer: str
    explanation: str = ""

    def answer_text(self, given: str) -> str:
        """Return the text of the answer ``given``: that of the chosen option, or the words that were typed."""
        return self.options[int(given)] if self.options else as_plain(given)


def question_of(lesson: Lesson, number: int, *, code: str) -> Question:
    """Return the question of a step, whose options have the same order for the whole class."""
    step = lesson.steps[number - 1]
    order = shuffled_options(step, (lesson.name, number), code)
    options = tuple(step.choices[index] for index in order)
    return Question(step.question, options, answer=str(order.index(ANSWER)), lesson=lesson.name, step=number)


def in_language(question: Question, code: str) -> Question:
    """Return a question with prompt and options in the language of this run if it comes from a lesson."""
    if (found := _step_of(question)) is None:
        return question
    shown = question_of(found[0], question.step, code=code)
    return replace(question, prompt=shown.prompt, options=shown.options)


def text_of(question: Question, code: str) -> QuestionText:
    """Return the texts of a question, in the language of this run if it comes from a lesson."""
    if (found := _step_of(question)) is not None:
        shown = in_language(question, code)
        return QuestionText(shown.prompt, shown.options, found[1].answer, found[1].explanation)
    text = QuestionText(as_plain(question.prompt), tuple(map(as_plain, question.options)), "")
    return replace(text, answer=text.answer_text(question.answer)) if question.answer else text


def find_step(name: str, number: int) -> tuple[Lesson, Step] | None:
    """Return a lesson and its step with this number; ``None`` if there is none."""
    lesson = find_course(name, language()) if name else None
    if lesson is None or not 0 < number <= len(lesson.steps):
        return None
    return lesson, lesson.steps[number - 1]


def _step_of(question: Question) -> tuple[Lesson, Step] | None:
    """Return the lesson and the step that a question comes from, if it still has as many options."""
    found = find_step(question.lesson, question.step)
    return found if found and len(found[1].choices) == len(question.options) else None


def student_name(state: Class, who: str) -> str:
    """Return a student's name, such as "Blue heron"; another class begins with other names.

    There are more pairs of a colour and an animal than students.
    """
    number = state.students[who].number + sum(map(ord, state.code))
    colours, animals = (common(f"class.{kind}").split(", ") for kind in ("colours", "animals"))
    name = common("class.name", colour=colours[number % len(colours)], animal=animals[number % len(animals)])
    return name[0].upper() + name[1:]


# The student's


def _student_bar(page: str) -> None:
    admit()  # who follows a class uses the server
    if not shared_focus.class_code():  # just left
        return
    try:
        state = session.report(page)
    except StoreError:
        st.caption(f":material/cloud_off: {common('class.unreachable')}")
        return
    who = session.student()
    if state is None or who not in state.students:
        session.forget("ended" if state is None else "removed" if who in state.removed else "left")
        st.rerun()
    _follow_instructor(state)
    with st.container(key="class bar", gap="xsmall"):
        _student_head(state)
        if state.question is not None:
            _question(state, state.question)


def _follow_instructor(state: Class) -> None:
    """Open the instructor's view once the browser has sent what the student is typing (follow.js)."""
    view = session.new_view(state)
    answer = _follow(key="class follow", data={"view": view.number if view else 0}, on_ready_change=nothing)
    if view is not None and answer.get("ready") == view.number:
        session.follow(view)


def _student_head(state: Class) -> None:
    name = student_name(state, session.student())
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="class head"):
        st.markdown(f":material/groups: **{name}** · {common('class.class', code=state.code)}", width="stretch",
                    help=common("class.privacy"))  # fmt: skip
        if session.has_own_view() and st.button(
            common("class.own"), key="class own", icon=":material/undo:", type="tertiary"
        ):
            session.go_back()
        if st.button(common("class.leave"), key="class leave", icon=":material/logout:", type="tertiary"):
            session.leave()
            st.rerun()


def _question(state: Class, question: Question) -> None:
    text, number = text_of(question, state.code), len(state.questions) - 1
    given = question.answers.get(session.student(), "")
    st.markdown(f"**{text.prompt}**")
    if question.phase == SOLVED:
        _solution(question, text, given)
    elif given and st.session_state.get(_CHANGES) != number:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            sent = common("class.sent", answer=text.answer_text(given))
            st.markdown(f":green[:material/check:] {sent}", width="content")
            st.button(common("class.change"), key="class change", type="tertiary", on_click=_change, args=(number,))
    elif question.options:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="class options"):
            chosen = st.radio(
                common("class.options"), range(len(text.options)), index=None, format_func=text.options.__getitem__,
                key=f"class choice {state.code} {number}", label_visibility="collapsed", width="stretch",
            )  # fmt: skip
            st.button(
                common("class.send"), key="class send", type="primary", disabled=chosen is None, on_click=_send,
                args=(number, str(chosen)),
            )  # fmt: skip
    else:
        key, row = f"class text {state.code} {number}", {"horizontal": True, "vertical_alignment": "bottom"}
        with st.form(f"class form {state.code} {number}", border=False), st.container(**row, gap="small"):
            st.text_input(
                    common("class.text"), key=key, max_chars=classes.LONGEST_ANSWER, label_visibility="collapsed",
                    placeholder=common("class.text"), width=320,
                )  # fmt: skip
            st.form_submit_button(common("class.send"), type="primary", on_click=_send_text, args=(number, key))


def _solution(question: Question, text: QuestionText, given: str) -> None:
    right = classes.is_right(question, given) if given else None
    sign = {True: ":green[:material/check:] ", False: ":orange[:material/close:] ", None: ""}[right]
    yours = common("class.yours", answer=text.answer_text(given)) if given else common("class.no_answer")
    answer = f" **{common('class.answer', answer=text.answer)}**" if text.answer else ""
    st.markdown(f"{sign}{yours}{answer} {text.explanation}")


def _change(number: int) -> None:
    st.session_state[_CHANGES] = number


def _send(number: int, text: str) -> None:
    st.session_state.pop(_CHANGES, None)
    session.answer(number, text)


def _send_text(number: int, key: str) -> None:
    _send(number, st.session_state.get(key, ""))


# The instructor's


def _instructor_bar(page: str) -> None:
    admit()
    state = session.renewed_or_left()
    if state is None:
        return
    row = {"horizontal": True, "vertical_alignment": "center", "gap": "small"}
    with st.container(key="class bar", gap="xsmall"), st.container(**row, key="class head"):
        news = session.said() or _summary(state, page)
        st.markdown(f":material/co_present: **{state.code}** · {news}", width="stretch")
        if (asks := _question_here(state, page)) is not None:
            st.button(
                common("class.ask"), key="class ask", icon=":material/quiz:",
                on_click=lambda: session.change(lambda state: classes.ask(classes.stop_asking(state), asks)),
            )  # fmt: skip
        st.button(
            common("class.everybody"), key="class everybody", type="primary", icon=":material/campaign:", on_click=_show
        )
        st.page_link(pages()[DESK], label=common("class.desk"), icon=":material/co_present:")


def _summary(state: Class, page: str) -> str:
    active = classes.active_students(state, now=time.time())
    here = sum(student.page == page for student in active.values())
    parts = [count_text(len(active), "student"), common("class.here", count=here)]
    if state.question is not None:
        parts.append(count_text(len(state.question.answers), "class_answer"))
    return " · ".join(parts)


def _question_here(state: Class, page: str) -> Question | None:
    """Return the question of the lesson's step that this page shows, unless the class has it already."""
    focus = shared_focus.current()
    if (found := find_step(focus.lesson, focus.lesson_step)) is None:
        return None
    (lesson, step), asked = found, state.question
    if step.page != page or not step.question:
        return None
    if asked is not None and (asked.lesson, asked.step) == (lesson.name, focus.lesson_step):
        return None
    return question_of(lesson, focus.lesson_step, code=state.code)


def _show() -> None:
    page, query = session.current_view()
    if session.change(lambda state: classes.show(state, page, query)):
        session.say(common("class.shown"))
