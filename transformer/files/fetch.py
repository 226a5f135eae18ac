"""Download of a third-party checkpoint from a hub; files must match what the hub has announced."""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer.disk.plain_files import RESERVED
from transformer.errors import InputError

WANTED = ("*.json", "*.safetensors", "*.txt", "*.spm", "*.model", "README.md")
_UNFINISHED = ".unfinished"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")


def fetch(checkpoint: str, output: str | Path, *, agree: Callable[[], bool]) -> Path | None:
    """Download the checkpoint OWNER/NAME and return its folder, or ``None`` if the user declines.

    The size is printed before anything is downloaded; an interrupted download resumes where it stopped. The environment
    variable HF_ENDPOINT selects another hub. Files are accepted only as announced: plain file names, the number of
    bytes, and the hash. They are moved into the folder when all of them have been checked.

    Args:
        checkpoint: OWNER/NAME.
        output: Folder in which a folder NAME is created.
        agree: Called after the size was printed; returns whether to continue.

    Raises:
        InputError: If the name is invalid, or the files cannot be fetched or do not match the hub's announcement.
    """
    from huggingface_hub import HfApi

    owner, _, name = checkpoint.partition("/")
    if not owner or not name or "/" in name or {owner, name} & {".", ".."}:
        raise InputError(f"{checkpoint!r} is not the OWNER/NAME of a checkpoint")
    try:
        found = HfApi(endpoint=_endpoint()).model_info(checkpoint, files_metadata=True)
    except Exception as error:  # errors of several libraries: no network, no such name, not allowed
        raise _fetch_error(checkpoint, error) from error
    wanted = [file for file in found.siblings or () if any(Path(file.rfilename).match(one) for one in WANTED)]
    files = [file for file in wanted if is_plain_name(file.rfilename) and type(file.size) is int]
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise InputError(f"{checkpoint} has no safetensors files; pickles are not opened")
    size = sum(file.size for file in files)
    print(f"{checkpoint}: {len(files)} files, {size / 1e6:,.0f} MB", file=sys.stderr)
    if not agree():
        return None
    folder = Path(output) / name
    unfinished = folder / _UNFINISHED  # one folder deeper than the app looks
    arrived = [file for file in files if not _is_there(folder, file)]
    for file in arrived:
        _download(checkpoint, found.sha, file, unfinished)
    # this file makes the folder a checkpoint
    for file in sorted(arrived, key=lambda file: file.rfilename == "config.json"):
        os.replace(unfinished / file.rfilename, folder / file.rfilename)
    shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _is_there(folder: Path, file: Any) -> bool:
    path = folder / file.rfilename
    return path.is_file() and _matches(path, file)


def _download(name: str, revision: str, file: Any, folder: Path) -> None:
    """Download one file, which must match the hub's announcement.

    Raises:
        InputError: If it does not match; the file is then removed.
    """
    from huggingface_hub import hf_hub_download

    if _is_there(folder, file):  # left by a download that was killed
        return
    # the hub's client would mistake an existing file for the download
    (folder / file.rfilename).unlink(missing_ok=True)
    try:
        path = hf_hub_download(
            name,
            file.rfilename,
            revision=revision,
            local_dir=folder,
            endpoint=_endpoint(),
            tqdm_class=_counter(file.size),
        )
    except Exception as error:  # connection lost, or a file that has changed
        raise _fetch_error(name, error) from error
    if not _matches(Path(path), file):
        Path(path).unlink()
        raise InputError(f"{file.rfilename} is not what {name} says it is; it was deleted")


def _matches(path: Path, file: Any) -> bool:
    """Return whether size and hash match: SHA-256 for files in the large-file store, else Git's own hash."""
    size, large, blob = path.stat().st_size, getattr(file, "lfs", None), getattr(file, "blob_id", None)
    if size != file.size:
        return False
    digest = hashlib.sha256() if large else hashlib.sha1(f"blob {size}\0".encode())
    with path.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    wanted = large.sha256 if large else blob
    return not wanted or digest.hexdigest() == wanted


def _counter(size: int) -> type:
    """Return a progress bar class that stops after ``size`` bytes, whatever the hub continues to send."""
    from tqdm import tqdm

    class Counter(tqdm):  # type: ignore[type-arg]
        def update(self, n: float | None = 1) -> bool | None:
            self.arrived = getattr(self, "arrived", self.initial) + (n or 0)
            if self.arrived > size:
                raise ValueError(f"more than the {size:,} bytes that were announced")
            return super().update(n)

    return Counter


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _fetch_error(name: str, error: Exception) -> InputError:
    problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(f"{name} cannot be fetched: {problem}")


def is_plain_name(name: str) -> bool:
    """Return whether this is the name of a file in the folder itself, on every system."""
    return bool(_PLAIN_NAME.fullmatch(name)) and not RESERVED.fullmatch(name) and not name.endswith(".")
