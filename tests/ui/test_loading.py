"""Checkpoints and traces are found, loaded once, reloaded when files change, and never writable."""

from __future__ import annotations

import gc
import json
import shutil
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from transformer.runs.run import Run
from ui.compute import loading
from ui.compute.store import store


@pytest.fixture(autouse=True)
def empty_caches(checkpoints_folder: Path) -> None:
    store.clear()


def load_trace(name: str, *, sentence: str, pads: int = 0, **more: str) -> transformer.Trace:
    return loading.load_trace(Run(loading.load_checkpoint(name), sentence, source_pads=pads, **more))


def test_checkpoints_are_listed_a_translator_first_and_the_favourite_before_all(own_folder: Path, monkeypatch) -> None:
    (own_folder / "notes").mkdir()
    (own_folder / "README.md").write_text("no checkpoint", encoding="utf-8")
    assert loading.checkpoint_names() == ("tiny-translator", "tiny-bert", "tiny-gpt", "tiny-sentiment")
    (own_folder / "tiny-gpt").rename(own_folder / "en-fr")
    assert loading.checkpoint_names()[0] == "en-fr"
    monkeypatch.setenv(loading.FOLDER_VARIABLE, str(own_folder / "nowhere"))
    assert loading.checkpoint_names() == ()


def test_a_checkpoint_is_loaded_once_and_again_when_its_files_change(own_folder: Path) -> None:
    first = loading.load_checkpoint("tiny-translator")
    assert loading.load_checkpoint("tiny-translator") is first
    shutil.rmtree(own_folder / "tiny-translator")
    shutil.copytree(own_folder / "tiny-gpt", own_folder / "tiny-translator")
    assert loading.load_checkpoint("tiny-translator").config.kind == "decoder-only"
    assert loading.readable_config("tiny-translator").kind == "decoder-only"


def test_a_checkpoint_that_does_not_fit_says_so(own_folder: Path) -> None:
    file = own_folder / "tiny-translator" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "d_ff": 7}), encoding="utf-8")
    with pytest.raises(transformer.CheckpointError, match="7"):
        loading.load_checkpoint("tiny-translator")


def test_a_large_model_takes_the_place_of_another(families_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two checkpoints that fit singly but not together: the first is dropped with its traces if needed."""
    monkeypatch.setenv(loading.FOLDER_VARIABLE, str(families_folder))
    load_trace("hf-gpt2", sentence="A cat.")
    first = weakref.ref(loading.load_checkpoint("hf-gpt2").model)
    monkeypatch.setattr("transformer.system.memory.free_memory", lambda: 1000 if first() else 2**40)
    assert loading.load_checkpoint("hf-llama").name == "hf-llama" and first() is None
    monkeypatch.setattr("transformer.system.memory.free_memory", lambda: 1000)
    with pytest.raises(transformer.CheckpointError, match="GB of memory"):
        loading.load_checkpoint("hf-neox")


def test_a_trace_is_made_once_for_each_sentence_target_and_padding(checkpoints_folder: Path) -> None:
    def trace(**values) -> transformer.Trace:
        return load_trace("tiny-translator", **{"sentence": "The cat.", **values})

    first = trace()
    assert trace() is first
    others = [trace(sentence="The dog."), trace(target="Le chat."), trace(pads=2)]
    assert len({id(other) for other in (first, *others)}) == 4
    assert others[1].forced
    assert len(others[2].source) == len(first.source) + 2


def test_another_checkpoint_of_the_same_name_gives_another_trace(own_folder: Path) -> None:
    first = load_trace("tiny-gpt", sentence="The cat.")
    model = loading.load_checkpoint("tiny-gpt").model
    changed = transformer.build_model(model.config)
    transformer.save(own_folder / "tiny-gpt", changed, loading.load_checkpoint("tiny-gpt").tokenizer)
    second = load_trace("tiny-gpt", sentence="The cat.")
    assert not np.array_equal(first["decoder.logits"].values, second["decoder.logits"].values)


def test_an_adapter_or_its_base_that_is_overwritten_in_place_is_read_again(own_folder: Path) -> None:
    """The folder's own age does not change with the bytes of a file."""
    adapter, base = own_folder / "adapter", own_folder / "tiny-gpt"
    adapter.mkdir()
    (adapter / "adapter_model.safetensors").write_bytes(b"first")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}), encoding="utf-8")
    seen = {loading._stamp(adapter)}
    for file in (adapter / "adapter_model.safetensors", base / "model.safetensors", base / "config.json"):
        file.write_bytes(file.read_bytes() + b" ")
        seen.add(loading._stamp(adapter))
    assert len(seen) == 4


def test_a_base_that_is_fetched_after_its_adapter_is_found(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(own_folder / "hub"))
    adapter, fetched = own_folder / "adapter", own_folder / "hub" / "models--someone--base"
    adapter.mkdir()
    named = json.dumps({"base_model_name_or_path": "someone/base"})
    (adapter / "adapter_config.json").write_text(named, encoding="utf-8")
    without = loading._stamp(adapter)
    (fetched / "refs").mkdir(parents=True)
    (fetched / "refs" / "main").write_text("1" * 40, encoding="utf-8")
    (fetched / "snapshots").mkdir()
    (own_folder / "tiny-gpt").rename(fetched / "snapshots" / ("1" * 40))
    assert len(loading._stamp(adapter)) > len(without)


def test_a_shared_trace_is_read_only_and_bad_input_is_refused_every_time(checkpoints_folder: Path) -> None:
    trace = load_trace("tiny-translator", sentence="The cat.")
    for name in trace.names():
        with pytest.raises(ValueError, match="read-only"):
            trace[name].values[...] = 0
    for _ in range(2):
        with pytest.raises(transformer.InputError, match="empty"):
            load_trace("tiny-translator", sentence="  ")


def test_the_number_of_threads_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    try:
        for wanted, found in (("2", 2), ("1", 1), ("", 1)):
            monkeypatch.setenv("GLASSFORMER_THREADS", wanted)
            loading.set_threads.cache_clear()
            loading.set_threads()
            assert torch.get_num_threads() == found
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_what_was_loaded_is_not_looked_through_by_the_collector_again(checkpoints_folder: Path) -> None:
    loading.freeze_loaded_objects.cache_clear()
    gc.unfreeze()
    loading.load_checkpoint("tiny-translator")
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    loading.load_checkpoint("tiny-gpt")
    assert gc.get_freeze_count() <= frozen  # later objects belong to a session and must be collected


def test_long_traces_make_room_for_each_other(checkpoints_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = load_trace("tiny-translator", sentence="The cat sat on the mat.")
    size = store.n_bytes("traces")
    assert size >= sum(one.values(name).nbytes for name in one.names())
    monkeypatch.setitem(store.limits, "traces", 2 * size)
    for sentence in ("The cat sat on the hat.", "The cat sat on the bat.", "The cat sat on the rat."):
        load_trace("tiny-translator", sentence=sentence)
        assert store.n_bytes("traces") <= 2 * size
    assert load_trace("tiny-translator", sentence="The cat sat on the mat.") is not one
