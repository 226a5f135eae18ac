"""A trace is one forward pass; its run is a key of its results, and its file gives it back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from transformer import (
    Beam,
    Checkpoint,
    Greedy,
    InputError,
    Run,
    Sample,
    Trace,
    TraceFileError,
    ablate_head,
    decode,
    load,
    read_trace,
    save_trace,
    trace,
)
from transformer.faults.forward_faults import inject_fault
from transformer.interventions.experiment import same_tokens
from transformer.runs.trace_files import FORMAT, trace_from_bytes, trace_to_bytes
from transformer.text.tokenizer import END_ID, MASK_ID, START_ID

SENTENCE = "The cat sat on the mat."
Tiny = Callable[[str], Checkpoint]


def test_a_translation_is_read_with_the_start_and_predicted_up_to_the_end(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    result = trace(checkpoint, SENTENCE, "Le chat dort.")
    target = checkpoint.tokenizer.encode("Le chat dort.")
    assert result.source.ids == (*checkpoint.tokenizer.encode(SENTENCE), END_ID)
    assert result.target.ids == (START_ID, *target)
    assert result.prediction.ids == (*target, END_ID)
    assert (result.source.name, result.target.name, result.prediction.name) == ("source", "target", "prediction")
    assert result.forced
    assert not any(result.values(name).flags.writeable for name in result)
    assert result.text == "Le chat dort."
    assert result.notes == ()
    assert len(result.source) != len(result.target)


def test_without_a_target_the_model_writes_one(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("translator")
    for strategy in (None, Greedy(6), Sample(seed=2, max_new_tokens=6), Beam(2, max_new_tokens=6)):
        result = trace(checkpoint, SENTENCE, strategy=strategy)
        written = decode(checkpoint, SENTENCE, strategy)
        assert result.prediction.ids == written.tokens.ids
        assert result.target.ids == (START_ID, *written.tokens.ids[:-1])
        assert result.text == written.text
        assert not result.forced


def test_a_continuation_holds_the_sentence_and_what_was_written(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("gpt")
    prompt = checkpoint.tokenizer.encode(SENTENCE)
    result = trace(checkpoint, SENTENCE, strategy=Greedy(5))
    written = decode(checkpoint, SENTENCE, Greedy(5))
    assert result.source is None
    assert result.target.ids == (START_ID, *prompt, *written.tokens.ids[:-1])
    assert result.prediction.ids == (*prompt, *written.tokens.ids)
    assert result.text == written.text
    forced = trace(checkpoint, SENTENCE, "It slept.")
    assert forced.prediction.ids == (*prompt, *checkpoint.tokenizer.encode("It slept."), END_ID)
    assert forced.text == f"{SENTENCE} It slept."


@pytest.mark.parametrize("kind", ["translator", "gpt"])
def test_the_note_on_a_text_that_did_not_end_counts_what_was_written(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    assert not decode(checkpoint, SENTENCE, Greedy(5)).finished
    result = trace(checkpoint, SENTENCE, strategy=Greedy(5))
    assert result.notes[0] == "The output did not end within 5 tokens; it was stopped there."


@pytest.mark.parametrize("kind", ["translator", "bert", "sentiment"])
def test_source_pads_are_noted_and_masked(kind: str, tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint(kind)
    target = "Le chat." if kind == "translator" else None
    plain = trace(checkpoint, SENTENCE, target)
    padded = trace(checkpoint, SENTENCE, target, source_pads=1)
    assert padded.notes == ("1 <pad> token was added to the source.",)
    assert padded.source.displays == (*plain.source.displays, "<pad>")
    assert not padded.attention("encoder", 0).allowed[:, len(plain.source) :].any()


def test_a_masked_token_model_fills_its_blanks_and_leaves_the_rest(tiny_checkpoint: Tiny) -> None:
    checkpoint = tiny_checkpoint("bert")
    result = trace(checkpoint, "The ___ sat on the mat.")
    (blank,) = [token.index for token in result.source if token.id == MASK_ID]
    best = result.values("encoder.logits").argmax(axis=-1)
    assert result.prediction.ids == tuple(best)
    filled = list(result.source.ids)
    filled[blank] = best[blank]
    assert result.text == checkpoint.tokenizer.decode(filled)
    assert (result.target, result.forced) == (None, False)


# ---- looking at a trace ---------------------------------------------------------------------------------------------


def test_asking_a_trace_for_what_it_has_not(tiny_checkpoint: Tiny) -> None:
    result = trace(tiny_checkpoint("gpt"), SENTENCE)
    with pytest.raises(KeyError, match="did you mean .*decoder.layers.0.self_attention.weights"):
        result["decoder.layers.0.self_attention.weight"]
    with pytest.raises(KeyError, match=r"names\(\) lists all"):
        result["🦊"]
    with pytest.raises(ValueError, match="no decoder self-attention in layer 2; this model has decoder self.* 0–1"):
        result.attention("decoder", layer=2)
    with pytest.raises(ValueError, match="no decoder cross-attention in layer 0"):
        result.attention("decoder", layer=0, kind="cross")
    with pytest.raises(ValueError, match="no stack 'encoder'; it has decoder"):
        result.tokens("encoder")
    with pytest.raises(InputError, match=r"sentence with its target has 122 tokens.* at most 96"):
        trace(result.checkpoint, "x" * 60, "x" * 59)


# ---- runs as keys ----------------------------------------------------------------------------------------------------


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


# ---- files -----------------------------------------------------------------------------------------------------------

ODD = "The “cat” 😀 </s>\nقطة the the\x00 \ud800"


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_what_was_written_is_read_back(kind: str, tiny_checkpoint: Tiny, tmp_path: Path) -> None:
    first = trace(tiny_checkpoint(kind), ODD, source_pads=0 if kind == "gpt" else 2)
    save_trace(first, tmp_path / "trace.safetensors")
    again = read_trace(tmp_path / "trace.safetensors")
    assert again.names() == first.names()
    for name in first.names():
        assert again[name].axes == first[name].axes
        assert again[name].values.dtype == first[name].values.dtype
        np.testing.assert_array_equal(again[name].values, first[name].values)
        assert not again[name].values.flags.writeable
    for field in ("source", "target", "prediction", "text", "forced", "notes"):
        assert getattr(again, field) == getattr(first, field), field
    for stack, attention in first.attention_kinds():
        view = again.attention(stack, 0, attention)
        assert view.query.labels == first.attention(stack, 0, attention).query.labels


def test_reading_needs_no_torch(tiny_checkpoint: Tiny, tmp_path: Path) -> None:
    save_trace(trace(tiny_checkpoint("gpt"), "Hello."), tmp_path / "trace.safetensors")
    code = (
        f"import sys, transformer; found = transformer.read_trace({str(tmp_path / 'trace.safetensors')!r}); "
        "assert found.n_layers('decoder') == 2; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def lying(described: str) -> Callable[[bytes], bytes]:
    return lambda whole: save({"a": np.zeros(3)}, metadata={"format": FORMAT, "trace": described})


NOTHING = {"source": None, "target": None, "prediction": None}
REFUSED: dict[str, list[Callable[[bytes], bytes]]] = {
    "not a complete safetensors file": [lambda whole, kept=kept: whole[:kept] for kept in (0, 5, 8, 100, 5000, -1)],
    f"says format None; a trace says '{FORMAT}'": [lambda whole: save({"a": np.zeros(3)})],
    "is not a complete trace": [
        *map(lying, ("[]", "{", "[" * 100_000, json.dumps({"axes": {}}))),
        lying(json.dumps({"axes": {"a": ["x", "y"]}, **NOTHING})),
        lying(json.dumps({"axes": {"a": ["x"]}, "source": {"name": "s", "tokens": [{"index": 3}]}})),
        lying(json.dumps({"axes": {"a": ["x"]}, **NOTHING, "text": ""})),
    ],
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_whole_trace_is_refused(message: str, tiny_checkpoint: Tiny, tmp_path: Path) -> None:
    whole = trace_to_bytes(trace(tiny_checkpoint("gpt"), "Hello."))
    for damaged in REFUSED[message]:
        with pytest.raises(TraceFileError, match=message):
            trace_from_bytes(damaged(whole))
    with pytest.raises(TraceFileError, match=r"nothing\.safetensors: no such file"):
        read_trace(tmp_path / "nothing.safetensors")


@given(st.binary(max_size=300))
def test_any_bytes_are_a_trace_or_a_sentence(raw: bytes) -> None:
    try:
        assert isinstance(trace_from_bytes(raw), Trace)
    except TraceFileError as error:
        assert str(error).startswith("the file ")
