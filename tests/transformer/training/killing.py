"""Training runs that are killed by an uncatchable signal, and what they leave. Run by test_kills.py.

``python -m tests.transformer.training.killing DATA FOLDER PROCESSES [FILE …]`` trains and publishes once without
interruption, then once for each number of a written file (all of them, if none is given), killed when half of that file
is on disk; each run is then resumed. Every run has processes of its own, forked from this one, which has imported
everything.
"""

from __future__ import annotations

import json
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
from tests.transformer.training.test_trainer import everything, recipe
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
        port = free.getsockname()[1]
    count = folder / "written"
    children = []
    for rank in range(processes):
        child = os.fork()
        if child == 0:
            if processes > 1:
                os.environ.update(
                    RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(processes), MASTER_ADDR="127.0.0.1",
                    MASTER_PORT=str(port), ACCELERATE_USE_CPU="true",
                )  # fmt: skip
            _count_files(count, kill_at)
            try:
                train_and_publish(data, folder)
            except BaseException:  # print the traceback and exit: nothing of the parent may run in here
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    ended = [_status(children[0])]
    if ended[0]:  # the others would wait for the killed one
        for child in children[1:]:
            os.kill(child, signal.SIGKILL)
    ended += [_status(child) for child in children[1:]]
    return ended, int(count.read_text()) if count.exists() else 0


def _status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _count_files(count: Path, kill_at: int | None) -> None:
    """Count files that reach their final path; write half of number ``kill_at`` and kill this process."""
    replace, written = os.replace, 0

    def half_or_whole(temporary: str, path: Path) -> None:
        nonlocal written
        if written == kill_at:
            content = Path(temporary).read_bytes()
            Path(temporary).write_bytes(content[: len(content) // 2])
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


def result(folder: Path) -> dict:
    """Return the state of the run and every published byte, without times."""
    trainer = type("Ended", (), {"directory": folder / "run"})
    files = {str(path.relative_to(folder / "out")): path.read_bytes() for path in _files(folder / "out")}
    lines = files.pop("history.csv").splitlines()
    files["history.csv"] = [line.split(b",")[:3] + line.split(b",")[4:] for line in lines]
    files["README.md"] = [line for line in files["README.md"].splitlines() if b"minutes on" not in line]
    return {**everything(trainer), "files": files}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def differences(one: dict, other: dict) -> list[str]:
    found = [name for name in ("step", "tokens", "history", "files") if one[name] != other[name]]
    tensors, others = one["tensors"], other["tensors"]
    return found + [name for name in tensors if name not in others or not torch.equal(tensors[name], others[name])]


def main(data: Path, folder: Path, processes: int, kills: list[int]) -> dict:
    torch.set_num_threads(1)
    whole = folder / "whole"
    whole.mkdir()
    ended, n_files = run(data, whole, processes)
    assert ended == [0] * processes, ended
    expected = result(whole)
    wrong: dict[str, list[str]] = {}
    for kill_at in kills or range(n_files):
        place = folder / str(kill_at)
        place.mkdir()
        killed, _ = run(data, place, processes, kill_at=kill_at)
        if killed[0] != -signal.SIGKILL:
            wrong[str(kill_at)] = [f"was not killed: {killed}"]
            continue
        check_what_is_there(place)
        again, _ = run(data, place, processes)
        left = [str(path) for path in place.rglob(".*")]
        wrong[str(kill_at)] = [f"ended {again}"] if any(again) else differences(expected, result(place)) + left
        shutil.rmtree(place)
    return {"files": n_files, "kills": len(wrong), "wrong": {at: names for at, names in wrong.items() if names}}


if __name__ == "__main__":
    data, folder, processes, *kills = sys.argv[1:]
    print(json.dumps(main(Path(data), Path(folder), int(processes), [int(file) for file in kills])))
