"""J is the mean of autograd's full Jacobians, and the identity matrix gives the logit lens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN
from tests.nights import FAMILIES_BY_DAY, by_day
from tests.shipped import SHIPPED
from transformer.__main__ import main
from transformer.files.checkpoints import Checkpoint
from transformer.predictions import jacobian_lens as module
from transformer.predictions.jacobian_lens import (
    FILE,
    HELD_OUT,
    JacobianLens,
    jacobian_lens,
    load_jacobian_lens,
    save_jacobian_lens,
)
from transformer.predictions.lens import lens_stack, logit_lens, streams_between, word_probabilities
from transformer.probes import Edit, record
from transformer.text.sentence_files import SHIPPED as SENTENCES
from transformer.text.sentence_files import read_sentences, sentence_digest

KINDS = ("translator", "gpt", "bert", "sentiment")
TEXTS = ("The cat sat.", "A dog sleeps.", "The old man told us a story.", "We go.", "He reads a book.", "She sings.")


def with_blanks(checkpoint: Checkpoint, sentences: Sequence[str]) -> list[str]:
    masked = checkpoint.config.fills_blanks
    return [module._mask_one_word(text, number) if masked else text for number, text in enumerate(sentences)]


def traced(checkpoint: Checkpoint, sentence: str) -> transformer.Trace:
    """Return the trace of the sentence alone; a decoder-only model generates nothing."""
    only = checkpoint.config.kind == "decoder-only"
    return transformer.trace(checkpoint, sentence, strategy=transformer.Greedy(1) if only else None)


def by_autograd(checkpoint: Checkpoint, sentences: list[str]) -> torch.Tensor:
    """Return J [step, model, model] of all steps but the last, from every ∂h[q] / ∂h_k[p]."""
    model, stack, (*names, last) = checkpoint.model, lens_stack(checkpoint), streams_between(checkpoint)
    sums, places = torch.zeros(len(names), checkpoint.config.d_model, checkpoint.config.d_model), 0
    for sentence in sentences:
        trace = traced(checkpoint, sentence)
        ids = [torch.tensor([trace.tokens(stack).ids]) for stack in trace.stacks]
        counted = [
            token.index
            for token in trace.tokens(stack)
            if checkpoint.config.n_classes or not token.special or token.role == "mask"
        ]
        for step, name in enumerate(names):

            def run(stream: torch.Tensor, name: str = name, ids: list = ids) -> torch.Tensor:
                with record([Edit(name, lambda _: stream)], {last}) as recording:
                    model(*ids)
                return recording.tensors[last]

            stream = torch.tensor(trace.values(name))[None]
            whole = torch.autograd.functional.jacobian(run, stream, vectorize=True)[0, :, :, 0]
            sums[step] += whole[counted][:, :, counted].sum(dim=(0, 2))  # [q, model, p, model]
        places += len(counted)
    return sums / places


@pytest.mark.parametrize("kind", [pytest.param("translator", marks=pytest.mark.slow), *KINDS[1:]])
def test_j_is_the_mean_of_the_full_jacobians(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    texts = with_blanks(checkpoint, TEXTS)  # a sentence with a blank keeps its own
    fitted = [text for number, text in enumerate(texts) if number % HELD_OUT]
    mean = by_autograd(checkpoint, fitted)
    for batch_size in (1, 64):
        found = jacobian_lens(checkpoint, texts, batch_size=batch_size)
        assert found.sentences == len(fitted) == 4 and found.agreement.sentences == 2
        torch.testing.assert_close(found.transport, mean, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", by_day(FOREIGN, FAMILIES_BY_DAY))
def test_other_families(families_folder: Path, name: str):
    """Two short sentences of different lengths, because a full Jacobian grows with its square."""
    checkpoint, texts = transformer.load(families_folder / name), ("She sings.", "We go.", "The cat sat.")
    fitted = [text for number, text in enumerate(with_blanks(checkpoint, texts)) if number % HELD_OUT]
    found = jacobian_lens(checkpoint, texts)
    torch.testing.assert_close(found.transport, by_autograd(checkpoint, fitted), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_identity_is_the_logit_lens(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    trace = transformer.trace(checkpoint, TEXTS[2])
    steps = len(streams_between(checkpoint)) - 1
    identity = torch.eye(checkpoint.config.d_model).expand(steps, -1, -1)
    own, same = logit_lens(trace), logit_lens(trace, transport=identity)
    for name in ("ids", "probabilities", "rank", "divergence", "entropy", "decided"):
        np.testing.assert_array_equal(getattr(own, name), getattr(same, name))
    other = logit_lens(trace, transport=-identity)
    np.testing.assert_array_equal(own.probabilities[-1], other.probabilities[-1])  # the last layer's J is I
    assert (own.probabilities[0] != other.probabilities[0]).any()
    course = word_probabilities(trace, other, 1)
    np.testing.assert_allclose(course.probabilities[0], other.probability[:, 1], rtol=1e-6)


def test_a_transport_of_another_shape_is_refused(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), TEXTS[0])
    steps, width = len(streams_between(trace.checkpoint)) - 1, trace.checkpoint.config.d_model
    with pytest.raises(ValueError, match=f"one matrix of {width} × {width} for each of the {steps} steps"):
        logit_lens(trace, transport=torch.zeros(steps + 1, width, width))
    with pytest.raises(ValueError, match="no sub-layers"):
        logit_lens(trace, transport=torch.zeros(steps, width, width), sublayers=True)


@pytest.mark.parametrize("kind", KINDS)
def test_the_agreement_is_that_of_the_lenses(tiny_checkpoint, kind):
    checkpoint = tiny_checkpoint(kind)
    texts = with_blanks(checkpoint, TEXTS)
    found = jacobian_lens(checkpoint, texts)
    hits, places = {"logit": 0, "jacobian": 0}, 0
    for text in texts[::HELD_OUT]:
        trace = traced(checkpoint, text)
        asked = list(range(len(trace.tokens(lens_stack(checkpoint)))))
        asked = [token.index for token in trace.source if token.role == "mask"] if kind == "bert" else asked
        asked = [0] if kind == "sentiment" else asked
        for name, lens in (
            ("logit", logit_lens(trace)),
            ("jacobian", logit_lens(trace, transport=found.transport)),
        ):
            best = lens.ids[:, asked, 0]
            hits[name] = hits[name] + (best == best[-1]).sum(axis=-1)
        places += len(asked)
    assert found.agreement.places == places
    np.testing.assert_allclose(found.agreement.logit, hits["logit"] / places)
    np.testing.assert_allclose(found.agreement.jacobian, hits["jacobian"] / places)
    assert found.agreement.logit[-1] == found.agreement.jacobian[-1] == 1


def copied(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    return transformer.load(shutil.copytree(checkpoint.path, folder / checkpoint.path.name, dirs_exist_ok=True))


def test_what_is_saved_is_loaded(tiny_checkpoint, tmp_path):
    checkpoint = copied(tiny_checkpoint("gpt"), tmp_path)
    assert load_jacobian_lens(checkpoint) is None
    steps, width = len(streams_between(checkpoint)) - 1, checkpoint.config.d_model
    transport = torch.eye(width) + 0.1 * torch.randn(steps, width, width, generator=torch.Generator().manual_seed(0))
    share = tuple(np.linspace(0, 1, steps + 1).tolist())
    found = JacobianLens(transport, 4, 20, "digest", module.Agreement(2, 9, share, share))
    save_jacobian_lens(checkpoint, found)
    loaded = load_jacobian_lens(checkpoint)
    assert vars(loaded) | {"transport": 0} == vars(found) | {"transport": 0}
    largest = (transport - torch.eye(width)).abs().amax(dim=-1, keepdim=True)
    assert ((loaded.transport - transport).abs() <= largest / 250).all(), "half of a step of 8 bits"


def test_a_file_that_does_not_fit_is_refused_in_a_sentence(tiny_checkpoint, tmp_path):
    gpt, bert = (copied(tiny_checkpoint(kind), tmp_path) for kind in ("gpt", "bert"))
    found = jacobian_lens(gpt, TEXTS[:3])
    shutil.copy(save_jacobian_lens(gpt, found), bert.path)
    with pytest.raises(transformer.CheckpointError, match="was made from other weights"):
        load_jacobian_lens(bert)
    save_jacobian_lens(gpt, replace(found, transport=found.transport[1:]))
    with pytest.raises(transformer.CheckpointError, match="not a Jacobian lens of this model"):
        load_jacobian_lens(gpt)
    (gpt.path / FILE).write_bytes(b"nothing of the kind")
    with pytest.raises(transformer.CheckpointError, match="not a complete safetensors file"):
        load_jacobian_lens(gpt)


def test_sentences_that_cannot_be_read(tiny_checkpoint):
    with pytest.raises(transformer.InputError, match="cannot read any of the 2 sentences given"):
        jacobian_lens(tiny_checkpoint("gpt"), ["Fine.", "", "word " * 5000])


def test_the_command(checkpoints_folder, tiny_checkpoint, tmp_path, capsys):
    text = tmp_path / "own.txt"
    text.write_text("\n".join(TEXTS), encoding="utf-8")
    place = str(checkpoints_folder / "tiny-gpt")
    assert main(["lens", "--checkpoint", place, "--text", str(text), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    found = jacobian_lens(tiny_checkpoint("gpt"), TEXTS)
    assert said["places"] == found.places and said["agreement"]["jacobian"] == list(found.agreement.jacobian)
    assert main(["lens", "--checkpoint", place, "--text", str(text), "--limit", "3"]) == 0
    assert "names the final word" in capsys.readouterr().out


FITTED = [path for path in SHIPPED if (path / FILE).is_file()]


@pytest.mark.slow
# A model of each architecture in every run; the files of the others change only if somebody fits them again.
@pytest.mark.parametrize("path", by_day(FITTED, ("en-fr-sharp", "gpt-en", "bert-en"), id_of="name"))
def test_what_ships_is_measured_again(path):
    """With the matrices in the file: 8 bits may change the most likely word at a position or two."""
    checkpoint = transformer.load(path)
    found = load_jacobian_lens(checkpoint)
    if hasattr(checkpoint.config, "picture_size"):
        return  # the images are not included
    assert found.digest == sentence_digest(read_sentences(SENTENCES))
    sentences = with_blanks(checkpoint, read_sentences(SENTENCES))
    again = module._agreement(checkpoint, sentences[::HELD_OUT], found.transport, lambda done: None)
    assert (again.sentences, again.places, again.logit) == (
        found.agreement.sentences,
        found.agreement.places,
        pytest.approx(found.agreement.logit, abs=2.5 / again.places),
    )
    np.testing.assert_allclose(again.jacobian, found.agreement.jacobian, atol=4.5 / again.places)
