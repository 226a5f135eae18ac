"""The commands about other people's checkpoints: fetch one, prove it, look at its heads."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from transformer.errors import InputError

WANTED = ("*.json", "*.safetensors", "*.txt", "*.spm", "*.model", "README.md")
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
        print(f"{checkpoint.name}  {checkpoint.config.family}  {len(checkpoint.mapping)} tensors mapped")
        print(f"{len(checkpoint.unread)} not read: {', '.join(checkpoint.unread) or 'none'}\n")
        print(f"{'tokens':>6}{'logits':>12}{'attention':>12}  map with the larger difference")
        for row in found:
            print(f"{row.length:>6}{row.logits:>12.1e}{row.attention:>12.1e}  {row.map}")
        print("\nequal" if agrees else "\nNOT equal", f"within {TOLERANCE:.0e}")
    return 0 if agrees else 1


def _fetch(options: argparse.Namespace) -> int:
    """Says how large it is before anything is downloaded; a download that was cut off goes on where it stopped."""
    from huggingface_hub import HfApi, snapshot_download

    from transformer.files.checkpoints import load

    owner, _, name = options.name.partition("/")
    if not owner or not name or "/" in name or {owner, name} & {".", ".."}:
        raise InputError("{name} is not the OWNER/NAME of a checkpoint", name=repr(options.name))
    try:
        found = HfApi().model_info(options.name, files_metadata=True)
    except Exception as error:  # of several libraries: no network, no such name, not allowed
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError("{name} cannot be fetched: {problem}", name=options.name, problem=problem) from error
    files = [file for file in found.siblings if any(Path(file.rfilename).match(pattern) for pattern in WANTED)]
    files = [file for file in files if "/" not in file.rfilename]
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise InputError("{name} has no safetensors files; pickles are not opened", name=options.name)
    size = sum(file.size or 0 for file in files)
    print(f"{options.name}: {len(files)} files, {size / 1e6:,.0f} MB", file=sys.stderr)
    if not options.yes and not _agreed():
        return _BAD_INPUT
    folder = Path(options.output) / name
    snapshot_download(
        options.name, revision=found.sha, allow_patterns=[file.rfilename for file in files], local_dir=folder
    )
    print(f"{folder}  {load(folder).fingerprint}")
    return 0


def _agreed() -> bool:
    """Whether the reader agrees to the download; never where there is no terminal to ask at."""
    try:
        return input("download? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
