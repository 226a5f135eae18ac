"""Focus and address agree, and missing values become the nearest existing ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

import transformer
from tests.conftest import ROOT
from tests.shipped import SHIPPED
from transformer.config import ModelConfig
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
from ui.shell.openings import opening_of

DEFAULT = Focus(checkpoint="en-fr")
TRANSLATOR = ModelConfig(n_encoder_layers=2, n_decoder_layers=4)
WRITER = ModelConfig(kind="decoder-only", n_encoder_layers=0, n_decoder_layers=2)
FILLER = ModelConfig(kind="encoder-only", n_encoder_layers=2, n_decoder_layers=0)


def test_an_address_holds_only_what_is_not_the_default() -> None:
    assert DEFAULT.to_address(default=DEFAULT) == {}
    focus = replace(DEFAULT, stack="decoder", kind="cross", layer=2, sentence="", pads=3)
    assert focus.to_address(default=DEFAULT) == {
        "sentence": "", "stack": "decoder", "kind": "cross", "layer": "2", "pads": "3",
    }  # fmt: skip


def test_an_address_gives_back_the_focus_it_was_made_from() -> None:
    focus = Focus("other", "Ça va?\n<b>&x=1#%", "T", "decoder", "cross", 1, 2, 3, 4)
    assert Focus.from_address(focus.to_address(default=DEFAULT), default=DEFAULT) == (focus, ())


def test_an_address_that_makes_no_sense_says_so_and_changes_nothing() -> None:
    focus, notes = Focus.from_address({"layer": "two", "head": "-5", "colour": "red"}, default=DEFAULT)
    assert focus == DEFAULT
    assert notes == ("The address has layer='two', which is not a whole number; it is ignored.",)


def test_a_huge_sentence_stays_out_of_the_address() -> None:
    focus = replace(DEFAULT, sentence="x" * (LONGEST + 1), layer=1)
    assert focus.to_address(default=DEFAULT) == {"layer": "1"}


def test_a_checkpoint_that_is_not_there_becomes_the_first() -> None:
    focus, notes = fit_checkpoint(replace(DEFAULT, checkpoint="gone"), ("a", "b"))
    assert focus.checkpoint == "a"
    assert notes == ("There is no checkpoint 'gone' here; showing 'a'.",)
    assert fit_checkpoint(DEFAULT, ("a", "en-fr")) == (DEFAULT, ())
    assert fit_checkpoint(replace(DEFAULT, checkpoint=""), ("a",))[1] == ()


@pytest.mark.parametrize(
    ("wanted", "config", "found", "n_notes"),
    [
        (Focus(), TRANSLATOR, Focus(), 0),
        (Focus(layer=3), TRANSLATOR, Focus(layer=1), 1),
        (Focus(stack="decoder", layer=3), TRANSLATOR, Focus(stack="decoder", layer=3), 0),
        (Focus(head=6), TRANSLATOR, Focus(head=5), 1),
        (Focus(kind="cross"), TRANSLATOR, Focus(kind="self"), 1),
        (Focus(stack="tower"), TRANSLATOR, Focus(stack="encoder"), 1),
        (Focus(), WRITER, Focus(stack="decoder"), 0),
        (Focus(stack="decoder", kind="cross"), WRITER, Focus(stack="decoder"), 1),
        (Focus(stack="decoder", layer=1), FILLER, Focus(layer=1), 0),
        (Focus(pads=MAX_PADS + 1), TRANSLATOR, Focus(pads=MAX_PADS), 1),
        (Focus(layer=9, head=9), TRANSLATOR, Focus(layer=1, head=5), 2),
    ],
)
def test_the_nearest_place_a_model_has(wanted: Focus, config: ModelConfig, found: Focus, n_notes: int) -> None:
    focus, notes = fit_model(wanted, config)
    assert focus == found
    assert len(notes) == n_notes
    assert fit_model(focus, config) == (focus, ())


def test_the_note_names_what_was_missing_and_what_there_is() -> None:
    _, notes = fit_model(Focus(layer=7), TRANSLATOR)
    assert notes == ("There is no layer 7 (this model has layers 0–1); showing layer 1.",)
    _, notes = fit_model(Focus(stack="decoder", kind="cross"), WRITER)
    assert notes == ("This model has no decoder cross-attention; showing decoder self-attention.",)


def test_attention_kinds_of_each_model() -> None:
    assert attention_kinds(TRANSLATOR) == (("encoder", "self"), ("decoder", "self"), ("decoder", "cross"))
    assert attention_kinds(WRITER) == (("decoder", "self"),)
    assert attention_kinds(FILLER) == (("encoder", "self"),)


def test_a_token_beyond_the_end_becomes_the_last(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The cat.", target="Le chat.")
    last = len(trace.source) - 1
    focus, notes = fit_trace(Focus(token=99), trace)
    assert focus.token == last
    assert notes == (f"There is no token 99 (the encoder read tokens 0–{last}); showing token {last}.",)
    assert fit_trace(Focus(token=last), trace) == (Focus(token=last), ())
    assert fit_trace(Focus(token=last + 1), trace)[0].token == last


@pytest.mark.parametrize(("language", "said"), [("en", "was removed in this version"), ("fr", "a été retiré")])
@pytest.mark.parametrize("name", REMOVED)
def test_an_old_link_to_a_removed_checkpoint_opens_the_default(
    open_app: Callable, name: str, language: str, said: str
) -> None:
    app = open_app("overview", checkpoint=name, language=language, layer="1")
    assert not app.exception and not app.error
    assert app.session_state["focus"].checkpoint == checkpoint_names()[0]
    captions = [element.value.replace("\\", "") for element in app.main.caption]
    (note,) = [caption for caption in captions if name in caption]
    assert said in note and checkpoint_names()[0] in note


def test_an_old_link_to_a_sound_opens_a_sentence_and_says_so(open_app: Callable) -> None:
    app = open_app("attention", checkpoint="whisper-tiny", sentence="sound:melody", layer="1")
    assert not app.exception and not app.error
    assert app.session_state["focus"].sentence == opening_focus(checkpoint_names()[0]).sentence
    assert sum("Sounds are no longer read" in element.value for element in app.main.caption) == 1


GONE = {
    "embeddings objective": ("embeddings", "cbow"),
    "attention_guess": ("attention", "true"),
    "cell_writers": ("attention", "true"),
    "attention_fires": ("attention", "space"),
    "scheme": ("positions", "alibi"),
    "costs": ("overview", "true"),
    "compare_mode": ("compare", "caption"),
    "heads_layers_12": ("heads", "0"),
    "heads_scope": ("heads", "own"),
}


@pytest.mark.parametrize("name", GONE)
def test_an_old_link_with_a_removed_choice_opens_its_page_and_says_so(open_app: Callable, name: str) -> None:
    page, value = GONE[name]
    assert REMOVED_CHOICES.fullmatch(f"{name}={value}")
    app = open_app(page, **{name: value, "layer": "1"})
    assert not app.exception and not app.error
    told = [element.value.replace("\\", "") for element in app.main.caption]
    assert sum(name in line and "is ignored" in line for line in told) == 1
    assert name not in app.query_params


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_link_to_a_renamed_checkpoint_opens_it(name: str) -> None:
    known = ("gpt-en", RENAMED[name])
    asked = Focus(checkpoint=name, layer=1)
    assert fit_checkpoint(asked, known) == (replace(asked, checkpoint=RENAMED[name]), ())
    assert fit_checkpoint(asked, (*known, name)) == (asked, ()), "a checkpoint of that name is still opened"
    opened, (note,) = fit_checkpoint(asked, ("gpt-en",))
    assert opened.checkpoint == "gpt-en" and name in note


SHIPPED_NAMES = [path.name for path in SHIPPED]


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))


def read_back(address: dict[str, str]) -> Focus:
    return Focus.from_address(address, default=default_of(address))[0]


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_an_address_that_names_a_checkpoint_alone_opens_as_it_does(shipped: None, name: str) -> None:
    first = opening_of(name).first
    focus = read_back({"checkpoint": name})
    assert (focus.sentence, focus.target) == (first.sentence, first.target)
    assert {part: getattr(focus, part) for part in first.place} == first.place
    assert not address_of(focus).keys() - {"checkpoint"}, "and need not say more"


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_every_view_is_said_whole_by_its_address(shipped: None, name: str) -> None:
    """Include the first head of the first layer, which an address omits, and another opening location."""
    opening = replace(opening_focus(name), checkpoint=name)
    first = Focus(checkpoint=name, sentence=opening.sentence)
    for focus in (
        opening,
        first,
        replace(opening, token=0),
        replace(opening, sentence="Mine."),
        replace(first, pads=2),
    ):
        assert read_back(address_of(focus)) == focus
        assert read_back(address_of(focus, whole=True)) == focus
        assert {"checkpoint", "sentence", "layer"} <= address_of(focus, whole=True).keys()


@pytest.mark.parametrize("name", SHIPPED_NAMES)
def test_a_sentence_alone_opens_at_the_head_of_the_opening(shipped: None, name: str) -> None:
    """An address written by hand: the note below the examples describes that head."""
    focus, place = read_back({"checkpoint": name, "sentence": "Mine."}), opening_of(name).first.place
    assert (focus.sentence, focus.token) == ("Mine.", 0)
    assert all(getattr(focus, part) == place[part] for part in PLACE)


def test_an_old_address_still_means_what_it_said(shipped: None) -> None:
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
