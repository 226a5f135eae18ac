"""The counts of heads with a role in model cards and docs are those of ``head_roles.json``.

``python -m transformer heads --checkpoint checkpoints/NAME`` counts them again.
"""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from transformer.files.checkpoints import load
from transformer.files.model_card import card_of
from transformer.heads.head_roles import CorpusRole
from transformer.heads.role_files import load_corpus_roles


def heads_of(name: str) -> tuple[CorpusRole, ...]:
    saved = load_corpus_roles(load(ROOT / "checkpoints" / name))
    assert saved is not None, name
    return saved.roles.heads


def with_role(heads: tuple[CorpusRole, ...]) -> int:
    return sum(head.measured.has_role for head in heads)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bert-en", r"heads with a role \| (\d+) of (\d+) by the tests"),
        ("bert-en-pairs", r"(\d+) of (\d+) heads have a role by the tests of the literature"),
        ("en-fr", r"(\d+) of its (\d+) heads have a role by the tests of"),
        ("en-fr-sharp", r"(\d+) of its (\d+) heads have a role by the tests of"),
    ],
)
def test_the_card_counts_the_heads_with_a_role(name: str, words: str) -> None:
    found, heads = re.search(words, card_of(ROOT / "checkpoints" / name)), heads_of(name)
    assert found and [int(number) for number in found.groups()] == [with_role(heads), len(heads)]


def test_the_card_of_gpt_en_counts_its_induction_heads() -> None:
    card, heads = card_of(ROOT / "checkpoints" / "gpt-en"), heads_of("gpt-en")
    found = re.search(r"(\d+) of (\d+) heads by the test of the Heads page", card)
    counted = [sum(head.is_induction_head for head in heads), len(heads)]
    assert found and [int(number) for number in found.groups()] == counted


def test_the_documentation_counts_the_heads_of_bert_en() -> None:
    text = (ROOT / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    (count,) = re.findall(r"11 after the second and (\d+)\s+after the third", text)
    assert int(count) == with_role(heads_of("bert-en"))
