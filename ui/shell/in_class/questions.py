"""Questions of a class and names of its students as a reader sees them, in the language of the run."""

from dataclasses import dataclass, replace

from ui.classroom.class_state import Class, Question
from ui.shell.guidance.guesses import shuffled_options
from ui.shell.guidance.lessons import ANSWER, Lesson, Step
from ui.shell.guidance.routes import find_course
from ui.words.texts import as_plain, common, language


@dataclass(frozen=True)
class QuestionText:
    """Markdown of a question as a reader sees it; ``answer`` is the correct one, "" if there is none."""

    prompt: str
    options: tuple[str, ...]
    answer: str
    explanation: str = ""

    def of(self, given: str) -> str:
        """Return an answer: the text of an option, or what was written."""
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
    return replace(text, answer=text.of(question.answer)) if question.answer else text


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
