"""The Heads page over many sentences: roles saved with the checkpoint, or computed on the page."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.conftest import codes, is_fine, said
from tests.pages.test_heads import page_of
from transformer.heads.head_roles import CorpusRole, CorpusRoles, corpus_roles
from transformer.heads.role_files import FILE, save_corpus_roles
from transformer.heads.role_measures import HeadMeasures, Measure
from transformer.text.sentence_files import read_sentences
from ui.words.texts import page_text
from views.heads import heads_sections as sections

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


def over_many(app: AppTest) -> AppTest:
    return app.segmented_control(key="heads_scope").set_value("corpus").run()


def numbers(app: AppTest) -> pd.DataFrame:
    return next(table.value for table in app.dataframe if TEXT["column"]["layer"] in table.value.columns)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", KINDS)
def test_saved_roles_are_shown_with_their_numbers(open_app, with_saved, run_snippet, checkpoint):
    roles = with_saved(checkpoint)
    app = over_many(open_app("heads", checkpoint=checkpoint, sentence=SENTENCES[0], layer="1", head="1"))
    is_fine(app)
    heads = roles.of("encoder" if checkpoint != "tiny-gpt" else "decoder", "self")
    table = numbers(app)
    assert table[TEXT["column"]["role"]].tolist() == [TEXT["role"][head.role]["name"] for head in heads]
    shares = table[TEXT["column"]["consistency"]].tolist()
    assert shares == pytest.approx([head.consistency for head in heads], rel=1e-5)
    for name in ("entropy", "confidence", "sinks"):
        found = table[TEXT["measure"][name]].tolist()
        assert found == pytest.approx([head.scores[name] for head in heads], rel=1e-5)
    tests = {name for head in heads for name in head.measured.measures}
    assert len([column for column in table.columns if column.startswith("test: ")]) == len(tests) > 3
    with_role = sum(head.measured.has_role for head in heads)
    said_first = "None of these" if with_role == 0 else "One of these" if with_role == 1 else f"{with_role} of these"
    assert (said_first in said(app) or with_role == len(heads)) and "over 3 sentences" in said(app)
    assert "Over 3 sentences" in said(app), "the selected head"


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-gpt"])
def test_every_order_is_drawn(open_app, with_saved, checkpoint):
    with_saved(checkpoint)
    app = over_many(open_app("heads", checkpoint=checkpoint, sentence=SENTENCES[0]))
    control = next(c for c in app.selectbox if c.key.startswith("heads_corpus_order"))
    assert (TEXT["order"]["induction"] in control.options) == (checkpoint == "tiny-gpt")
    for order in control.options:
        app = next(c for c in app.selectbox if c.key == control.key).set_value(order).run()
        is_fine(app)


@pytest.mark.slow
def test_roles_of_other_weights_are_not_used_and_are_read_again_on_request(open_app, with_saved, run_snippet):
    with_saved("tiny-bert")
    shutil.copy(with_saved.folder / "tiny-bert" / FILE, with_saved.folder / "tiny-sentiment" / FILE)
    app = over_many(open_app("heads", checkpoint="tiny-sentiment", sentence=SENTENCES[0]))
    is_fine(app)
    assert "was made from other weights" in said(app) and TEXT["claim_here"] in said(app)
    assert f"python -m transformer heads --checkpoint {with_saved.folder / 'tiny-sentiment'} --save" in said(app)
    app.toggle(key="heads_compute").set_value(True).run()
    is_fine(app)
    assert f"over {len(read_sentences())} sentences" in said(app)
    checkpoint = transformer.load(with_saved.folder / "tiny-sentiment")
    expected = corpus_roles(checkpoint, read_sentences()).of("encoder", "self")
    shares = numbers(app)[TEXT["column"]["consistency"]].tolist()
    assert shares == pytest.approx([head.consistency for head in expected], abs=1e-9)
    snippet = next(code for code in codes(app) if "corpus_roles(checkpoint, read_sentences())" in code)
    assert str(len(read_sentences())) in run_snippet(snippet)


def test_without_saved_roles_the_command_is_named(open_app, checkpoints_folder):
    app = over_many(open_app("heads", checkpoint="tiny-gpt", sentence=SENTENCES[0]))
    is_fine(app)
    assert "This checkpoint has no roles over many sentences" in said(app)
    assert f"--checkpoint {checkpoints_folder / 'tiny-gpt'} --save" in said(app)


def test_words_over_many_sentences() -> None:
    def words_of(measured: HeadMeasures) -> tuple[str, str, str]:
        scores = {"broad": 0.5, "sinks": 0.1, "sink": 0.7}
        counts = dict.fromkeys(scores, 40)
        head = CorpusRole("decoder", "self", 0, 0, "sink", {"sink": 1.0}, scores, counts, 40, measured)
        assert (sections.role_of(head) == "none") == (bool(measured.measures) and not measured.has_role)
        return sections.words_of(page_of(), None, head)[0]

    assert words_of(HeadMeasures()) == ("sink 0.70", "Mostly on special tokens", ""), "an older file has no tests"
    before = Measure(score=0.9, chance=0.1, least=0.5, rows=100)
    found = words_of(HeadMeasures({"offset": before}, where={"offset": -1}))
    assert found.short == "previous 0.90" and found.title == "Offset −1"
    assert found.sentence == "Over 40 sentences it scores 0.9; chance would give 0.1."
    weak = Measure(score=0.3, chance=0.1, least=0.5, rows=100)
    found = words_of(HeadMeasures({"offset": weak}, where={"offset": 3}))
    assert (found.short, found.title) == ("+3 0.30", TEXT["no_role"])
    assert "“offset +3”: 0.3 (threshold 0.5)" in found.sentence
