"""Questions of a class: those of lessons, in each reader's language, and the instructor's own."""

from dataclasses import dataclass, replace

from ui.classroom.class_state import Question
from ui.shell.guidance.guesses import shuffled_options
from ui.shell.guidance.lessons import ANSWER, Lesson, Step
from ui.shell.guidance.routes import find_course
from ui.words.texts import as_plain, language


@dataclass(frozen=True)
class QuestionText:
    """Markdown of a question as a reader sees it; ``answer`` is the correct one, "" if there is none."""

    prompt: str
    options: tuple[str, ...]
    answer: str
    explanation: str = ""


def question_of(lesson: Lesson, number: int, *, code: str) -> Question:
    """Return the question of a step, whose options have the same order for the whole class."""
    step = lesson.steps[number - 1]
    order = _order(step, lesson.name, number, code)
    return Question(
        step.question,
        tuple(step.choices[index] for index in order),
        answer=str(order.index(ANSWER)),
        lesson=lesson.name,
        step=number,
    )


def in_language(question: Question, code: str) -> Question:
    """Return a question with prompt and options in the language of this run if it comes from a lesson."""
    if (step := _step(question)) is None:
        return question
    order = _order(step, question.lesson, question.step, code)
    return replace(question, prompt=step.question, options=tuple(step.choices[index] for index in order))


def text_of(question: Question, code: str) -> QuestionText:
    """Return the texts of a question, in the language of this run if it comes from a lesson."""
    if (step := _step(question)) is not None:
        shown = in_language(question, code)
        return QuestionText(shown.prompt, shown.options, step.answer, step.explanation)
    options = tuple(map(as_plain, question.options))
    answer = question.answer
    if answer:
        answer = options[int(answer)] if options else as_plain(answer)
    return QuestionText(as_plain(question.prompt), options, answer)


def answer_text(question: Question, text: QuestionText, given: str) -> str:
    """Return Markdown of an answer: the text of an option, or what was written."""
    return text.options[int(given)] if question.options else as_plain(given)


def find_step(name: str, number: int) -> tuple[Lesson, Step] | None:
    """Return a lesson and its step with this number; ``None`` if there is none."""
    lesson = find_course(name, language()) if name else None
    if lesson is None or not 0 < number <= len(lesson.steps):
        return None
    return lesson, lesson.steps[number - 1]


def _step(question: Question) -> Step | None:
    """Return the step that a question comes from, if it still has as many options."""
    if (found := find_step(question.lesson, question.step)) is None:
        return None
    return found[1] if len(found[1].choices) == len(question.options) else None


def _order(step: Step, lesson: str, number: int, code: str) -> tuple[int, ...]:
    return shuffled_options(step, (lesson, number), code)
