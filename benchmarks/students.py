"""A class for the load test: each student has unique sentences and an edit, and checks what arrives.

Nothing that a student receives may contain another student's sentence or edit. And a student's screen in the crowd must
be, byte for byte, the same as for a student who makes the same clicks alone on the server: that compares every number
of every figure, too.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qs

from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.harness.browser_session import BrowserSession
from tests.harness.runs import Run

NAMES = (
    "Anna", "Tom", "Mary", "John", "Alice", "Peter", "Jane", "David", "Emma", "Paul", "Susan", "Mark", "Laura", "Jack",
    "Helen", "George", "Kate", "Robert", "Lucy", "Henry", "Betty", "Frank", "Nancy", "Charles", "Linda", "Steve",
    "Carol", "Brian", "Julia", "Martin",
)  # fmt: skip
VERBS = ("sees", "has", "wants", "buys", "needs", "finds", "likes", "sells")
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "many")
THINGS = ("books", "dogs", "cars", "houses", "birds", "flowers", "apples", "chairs", "horses", "letters", "boats")
PLACES = ("garden", "house", "street", "school", "kitchen", "city", "park", "room")
HEADS = [
    f"zero:{stack}.{layer}.{kind}.{head}"
    for head in range(8)
    for stack, kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
    for layer in range(3)
]  # heads of en-fr in the order of the rows of the importance map, column by column
MAX_STUDENTS = len(HEADS)
FIRST_SENTENCE, SECOND_SENTENCE = (
    0,
    100_000,
)  # far apart, so that a student's two sentences differ in more than one word

_GAP = rb"(?: |\+|%20)"  # as in a text, or as in an address
_SENTENCE = re.compile(
    _GAP.join(
        b"(?:%b)" % "|".join(words).encode() for words in (NAMES, VERBS, NUMBERS, THINGS, ("in",), ("the",), PLACES)
    )
)
_VALUES = ("set_value", "value", "raw_value", "raw_values")
_EDITS_IN_CODE = re.compile(rb"edits_from\(checkpoint, \[([^\]]*)\]\)")


def sentence(number: int) -> str:
    """Return the ``number``th of 211,200 sentences of one pattern; neighbours begin with different names."""
    words = []
    for choices in (NAMES, THINGS, NUMBERS, PLACES, VERBS):
        number, place = divmod(number, len(choices))
        words.append(choices[place])
    name, thing, count, where, verb = words
    return f"{name} {verb} {count} {thing} in the {where}."


class Student:
    """A student; ``number`` (from 0) determines all unique data; ``screens`` are kept for comparison."""

    def __init__(self, number: int, base: str, *, lesson: int = 0) -> None:
        if not 0 <= number < MAX_STUDENTS:
            raise ValueError(f"student {number}: a class has at most {MAX_STUDENTS}, as many as the model has heads")
        self.number = number
        self.name = f"student {number + 1}"
        self.session = BrowserSession(base)
        first = lesson * MAX_STUDENTS + number
        self.sentences = sentence(FIRST_SENTENCE + first), sentence(SECOND_SENTENCE + first)
        self.now = self.sentences[0]
        self.edit = HEADS[number]
        self.edits: tuple[str, ...] = ()  # the screens made so far
        self.screens: list[dict[str, str]] = []

    async def open(self) -> Run:
        """Open the app at the student's own address."""
        return await self.session.open("", {"sentence": self.now})

    async def write(self, which: int) -> Run:
        """Type one of the two sentences."""
        self.now = self.sentences[which]
        return await self.session.type_into("sentence", self.now)

    async def cut(self) -> Run:
        """Remove the student's own head, by a click on the importance map of the Surgery page."""
        column, row = divmod(self.number, 9)
        self.edits = (self.edit,)
        return await self.session.event("importance", "click", {"query": row, "key": column})

    async def step(self, step: int) -> Run:
        """Go to a step of the generated text."""
        return await self.session.event("stepper", "step", step)

    def complaints(self, run: Run) -> list[str]:
        """Return what is wrong with a result: an error, something missing, or another student's data."""
        own = {_words(text) for text in self.sentences}
        found = [f"{self.name}: error on the page: {error}" for error in run.errors]
        found += [f"{self.name} received what is not theirs: {text!r}" for text in strange_sentences(run.received, own)]
        found += [f"{self.name} received an edit that is not theirs: {edits}" for edits in self._strange_edits(run)]
        shown = {text for shown in self.session.screen.values() for text in _sentences(_bytes(shown.element))}
        shown.update(_sentences(self.session.query.encode()))
        if _words(self.now) not in shown:
            found.append(f"{self.name} does not see their own sentence {self.now!r}; on the screen: {sorted(shown)}")
        return found

    def keep_screen(self) -> None:
        """Keep the screen for ``differences``."""
        self.screens.append(screen(self.session))

    def _strange_edits(self, run: Run) -> Iterator[tuple[str, ...]]:
        for edits in shown_edits(run.received):
            if edits != self.edits:
                yield edits


def strange_sentences(messages: Iterable[ForwardMsg], own: Iterable[str]) -> list[str]:
    """Return the students' sentences in received messages, except those in ``own``."""
    own = {_words(text) for text in own}
    found = {text for message in messages for text in _sentences(_bytes(message))}
    return sorted(found - own)


def shown_edits(messages: Iterable[ForwardMsg]) -> Iterator[tuple[str, ...]]:
    """Yield the list of edits wherever it appears: in the address, and in the Surgery page's Python code."""
    for message in messages:
        if message.WhichOneof("type") == "page_info_changed":
            query = parse_qs(message.page_info_changed.query_string.removeprefix("?"))
            if "edit" in query:
                yield tuple(query["edit"])
        for listed in _EDITS_IN_CODE.findall(_bytes(message)):
            yield tuple(text.strip(" '\"") for text in listed.decode().split(",") if text.strip())


def screen(session: BrowserSession) -> dict[str, str]:
    """Return a digest of each element on the screen, by position and kind, including widget values."""
    found = {}
    for place, shown in session.screen.items():
        kind = shown.element.WhichOneof("type") or "empty"
        value = session.state(shown)
        data = _bytes(_comparable(shown.element)) + (value.SerializeToString(deterministic=True) if value else b"")
        found[f"{'.'.join(map(str, place))} {kind}"] = hashlib.sha256(data).hexdigest()
    return found


def differences(one: Student, other: Student) -> list[str]:
    """Return where the screens of a student in the crowd differ from those of one who was alone."""
    found = []
    if len(one.screens) != len(other.screens):
        found.append(f"{one.name} went {len(one.screens)} steps in the crowd and {len(other.screens)} alone")
    for step, (crowd, alone) in enumerate(zip(one.screens, other.screens, strict=False), start=1):
        if wrong := _different(crowd, alone):
            found.append(f"{one.name}, step {step}: not what one sees alone: {', '.join(wrong)}")
    return found


def _different(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return sorted(place for place in one.keys() | other.keys() if one.get(place) != other.get(place))


def _comparable(element: Element) -> Element:
    """Return the element without the parts that differ between visits by design.

    These are names of files that wait for a click, and whether the server had to set the value of a widget.
    """
    copy = Element()
    copy.CopyFrom(element)
    widget = getattr(copy, copy.WhichOneof("type") or "", None)
    for name in ("url", "deferred_file_id") if copy.WhichOneof("type") == "download_button" else _VALUES:
        if name in getattr(getattr(widget, "DESCRIPTOR", None), "fields_by_name", ()):
            widget.ClearField(name)
    return copy


def _sentences(data: bytes) -> set[str]:
    return {_words(found.group().decode()) for found in _SENTENCE.finditer(data)}


def _words(text: str) -> str:
    """Return a sentence in one spelling, without its full stop."""
    return text.replace("%20", " ").replace("+", " ").rstrip(".")


def _bytes(message: ForwardMsg | Element) -> bytes:
    return message.SerializeToString(deterministic=True)
