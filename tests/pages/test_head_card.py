"""The card of a head shows the library's counts in every kind of model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import streamlit as st

import transformer
from charts.toolkit.numbers import percent
from charts.toolkit.style import signed
from tests.pages.conftest import codes, is_fine, said
from transformer.heads.head_atlas import HeadHabits, head_habits
from transformer.heads.head_circuits import written_words
from transformer.heads.removed_head import removed_head
from transformer.heads.role_files import load_corpus_roles
from transformer.runs.head_places import Head
from transformer.text.sentence_files import read_sentences
from ui.words.texts import common, page_text
from views.heads import head_card

TEXT = page_text("heads")
OWN = ("own.txt", b"The dog sees the cat.\nA bird sings.\n", "text/plain")
PLACES = [
    ("translator", "decoder", "cross"),
    ("translator", "encoder", "self"),
    ("gpt", "decoder", "self"),
    ("bert", "encoder", "self"),
    ("sentiment", "encoder", "self"),
]
# Cross-attention, a decoder-only model, a model without words to predict; test_heads_as_points covers all heads.
FEWER = [
    pytest.param(*place, marks=() if place[0] in ("gpt", "sentiment") or place[2] == "cross" else pytest.mark.nightly)
    for place in PLACES
]


def attended(habits: HeadHabits) -> tuple[int, ...]:
    keys = Counter(one.read[one.key].id for habit in habits.habits for one in habit.examples)
    return tuple(id for id, _ in keys.most_common(head_card.WRITTEN))


def table(app):
    return next(one.value for one in app.dataframe if common("fires.context") in one.value)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stack", "kind"), FEWER)
def test_for_against_and_examples(
    open_app: Callable, tiny_checkpoint: Callable, name: str, stack: str, kind: str
) -> None:
    app = open_app("heads", checkpoint=f"tiny-{name}", stack=stack, kind=kind, layer="1", head="1")
    is_fine(app)
    assert "**For:**" not in said(app), "nothing is read before it is asked for"
    app.segmented_control(key="heads_section").set_value("card")
    is_fine(app.run())
    habits = head_habits(tiny_checkpoint(name), read_sentences())[Head(stack, kind, 1, 1)]
    assert f"in **{percent(habits.main.share)}** of" in said(app)
    assert f"**{TEXT['card_kinds'][habits.main.kind]}**" in said(app)
    assert f"{TEXT['card_kinds'][habits.against.kind]} ({percent(habits.against.share)})" in said(app)
    assert (TEXT["card_no_habit"] in said(app)) == (habits.main.share < 0.5)
    by_share = sorted(habits.habits, key=lambda habit: -habit.share)
    drawn = [example for habit in by_share for example in habit.examples]
    assert [*table(app)[common("fires.query")]] == [one.asked[one.query].display for one in drawn]
    writes = next(one.value for one in app.dataframe if TEXT["column"]["writes"] in one.value)
    display, tokens = tiny_checkpoint(name).tokenizer.display, attended(habits)
    words = written_words(tiny_checkpoint(name).model, stack, kind, layer=1, head=1, tokens=tokens)
    assert writes.to_numpy().tolist() == [
        [display(one.token), *(", ".join(map(display, ids)) for ids in (one.raised, one.lowered))] for one in words
    ]
    read_out = stack == "decoder" or name == "bert"
    assert TEXT["card_writes_logits" if read_out else "card_writes_directions"] in said(app)
    assert any("head_habits(checkpoint, read_sentences())" in code for code in codes(app))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stack", "kind"), FEWER)
def test_what_is_lost_without_it(
    open_app: Callable, tiny_checkpoint: Callable, name: str, stack: str, kind: str
) -> None:
    app = open_app(
        "heads", checkpoint=f"tiny-{name}", stack=stack, kind=kind, layer="1", head="1",
        heads_section="card", heads_card_remove="true",
    )  # fmt: skip
    is_fine(app)
    found = removed_head(tiny_checkpoint(name), read_sentences(), Head(stack, kind, 1, 1))
    assert f"changes by **{signed(found.alone)}** on average" in said(app)


@pytest.mark.slow
def test_the_card_names_every_test_that_a_head_reaches(monkeypatch: pytest.MonkeyPatch, open_app: Callable) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", "checkpoints")
    app = open_app("heads", checkpoint="gpt-en", layer="2", head="4", heads_section="card", heads_scope="corpus")
    is_fine(app)
    assert "**By the tests of the literature:** sink" in said(app)
    copying = next(
        one for one in load_corpus_roles(transformer.load("checkpoints/gpt-en")).roles.heads if one.place[2:] == (2, 4)
    ).measured.measures["copying"]
    assert f"copying {signed(copying.score)}." in said(app)
    assert "induction (" in said(app).split("**By the tests of the literature:**")[1].split("\n")[0], "both, not one"


NO_LISTS = (
    ("latin.txt", "Le café est très chaud.".encode("latin-1"), "not_text"),
    ("wide.txt", "Two bytes each.".encode("utf-16"), "not_text"),
    ("binary.txt", b"a\x00b\x01\x02", "not_text"),
    ("empty.txt", b"  \n\n", "empty"),
    ("line.txt", b"word " * 200_000, "too_long"),
)


def test_a_file_that_is_no_list_of_sentences_is_refused_in_a_sentence(open_app: Callable) -> None:
    app = open_app("heads", checkpoint="tiny-gpt", heads_section="card")
    app.file_uploader(key="sentence list file").set_value([OWN])
    is_fine(app.run())
    for name, content, why in NO_LISTS:
        app.file_uploader(key="sentence list file").set_value([(name, content, "text/plain")])
        app.run()
        assert not app.exception and not app.error
        (warning,) = [one.value.replace("\\", "") for one in app.warning]
        expected = common(f"sentences.{why}", name=name, count="999,999", most="40,000")
        assert warning == expected
        assert "(2 sentences)" in said(app), "the list that was read before is still there"


def test_a_model_that_can_read_no_sentence_says_so(open_app: Callable) -> None:
    app = open_app("heads", checkpoint="tiny-gpt", heads_section="card")
    app.file_uploader(key="sentence list file").set_value([("long.txt", b"many words " * 300, "text/plain")])
    app.run()
    assert not app.exception
    shown = " ".join(one.value for one in (*app.warning, *app.error))
    assert "cannot read any of the 1 sentences given" in shown
    app.file_uploader(key="sentence list file").set_value(
        [("two.txt", b"many words " * 300 + b"\nA dog sings.", "text/plain")]
    )
    is_fine(app.run())
    assert "1 of the sentences are not counted for this head" in said(app)


def test_own_sentences(open_app: Callable) -> None:
    app = open_app("heads", checkpoint="tiny-gpt", heads_section=TEXT["section"]["card"])
    app.file_uploader(key="sentence list file").set_value([OWN])
    is_fine(app.run())
    assert "(2 sentences)" in said(app)


def test_a_chosen_example_is_read_by_all_pages(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = ("The dog sees the cat.", "A bird sings.")
    checkpoint = tiny_checkpoint("gpt")
    habits = head_habits(checkpoint, sentences)[Head("decoder", "self", 1, 1)]
    one = habits.main.examples[0]
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(head_card, "select_sentence", lambda *chosen: sent.append(chosen))
    monkeypatch.setattr(
        st, "session_state", {f"data {head_card._TABLE}": SimpleNamespace(selection=SimpleNamespace(rows=[0]))}
    )
    head_card._follow([(sentences[one.sentence], one.query)])
    assert sent == [(sentences[one.sentence], one.query)]


@pytest.mark.parametrize("checkpoint", ["vit-digits"])
def test_models_of_pictures_have_no_card(open_app: Callable, checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", "checkpoints")
    app = open_app("heads", checkpoint=checkpoint)
    is_fine(app)
    assert TEXT["section"]["card"] not in app.segmented_control(key="heads_section").options
