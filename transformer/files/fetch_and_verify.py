"""The commands about other people's checkpoints: fetch one, prove it, look at its heads."""

import argparse
import hashlib
import json
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from transformer.disk.plain_files import RESERVED
from transformer.errors import InputError
from transformer.system.terminal import one_line

WANTED = ("*.json", "*.safetensors", "*.txt", "*.spm", "*.model", "README.md")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_BAD_INPUT = 2
REMEDIES = {name: f"install it with: pip install {name}" for name in ("transformers", "huggingface_hub")}


def add_commands(commands: argparse._SubParsersAction) -> None:
    """``fetch`` and ``verify``."""
    fetch = commands.add_parser("fetch", help="download a checkpoint from huggingface.co (needs huggingface_hub)")
    fetch.add_argument("name", metavar="OWNER/NAME")
    listed = os.environ.get("GLASSFORMER_CHECKPOINTS", "").split(os.pathsep)[0] or "checkpoints"
    fetch.add_argument(
        "--output", default=listed, metavar="DIR", help=f"where it goes (default: {listed}, which the app lists)"
    )
    fetch.add_argument("--yes", action="store_true", help="do not ask before the download")
    fetch.set_defaults(command=_fetch)

    verify = commands.add_parser(
        "verify", help="compare a Hugging Face checkpoint with Hugging Face's own code (needs transformers)"
    )
    verify.add_argument("folder", metavar="DIR")
    verify.add_argument("--json", action="store_true", help="print one JSON object")
    verify.set_defaults(command=_verify)


def _verify(options: argparse.Namespace) -> int:
    from transformer.files.checkpoints import load
    from transformer.files.verify import TOLERANCE, verify

    checkpoint = load(options.folder)
    found = verify(checkpoint)
    agrees = all(comparison.agrees for comparison in found)
    if options.json:
        rows = [asdict(comparison) for comparison in found]
        print(json.dumps({"family": checkpoint.config.family, "agrees": agrees, "lengths": rows}))
    else:
        print(f"{one_line(checkpoint.name)}  {checkpoint.config.family}  {len(checkpoint.mapping)} tensors mapped")
        print(f"{len(checkpoint.unread)} not read: {one_line(', '.join(checkpoint.unread)) or 'none'}\n")
        print(f"{'tokens':>6}{'logits':>12}{'attention':>12}  map with the larger difference")
        for row in found:
            print(f"{row.length:>6}{row.logits:>12.1e}{row.attention:>12.1e}  {row.map}")
        print("\nequal" if agrees else "\nNOT equal", f"within {TOLERANCE:.0e}")
    return 0 if agrees else 1


def _fetch(options: argparse.Namespace) -> int:
    """Says how large it is before anything is downloaded; a download that was cut off goes on where it stopped.

    HF_ENDPOINT names another hub. What it sends is taken as it said it before: names of plain files, so many bytes,
    with this hash.
    """
    from huggingface_hub import HfApi

    from transformer.files.checkpoints import load

    owner, _, name = options.name.partition("/")
    if not owner or not name or "/" in name or {owner, name} & {".", ".."}:
        raise InputError("{name} is not the OWNER/NAME of a checkpoint", name=repr(options.name))
    try:
        found = HfApi(endpoint=_endpoint()).model_info(options.name, files_metadata=True)
    except Exception as error:  # of several libraries: no network, no such name, not allowed
        raise _unfetched(options.name, error) from error
    wanted = [file for file in found.siblings or () if any(Path(file.rfilename).match(one) for one in WANTED)]
    files = [file for file in wanted if is_plain_name(file.rfilename) and type(file.size) is int]
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise InputError("{name} has no safetensors files; pickles are not opened", name=options.name)
    size = sum(file.size for file in files)
    print(f"{options.name}: {len(files)} files, {size / 1e6:,.0f} MB", file=sys.stderr)
    if not options.yes and not _agreed():
        return _BAD_INPUT
    folder = Path(options.output) / name
    for file in files:
        _download(options.name, found.sha, file, folder)
    print(f"{folder}  {load(folder).short_fingerprint}")
    return 0


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


def _agreed() -> bool:
    """Whether the reader agrees to the download; never where there is no terminal to ask at."""
    try:
        return input("download? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
