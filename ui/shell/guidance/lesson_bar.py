"""The running lesson, as a bar at the foot of every page: instructions, hints, and a question.

The explanation appears after the guess. Lesson and step are part of the focus, and so of the address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import streamlit as st

from ui.compute.loading import load_checkpoint
from ui.shell import choice, page_state
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus
from ui.shell.fragments import fragment
from ui.shell.guidance import before_lesson, guesses, regions
from ui.shell.guidance.lessons import ANSWER, PLACE, Lesson, Step, find_course
from ui.shell.navigation import go_to, leave_for, page_names
from ui.shell.openings import name_in_list
from ui.words import texts
from ui.words.texts import PageText, as_plain, page_text

STYLE = Path(__file__).with_suffix(".css")
BAR_STYLE = Path(__file__).with_name("bars.css")
_PREPARED, _FINISHED = "lesson: prepared step", "lesson: finished"
_REPLACED = "lesson: what a step has replaced"  # its place, and "model" or "sentence"
STOP = "living picture stop"  # an option of a step: where the living picture stops (living_picture/beats.js)
_RIGHT, _WRONG = ":green[:material/check:]", ":orange[:material/close:]"
_measured = st.components.v2.component(
    "glassformer_lesson_bar", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


def running_lesson(focus: Focus) -> tuple[Focus, Lesson | None, tuple[str, ...]]:
    """Return the lesson in the focus, the focus on an existing step, and a line if either is missing."""
    if not focus.lesson:
        return focus, None, ()
    text, lesson = page_text("lessons"), find_course(focus.lesson, texts.language())
    if lesson is None:
        return replace(focus, lesson="", lesson_step=1), None, (text["unknown"].format(name=repr(focus.lesson)),)
    step = min(max(1, focus.lesson_step), len(lesson.steps))
    if step == focus.lesson_step:
        return focus, lesson, ()
    note = text["unknown_step"].format(step=focus.lesson_step, count=len(lesson.steps), shown=step)
    return replace(focus, lesson_step=step), lesson, (note,)


def begin_lesson(lesson: Lesson) -> None:
    """Go to the first step of a lesson; the current view is restored at its end. This ends the run."""
    guesses.forget_guesses(lesson.name)
    st.session_state.pop(_FINISHED, None)
    _go_to_step(lesson, 1, came_from=before_lesson.view_before_lesson(shared_focus.current()))


def open_step(lesson: Lesson, number: int, *, notes: Sequence[str] = ()) -> None:
    """Go to a step, counted from 1: to its page and its location in the model. This ends the run.

    ``notes``: lines to show there, about the address that has opened it.
    """
    _go_to_step(lesson, number, came_from=_view_to_restore(lesson), notes=notes)


def _go_to_step(lesson: Lesson, number: int, *, came_from: str, notes: Sequence[str] = ()) -> None:
    st.session_state.pop(_PREPARED, None)
    focus = shared_focus.current()
    changes = step_focus(lesson, number, replace(focus, came_from=came_from))
    st.session_state[_REPLACED] = (lesson.name, number, _replaced(focus, changes, came_from=came_from))
    go_to(lesson.steps[number - 1].page, notes=notes, **changes, came_from=came_from)


def _replaced(focus: Focus, changes: Mapping[str, object], *, came_from: str) -> str:
    """Return what of the reader's own a step replaces: "model" as a lesson begins, "sentence", or ""."""
    checkpoint = str(changes["checkpoint"])
    if not focus.lesson and focus.checkpoint != checkpoint:
        return "model"
    own = before_lesson.own_sentence(came_from, checkpoint=checkpoint)
    return "sentence" if own and own[0] == focus.sentence != changes["sentence"] else ""


def _view_to_restore(lesson: Lesson) -> str:
    focus = shared_focus.current()
    given = str(step_focus(lesson, min(max(1, focus.lesson_step), len(lesson.steps)), focus)["sentence"])
    return before_lesson.with_own_sentence(focus, given=given, page=page_state.current_page())


def end_lesson(lesson: Lesson, *, on: str = "", finished: bool = False) -> None:
    """Restore the view before the lesson, on its page or the page ``on``. This ends the run.

    If there is none, because a link opened the lesson, the page stays as it is.
    """
    page, focus = page_state.current_page(), {"lesson": "", "lesson_step": 1, "came_from": ""}
    shared_focus.write_address_of(page)
    if shared_focus.current().came_from and (view := _view_to_restore(lesson)):
        before_page, before, choices = before_lesson.read_view(view)
        focus = before_lesson.restored_focus(before)
        _forget_controls(lesson)
        if before_page in page_names():
            page = before_page
            page_state.replace(page, choices)
    if finished:
        st.session_state[_FINISHED] = (lesson.name, focus.get("sentence", shared_focus.current().sentence))
    leave_for(on or page, **focus)


def _forget_controls(lesson: Lesson) -> None:
    """Reset the controls that the steps have set, on their pages."""
    for step in lesson.steps:
        for key in (*step.options, *step.changes):
            page_state.keep(key, (), page=step.page)


def step_focus(lesson: Lesson, number: int, focus: Focus) -> dict[str, object]:
    """Return what changes in ``focus`` at that step, including lesson and step.

    A step whose texts hold for any sentence has the reader's own, if there is one.
    """
    step = lesson.steps[number - 1]
    aimed = asdict(step.focused(focus, default=shared_focus.default_focus()))
    if step.any_sentence and (own := before_lesson.own_sentence(focus.came_from, checkpoint=aimed["checkpoint"])):
        aimed["sentence"], aimed["target"] = own
        if aimed["stack"] == "encoder":
            aimed["token"] = nearest_word(str(aimed["checkpoint"]), own[0], token=aimed["token"])
    return {name: aimed[name] for name in PLACE} | {"lesson": lesson.name, "lesson_step": number}


def nearest_word(checkpoint: str, sentence: str, *, token: int) -> int:
    """Return the first token from ``token`` on that is a whole word.

    A step for any sentence asks about one token, and a piece of a word would say little. If none follows, it is the
    last whole word before ``token``; without any, ``token`` itself.
    """
    tokenizer = load_checkpoint(checkpoint).tokenizer
    names = [*map(tokenizer.display, tokenizer.encode(sentence)), "·"]
    words = [
        place
        for place, (name, following) in enumerate(pairwise(names))
        if name[0] == "·" and name[1:].isalnum() and not following[0].isalnum()
    ]
    return next((place for place in words if place >= token), max(words, default=token))


def name_step(focus: Focus) -> str:
    """Return a name for the step in the focus, with which the living picture reports its stop."""
    return f"{focus.lesson} {focus.lesson_step}"


def lesson_bar(lesson: Lesson, focus: Focus, *, page: str) -> Step | None:
    """Draw the step at the foot of the window, and return it if this is its page."""
    text, number = page_text("lessons"), focus.lesson_step
    step = lesson.steps[number - 1]
    _prepare(lesson, number, page=page)
    st.html(BAR_STYLE)
    st.html(STYLE)
    if page == step.page and (
        sheet := regions.style(covers=step.covers, lights=step.lights, sentence=text["guess_first"])
    ):
        st.html(sheet)
    with st.container(border=True, key="lesson bar", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson head"):
            place = text["place"].format(number=number, count=len(lesson.steps))
            # The lesson's own title is hidden in a narrow window, with the dot after it (lesson_bar.css).
            st.markdown(f":material/school: **{lesson.title} ·** {place} · **{step.title}**", width="stretch")
            if page != step.page and st.button(text["to_page"], type="primary", key="lesson page"):
                open_step(lesson, number)
            astray = _astray(lesson, number, focus, text) if page == step.page else ""
            if astray and st.button(text["to_sentence"], key="lesson sentence"):
                open_step(lesson, number)
            _moves(lesson, number, text)
        here, named = page == step.page, name_step(focus)
        _body(lesson, number, step, text, here=here, astray=astray)
        waits = here and STOP in step.options and not guesses.is_answered(step, guesses.tries_at((lesson.name, number)))
        data = {"step": named, "waitsFor": named if waits else "", "wait": text["wait"]}
        _measured(key="lesson bar measure", data=data)
    return step if here else None


def _astray(lesson: Lesson, number: int, focus: Focus, text: PageText) -> str:
    """Say what the question is about if the page shows another model or sentence; else return ""."""
    about = step_focus(lesson, number, focus)
    step = lesson.steps[number - 1]
    if not step.question:
        return ""
    if focus.checkpoint != about["checkpoint"]:
        return text["about_model"].format(model=as_plain(name_in_list(str(about["checkpoint"]))))
    if focus.sentence != about["sentence"] and not step.any_sentence:
        return text["about_sentence"].format(sentence=as_plain(str(about["sentence"])))
    return ""


def _moves(lesson: Lesson, number: int, text: PageText) -> None:
    if st.button(text["back"], icon=":material/arrow_back:", key="lesson back", disabled=number == 1):
        open_step(lesson, number - 1)
    last = number == len(lesson.steps)
    forward = {"icon": ":material/flag:"} if last else {"icon": ":material/arrow_forward:", "icon_position": "right"}
    if st.button(text["finish" if last else "next"], type="primary", key="lesson next", **forward):
        if last:
            end_lesson(lesson, on=lesson.ends_on, finished=True)
        open_step(lesson, number + 1)
    if st.button(text["leave"], icon=":material/close:", type="tertiary", key="lesson leave"):
        end_lesson(lesson)


def just_finished(name: str) -> bool:
    """Return whether the reader has finished this lesson and has neither begun another nor typed since."""
    return st.session_state.get(_FINISHED) == (name, shared_focus.current().sentence)


@fragment
def _body(lesson: Lesson, number: int, step: Step, text: PageText, *, here: bool, astray: str) -> None:
    """Draw instructions and hints; the question with up to two tries; then the explanation.

    This is a fragment, so the page need not run again. When the question is answered, instructions and hints share the
    first lines, so that the explanation has the full width and the bar does not grow. ``here`` says that this is the
    step's page, so that its parts may be covered; ``astray``, if not empty, says what the question is about because the
    page shows something else, so that it cannot be answered.
    """
    place = (lesson.name, number)
    tries = guesses.tries_at(place)
    first, second = st.columns(2, gap="medium")
    left, right = first.container(gap="xsmall", key="lesson text"), second.container(gap="xsmall")
    left.markdown(f"**{text['do']}** {step.do}")
    if step.question and not guesses.is_answered(step, tries):
        with left:  # the hint takes the place of what to notice, so that the bar does not grow over the figure
            if tries:
                _second_try(step, tries[-1], text)
            else:
                st.markdown(f"**{text['notice']}** {step.notice}")
                if not astray:
                    _say_what_is_replaced(place, step, text)
            if astray:
                st.markdown(f":material/info: **{astray}**")
        with right:
            covered = here and not astray and guesses.is_covered(step, place)
            _question(step, place, text, covered=covered, waits=bool(astray))
        return
    right.markdown(f"**{text['notice']}** {step.notice}")
    if step.question:
        _answer(step, tries, text)


def _say_what_is_replaced(place: tuple[str, int], step: Step, text: PageText) -> None:
    """Draw a line if this step has replaced the reader's model or sentence."""
    *of, what = st.session_state.get(_REPLACED, ("", 0, ""))
    if tuple(of) != place or not what:
        return
    model = name_in_list(str(step.focus.get("checkpoint", shared_focus.default_focus().checkpoint)))
    sentence = str(step.focus.get("sentence", ""))
    said = text[f"other_{what}"].format(model=as_plain(model), sentence=as_plain(sentence))
    st.markdown(f":material/info: {said}")


def _second_try(step: Step, option: int, text: PageText) -> None:
    """Explain what is wrong with the first guess, without revealing the answer."""
    hint = f" **{text['hint']}** {step.hint}" if step.hint else ""
    with st.container(key="lesson hint"):
        st.markdown(f"{_WRONG} **{_sentence(step.choices[option])}** {step.feedback_on(option)}{hint}")


def _answer(step: Step, tries: tuple[int, ...], text: PageText) -> None:
    is_right = tries[-1] == ANSWER
    verdict = text["right" if is_right else "wrong"].format(answer=_sentence(step.answer).removesuffix("."))
    about = "" if is_right else f"{_sentence(step.choices[tries[-1]])} {step.feedback_on(tries[-1])} "
    with st.container(key="lesson feedback"):
        st.markdown(f"**{step.question}** {_RIGHT if is_right else _WRONG} {about}{verdict} {step.explanation}")


def _sentence(option: str) -> str:
    """End an option with a full stop, unless it is a sentence with its own."""
    return option if option.endswith((".", "…", "?")) else f"{option}."


def _question(step: Step, place: tuple[str, int], text: PageText, *, covered: bool, waits: bool) -> None:
    name, number = place
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="lesson question"):
        chosen = st.radio(
            f"**{step.question}**",
            guesses.remaining_options(step, place),
            index=None,
            format_func=step.choices.__getitem__,
            key=f"lesson choice {name} {number} {len(guesses.tries_at(place)) + 1}",
            width="stretch",
            disabled=waits,
        )
        with st.container(width="content", gap="xsmall", horizontal_alignment="right", key="lesson choose"):
            if covered:
                st.button(text["show_me"], key="lesson show", type="tertiary", on_click=guesses.uncover, args=place)
            check, waits = (*place, chosen), waits or chosen is None
            st.button(text["check"], key="lesson check", disabled=waits, on_click=guesses.add_guess, args=check)
    if covered:  # parts stay covered as long as this line is present (regions.py)
        with st.container(key=regions.ASKED):
            st.caption(text["guess_first"])


def _prepare(lesson: Lesson, number: int, *, page: str) -> None:
    """Set the page's controls for the step: once, before they are drawn, and never against the address."""
    step = lesson.steps[number - 1]
    if page != step.page or st.session_state.get(_PREPARED) == (lesson.name, number):
        return
    st.session_state[_PREPARED] = (lesson.name, number)
    elsewhere = [key for other in lesson.steps if other.page == page for key in other.options]
    # Even if the step sets no controls: the previous one may have, and a step that does not name an option was written
    # for its default.
    wanted = {**dict.fromkeys(elsewhere, ()), **step.changes, **{key: (value,) for key, value in step.options.items()}}
    for key, values in wanted.items():
        if not page_state.is_brought(key):
            choice.put(key, *values)
