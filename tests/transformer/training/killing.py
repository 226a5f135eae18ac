"""Training runs that are killed by an uncatchable signal, and what they leave. Run by test_trainer.py.

``python -m tests.transformer.training.killing DATA FOLDER PROCESSES [FILE …]`` trains and publishes once without
interruption, then once for each number of a written file (all of them, if none is given), killed when half of that file
is on disk; each run is then resumed, and must end the same. Every run has processes of its own, forked from this one,
which has imported everything.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import traceback
from pathlib import Path

import accelerate  # noqa: F401  (here, once, and not in every process)
import torch
import torch._dynamo  # a process's first optimizer imports it, which takes seconds

import transformer
from tests.transformer.training.conftest import assert_same, everything, recipe
from transformer.files.checkpoints import load_weights
from transformer.training.publication import publish
from transformer.training.run_state import load_state
from transformer.training.trainer import Trainer

SETTINGS = recipe(steps=6, evaluate_every=3, save_every=2, log_every=1, snapshots=(0, 3), evaluate_sentences=2)


def train_and_publish(data: Path, folder: Path) -> None:
    trainer = Trainer(SETTINGS, data=data, run_directory=folder / "run")
    trainer.run()
    if trainer.accelerator.is_main_process:
        publish(trainer, folder / "out")
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()


def run(data: Path, folder: Path, processes: int, *, kill_at: int | None = None) -> tuple[list[int], int]:
    """Return how each process ended and how many files it wrote; the first dies at file ``kill_at``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(processes)}
    children = []
    for rank in range(processes):
        if child := os.fork():
            children.append(child)
            continue
        if processes > 1:
            os.environ |= {**place, "RANK": str(rank), "LOCAL_RANK": str(rank), "ACCELERATE_USE_CPU": "true"}
        _count_files(folder / "written", kill_at)
        try:
            train_and_publish(data, folder)
        except BaseException:  # print the traceback and exit: nothing of the parent may run in here
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    ended = [_status(children[0])]
    if ended[0]:  # the others would wait for the killed one
        for child in children[1:]:
            os.kill(child, signal.SIGKILL)
    count = folder / "written"
    return [*ended, *map(_status, children[1:])], int(count.read_text()) if count.exists() else 0


def _status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _count_files(count: Path, kill_at: int | None) -> None:
    """Count files that reach their final path; write half of number ``kill_at`` and kill this process."""
    replace, written = os.replace, 0

    def half_or_whole(temporary: str, path: Path) -> None:
        nonlocal written
        if written == kill_at:
            os.truncate(temporary, os.path.getsize(temporary) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        written += 1
        replace(temporary, path)
        count.write_text(str(written))

    os.replace = half_or_whole


def check_what_is_there(folder: Path) -> None:
    """Check that every file in its final location is complete."""
    load_state(folder / "run")
    for checkpoint in (folder / "run" / "best", folder / "out"):
        if (checkpoint / "config.json").is_file():
            transformer.load(checkpoint)
    for file in (folder / "run" / "snapshots").glob("step-*.safetensors"):
        load_weights(SETTINGS.model, file)


def published(folder: Path) -> dict[str, object]:
    """Return every published byte, without times."""
    files: dict[str, object] = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.*")}
    history, card = (files[name].splitlines() for name in ("history.csv", "README.md"))
    files["history.csv"] = [line.split(b",")[:3] + line.split(b",")[4:] for line in history]
    return {**files, "README.md": [line for line in card if b"minutes on" not in line]}


def main(data: Path, folder: Path, processes: int, kills: list[int]) -> int:
    """Return how many files an uninterrupted run writes."""
    torch.set_num_threads(1)
    whole = folder / "whole"
    whole.mkdir()
    ended, n_files = run(data, whole, processes)
    assert ended == [0] * processes, ended
    expected = everything(whole / "run"), published(whole / "out")
    for kill_at in kills or range(n_files):
        place = folder / str(kill_at)
        place.mkdir()
        killed, _ = run(data, place, processes, kill_at=kill_at)
        assert killed[0] == -signal.SIGKILL, f"{kill_at} was not killed: {killed}"
        check_what_is_there(place)
        again, _ = run(data, place, processes)
        assert not any(again) and not list(place.rglob(".*")), (kill_at, again)
        assert_same(everything(place / "run"), expected[0])
        assert published(place / "out") == expected[1], kill_at
        shutil.rmtree(place)
    return n_files


if __name__ == "__main__":
    data, folder, processes, *kills = sys.argv[1:]
    print(main(Path(data), Path(folder), int(processes), [int(file) for file in kills]))
