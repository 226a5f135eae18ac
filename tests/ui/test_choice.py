"""Controls of a page: set from the session, reporting to it, copied to the address, owning nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from ui.shell.choice import FORMER
from ui.shell.navigation import page_names
from ui.words.texts import common, page_text

PAGES = page_names()


def controls() -> None:
    """A page with one control of each kind; ``hide`` draws none of them."""
    import streamlit as st

    from ui.shell import choice, page_state
    from ui.shell import focus as shared_focus

    shared_focus.begin()
    page_state.enter("trial")
    if not st.session_state.get("hide"):
        owner = st.session_state.get("owner", "first")
        names = {"map": ["Map", "Carte", "show_map"], "lines": ["Lines", "Lignes"]}
        shown = {
            "switch": choice.toggle("switch", key="switch"),
            "on": choice.toggle("on", key="on", default=True),
            "slider": choice.slider("slider", 0, 9, 4, key="slider", owner=owner),
            "share": choice.slider("share", 0.0, 1.0, 0.5, 0.1, key="share"),
            "range": choice.slider("range", 0, 5, (0, 5), key="range"),
            "number": choice.number("number", 0, 99, 7, key="number"),
            "text": choice.text("text", "a", key="text"),
            "rate": choice.select_slider("rate", (0.1, 0.01), 0.1, key="rate"),
            "steps": choice.buttons("steps", (16, 32), 32, key="steps"),
            "list": choice.select("list", ["x", "y"], key="list"),
            "typed": choice.select("typed", ["x", "y"], "x", key="typed", accept_new_options=True),
            "several": choice.several("several", range(4), [0, 1], key="several"),
            "show": choice.one_of("show", names, key="show"),
        }
        st.markdown(repr(shown))
    for note in shared_focus.notes():
        st.caption(note)
    shared_focus.write_address()


DEFAULTS = {
    "switch": False, "on": True, "slider": 4, "share": 0.5, "range": (0, 5), "number": 7, "text": "a", "rate": 0.1,
    "steps": 32, "list": None, "typed": "x", "several": [0, 1], "show": "map",
}  # fmt: skip
CHANGED = {
    "switch": ["true"], "on": ["false"], "slider": ["9"], "share": ["0.2"], "range": ["1", "3"], "number": ["0"],
    "text": [""], "rate": ["0.01"], "steps": ["16"], "list": ["y"], "typed": ["new"], "several": ["3"],
    "show": ["lines"],
}  # fmt: skip
SHOWN = {
    "switch": True, "on": False, "slider": 9, "share": 0.2, "range": (1, 3), "number": 0, "text": "", "rate": 0.01,
    "steps": 16, "list": "y", "typed": "new", "several": [3], "show": "lines",
}  # fmt: skip
Open = Callable[..., AppTest]


@pytest.fixture
def trial(checkpoints_folder: object) -> Open:
    def run(**address: object) -> AppTest:
        app = AppTest.from_function(controls, default_timeout=120)
        for name, value in address.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception
        return app

    return run


def shown(app: AppTest) -> dict[str, object]:
    assert not app.exception
    return eval(app.markdown[0].value)


def own(app: AppTest) -> dict[str, list[str]]:
    """Return the values of the controls in the address."""
    said = {name: [values] if isinstance(values, str) else values for name, values in app.query_params.items()}
    return {name: values for name, values in said.items() if name in DEFAULTS and values}


def notes(app: AppTest) -> list[str]:
    return [caption.value for caption in app.caption]


def test_defaults_are_left_unsaid(trial: Open) -> None:
    app = trial()
    assert shown(app) == DEFAULTS and own(app) == {} and not notes(app)


def test_what_an_address_says_is_shown_and_kept(trial: Open) -> None:
    app = trial(**CHANGED)
    assert shown(app) == SHOWN and own(app) == CHANGED and not notes(app)
    # "typed" is left out, because AppTest cannot send it back
    app = trial(**{key: value for key, value in CHANGED.items() if key != "typed"})
    app.session_state["hide"] = True
    app.run()
    assert {**own(app), "typed": ["new"]} == CHANGED, "a control that is not drawn keeps its value"
    app.session_state["hide"] = False
    assert shown(app.run()) == {**SHOWN, "typed": "x"}


def test_what_a_reader_changes_is_shown_and_said(trial: Open) -> None:
    app = trial()
    app.toggle(key="switch").set_value(True)
    app.toggle(key="on").set_value(False)
    app.slider(key="slider").set_value(9)
    app.slider(key="share").set_value(0.2)
    app.slider(key="range").set_value((1, 3))
    app.number_input(key="number").set_value(0)
    app.text_input(key="text").set_value("")
    app.selectbox(key="list").set_value("y")
    app.multiselect(key="several").set_value([3])
    wanted = {name: CHANGED[name] for name in ("switch", "on", "slider", "share", "range", "number", "text", "list")}
    assert own(app.run()) == {**wanted, "several": ["3"]}
    assert shown(app) == {**DEFAULTS, **{name: SHOWN[name] for name in own(app)}}
    app.slider(key="slider").set_value(4)
    assert "slider" not in own(app.run()), "the default is left unsaid"


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        *(("number", value, 7) for value in ("9" * 5000, "1e999", "nan", "x", "", "٣x")),
        *(("number", value, near) for value, near in (("-5", 0), ("1000", 99), ("3", 3))),
        *(("slider", value, near) for value, near in (("1e3", 9), ("-1", 0), ("<b>", 4))),
        *(("share", value, near) for value, near in (("7", 1.0), ("inf", 0.5), ("0.25", 0.25))),
        *(("range", value, near) for value, near in (("4", (0, 5)), (["9", "2"], (2, 5)), ("1,2", (1, 2)))),
        *(("switch", value, near) for value, near in (("True", True), ("1", True), ("yes", False))),
        *(("show", value, near) for value, near in (("Lignes", "lines"), ("show_map", "map"), ("gone", "map"))),
        *(("steps", value, near) for value, near in (("16", 16), ("17", 32))),
        *(("list", value, None) for value in ("z", "\x00", "x" * 5000)),
        *(("several", value, near) for value, near in ((["3", "9"], [3]), ("9", []))),
    ],
)
def test_an_address_is_never_an_error(trial: Open, key: str, value: str | list[str], found: object) -> None:
    app = trial(**{key: value})
    assert shown(app)[key] == found
    assert len("".join(notes(app))) < 1000


def test_a_correction_is_said_and_a_former_name_is_not(trial: Open) -> None:
    app = trial(number="1000", show="gone", slider="9")
    text = {name: common("note.choice", name=name, text="") for name in ("number", "show", "slider")}
    said = [name for name, line in text.items() if any(note.startswith(line.split("=")[0]) for note in notes(app))]
    assert said == ["number", "show"] and own(app) == {"number": ["99"], "slider": ["9"]}
    app = trial(show="Lignes", switch="True")
    assert not notes(app) and own(app) == {"show": ["lines"], "switch": ["true"]}


def test_another_owner_begins_at_the_default(trial: Open) -> None:
    app = trial(slider="9", number="3")
    assert shown(app)["slider"] == 9, "an address is for the owner that it opens"
    app.session_state["owner"] = "second"
    assert shown(app.run())["slider"] == 4 and own(app) == {"number": ["3"]}


def test_an_address_that_is_brought_replaces_all_choices_of_the_page(trial: Open) -> None:
    app = trial(slider="9", number="3")
    app.query_params.clear()
    app.query_params["steps"] = "16"
    assert shown(app.run()) == {**DEFAULTS, "steps": 16} and own(app) == {"steps": ["16"]}


def test_an_address_of_a_moment_ago_is_not_taken_for_one_that_is_brought(trial: Open) -> None:
    """Two clicks at once: the second one arrives with the address that the first one has replaced."""
    app = trial(number="3")
    app.toggle(key="switch").set_value(True).run()
    del app.query_params["switch"]
    assert shown(app.run())["switch"] is True


@pytest.mark.parametrize("name", sorted(FORMER))
def test_a_former_name_of_an_option_still_finds_it(name: str) -> None:
    """Each is a text of a page today, and no other option of that row has the former name now."""
    control, _, option = name.rpartition("_")
    tables = [text[control] for text in map(page_text, PAGES) if option in text.get(control, ())]
    assert tables, f"no page has an option {name}"
    for table in tables:
        assert not set(FORMER[name]) & {called for one, called in table.items() if one != option}
