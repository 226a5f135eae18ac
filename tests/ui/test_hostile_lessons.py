"""Invalid lessons, routes and recipes (malformed, huge, of wrong types, empty) are refused."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.ui.test_lessons import GOOD, written
from transformer.training.recipe import load_recipe
from ui.shell.guidance import lessons as lesson_files
from ui.shell.guidance.lessons import LESSONS, Lesson, lessons, read_lesson, routes
from ui.shell.navigation import page_names

RECIPE = (Path(__file__).resolve().parents[2] / "configs" / "en-fr.toml").read_text(encoding="utf-8")
ROUTES = (LESSONS / "routes.toml").read_text(encoding="utf-8")
VALUES = (
    *(3, -1, 10**30, float("inf"), float("nan"), True, "", " ", "x" * 100_000, "a\x00b", "[l](http://x) <b>"),
    *([], [[]], [3], ["a"], ["a"] * 1000, [None], {}, {"x": 3}, date(2026, 1, 1)),
)
TEXTS = {
    "empty": b"",
    "no TOML": b"[[[",
    "not UTF-8": b"\xff\xfe\x00title = 3",
    "NUL": b'title = "a\x00b"',
    "deep": b"a = " + b"[" * 5000 + b"]" * 5000,
    "deep tables": b"a" + b".a" * 5000 + b" = 3",
    "large": b"title = '" + b"x" * 30_000_000 + b"'",
    "a number": b"step = 3\nroute = 3\nmodel = 3",
    "a number of digits": b"minutes = " + b"9" * 100_000,
    "too many steps": GOOD.encode() + b'[[step]]\npage = "tokens"\n' * 1000,
}
LONGEST_SENTENCE = 1000
KINDS_OF_FILE = (*TEXTS, "a folder", "a pipe", "a device", "a link to nothing")


@pytest.fixture(params=KINDS_OF_FILE)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write ``en/01-mine.toml`` of one kind in a folder of lessons that has another, valid lesson."""
    path = written(tmp_path, GOOD)
    written(tmp_path, GOOD, name="02-good")
    path.unlink()
    if request.param in TEXTS:
        path.write_bytes(TEXTS[request.param])
    elif request.param == "a folder":
        path.mkdir()
    elif request.param == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if request.param == "a device" else tmp_path / "nowhere")
    return path


def test_a_hostile_lesson_leaves_the_others_alone(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_files, "LESSONS", hostile.parents[1])
    found, problems = lessons("en")
    assert [lesson.name for lesson in found] == ["02-good"]
    assert len(problems) == 1 and "01-mine.toml" in str(problems[0]) and len(str(problems[0])) < LONGEST_SENTENCE


def test_hostile_routes_are_left_out(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile.rename(hostile.parents[1] / "routes.toml")
    monkeypatch.setattr(lesson_files, "LESSONS", hostile.parents[1])
    found, problems = routes("en")
    assert found == () and len(problems) <= 1 and all("routes.toml" in one for one in problems)
    assert all(len(problem) < LONGEST_SENTENCE for problem in problems)


def routes_of(path: Path) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    parts = {lesson.name: lesson.steps for lesson in lessons("en")[0]}
    return lesson_files.read_routes(path, "en", parts, page_names())


def test_an_unknown_name_in_a_route_is_named_and_the_other_routes_stay(tmp_path: Path) -> None:
    whole = [route.name for route in routes("en")[0]]
    (tmp_path / "routes.toml").write_text(ROUTES.replace("minutes =", "minuts =", 1), encoding="utf-8")
    found, problems = routes_of(tmp_path / "routes.toml")
    assert [route.name for route in found] == whole[1:]
    assert len(problems) == 1 and all(part in problems[0] for part in ("routes.toml, route 1", "'minuts'", "minutes"))


def changed(values: Any) -> Iterator[Any]:
    """Yield ``values`` with each field, at any depth, replaced in turn by each of ``VALUES``, or removed."""
    for key in values if isinstance(values, dict) else range(len(values)):
        for value in VALUES:
            other = deepcopy(values)
            other[key] = deepcopy(value)
            yield other
        if isinstance(values[key], dict | list):
            for inner in changed(values[key]):
                other = deepcopy(values)
                other[key] = inner
                yield other


def is_read_or_refused(read: Any, content: dict, monkeypatch: pytest.MonkeyPatch, path: Path) -> bool:
    """Return whether it is read; fail unless a refusal is a sentence that names the file."""
    monkeypatch.setattr(tomllib, "loads", lambda _: deepcopy(content))
    try:
        read(path)
    except ValueError as error:
        assert path.name in str(error), str(error)[:300]
        assert read is load_recipe or len(str(error)) < LONGEST_SENTENCE, str(error)[:300]
        return False
    finally:
        monkeypatch.undo()
    return True


def test_any_value_in_any_field_of_a_lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, GOOD)
    extra = 'options = { attention_step = 7 }\nedit = ["zero:encoder.0.self.3"]\nmask = ["window 3"]\nsecond = "x"\n'
    good = tomllib.loads(GOOD + extra + 'figure = "map"\nlight = ["head"]\n')
    read = []
    for number, content in enumerate(changed(good), start=1):
        os.utime(path, ns=(number, number))
        read.append(is_read_or_refused(read_lesson, content, monkeypatch, path))
    assert len(read) > 400 and 20 < sum(read) < len(read) / 2


def test_any_value_in_any_field_of_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RECIPE, encoding="utf-8")
    content = tomllib.loads(RECIPE) | {"entropy": {"penalty": 0.01}}
    read = [is_read_or_refused(load_recipe, other, monkeypatch, path) for other in changed(content)]
    assert len(read) > 300 and 0 < sum(read) < len(read) / 2


def test_any_value_in_any_field_of_a_route(monkeypatch: pytest.MonkeyPatch) -> None:
    good = tomllib.loads(ROUTES)
    good = {"route": [good["route"][0] | {"steps": good["route"][0]["steps"][:1]}, good["route"][2]]}
    lessons("en")  # before its reader is replaced
    for content in changed(good):
        monkeypatch.setattr(lesson_files, "parse_toml", lambda _, content=content: content)
        found, problems = routes_of(LESSONS / "routes.toml")
        assert all(isinstance(route, Lesson) and route.steps and route.title.strip() for route in found)
        assert all("routes.toml" in problem and len(problem) < LONGEST_SENTENCE for problem in problems)
