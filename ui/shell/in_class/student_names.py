"""Anonymous names of students, such as "Blue heron", in every language."""

from ui.classroom.class_state import Class, Student
from ui.words.texts import common


def student_name(state: Class, who: str) -> str:
    """Return the name of a student in the language of this run; another class begins with other names."""
    return name_of(state.students[who], state.code)


def name_of(student: Student, code: str) -> str:
    """Return the name of a student; there are more pairs of a colour and an animal than students."""
    number = student.number + sum(map(ord, code))
    colours, animals = (common(f"class.{kind}").split(", ") for kind in ("colours", "animals"))
    name = common("class.name", colour=colours[number % len(colours)], animal=animals[number % len(animals)])
    return name[0].upper() + name[1:]
