"""Fields of a lesson's file, each validated separately; errors name the position."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from transformer.errors import MessageError
from transformer.runs.edit_specs import EditSpec
from transformer.text.message import Message, did_you_mean, short_repr
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
            raise MessageError("{where} has {key} but no question", where=where, key=lonely[0])
        return {}
    found = values.get("wrong")
    wrong = [one if isinstance(one, list) else [one, ""] for one in found] if isinstance(found, list) else []
    if not wrong or not all(len(one) == 2 and all(isinstance(part, str) for part in one) and one[0] for one in wrong):
        raise MessageError(
            "{where}: wrong is {found}; write a list of wrong options, each a text or a text with its feedback, "
            "e.g. {example}",
            where=where,
            found=short_repr(found),
            example='wrong = ["one", ["another", "Why it is wrong."]]',
        )
    answer = text(values, "answer", where)
    if len({answer, *(option for option, _feedback in wrong)}) <= len(wrong):
        raise MessageError("{where}: two options have the same text", where=where)
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
            raise MessageError("{where} has {key} but no question", where=where, key=lonely[0])
        return {}
    if "open" in values:
        if "cover" in values:
            raise MessageError("{where} has cover and open; open says why nothing is covered", where=where)
        return {"uncovered": text(values, "open", where)}
    return {"covers": parts(values, "cover", where) or (values.get("figure", PAGE),)}


def parts(values: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Return the keys of parts of a page; a single one need not be a list."""
    found = values.get(name, [])
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not all(isinstance(one, str) and NAME.fullmatch(one) for one in found):
        raise MessageError(
            "{where}: {name} is {found}; write the key of a part of the page, or several in a list",
            where=where,
            name=name,
            found=short_repr(found),
        )
    return tuple(found)


def changes(values: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Return valid texts of one kind of change; a single one need not be a list."""
    found = values.get(name, [])
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not all(isinstance(one, str) and one.strip() for one in found):
        wrong = {"where": where, "name": name, "found": short_repr(found)}
        raise MessageError("{where}: {name} is {found}; write a text in quotation marks, or several in a list", **wrong)
    for text in found:
        if name == "edit":
            try:
                EditSpec.parse(text)
            except ValueError as error:
                wrong = {"where": where, "found": short_repr(text), "problem": error}
                raise MessageError("{where}: edit is {found}, which is not valid: {problem}", **wrong) from None
        if name == "mask" and not _MASK.fullmatch(text):
            wrong = {"where": where, "found": short_repr(text), "example": 'mask = ["window 3", "block 2-5"]'}
            raise MessageError("{where}: mask is {found}; write e.g. {example}", **wrong)
    if name == "second" and len(found) > 1:
        raise MessageError(
            "{where}: `second` lists {count} sentences, but it takes exactly one", where=where, count=len(found)
        )
    return tuple(found)


def flag(values: Mapping[str, Any], name: str, where: str) -> bool:
    """Return an optional yes or no, no if it is missing."""
    value = values.get(name, False)
    if not isinstance(value, bool):
        raise MessageError(
            "{where}: {name} is {value}; write true or false", where=where, name=name, value=short_repr(value)
        )
    return value


def check_known(values: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    """Check that there are no unknown fields."""
    for name in values:
        if name not in names:
            raise MessageError(
                "{where} has {name}; {problem}",
                where=where,
                name=short_repr(name),
                problem=did_you_mean(name, names, otherwise=Message("known: {names}", names=", ".join(names))),
            )


def text(values: Mapping[str, Any], name: str, where: str) -> str:
    """Return a required text."""
    value = values.get(name)
    if value is None:
        raise MessageError("{where}: {name} is missing", where=where, name=name)
    if not isinstance(value, str) or not value.strip():
        raise MessageError("{where}: {name} is {value}, not a text", where=where, name=name, value=short_repr(value))
    return value.strip()


def minutes(values: Mapping[str, Any], where: str) -> int:
    """Return the duration in minutes."""
    value = values.get("minutes")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise MessageError(
            "{where}: minutes is {value}; write about how long it takes, e.g. minutes = 20",
            where=where,
            value=short_repr(value),
        )
    return value
