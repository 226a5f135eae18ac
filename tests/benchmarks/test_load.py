"""The load test: it detects other visitors' data, and works with one small class on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import permutations
from urllib.parse import urlencode

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks import load, soak
from benchmarks.students import Student, differences, sentence, shown_edits, strange_sentences
from tests.harness.app_server import AppServer
from tests.harness.runs import Run, attempt
from tests.own_thread import in_own_thread


@pytest.fixture(scope="module")
def server() -> Iterator[AppServer]:
    with AppServer() as running:
        yield running


def code(text: str) -> ForwardMsg:
    message = ForwardMsg()
    message.delta.new_element.code.code_text = text
    return message


def address(**parameters: str | list[str]) -> ForwardMsg:
    message = ForwardMsg()
    message.page_info_changed.query_string = urlencode(parameters, doseq=True)
    return message


def test_no_sentence_is_a_part_of_another() -> None:
    texts = [
        text for number in range(30) for lesson in (0, 1, 59) for text in Student(number, "", lesson=lesson).sentences
    ]
    assert len(set(texts)) == len(texts) == 180
    assert not any(one.rstrip(".") in other for one, other in permutations(texts, 2))


@pytest.mark.parametrize(
    "message",
    [
        code(f"trace = transformer.trace(checkpoint, '{sentence(7)}')"),
        code(json.dumps({"rows": [{"text": sentence(7)}]})),
        address(sentence=sentence(7), layer="2"),
        address(note="see " + sentence(7)),
    ],
    ids=["code", "JSON", "address", "note"],
)
def test_anothers_sentence_is_found_wherever_it_stands(message: ForwardMsg) -> None:
    assert strange_sentences([message], [sentence(7)]) == []
    assert strange_sentences([code("nothing"), message], [sentence(8)]) == [sentence(7).rstrip(".")]


def test_edits_are_found_in_the_address_and_in_code() -> None:
    edits = ["zero:encoder.0.self.3", "scale:decoder.1.cross.2=0.5"]
    found = list(shown_edits([address(edit=edits), code(f"edits = transformer.edits_from(checkpoint, {edits!r})")]))
    assert found == [tuple(edits)] * 2
    assert list(shown_edits([address(sentence="edit"), code("edits_from(checkpoint, [])")])) == [()]


def test_a_student_complains_about_what_is_not_theirs() -> None:
    student, other = Student(0, ""), Student(1, "")
    own = Run(received=[code(student.now), address(sentence=student.now)])
    complaints = student.complaints(own)
    assert len(complaints) == 1
    assert "does not see their own sentence" in complaints[0]  # the screen is empty
    complaints = student.complaints(Run(received=[*own.received, code(other.now)]))
    assert any("not theirs" in text and other.now.rstrip(".") in text for text in complaints)
    complaints = student.complaints(Run(received=[address(edit=[other.edit])]))
    assert any("an edit that is not theirs" in text and other.edit in text for text in complaints)
    error = ForwardMsg()
    error.delta.new_element.exception.message = "it broke"
    assert any("it broke" in text for text in student.complaints(Run(received=[error])))


async def test_what_cannot_be_done_is_a_complaint_and_no_end() -> None:
    student = Student(0, "")
    run = await attempt(student.cut())
    assert "no widget with the key 'importance'" in run.problem
    assert any("importance" in text for text in student.complaints(run))


def test_one_other_number_on_the_screen_is_a_difference() -> None:
    crowd, alone = Student(0, ""), Student(0, "")
    crowd.screens, alone.screens = [{"0.1 code": "a", "0.2 metric": "b"}], [{"0.1 code": "a", "0.2 metric": "b"}]
    assert differences(crowd, alone) == []
    alone.screens[0]["0.2 metric"] = "c"
    assert "0.2 metric" in differences(crowd, alone)[0]
    alone.screens.append({})
    assert len(differences(crowd, alone)) == 2


def lesson(*, last: float, megabytes: dict[str, float]) -> load.Lesson:
    row = load.Row(load.WARM, last=[last] * 5, median=[0.1] * 5, server=[0.5] * 5, clients=[0.1] * 5, kilobytes=[9.0])
    return load.Lesson([row], megabytes, [])


def test_goals_are_met_or_missed() -> None:
    fine = lesson(last=0.9, megabytes={"before": 500, "with the class": 510, "after": 505})
    assert [goal.met for goal in load.goals([fine], 30, [])] == [True] * 4
    bad = lesson(last=1.1, megabytes={"before": 500, "with the class": 520, "after": 551})
    assert [goal.met for goal in load.goals([fine, bad], 30, ["something"])] == [False] * 4
    assert load.goals([bad], 30, [])[1].measured == "0.67 MB"
    assert [goal.met for goal in load.public_server_goals(30, 699, 1499)] == [True] * 3
    assert [goal.met for goal in load.public_server_goals(31, 700, 1500)] == [False] * 3


@pytest.mark.parametrize("arguments", [["--students", "0"], ["--students", "99"]])
def test_a_class_of_impossible_size_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load.main(arguments)
    assert "--students is" in capsys.readouterr().err


@pytest.mark.nightly
def test_two_students_at_a_small_public_server(capsys: pytest.CaptureFixture[str]) -> None:
    """The start time depends on other load, so it is not checked."""
    status = in_own_thread(load.main, ["--public", "--students", "2", "--wait", "0", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["complaints"] == []
    assert status == 0
    names = list(dict.fromkeys(step.name for step in load.lesson()))
    for one in found["lessons"]:
        assert [row["name"] for row in one["rows"]] == names
        assert all(row["kilobytes"][0] > 1 and row["last"][0] >= row["median"][0] > 0 for row in one["rows"])
        assert one["megabytes"].keys() == {"before", "with the class", "after"}
    assert len(found["goals"]) == 7
    assert all(goal["met"] for goal in found["goals"][5:]), found["goals"]


@pytest.mark.slow
async def test_the_check_fails_when_one_sees_what_another_received(server: AppServer) -> None:
    one, other = Student(0, server.base), Student(1, server.base)
    async with one.session, other.session:
        mine, theirs = await one.open(), await other.open()
        assert one.complaints(mine) == other.complaints(theirs) == []
        assert any("not theirs" in text for text in one.complaints(theirs))
        one.keep_screen()
        other.keep_screen()
        assert differences(one, other)  # other sentences give other figures


@pytest.mark.slow
def test_a_short_soak_has_no_problems(
    server: AppServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "AppServer", lambda *_, **__: nullcontext(server))  # the one that runs anyway
    monkeypatch.setattr(soak, "CLICK_SECONDS", 2.0)  # a visitor who thinks for a minute keeps a worker waiting
    assert soak.main(["--visitors=3", "--minutes=0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("before") and "minutes" in lines[1] and lines[-1].endswith(" clicks, 0 problems")
