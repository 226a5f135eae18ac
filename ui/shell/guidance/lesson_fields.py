"""Fields of a lesson's file, each validated separately; errors name the position."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from transformer.errors import MessageError, text_of
from transformer.runs.edit_specs import EditSpec
from transformer.text.message import did_you_mean, short_repr
from ui.shell.guidance.regions import NAME, PAGE

CHANGES = ("edit", "mask", "second")  # parameters besides the controls of a page, under their names in the address
QUESTION = ("question", "answer", "explanation", "hint", "wrong")
_MASK = re.compile(
    r"own|layer|no_causal|no_padding|itself|(window|word) \d{1,5}|(allow|block) \d{1,5}-\d{1,5}(,\d{1,5}-\d{1,5})*"
)


def question(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the question with its options, ``{}`` if the step has no question."""
    if not values.get("question"):
        if lonely := [key for key in QUESTION[1:] if key in values]:
            raise MessageError(f"{where} has {lonely[0]} but no question")
        return {}
    found = values.get("wrong")
    wrong = [one if isinstance(one, list) else [one, ""] for one in found] if isinstance(found, list) else []
    if not wrong or not all(len(one) == 2 and all(isinstance(part, str) for part in one) and one[0] for one in wrong):
        raise MessageError(
            f"{where}: wrong is {short_repr(found)}; write a list of wrong options, each a text or a text "
            'with its feedback, e.g. wrong = ["one", ["another", "Why it is wrong."]]'
        )
    answer = text(values, "answer", where)
    if len({answer, *(option for option, _feedback in wrong)}) <= len(wrong):
        raise MessageError(f"{where}: two options have the same text")
    return {
        **{name: text(values, name, where) for name in ("question", "explanation")},
        "answer": answer,
        "hint": text(values, "hint", where) if "hint" in values else "",
        "wrong": tuple((option, feedback) for option, feedback in wrong),
    }


def covered_parts(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what hides the answer: the named parts, or the step's figure; or why nothing is hidden."""
    if not values.get("question"):
        if lonely := [key for key in ("cover", "open") if key in values]:
            raise MessageError(f"{where} has {lonely[0]} but no question")
        return {}
    if "open" in values:
        if "cover" in values:
            raise MessageError(f"{where} has cover and open; open says why nothing is covered")
        return {"uncovered": text(values, "open", where)}
    return {"covers": parts(values, "cover", where) or (values.get("figure", PAGE),)}


def parts(values: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Return the keys of parts of a page; a single one need not be a list."""
    found = values.get(name, [])
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not all(isinstance(one, str) and NAME.fullmatch(one) for one in found):
        raise MessageError(
            f"{where}: {name} is {short_repr(found)}; write the key of a part of the page, or several in a list"
        )
    return tuple(found)


def changes(values: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Return valid texts of one kind of change; a single one need not be a list."""
    found = values.get(name, [])
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not all(isinstance(one, str) and one.strip() for one in found):
        raise MessageError(
            f"{where}: {name} is {short_repr(found)}; write a text in quotation marks, or several in a list"
        )
    for text in found:
        if name == "edit":
            try:
                EditSpec.parse(text)
            except ValueError as error:
                raise MessageError(
                    f"{where}: edit is {short_repr(text)}, which is not valid: {text_of(error)}"
                ) from None
        if name == "mask" and not _MASK.fullmatch(text):
            raise MessageError(f'{where}: mask is {short_repr(text)}; write e.g. mask = ["window 3", "block 2-5"]')
    if name == "second" and len(found) > 1:
        raise MessageError(f"{where}: `second` lists {len(found)} sentences, but it takes exactly one")
    return tuple(found)


def flag(values: Mapping[str, Any], name: str, where: str) -> bool:
    """Return an optional yes or no, no if it is missing."""
    value = values.get(name, False)
    if not isinstance(value, bool):
        raise MessageError(f"{where}: {name} is {short_repr(value)}; write true or false")
    return value


def check_known(values: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    """Check that there are no unknown fields."""
    for name in values:
        if name not in names:
            problem = did_you_mean(name, names, otherwise=f"known: {', '.join(names)}")
            raise MessageError(f"{where} has {short_repr(name)}; {problem}")


def text(values: Mapping[str, Any], name: str, where: str) -> str:
    """Return a required text."""
    value = values.get(name)
    if value is None:
        raise MessageError(f"{where}: {name} is missing")
    if not isinstance(value, str) or not value.strip():
        raise MessageError(f"{where}: {name} is {short_repr(value)}, not a text")
    return value.strip()


def minutes(values: Mapping[str, Any], where: str) -> int:
    """Return the duration in minutes."""
    value = values.get("minutes")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise MessageError(f"{where}: minutes is {short_repr(value)}; write about how long it takes, e.g. minutes = 20")
    return value
