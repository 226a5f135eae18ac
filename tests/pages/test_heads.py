"""The Heads page: every head in the table, over one sentence or many, and the card of one head."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.numbers import percent
from charts.toolkit.style import signed
from tests.pages.conftest import KINDS, PLACES, drawn, firing_table, is_fine, said
from transformer.heads.head_atlas import HeadHabits, head_habits
from transformer.heads.head_circuits import written_words
from transformer.heads.head_roles import CorpusRoles, corpus_roles, head_roles
from transformer.heads.removed_head import removed_head
from transformer.heads.role_files import FILE, save_corpus_roles
from transformer.runs.head_places import Head
from ui.words.texts import common, page_text
from views.heads import head_card

TEXT = page_text("heads")
SENTENCE = "The old man told us a story, and the sea was cold."
PAGE, USUAL = "heads", {"sentence": SENTENCE}


def numbers(app: AppTest) -> pd.DataFrame:
    """Return the table of all heads."""
    return next(table.value for table in app.dataframe if TEXT["column"]["layer"] in table.value.columns)


def test_the_button_leads_to_the_attention_page_with_the_same_head(open_page: Callable) -> None:
    app = open_page(stack="decoder", kind="cross", layer="1", head="1")
    next(button for button in app.button if button.label == TEXT["open"]).click().run()
    assert app.title[0].value == "Attention"
    assert (app.query_params["layer"], app.query_params["head"], app.query_params["kind"]) == ("1", "1", "cross")


@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_colours_are_in_the_legend_and_every_map_has_words(open_page, tiny_checkpoint, checkpoint, stack, kind):
    metadata, _ = drawn(open_page(checkpoint=checkpoint, stack=stack, kind=kind), "heads grid")
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    views = [trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack))]
    roles = {(role.layer, role.head): role.role for view in views for role in head_roles(view)}
    assert metadata["kind"] == "heads" and len(metadata["tiles"]) == len(roles)
    assert tuple(metadata["selected"]) == (0, 0)
    for tile in metadata["tiles"]:
        role = roles[tile["layer"], tile["head"]]
        assert bool(tile["clear"]) == bool(tile["caption"]) == (tile["colour"] is not None)
        assert tile["colour"] is not None or role == "none"
        assert tile["title"] == TEXT["role"][role]["title"]
    in_legend = {colour for _, colour in metadata["groups"]}
    assert in_legend == {tile["colour"] for tile in metadata["tiles"]} - {None}
    assert metadata["rows"] == list((trace.prediction if kind == "cross" else trace.tokens(stack)).labels)


SENTENCES = ("The cat sat on the mat.", "She saw the sea, and the sea was cold.", "He told us a story about a dog.")


@pytest.fixture
def with_saved(own_folder: Path) -> Callable[..., CorpusRoles]:
    """Save roles with a checkpoint."""

    def save(name: str, sentences: tuple[str, ...] = SENTENCES) -> CorpusRoles:
        checkpoint = transformer.load(own_folder / name)
        roles = corpus_roles(checkpoint, sentences)
        save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
        return roles

    return save


def over_many(app: AppTest) -> AppTest:
    return app.segmented_control(key="heads_scope").set_value("corpus").run()


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", KINDS)
def test_saved_roles_are_shown_with_their_numbers(open_app, with_saved, checkpoint):
    roles = with_saved(checkpoint)
    app = over_many(open_app("heads", checkpoint=checkpoint, sentence=SENTENCES[0], layer="1", head="1"))
    is_fine(app)
    heads = roles.of("encoder" if checkpoint != "tiny-gpt" else "decoder", "self")
    table = numbers(app)
    assert table[TEXT["column"]["role"]].tolist() == [TEXT["role"][head.role]["name"] for head in heads]
    assert table[TEXT["column"]["consistency"]].tolist() == pytest.approx(
        [head.consistency for head in heads], rel=1e-5
    )
    tests = {name for head in heads for name in head.measures}
    assert len([column for column in table.columns if column.startswith("test: ")]) == len(tests) > 3


@pytest.mark.slow
def test_roles_of_other_weights_are_not_used_and_are_read_again_on_request(
    open_app, with_saved, own_folder, few_sentences
):
    with_saved("tiny-bert")
    folder = own_folder / "tiny-sentiment"
    shutil.copy(own_folder / "tiny-bert" / FILE, folder / FILE)
    app = over_many(open_app("heads", checkpoint="tiny-sentiment", sentence=SENTENCES[0]))
    is_fine(app)
    assert f"python -m transformer heads --checkpoint {folder} --save" in said(app)
    assert TEXT["column"]["consistency"] not in numbers(app)
    is_fine(app.toggle(key="heads_compute").set_value(True).run())
    expected = corpus_roles(transformer.load(folder), few_sentences).of("encoder", "self")
    shares = numbers(app)[TEXT["column"]["consistency"]].tolist()
    assert shares == pytest.approx([head.consistency for head in expected], abs=1e-9)


OWN = ("own.txt", b"The dog sees the cat.\nA bird sings.\n", "text/plain")


def attended(habits: HeadHabits) -> tuple[int, ...]:
    keys = Counter(one.read[one.key].id for habit in habits.habits for one in habit.examples)
    return tuple(id for id, _ in keys.most_common(head_card.WRITTEN))


@pytest.mark.sample
@pytest.mark.parametrize(
    ("name", "stack", "kind"),
    [("translator", "decoder", "cross"), ("gpt", "decoder", "self"), ("sentiment", "encoder", "self")],
)
def test_for_against_and_examples(open_app, tiny_checkpoint, few_sentences, name, stack, kind) -> None:
    place = {"stack": stack, "kind": kind, "layer": "1", "head": "1"}
    app = open_app("heads", checkpoint=f"tiny-{name}", heads_section="card", heads_card_remove="true", **place)
    is_fine(app)
    checkpoint, head = tiny_checkpoint(name), Head(stack, kind, 1, 1)
    habits = head_habits(checkpoint, few_sentences)[head]
    assert f"**{percent(habits.main.share)}**" in said(app) and f"({percent(habits.against.share)})" in said(app)
    assert f"**{signed(removed_head(checkpoint, few_sentences, head).alone)}**" in said(app)
    by_share = sorted(habits.habits, key=lambda habit: -habit.share)
    shown = [example for habit in by_share for example in habit.examples]
    assert [*firing_table(app)[common("fires.query")]] == [one.asked[one.query].display for one in shown]
    writes = next(one.value for one in app.dataframe if TEXT["column"]["writes"] in one.value)
    display, tokens = checkpoint.tokenizer.display, attended(habits)
    words = written_words(checkpoint.model, stack, kind, layer=1, head=1, tokens=tokens)
    assert writes.to_numpy().tolist() == [
        [display(one.token), *(", ".join(map(display, ids)) for ids in (one.raised, one.lowered))] for one in words
    ]


NO_LISTS = (
    ("latin.txt", "Le café est très chaud.".encode("latin-1")),
    ("wide.txt", "Two bytes each.".encode("utf-16")),
    ("binary.txt", b"a\x00b\x01\x02"),
    ("empty.txt", b"  \n\n"),
    ("line.txt", b"word " * 200_000),
)


def test_a_file_that_is_no_list_of_sentences_is_refused_in_a_sentence(open_app: Callable) -> None:
    app = open_app("heads", checkpoint="tiny-gpt", heads_section="card")
    app.file_uploader(key="sentence list file").set_value([OWN])
    is_fine(app.run())
    for name, content in NO_LISTS:
        app.file_uploader(key="sentence list file").set_value([(name, content, "text/plain")])
        app.run()
        assert not app.exception and not app.error and len(app.warning) == 1, name
        assert "(2 sentences)" in said(app), "the list that was read before is still there"


def test_a_chosen_example_is_read_by_all_pages(tiny_checkpoint, monkeypatch) -> None:
    sent: list[tuple[str, int]] = []
    chosen = {f"data {head_card._TABLE}": SimpleNamespace(selection=SimpleNamespace(rows=[0]))}
    monkeypatch.setattr(head_card, "select_sentence", lambda *chosen: sent.append(chosen))
    monkeypatch.setattr(st, "session_state", chosen)
    head_card._follow([("A bird sings.", 2)])
    assert sent == [("A bird sings.", 2)]
