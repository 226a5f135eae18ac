"""Download a third-party checkpoint from a hub, and take nothing that differs from what the hub announced."""

import hashlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer.disk.plain_files import RESERVED
from transformer.errors import InputError

WANTED = ("*.json", "*.safetensors", "*.txt", "*.spm", "*.model", "README.md")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")


def fetch(checkpoint: str, output: str | Path, *, agree: Callable[[], bool]) -> Path | None:
    """Download the checkpoint OWNER/NAME and return its folder, or ``None`` where the reader does not agree.

    The size is printed before anything is downloaded; a download that was cut off goes on where it stopped.
    HF_ENDPOINT names another hub. What it sends is taken as it said it before: names of plain files, so many bytes,
    with this hash.

    Args:
        checkpoint: OWNER/NAME.
        output: the folder in which a folder NAME is made.
        agree: called once the size is printed.

    Raises:
        InputError: for what is no such name, cannot be fetched, or is not what the hub said.
    """
    from huggingface_hub import HfApi

    owner, _, name = checkpoint.partition("/")
    if not owner or not name or "/" in name or {owner, name} & {".", ".."}:
        raise InputError("{name} is not the OWNER/NAME of a checkpoint", name=repr(checkpoint))
    try:
        found = HfApi(endpoint=_endpoint()).model_info(checkpoint, files_metadata=True)
    except Exception as error:  # of several libraries: no network, no such name, not allowed
        raise _unfetched(checkpoint, error) from error
    wanted = [file for file in found.siblings or () if any(Path(file.rfilename).match(one) for one in WANTED)]
    files = [file for file in wanted if is_plain_name(file.rfilename) and type(file.size) is int]
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise InputError("{name} has no safetensors files; pickles are not opened", name=checkpoint)
    size = sum(file.size for file in files)
    print(f"{checkpoint}: {len(files)} files, {size / 1e6:,.0f} MB", file=sys.stderr)
    if not agree():
        return None
    folder = Path(output) / name
    for file in files:
        _download(checkpoint, found.sha, file, folder)
    return folder


def _download(name: str, revision: str, file: Any, folder: Path) -> None:
    """One file, which must be what the hub said of it. Raises ``InputError`` and leaves no file that is not."""
    from huggingface_hub import hf_hub_download

    try:
        path = hf_hub_download(
            name,
            file.rfilename,
            revision=revision,
            local_dir=folder,
            endpoint=_endpoint(),
            tqdm_class=_counter(file.size),
        )
    except Exception as error:  # no network any more, a file that is not what it was
        raise _unfetched(name, error) from error
    if not _is_as_said(Path(path), file):
        Path(path).unlink()
        raise InputError("{file} is not what {name} says it is; it was deleted", file=file.rfilename, name=name)


def _is_as_said(path: Path, file: Any) -> bool:
    """Size, and SHA-256 of what lies in the large store, or Git's own name of what does not."""
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
    """A bar that lets no more than ``size`` bytes through, whatever the hub goes on sending."""
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


def _unfetched(name: str, error: Exception) -> InputError:
    problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError("{name} cannot be fetched: {problem}", name=name, problem=problem)


def is_plain_name(name: str) -> bool:
    """Whether it is that of a file in the folder itself, on every system."""
    return bool(_PLAIN_NAME.fullmatch(name)) and not RESERVED.fullmatch(name) and not name.endswith(".")
