"""What a config asks to build is limited in modules and in time, and nobody waits for it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.transformer.guests.tiny_guests import guest_checkpoint
from tests.transformer.guests.tiny_image_guests import image_checkpoint
from transformer import CheckpointError, load
from transformer.errors import NotEnoughMemoryError
from transformer.guests import bounded_build as limits
from transformer.guests.bounded_build import bounded_build, size_of_network


def test_a_network_of_too_many_modules_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_MODULES", 100)
    built = []
    with pytest.raises(CheckpointError, match="more than 100 modules"), bounded_build():
        for _ in range(10_000):
            built.append(nn.Sequential(nn.Linear(1, 1), nn.ReLU()))
    assert len(built) == 50
    nn.Sequential(*(nn.ReLU() for _ in range(200)))  # outside, nothing is counted


def test_a_loop_without_modules_is_ended_and_code_that_handles_errors_cannot_hold_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.2)
    ended = []

    def run_into_the_limit() -> None:
        with pytest.raises(CheckpointError, match="seconds of processor time to build"), bounded_build():
            while True:
                try:
                    sum(range(1000))
                except Exception:
                    continue
        ended.append(True)

    thread = threading.Thread(target=run_into_the_limit, daemon=True)
    thread.start()
    started, others = time.monotonic(), 0
    while thread.is_alive() and time.monotonic() - started < 30:
        with bounded_build():  # another visitor's file
            nn.Linear(1, 1)
        others += 1
    assert ended and others > 10


def test_what_ends_just_in_time_is_not_interrupted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.0)
    for _ in range(200):
        try:
            with bounded_build():
                time.sleep(0.0002)
        except CheckpointError:
            pass
    sum(range(1_000_000))


def test_a_table_that_is_computed_number_by_number_does_not_take_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SECONDS", 1.0)
    monkeypatch.setattr(limits, "NUMBERS_PER_SECOND", 10**9)
    path = guest_checkpoint("distilbert", tmp_path, max_position_embeddings=2**18, sinusoidal_pos_embds=False)
    config = path / "config.json"
    config.write_text(config.read_text().replace('"sinusoidal_pos_embds": false', '"sinusoidal_pos_embds": true'))
    started = time.thread_time()
    with pytest.raises(CheckpointError, match="more than 1 seconds of processor time"):
        load(path)  # the table is computed although it is stored: 8 million numbers, a loop of 9 seconds
    assert time.thread_time() - started < 5


def test_a_large_network_is_built(tmp_path: Path) -> None:
    with bounded_build(), torch.device("meta"):
        nn.ModuleList(nn.TransformerEncoderLayer(8, 2) for _ in range(300))


def test_the_memory_that_is_checked_includes_tables_and_the_trial_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = guest_checkpoint("gpt_neo", tmp_path, max_position_embeddings=2048)
    image = image_checkpoint("vit", tmp_path)
    free = 0
    monkeypatch.setattr("transformer.system.memory.free_memory", lambda: free)
    for path, least, most in ((text, 25_000_000, 30_000_000), (image, 500_000, 2_000_000)):
        weights = (path / "model.safetensors").stat().st_size
        free = weights + least
        with pytest.raises(NotEnoughMemoryError, match="needs 0.0 GB of memory"):
            load(path)
        free = weights + most
        load(path)


def test_a_network_is_measured_by_its_shapes() -> None:
    with torch.device("meta"):
        network = nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20))
    size = size_of_network(network, n_tokens=3, n_heads=2, n_layers=5)
    assert size.parameters == 4 * (10 * 20 + 20 + 40) and size.buffers == 2 * 20 * 4 + 8
    assert size.trial == 4 * (4 * 3 * (10 + 20) + 2 * 5 * 2 * 9) and size.while_opening == 3 * size.buffers + size.trial
