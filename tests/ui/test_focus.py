"""Focus and address agree, and missing values become the nearest existing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

import pytest
from streamlit.runtime.scriptrunner import StopException
from streamlit.runtime.state import SessionState, session_state_proxy
from streamlit.runtime.state.safe_session_state import SafeSessionState

import transformer
from tests.shipped import SHIPPED
from transformer.config import ModelConfig
from transformer.guests.guest_config import GuestConfig
from ui.compute.loading import REMOVED, RENAMED, checkpoint_names
from ui.shell import focus as focus_module
from ui.shell.fitting import attention_kinds, fit_model, fit_trace
from ui.shell.focus import (
    LONGEST,
    MAX_PADS,
    PLACE,
    REMOVED_CHOICES,
    Focus,
    address_of,
    default_of,
    fit_checkpoint,
    opening_focus,
)
from ui.shell.focus_controls import work_of
from ui.shell.openings import opening_of

DEFAULT = Focus(checkpoint="en-fr")
TRANSLATOR = ModelConfig(n_encoder_layers=2, n_decoder_layers=4)
WRITER = ModelConfig(kind="decoder-only", n_encoder_layers=0, n_decoder_layers=2)
FILLER = ModelConfig(kind="encoder-only", n_encoder_layers=2, n_decoder_layers=0)


def test_a_switch_in_an_address_is_on_or_off(open_app: Callable) -> None:
    app = open_app("tokens", checkpoint="tiny-gpt", presenter="7", written="7", layer="1")
    assert not app.exception and app.query_params["presenter"] in ("1", ["1"]) and "written" not in app.query_params


@pytest.mark.parametrize("access", [*range(1, 9), 12, 16, 20])
def test_back_that_forward_overtakes_at_once_keeps_the_sentence(
    access: int, shipped_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An access to the session's state ends the script that another click has overtaken."""
    session = SafeSessionState(SessionState(), lambda: None)
    monkeypatch.setattr(session_state_proxy, "_mock_session_state", session)
    monkeypatch.setattr(focus_module, "went_back_or_forward", lambda: True)
    typed: dict[str, list[str]] = {"sentence": ["One bird sings."]}
    for address, ends in ((typed, False), ({}, True), (typed, False)):
        left = iter(range(access if ends else 10_000))

        def access_the_state(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise StopException

        object.__setattr__(session, "_yield_callback", access_the_state)
        monkeypatch.setattr(focus_module.shared_address, "parameters", lambda address=address: address)
        with suppress(StopException):
            focus_module.begin()
    assert focus_module.current().sentence == "One bird sings."


def test_an_address_holds_only_what_is_not_the_default_and_gives_back_its_focus() -> None:
    assert DEFAULT.to_address(default=DEFAULT) == {}
    focus = replace(DEFAULT, stack="decoder", kind="cross", layer=2, sentence="", pads=3)
    assert focus.to_address(default=DEFAULT) == {
        "sentence": "", "stack": "decoder", "kind": "cross", "layer": "2", "pads": "3",
    }  # fmt: skip
    focus = Focus("other", "Ça va?\n<b>&x=1#%", "T", "decoder", "cross", 1, 2, 3, 4)
    assert Focus.from_address(focus.to_address(default=DEFAULT), default=DEFAULT) == (focus, ())
    assert replace(DEFAULT, sentence="x" * (LONGEST + 1), layer=1).to_address(default=DEFAULT) == {"layer": "1"}
    focus, (note,) = Focus.from_address({"layer": "two", "head": "-5", "colour": "red"}, default=DEFAULT)
    assert focus == DEFAULT and "layer='two'" in note


def test_a_checkpoint_that_is_not_there_becomes_the_first() -> None:
    focus, (note,) = fit_checkpoint(replace(DEFAULT, checkpoint="gone"), ("a", "b"))
    assert focus.checkpoint == "a" and "'gone'" in note and "'a'" in note
    assert fit_checkpoint(DEFAULT, ("a", "en-fr")) == (DEFAULT, ())
    assert fit_checkpoint(replace(DEFAULT, checkpoint=""), ("a",))[1] == ()
    for name, now in RENAMED.items():
        asked = Focus(checkpoint=name, layer=1)
        assert fit_checkpoint(asked, ("gpt-en", now)) == (replace(asked, checkpoint=now), ())
        assert fit_checkpoint(asked, ("gpt-en", now, name)) == (asked, ()), "a checkpoint of that name is still opened"
        opened, (note,) = fit_checkpoint(asked, ("gpt-en",))
        assert opened.checkpoint == "gpt-en" and name in note


@pytest.mark.parametrize(
    ("wanted", "config", "found", "noted"),
    [
        (Focus(), TRANSLATOR, Focus(), ()),
        (Focus(layer=7), TRANSLATOR, Focus(layer=1), ("7", "0–1")),
        (Focus(stack="decoder", layer=3), TRANSLATOR, Focus(stack="decoder", layer=3), ()),
        (Focus(head=6), TRANSLATOR, Focus(head=5), ("6",)),
        (Focus(kind="cross"), TRANSLATOR, Focus(kind="self"), ("",)),
        (Focus(stack="tower"), TRANSLATOR, Focus(stack="encoder"), ("",)),
        (Focus(), WRITER, Focus(stack="decoder"), ()),
        (Focus(stack="decoder", kind="cross"), WRITER, Focus(stack="decoder"), ("cross-attention",)),
        (Focus(stack="decoder", layer=1), FILLER, Focus(layer=1), ()),
        (Focus(pads=MAX_PADS + 1), TRANSLATOR, Focus(pads=MAX_PADS), ("",)),
    ],
)
def test_the_nearest_place_a_model_has(wanted: Focus, config: ModelConfig, found: Focus, noted: tuple) -> None:
    focus, notes = fit_model(wanted, config)
    assert focus == found and len(notes) == bool(noted) and all(word in "".join(notes) for word in noted)
    assert fit_model(focus, config) == (focus, ())


def test_attention_kinds_of_each_model() -> None:
    assert attention_kinds(TRANSLATOR) == (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
    assert attention_kinds(WRITER) == (("decoder", "self"),)
    assert attention_kinds(FILLER) == (("encoder", "self"),)


def test_a_token_beyond_the_end_becomes_the_last(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The cat.", target="Le chat.")
    last = len(trace.source) - 1
    focus, (note,) = fit_trace(Focus(token=99), trace)
    assert focus.token == last and "99" in note and str(last) in note
    assert fit_trace(Focus(token=last), trace) == (Focus(token=last), ())
    assert fit_trace(Focus(token=last + 1), trace)[0].token == last


# ---- addresses that people have kept --------------------------------------------------------------------------------

GONE = [  # page, parameters, and what the page names
    *(("overview", {"checkpoint": name}, name) for name in REMOVED),
    ("attention", {"checkpoint": "whisper-tiny", "sentence": "sound:melody"}, "Sounds"),
    ("embeddings", {"embeddings objective": "cbow"}, "embeddings objective"),
    ("attention", {"attention_guess": "true", "cell_writers": "true", "attention_fires": "space"}, "cell_writers"),
    ("positions", {"scheme": "alibi"}, "scheme"),
    ("overview", {"costs": "true"}, "costs"),
    ("compare", {"compare_mode": "caption"}, "compare_mode"),
    ("heads", {"heads_layers_12": "0", "heads_scope": "own"}, "heads_scope"),
]


@pytest.mark.sample("language")
@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(("page", "address", "named"), GONE)
def test_an_old_link_to_what_was_removed_opens_its_page_and_says_so(
    open_app: Callable, page: str, address: dict[str, str], named: str, language: str
) -> None:
    app = open_app(page, **address, language=language, layer="1")
    assert not app.exception and not app.error
    told = [element.value.replace("\\", "") for element in app.main.caption]
    assert sum(named in line for line in told) == 1 or (named == "Sounds" and language == "fr")
    focus = app.session_state["focus"]
    assert focus.checkpoint == checkpoint_names()[0] and not focus.sentence.startswith("sound:")
    for name, value in address.items():
        assert name in ("checkpoint", "sentence") or REMOVED_CHOICES.fullmatch(f"{name}={value}")
        assert name not in app.query_params


# ---- the openings of the shipped checkpoints ------------------------------------------------------------------------


def read_back(address: dict[str, str]) -> Focus:
    return Focus.from_address(address, default=default_of(address))[0]


@pytest.mark.usefixtures("shipped_folder")
@pytest.mark.parametrize("name", [path.name for path in SHIPPED])
def test_every_view_is_said_whole_by_its_address(name: str) -> None:
    """Include the first head of the first layer, which an address omits, and another opening location."""
    start = opening_of(name).first
    focus = read_back({"checkpoint": name})
    assert (focus.sentence, focus.target) == (start.sentence, start.target)
    assert {part: getattr(focus, part) for part in start.place} == start.place
    assert not address_of(focus).keys() - {"checkpoint"}, "and need not say more"
    focus = read_back({"checkpoint": name, "sentence": "Mine."})  # as written by hand
    assert (focus.sentence, focus.token) == ("Mine.", 0)
    assert all(getattr(focus, part) == start.place[part] for part in PLACE), "the note below the examples is about it"
    opening = replace(opening_focus(name), checkpoint=name)
    first = Focus(checkpoint=name, sentence=opening.sentence)
    changed = (replace(opening, token=0), replace(opening, sentence="Mine."), replace(first, pads=2))
    for focus in (opening, first, *changed):
        assert read_back(address_of(focus)) == focus
        assert read_back(address_of(focus, whole=True)) == focus
        assert {"checkpoint", "sentence", "layer"} <= address_of(focus, whole=True).keys()


@pytest.mark.usefixtures("shipped_folder")
def test_an_old_address_still_means_what_it_said() -> None:
    focus = read_back({"checkpoint": "gpt-en", "sentence": "I want to", "layer": "0"})
    assert (focus.sentence, focus.layer, focus.head, focus.token) == ("I want to", 0, 0, 0)
    focus = read_back({"layer": "2", "head": "3"})
    assert (focus.stack, focus.kind, focus.layer, focus.head) == ("encoder", "self", 2, 3)


def test_the_address_is_written_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same view with its parameters in another order would be another entry in the browser's history."""
    monkeypatch.setattr(focus_module.st, "session_state", {})
    monkeypatch.setattr(focus_module.shared_address, "parameters", dict)
    monkeypatch.setattr(focus_module.page_state, "choices", lambda _: {"b": ("1",), "a": ("2",)})
    focus_module.store(Focus(checkpoint="gone", sentence="A cat.", target="Un chat.", layer=1, head=2, token=3))
    written = [*focus_module.whole_address()]
    order = [*(field.name for field in fields(Focus)), "a", "b"]
    assert len(written) > 5 and written == sorted(written, key=order.index)


# ---- what a model's task is called ----------------------------------------------------------------------------------

SIZES = {"vocabulary_size": 50, "d_model": 16, "n_heads": 2, "d_ff": 24, "n_encoder_layers": 1, "n_decoder_layers": 1}


@pytest.mark.parametrize(
    ("config", "work"),
    [
        (GuestConfig(family="t5", **SIZES), "text-to-text"),
        (GuestConfig(family="bart", **SIZES), "text-to-text"),
        (GuestConfig(family="marian", **SIZES), "encoder-decoder"),
        (GuestConfig(family="m2m_100", **SIZES), "encoder-decoder"),
        (ModelConfig(**SIZES), "encoder-decoder"),
        (ModelConfig(task_prefixes=("fill: ",), **SIZES), "text-to-text"),
    ],
)
def test_only_our_own_and_families_of_translators_translate_unless_they_were_given_tasks(config, work: str) -> None:
    assert work_of(config) == work
