"""A run describes the input of a trace, and is the key of its results."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from transformer import Checkpoint, Greedy, Run, ablate_head, load, read_trace, save_trace, trace
from transformer.faults.forward_faults import inject_fault
from transformer.interventions.experiment import same_tokens
from transformer.runs.tracing import trace_of

SENTENCE = "The cat sat on the mat."
KINDS = ("translator", "gpt", "bert", "sentiment")
Tiny = Callable[[str], Checkpoint]


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_remembers_its_run_and_the_run_gives_the_trace_again(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    edits = [ablate_head("decoder" if checkpoint.config.has_decoder else "encoder", layer=0, head=1)]
    pads = 2 if checkpoint.config.has_encoder else 0
    found = trace(checkpoint, SENTENCE, edits=edits, source_pads=pads, strategy=Greedy(4))
    run = Run(checkpoint, SENTENCE, edits=tuple(edits), source_pads=pads, strategy=Greedy(4))
    assert found.run == run
    assert (found.checkpoint, found.sentence) == (checkpoint, SENTENCE)
    again = trace_of(run)
    assert again.text == found.text
    for name in found.names():
        np.testing.assert_array_equal(again[name].values, found[name].values)


def test_a_run_is_a_key_by_everything_that_changes_its_trace(tiny_checkpoint: Tiny) -> None:
    run = Run(tiny_checkpoint("translator"), SENTENCE)
    edit = ablate_head("encoder", layer=0, head=1)
    others = [
        replace(run, checkpoint=tiny_checkpoint("gpt")),
        replace(run, sentence="The dog."),
        replace(run, target="Le chat."),
        replace(run, edits=(edit,)),
        replace(run, edits=(ablate_head("encoder", layer=0, head=0),)),
        replace(run, strategy=Greedy(3)),
        replace(run, source_pads=1),
        replace(run, target_pads=1),
    ]
    assert len({run, replace(run), *others}) == 1 + len(others)
    assert {run: "kept"}[replace(run)] == "kept"
    assert run != SENTENCE


def test_the_same_files_loaded_twice_are_the_same_model_and_other_weights_are_not(
    tiny_checkpoint: Tiny, tmp_path: Path
) -> None:
    own, other = tiny_checkpoint("translator"), tiny_checkpoint("gpt")
    copy = tmp_path / own.name
    shutil.copytree(own.path, copy)
    first = Run(load(copy), SENTENCE)
    assert first != Run(own, SENTENCE), "its snapshots are those of another folder"
    assert first != Run(other, SENTENCE)
    hash(first)  # reads the current files
    shutil.copy(other.path / "README.md", copy / "README.md")  # a card changes no number
    again = Run(load(copy), SENTENCE)
    assert again == first and hash(again) == hash(first)
    (copy / "config.json").write_text((copy / "config.json").read_text() + " ")
    assert Run(load(copy), SENTENCE) != first


def test_the_same_weights_run_in_another_order_are_another_model(tiny_checkpoint: Tiny) -> None:
    own = tiny_checkpoint("translator")
    faulty, _ = inject_fault(own, "norm")
    assert faulty.fingerprint == own.fingerprint
    assert Run(faulty, SENTENCE) != Run(own, SENTENCE)
    faulty_run = same_tokens(trace(own, SENTENCE), checkpoint=faulty)
    assert faulty_run.checkpoint is faulty and faulty_run.run == Run(faulty, SENTENCE)


def test_a_trace_from_a_file_does_not_know_its_model_and_says_so(tiny_checkpoint: Tiny, tmp_path: Path) -> None:
    save_trace(trace(tiny_checkpoint("gpt"), SENTENCE), tmp_path / "trace.safetensors")
    found = read_trace(tmp_path / "trace.safetensors")
    assert found.run is None
    for ask in (lambda: found.checkpoint, lambda: found.sentence):
        with pytest.raises(ValueError, match=r"does not know its model; make it anew with transformer\.trace"):
            ask()
