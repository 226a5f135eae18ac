"""``head_roles.json``: reading returns what was written, and a file that does not fit is never used."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

import pytest

import transformer
from transformer.errors import CheckpointError
from transformer.heads import role_files
from transformer.heads.head_roles import CorpusRoles, corpus_roles
from transformer.heads.role_files import FILE, as_json, load_corpus_roles, save_corpus_roles
from transformer.heads.role_measures import HeadMeasures
from transformer.text.sentence_files import read_sentences, sentence_digest

SHIPPED = sorted((Path(__file__).resolve().parents[3] / "checkpoints").glob(f"*/{FILE}"))
SENTENCES = ("The cat sat on the mat.", "She saw the sea, and the sea was cold.", "Go!")


@pytest.fixture(params=["translator", "gpt", "bert"])
def checkpoint(request, checkpoints_folder: Path, tmp_path: Path) -> transformer.Checkpoint:
    """A copy that may be written into."""
    name = f"tiny-{request.param}"
    shutil.copytree(checkpoints_folder / name, tmp_path / name)
    return transformer.load(tmp_path / name)


@cache
def roles_of(name: str, folder: Path) -> CorpusRoles:
    return corpus_roles(transformer.load(folder / name), SENTENCES)


@pytest.fixture
def roles(checkpoint: transformer.Checkpoint, checkpoints_folder: Path) -> CorpusRoles:
    """Roles of the copy, counted once per model; they do not depend on its folder."""
    return roles_of(checkpoint.name, checkpoints_folder)


def test_what_is_read_is_what_was_written(checkpoint, roles):
    assert load_corpus_roles(checkpoint) is None
    path = save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    assert path == checkpoint.path / FILE
    saved = load_corpus_roles(checkpoint)
    assert saved.sentence_file == "mine.txt"
    again = saved.roles
    assert (again.n_sentences, again.n_skipped, again.digest) == (3, 0, roles.digest)
    for read, written in zip(again.heads, roles.heads, strict=True):
        plain = {"shares": {}, "scores": {}, "measured": HeadMeasures()}
        assert replace(read, **plain) == replace(written, **plain)
        assert read.measured.measures.keys() == written.measured.measures.keys()
        for name, one in read.measured.measures.items():
            assert astuple(one) == pytest.approx(astuple(written.measured.measures[name]), rel=1e-3, abs=1e-4)
        assert read.measured.where == written.measured.where
        assert read.measured.profile == pytest.approx(written.measured.profile, rel=1e-3)
        assert read.shares == pytest.approx(written.shares, rel=1e-5)
        assert read.scores.keys() == written.scores.keys()
        for name, score in written.scores.items():
            assert read.scores[name] == pytest.approx(score, rel=1e-5, nan_ok=True)
        assert read.counts == written.counts
    assert (again.induction is None) == (roles.induction is None)
    if roles.induction is not None:
        assert again.induction.chance == pytest.approx(roles.induction.chance, rel=1e-5)
        assert again.induction.induction == pytest.approx(roles.induction.induction, rel=1e-5)
        assert again.induction.seed == 0


@pytest.mark.slow
def test_the_file_is_json_that_says_what_it_was_made_from(checkpoint, roles):
    path = save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written == as_json(checkpoint, roles, sentence_file="mine.txt")
    assert written["checkpoint"] == checkpoint.fingerprint
    assert written["sentences"] == 3 and written["sentence_digest"] == roles.digest
    assert written["thresholds"]["least_share"] == 0.5
    assert "NaN" not in path.read_text(encoding="utf-8")
    assert any(math.isnan(score) for score in roles.heads[-1].scores.values())
    before = path.read_bytes()
    save_corpus_roles(checkpoint, corpus_roles(checkpoint, SENTENCES), sentence_file="mine.txt")
    assert path.read_bytes() == before


def test_a_file_of_other_weights_is_not_used(checkpoint, roles):
    save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    other = transformer.build_model(checkpoint.config)
    transformer.save(checkpoint.path, other, checkpoint.tokenizer)
    with pytest.raises(
        CheckpointError, match=f"made from other weights \\({checkpoint.short_fingerprint}, but these are"
    ):
        load_corpus_roles(transformer.load(checkpoint.path))


def test_a_file_of_other_definitions_is_not_used(checkpoint, monkeypatch, roles):
    save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    monkeypatch.setattr(role_files, "LEAST_CONSISTENT", 0.6)
    with pytest.raises(CheckpointError, match="made with other definitions"):
        load_corpus_roles(checkpoint)


@pytest.mark.parametrize("version", [1, 3, "2"])
def test_a_file_of_another_version_is_not_used(checkpoint, roles, version):
    path = save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    path.write_text(path.read_text(encoding="utf-8").replace('"version": 2', f'"version": {json.dumps(version)}'))
    with pytest.raises(CheckpointError, match="made with other definitions"):
        load_corpus_roles(checkpoint)


def test_other_annotations_make_the_file_stale(checkpoint, monkeypatch, roles):
    save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    monkeypatch.setattr(role_files, "annotation_digest", lambda: "0")
    with pytest.raises(CheckpointError, match="made with other definitions"):
        load_corpus_roles(checkpoint)


DAMAGES = ["{", "[]", "{}", '{"checkpoint": 3}', "heads", "role", "order", "score", "measure", "numbers"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_file_is_a_sentence(checkpoint, damage, roles):
    path = save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    values = json.loads(path.read_text(encoding="utf-8"))
    if damage == "heads":
        values["heads"] = values["heads"][:-1]
    elif damage == "role":
        values["heads"][0]["role"] = "<b>"
    elif damage == "order":
        values["heads"].reverse()
    elif damage == "score":
        values["heads"][0]["scores"]["broad"] = "high"
    elif damage == "measure":
        values["heads"][0]["measures"] = {"<b>": [1, 0, 0.5, 3]}
    elif damage == "numbers":
        values["heads"][0]["measures"] = {"sink": [1, 0, 0.5]}
    text = damage if damage[0] in "{[" else json.dumps(values)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match="is not a complete file of head roles"):
        load_corpus_roles(checkpoint)


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_the_roles_that_ship_belong_to_the_weights_that_ship(path):
    """If this fails: python -m transformer heads --checkpoint checkpoints/NAME --save"""
    saved = load_corpus_roles(transformer.load(path.parent))
    assert saved.roles.n_sentences + saved.roles.n_skipped == len(read_sentences())
    assert saved.roles.digest == sentence_digest(read_sentences())


@pytest.mark.parametrize("checkpoint", ["gpt"], indirect=True)
def test_a_file_that_tested_induction_with_one_length_is_not_used(checkpoint, roles):
    path = save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    values = json.loads(path.read_text(encoding="utf-8"))
    values["induction"] = {"sequences": 16, "length": 20, "seed": 0, "chance": 0.03}
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(CheckpointError, match="made with other definitions"):
        load_corpus_roles(checkpoint)
