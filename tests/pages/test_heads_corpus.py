"""The Heads page over many sentences: saved, included or the user's; unfit files are ignored."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import three_digits
from tests.kinds_of_text import A_FEW
from tests.nights import by_day
from tests.pages.conftest import codes, is_fine, said
from transformer.heads.head_roles import CorpusRole, CorpusRoles, corpus_roles
from transformer.heads.induction import InductionTest
from transformer.heads.role_files import FILE, save_corpus_roles
from transformer.runs.head_places import Head
from transformer.text.sentence_files import read_sentences
from ui.server.limits import PRIVATE
from ui.words.texts import page_text
from views.heads.chosen_head import comparison_table
from views.heads.heads_view_model import RankedHeads, heads_view_model
from views.heads.role_words import captions, corpus_counts, corpus_role_text, percent

TEXT = page_text("heads")
SENTENCES = ("The cat sat on the mat.", "She saw the sea, and the sea was cold.", "He told us a story about a dog.")
KINDS = ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"]


@pytest.fixture
def with_saved(checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CorpusRoles]:
    """Put copies of the tiny checkpoints into a new folder and save roles with one of them."""
    folder = tmp_path / "saved"
    shutil.copytree(checkpoints_folder, folder)

    def save(name: str, sentences: tuple[str, ...] = SENTENCES) -> CorpusRoles:
        checkpoint = transformer.load(folder / name)
        roles = corpus_roles(checkpoint, sentences)
        save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
        return roles

    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))
    save.folder = folder
    return save


def over(app: AppTest, scope: str) -> AppTest:
    return app.segmented_control(key="heads_scope").set_value(scope).run()


def numbers(app: AppTest) -> pd.DataFrame:
    return next(table.value for table in app.dataframe if TEXT["column_layer"] in table.value.columns)


def compared(app: AppTest) -> list[pd.DataFrame]:
    return [table.value for table in app.dataframe if TEXT["column_where"] in table.value.columns]


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", KINDS)
def test_saved_roles_are_shown_with_their_numbers(open_app, with_saved, checkpoint):
    roles = with_saved(checkpoint)
    app = open_app("heads", checkpoint=checkpoint, sentence=SENTENCES[0], layer="1", head="1")
    is_fine(app)
    where = compared(app)[0]
    assert where[TEXT["column_where"]].tolist() == [TEXT["here"], TEXT["over"].format(count=3, name="mine.txt")]
    over(app, "corpus")
    is_fine(app)
    stack = "encoder" if checkpoint != "tiny-gpt" else "decoder"
    heads = roles.of(stack, "self")
    table = numbers(app)
    assert table[TEXT["column_role"]].tolist() == [TEXT["role"][head.role] for head in heads]
    assert table[TEXT["column_share"]].tolist() == pytest.approx([head.consistency for head in heads], rel=1e-5)
    for name in ("entropy", "confidence", "sinks"):
        found = table[TEXT["measure_name"][name]].tolist()
        assert found == pytest.approx([head.scores[name] for head in heads], rel=1e-5)
    assert "Over 3 sentences (mine.txt)" in said(app)
    with_role = sum(head.measured.has_role for head in heads)
    assert f"the tests of the literature find a role for {with_role} of these {len(heads)} heads" in said(app)
    assert ("No induction heads: the largest score is" in said(app)) == (checkpoint == "tiny-gpt")
    if checkpoint == "tiny-gpt":
        assert three_digits(roles.induction.induction[roles.induction.strongest]) in said(app)
        assert TEXT["measure_name"]["induction"] in table.columns


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-gpt"])
def test_every_order_and_every_section_is_drawn(open_app, with_saved, checkpoint):
    with_saved(checkpoint)
    app = over(open_app("heads", checkpoint=checkpoint, sentence=SENTENCES[0]), "corpus")
    control = next(c for c in app.selectbox if c.key.startswith("heads_corpus_order"))
    assert (TEXT["order_induction"] in control.options) == (checkpoint == "tiny-gpt")
    for order in control.options:
        app = next(c for c in app.selectbox if c.key == control.key).set_value(order).run()
        is_fine(app)
    app.segmented_control(key="heads_section").set_value(TEXT["section_tests"]).run()
    is_fine(app)
    found = next(table.value for table in app.dataframe if TEXT["column_test"] in table.value.columns)
    assert len(found) == 4 and (found[TEXT["column_least"]] > found[TEXT["column_chance"]]).all()


@pytest.mark.slow
def test_roles_of_other_weights_are_not_used_and_are_read_again_at_a_click(open_app, with_saved):
    with_saved("tiny-bert")
    shutil.copy(with_saved.folder / "tiny-bert" / FILE, with_saved.folder / "tiny-sentiment" / FILE)
    app = open_app("heads", checkpoint="tiny-sentiment", sentence=SENTENCES[0])
    assert not compared(app)
    over(app, "corpus")
    is_fine(app)
    stale = app.info[0].value.replace("\\", "")
    assert "was made from other weights" in stale
    assert f"python -m transformer heads --checkpoint {with_saved.folder / 'tiny-sentiment'} --save" in stale
    assert TEXT["corpus_unread"] in said(app)
    app.button(key="heads compute").click().run()
    is_fine(app)
    count = len(read_sentences())
    assert f"Over {count} sentences (en.txt)" in said(app)
    assert TEXT["corpus_unread"] not in said(app)
    checkpoint = transformer.load(with_saved.folder / "tiny-sentiment")
    expected = corpus_roles(checkpoint, read_sentences()).of("encoder", "self")
    shares = numbers(app)[TEXT["column_share"]].tolist()
    assert shares == pytest.approx([head.consistency for head in expected], abs=1e-9)


def test_without_saved_roles_the_command_is_named(open_app, checkpoints_folder):
    app = over(open_app("heads", checkpoint="tiny-gpt", sentence=SENTENCES[0]), "corpus")
    is_fine(app)
    assert "This checkpoint has no roles over many sentences" in app.info[0].value
    assert f"--checkpoint {checkpoints_folder / 'tiny-gpt'} --save" in app.info[0].value


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", by_day(KINDS, ("tiny-translator", "tiny-gpt")))
def test_ones_own_sentences_are_read(open_app, tiny_checkpoint, checkpoint):
    app = over(open_app("heads", checkpoint=checkpoint, sentence=SENTENCES[0]), "own")
    is_fine(app)
    app.text_area(key="heads own text").set_value("\n".join([*SENTENCES, "", "word " * 300]))
    submit(app)
    is_fine(app)
    assert "Over 3 sentences (your own)" in said(app)
    assert TEXT["corpus_skipped"].format(count=1, limit=96) in said(app)
    loaded = tiny_checkpoint(checkpoint)
    stack = "encoder" if loaded.config.has_encoder else "decoder"
    expected = corpus_roles(loaded, SENTENCES).of(stack, "self")
    entropy = numbers(app)[TEXT["measure_name"]["entropy"]].tolist()
    assert entropy == pytest.approx([head.scores["entropy"] for head in expected], abs=1e-5)
    over(app, "sentence")
    over(app, "own")
    assert "Over 3 sentences (your own)" in said(app)


def submit(app: AppTest) -> None:
    next(button for button in app.button if button.label == TEXT["own_button"]).click().run()


@pytest.mark.slow
def test_odd_lists_of_sentences_get_a_sentence(open_app):
    app = over(open_app("heads", checkpoint="tiny-bert", sentence=SENTENCES[0]), "own")
    submit(app)
    assert TEXT["own_empty"] in app.warning[0].value
    app.text_area(key="heads own text").set_value("word " * 300)
    submit(app)
    assert not app.exception and not app.error
    assert "tiny-bert cannot read any of the 1 sentences given" in app.warning[0].value.replace("\\", "")
    app.text_area(key="heads own text").set_value("\n".join(f"Number {n}." for n in range(PRIVATE.sentences + 3)))
    submit(app)
    is_fine(app)
    assert f"Over {PRIVATE.sentences} sentences (your own)" in said(app)
    assert TEXT["own_cut"].format(most=PRIVATE.sentences, count=PRIVATE.sentences + 3) in said(app)
    app.text_area(key="heads own text").set_value("\n".join(A_FEW))
    submit(app)
    is_fine(app)
    assert "sentences (your own)" in said(app)


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["corpus", "own"])
def test_the_snippet_prints_the_role_over_all_sentences(open_app, run_snippet, with_saved, scope, tmp_path):
    roles = with_saved("tiny-translator", read_sentences()[:3] if scope == "corpus" else SENTENCES)
    app = open_app("heads", checkpoint="tiny-translator", sentence="Go!", stack="decoder", kind="cross", layer="1")
    over(app, scope)
    if scope == "own":
        app.text_area(key="heads own text").set_value("\n".join(SENTENCES))
        submit(app)
    snippet = next(code for code in codes(app) if "found = corpus_roles" in code)
    if scope == "corpus":  # the file says that the sentences came from mine.txt, but they are the included ones
        snippet = snippet.replace("read_sentences('mine.txt')", "read_sentences()[:3]")
    head = roles.head("decoder", "cross", 1, 0)
    assert run_snippet(snippet).splitlines()[0] == f"{head.role} {head.consistency} 3"


def one(
    role: str, shares: dict[str, float], n_sentences: int = 40, place: tuple = (0, 0), **scores: float
) -> CorpusRole:
    scores = {"broad": 0.5, "entropy": 1.0, "confidence": 0.5, "sinks": 0.1, **scores}
    return CorpusRole("decoder", "self", *place, role, shares, scores, dict.fromkeys(scores, n_sentences), n_sentences)


STEADY = one("sink", {"sink": 0.825, "none": 0.175}, sink=0.7)
OFTEN = one("none", {"first": 0.4, "sink": 0.35, "none": 0.25}, place=(0, 1), first=0.5)
UNCLEAR = one("none", {"none": 1.0}, place=(1, 0), previous=0.3, same=math.nan, induction=0.9)
SHORT = one("none", {}, n_sentences=0, place=(1, 1))


def test_words_for_roles_over_many_sentences():
    assert corpus_role_text(STEADY, TEXT) == "sink, in 82.5% of 40 sentences (mean score 0.7)"
    assert corpus_role_text(OFTEN, TEXT) == "no clear role; first token in 40% of 40 sentences"
    assert (
        corpus_role_text(UNCLEAR, TEXT)
        == "no clear role, in 100% of 40 sentences; the nearest is previous token (mean share 0.3)"
    )
    assert corpus_role_text(SHORT, TEXT) == "all sentences are too short for a role"
    halfway = one("none", {"broad": 0.44, "none": 0.56})
    assert corpus_role_text(halfway, TEXT) == "no clear role; broad in 44% of 40 sentences"
    assert percent(1 / 3) == "33.3%"
    assert captions(RankedHeads((STEADY, OFTEN, UNCLEAR)), TEXT) == {
        (0, 0): "sink 0.70",
        (0, 1): "first 0.50",
        (1, 0): "induction",
    }


def test_counts_say_what_was_read_and_whether_there_are_induction_heads(tiny_checkpoint):
    def counted(strongest: float) -> str:
        scores = {Head("decoder", "self", 0, 0): 0.02, Head("decoder", "self", 1, 0): strongest}
        roles = CorpusRoles((STEADY, OFTEN, UNCLEAR), 40, 2, "d", InductionTest((8, 16), 0, 0.03, scores, scores))
        return corpus_counts(roles, roles.heads, TEXT, tiny_checkpoint("gpt"), name="a_b.txt")

    assert counted(0.1).startswith("Over 40 sentences (a\\_b\\.txt): 1 × sink, 2 × no clear role. 2 more are empty or")
    assert "No induction heads: the largest score is 0.1 (layer 1, head 0)" in counted(0.1)
    assert "Induction heads: layer 1, head 0. The largest score is 0.9" in counted(0.9)


def test_the_comparison_has_the_sentence_and_the_list(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    roles = corpus_roles(checkpoint, SENTENCES)
    heads = heads_view_model(transformer.trace(checkpoint, SENTENCES[0]), Head("decoder", "self", 1, 0), corpus=roles)
    table = comparison_table(heads, TEXT, name="mine.txt")
    assert table[TEXT["column_where"]].tolist() == ["this sentence", "3 sentences (mine.txt)"]
    consistency = roles.head("decoder", "self", 1, 0).consistency
    assert math.isnan(table[TEXT["column_share"]][0]) and table[TEXT["column_share"]][1] == consistency
    assert table[TEXT["measure_name"]["entropy"]][0] == heads.roles_here[2].scores["entropy"]
    assert TEXT["measure_name"]["induction"] in table.columns
