"""The card of a head, and all heads as points: what they say is what the library counts, in every kind of model."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import streamlit as st

from charts.toolkit.numbers import percent
from tests.pages.conftest import codes, is_fine, said
from transformer.explanation.head_habits import head_habits
from transformer.runs.head_places import Head
from transformer.text.sentence_files import read_sentences
from ui.words.texts import common, page_text
from views.heads import head_card, scatter

TEXT = page_text("heads")
OWN = ("own.txt", b"The dog sees the cat.\nA bird sings.\n", "text/plain")
PLACES = [
    ("translator", "decoder", "cross"),
    ("translator", "encoder", "self"),
    ("gpt", "decoder", "self"),
    ("bert", "encoder", "self"),
    ("sentiment", "encoder", "self"),
]


def table(app):
    return next(one.value for one in app.dataframe if common("fires.context") in one.value)


@pytest.mark.parametrize(("name", "stack", "kind"), PLACES)
def test_for_against_and_examples(
    open_app: Callable, tiny_checkpoint: Callable, name: str, stack: str, kind: str
) -> None:
    app = open_app("heads", checkpoint=f"tiny-{name}", stack=stack, kind=kind, layer="1", head="1")
    is_fine(app)
    assert "**For:**" not in said(app), "nothing is read before it is asked for"
    next(button for button in app.button if button.label == TEXT["card_open"]).click()
    is_fine(app.run())
    habits = head_habits(tiny_checkpoint(name), read_sentences())[Head(stack, kind, 1, 1)]
    assert f"in **{percent(habits.main.share)}** of" in said(app)
    assert f"**{TEXT['card_kinds'][habits.main.kind]}**" in said(app)
    assert f"{TEXT['card_kinds'][habits.against.kind]} ({percent(habits.against.share)})" in said(app)
    assert (TEXT["card_no_habit"] in said(app)) == (habits.main.share < 0.5)
    by_share = sorted(habits.habits, key=lambda habit: -habit.share)
    drawn = [example for habit in by_share for example in habit.examples]
    assert [*table(app)[common("fires.query")]] == [one.asked[one.query].display for one in drawn]
    app.segmented_control(key="heads_card_by").set_value("strength")
    is_fine(app.run())
    for measure, intervals in habits.intervals.items():
        app.segmented_control(key="heads_card_measure").set_value(measure)
        is_fine(app.run())
        drawn = [example for interval in reversed(intervals) for example in interval.examples]
        assert [*table(app)[TEXT[f"card_value_{measure}"]]] == pytest.approx([one.value for one in drawn])
        rare = sum(len(interval.examples) for interval in intervals if interval.is_rare)
        assert sum(share.endswith(TEXT["card_rare"]) for share in table(app)[TEXT["card_column_share"]]) == rare
    assert any("head_habits(checkpoint, read_sentences())" in code for code in codes(app))


def test_own_sentences(open_app: Callable) -> None:
    app = open_app("heads", checkpoint="tiny-gpt", heads_section=TEXT["section_card"])
    app.file_uploader(key="sentence list file").set_value([OWN])
    is_fine(app.run())
    assert "(2 sentences)" in said(app)


def test_a_chosen_example_is_read_by_all_pages(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = ("The dog sees the cat.", "A bird sings.")
    checkpoint = tiny_checkpoint("gpt")
    habits = head_habits(checkpoint, sentences)[Head("decoder", "self", 1, 1)]
    one = habits.main.examples[0]
    changed = {}
    monkeypatch.setattr(head_card.shared_focus, "change", lambda **values: changed.update(values))
    monkeypatch.setattr(
        st, "session_state", {f"data {head_card._TABLE}": SimpleNamespace(selection=SimpleNamespace(rows=[0]))}
    )
    head_card._chosen(SimpleNamespace(checkpoint=checkpoint), [one], SimpleNamespace(sentences=sentences))
    assert changed["sentence"] == sentences[one.sentence] and changed["token"] == one.query


@pytest.mark.parametrize("checkpoint", ["vit-digits"])
def test_models_of_pictures_have_no_card(open_app: Callable, checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", "checkpoints")
    app = open_app("heads", checkpoint=checkpoint)
    is_fine(app)
    assert TEXT["card_open"] not in [button.label for button in app.button]


@pytest.mark.parametrize(("name", "stack", "kind"), PLACES)
def test_heads_as_points(open_app: Callable, tiny_checkpoint: Callable, name: str, stack: str, kind: str) -> None:
    section = {"heads_section": TEXT["section_scatter"], "sentence": "The old man told us a long story about a man."}
    app = open_app("heads", checkpoint=f"tiny-{name}", stack=stack, kind=kind, layer="1", head="1", **section)
    is_fine(app)
    assert "the heads most like 1.1 are: " in said(app)
    across = app.selectbox(key="heads_across")
    across.set_value(next(option for option in across.options if option != across.value))
    is_fine(app.run())
    short = open_app(
        "heads",
        checkpoint=f"tiny-{name}",
        stack=stack,
        kind=kind,
        sentence="No.",
        **{"heads_section": TEXT["section_scatter"]},
    )
    is_fine(short)


def test_a_clicked_point_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {}
    monkeypatch.setattr(scatter.shared_focus, "change", lambda **values: changed.update(values))
    selection = SimpleNamespace(points=[{"point_index": 1}])
    monkeypatch.setattr(st, "session_state", {f"chart {scatter._NAME}": SimpleNamespace(selection=selection)})
    scatter._follow([SimpleNamespace(layer=0, head=0), SimpleNamespace(layer=2, head=5)])
    assert changed == {"layer": 2, "head": 5}
