"""``head_roles.json``: reading returns what was written, and a file that does not fit is never used.

The counts of heads with a role in model cards and docs are those of the shipped files; ``python -m transformer heads
--checkpoint checkpoints/NAME`` counts them again.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

import pytest

import transformer
from tests.conftest import ROOT
from tests.shipped import shipped
from transformer.errors import CheckpointError
from transformer.files.model_card import card_of
from transformer.heads.head_roles import CorpusRoles, corpus_roles
from transformer.heads.induction import LEAST_INDUCTION
from transformer.heads.role_files import FILE, as_json, best_alignment, load_corpus_roles, save_corpus_roles
from transformer.predictions.word_alignment import align
from transformer.text.sentence_files import read_sentences, sentence_digest

SHIPPED = sorted((ROOT / "checkpoints").glob(f"*/{FILE}"))
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
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written == as_json(checkpoint, roles, sentence_file="mine.txt")
    assert (written["checkpoint"], written["sentence_file"]) == (checkpoint.fingerprint, "mine.txt")
    assert (written["sentences"], written["sentence_digest"]) == (3, roles.digest)
    assert written["thresholds"]["least_share"] == 0.5 and "NaN" not in path.read_text(encoding="utf-8")
    assert any(math.isnan(score) for score in roles.heads[-1].scores.values())
    again = load_corpus_roles(checkpoint)
    assert (again.n_sentences, again.n_skipped, again.digest) == (3, 0, roles.digest)
    for read, written in zip(again.heads, roles.heads, strict=True):
        plain = dict.fromkeys(("shares", "scores", "measures"), None)
        assert replace(read, **plain) == replace(written, **plain)
        assert read.measures.keys() == written.measures.keys()
        for name, one in read.measures.items():
            other = written.measures[name]
            assert astuple(one)[:4] == pytest.approx(astuple(other)[:4], rel=1e-3, abs=1e-4)
            assert one.offset == other.offset
        assert read.shares == pytest.approx(written.shares, rel=1e-5)
        assert read.scores.keys() == written.scores.keys()
        for name, score in written.scores.items():
            assert read.scores[name] == pytest.approx(score, rel=1e-5, nan_ok=True)
    assert (again.induction is None) == (roles.induction is None)
    if roles.induction is not None:
        assert again.induction.chance == pytest.approx(roles.induction.chance, rel=1e-5)
        assert again.induction.seed == 0


def test_a_file_of_other_weights_is_not_used(checkpoint, roles):
    save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    other = transformer.build_model(checkpoint.config)
    transformer.save(checkpoint.path, other, checkpoint.tokenizer)
    with pytest.raises(CheckpointError, match="other weights"):
        load_corpus_roles(transformer.load(checkpoint.path))


# What is written into the file instead, at this place of it.
OTHER_DEFINITIONS = {
    "version": [1, 3, "2"],
    "annotation_digest": ["0"],
    "task": ["fill: "],
    "thresholds least_consistent": [0.6],
    "induction": [{"sequences": 16, "length": 20, "seed": 0, "chance": 0.03}],
}
BROKEN = {
    "heads": [[], {}, "x"],
    "heads 0 role": ["<b>"],
    "heads 0 head": [7],
    "heads 0 scores broad": ["high"],
    "heads 0 measures": [{"<b>": [1, 0, 0.5, 3]}, {"sink": [1, 0, 0.5]}],
    "heads 0 where": [{"offset": "left"}, {"offset": "<b>"}, []],
}


@pytest.mark.parametrize(
    ("place", "value", "word"),
    [
        (place, value, word)
        for word, changes in (("other definitions", OTHER_DEFINITIONS), ("complete", BROKEN))
        for place, values in changes.items()
        for value in values
    ],
)
@pytest.mark.parametrize("checkpoint", ["gpt"], indirect=True)
def test_a_file_of_other_definitions_or_a_broken_one_is_not_used(checkpoint, roles, place, value, word):
    path = save_corpus_roles(checkpoint, roles, sentence_file="mine.txt")
    part = values = json.loads(path.read_text(encoding="utf-8"))
    *way, last = (int(step) if step.isdecimal() else step for step in place.split())
    for step in way:
        part = part[step]
    part[last] = value
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(CheckpointError, match=word):
        load_corpus_roles(checkpoint)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"checkpoint": 3}'])
@pytest.mark.parametrize("checkpoint", ["gpt"], indirect=True)
def test_what_is_no_such_file_is_not_used(checkpoint, text):
    (checkpoint.path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match="complete"):
        load_corpus_roles(checkpoint)


@pytest.mark.slow
@pytest.mark.sample("path", of=2)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_the_roles_that_ship_belong_to_the_weights_that_ship(path):
    """If this fails: python -m transformer heads --checkpoint checkpoints/NAME --save"""
    saved = load_corpus_roles(transformer.load(path.parent))
    assert saved.n_sentences + saved.n_skipped == len(read_sentences())
    assert saved.digest == sentence_digest(read_sentences())


def test_the_layer_that_aligns_best_is_known_from_the_saved_roles(tiny_checkpoint: Callable) -> None:
    assert best_alignment(tiny_checkpoint("translator")) is None  # nothing was measured
    checkpoint = shipped("en-fr")
    trace = transformer.trace(checkpoint, "I love you.")

    def pairs(layer: int) -> dict[str, str]:
        found = align(trace, layer=layer, head=None, when="written")
        best = found.best(specials=False)
        return {word.text: found.source[place].text for word, place in zip(found.target, best, strict=True)}

    assert best_alignment(checkpoint) != 0
    assert pairs(0)["Je"] != "I" and pairs(best_alignment(checkpoint))["Je"] == "I"


CARDS = {
    "bert-en": r"heads with a role \| (\d+) of (\d+) by the tests",
    "bert-en-pairs": r"(\d+) of (\d+) heads have a role by the tests of the literature",
    "en-fr": r"(\d+) of its (\d+) heads have a role by the tests of",
    "en-fr-sharp": r"(\d+) of its (\d+) heads have a role by the tests of",
    "gpt-en": r"(\d+) of (\d+) heads by the test of the Heads page",
}


@pytest.mark.parametrize("name", CARDS)
def test_the_card_counts_the_heads_with_a_role_or_of_induction(name: str) -> None:
    heads = load_corpus_roles(shipped(name)).heads
    has = [head.scores["induction"] >= LEAST_INDUCTION if name == "gpt-en" else head.has_role for head in heads]
    counts = re.search(CARDS[name], card_of(ROOT / "checkpoints" / name)).groups()
    assert [int(number) for number in counts] == [sum(has), len(has)]
    if name == "bert-en":
        text = (ROOT / "docs" / "checkpoints.md").read_text(encoding="utf-8")
        assert re.findall(r"11 after the second and (\d+)\s+after the third", text) == [counts[0]]
