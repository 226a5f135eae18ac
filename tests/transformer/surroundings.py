"""The commands in unusual environments, in one process that test_surroundings.py starts; prints JSON.

A working directory of its own, locale C, warnings as errors; then a read-only folder, and a full disk.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import traceback
from pathlib import Path

from transformer.__main__ import main

CHECKPOINT = "checkpoints/tiny-translator"
READS = {
    "inspect": ["inspect", CHECKPOINT],
    "trace": ["trace", "--checkpoint", CHECKPOINT, "--sentence", sys.argv[1]],
    "evaluate": ["evaluate", "--checkpoint", CHECKPOINT, "--data", sys.argv[2], "--beam", "2"],
}
WRITES = {
    "heads": ["heads", "--checkpoint", CHECKPOINT, "--limit", "3", "--save"],
    "card": ["evaluate", "--checkpoint", CHECKPOINT, "--data", sys.argv[2], "--beam", "1", "--update-card"],
    "train": ["train", "tiny.toml", "--data", "data", "--run-directory", "run", "--output", "out"],
}
ANOTHER_RUN = {"train": ["train", "tiny.toml", "--data", "data", "--run-directory", "second", "--output", "out"]}


def said(arguments: list[str]) -> dict:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            status = main(arguments)
        except BaseException:
            status = traceback.format_exc()
    return {"status": status, "out": out.getvalue(), "errors": errors.getvalue()}


def files() -> dict[str, int]:
    return {str(path): hash(path.read_bytes()) for path in Path().rglob("*") if path.is_file()}


def each(commands: dict[str, list[str]]) -> dict:
    return {name: said(arguments) for name, arguments in commands.items()}


def without_right_to_write() -> dict:
    """Run without write permission: as a user who owns nothing, or after removing the permission."""
    folders = [Path(), *(path for path in Path().rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(65534)
    found = each(READS | WRITES | ANOTHER_RUN)
    if os.getuid() == 0:
        os.seteuid(0)
    for folder in folders:
        folder.chmod(0o755)
    return found


def on_a_full_disk() -> dict:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
    found = each(READS | WRITES | ANOTHER_RUN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return found


result = {"usual": each(READS | WRITES)}
before = files()
result |= {"read-only": without_right_to_write(), "full": on_a_full_disk(), "untouched": files() == before}
print(json.dumps(result))
