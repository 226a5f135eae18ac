"""Browser events are validated: a forged event changes nothing and breaks nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import streamlit as st

from ui.shell import focus as shared_focus
from ui.shell import picture, strip
from ui.shell.events import one_of, whole_number, whole_numbers
from ui.show import chips as chips_module
from ui.show.chips import Chip, ChipRow, chips
from views.attention import shaded
from views.overview import diagram

WRONG = [-2, -1, 1.5, "1", True, None, [], {}, float("nan"), float("inf"), 10**9, 10**400, "x" * 5000]


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Return the focus that an event would give."""
    found: list[dict] = []
    monkeypatch.setattr("ui.shell.focus.change", lambda **values: found.append(values))
    return found


def says(monkeypatch: pytest.MonkeyPatch, key: str, **values: object) -> dict:
    state = {key: SimpleNamespace(**values)}
    monkeypatch.setattr(st, "session_state", state)
    return state


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:12])
def test_what_is_no_position_is_none(wrong: object) -> None:
    assert whole_number(wrong) is None
    assert whole_numbers({"row": 0, "card": wrong}, ("row", "card")) is None
    assert whole_numbers(wrong, ("row",)) is None


def test_what_is_a_position_is_read() -> None:
    assert [whole_number(value) for value in (0, 3, 3.0)] == [0, 3, 3]
    assert whole_numbers({"row": 1, "card": 2.0, "more": "x"}, ("row", "card")) == (1, 2)
    assert one_of("encoder", ("encoder", "decoder")) == "encoder"
    assert one_of(["encoder"], ("encoder", "decoder")) is None and one_of("x", ("encoder",)) is None


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:12])
def test_a_forged_event_changes_nothing(wrong: object, changed: list, monkeypatch: pytest.MonkeyPatch) -> None:
    forged: list[tuple[str, Callable[[], None], dict]] = [
        ("token strip", strip._send_choice, {"chosen": {"stack": "encoder", "token": wrong}}),
        ("token strip", strip._send_choice, {"chosen": {"stack": wrong, "token": 1}}),
        ("token strip", strip._send_choice, {"chosen": {"stack": "middle", "token": 1}}),
        ("token strip", strip._send_choice, {"chosen": {"token": 1}}),
        ("token strip", strip._send_choice, {"chosen": wrong}),
        ("model diagram", diagram._choose_layer, {"layer": wrong}),
        ("model diagram", partial(diagram._open, {"encoder": ("attention", {})}), {"opened": wrong}),
        (shaded._KEY, shaded._chosen, {"chosen": wrong}),
    ]
    for key, callback, values in forged:
        state = says(monkeypatch, key, **values)
        callback()
        assert list(state) == [key], (key, values)
    if not isinstance(wrong, str):  # a text may be an image with a typing error, which the page reports
        says(monkeypatch, "sidebar picture", chosen=wrong)
        picture._use_picture()
    assert changed == []


def test_a_click_on_the_strip_still_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    focus = shared_focus.current()
    own, kept = focus.stack, []
    monkeypatch.setattr(shared_focus, "keep", lambda focus, *, lines: kept.append(focus))
    other = "encoder" if own == "decoder" else "decoder"
    for stack in (own, other):
        says(monkeypatch, "token strip", chosen={"stack": stack, "token": 2})
        strip._send_choice()
    assert kept == [replace(focus, token=2), replace(focus, token=2, stack=other, kind="self")]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:12])
def test_a_forged_click_on_a_card_is_no_click(wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, told = [ChipRow("reads", (Chip("a"), Chip("b")))], []
    mounted = {}
    monkeypatch.setattr(chips_module, "token_rows", lambda **how: mounted.update(how))
    chips(rows, key="k", on_click=lambda *chosen: told.append(chosen))
    for chosen in (wrong, {"row": wrong, "card": 0}, {"row": 0, "card": wrong}, {"row": 0}, {"row": 0, "card": 2}):
        says(monkeypatch, "k", chosen=chosen)
        mounted["on_chosen_change"]()
        assert told == []
    says(monkeypatch, "k", chosen={"row": 0, "card": 1})
    mounted["on_chosen_change"]()
    assert told == [(0, 1)]
