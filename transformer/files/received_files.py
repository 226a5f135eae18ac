"""Uploaded checkpoints: a few files of known names, checked before use.

Nothing in these formats can run; what remains is a file that declares sizes far too large. Names, sizes and the
config's limits are checked before a byte is written, shapes before a weight is read
(``transformer.files.checkpoints.load``).
"""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from transformer.errors import CheckpointError, text_of
from transformer.files.checkpoints import CARD, CONFIG, PICKLES, TOKENIZER, WEIGHTS, fingerprint, load, pickle_refusal
from transformer.files.layout import config_of, is_guest
from transformer.files.snapshots import is_snapshot
from transformer.text.tokenizer_files import MAX_BYTES as MAX_TOKENIZER_BYTES

MAX_BYTES = {WEIGHTS: 100_000_000, TOKENIZER: MAX_TOKENIZER_BYTES, CONFIG: 65_536, CARD: 1_000_000}
# Additional files of Hugging Face's layout.
FOREIGN_BYTES = {
    "generation_config.json": 65_536,
    "tokenizer_config.json": 4_000_000,
    "special_tokens_map.json": 1_000_000,
    "added_tokens.json": 1_000_000,
    **dict.fromkeys(("vocab.json", "merges.txt", "vocab.txt"), MAX_TOKENIZER_BYTES),
    **dict.fromkeys(("source.spm", "target.spm", "spiece.model", "spm.model"), 8_000_000),
    **dict.fromkeys(("tokenizer.model", "sentencepiece.bpe.model"), 8_000_000),
}
# Results in our own folders, beside snapshots, also of earlier versions; those of strangers are not trusted.
LEFT_OUT = ("head_roles.json", "head_history.json", "jacobian_lens.safetensors", "history.csv", "opening.toml")
LONGEST_MODEL = 4096  # limit on max_length, which no tensor in a file confirms unless positions are learned
_NAME = re.compile(r"received-[0-9a-f]{64}")


def receive(files: Mapping[str, bytes], folder: Path, *, lock: AbstractContextManager[object] | None = None) -> Path:
    """Store an uploaded checkpoint in a directory of ``folder`` named by its fingerprint.

    Args:
        files: File names and their content.
        folder: Where it is stored.
        lock: A lock that is held while a checked upload is moved to its final place, if several arrive at once.

    Raises:
        CheckpointError: If the upload is invalid; in that case nothing is kept.
    """
    files = {name: content for name, content in files.items() if name not in LEFT_OUT and not is_snapshot(name)}
    _check_files(files)
    folder.mkdir(parents=True, exist_ok=True)
    waiting = Path(tempfile.mkdtemp(dir=folder, prefix=".waiting-"))
    try:
        for name, content in files.items():
            (waiting / name).write_bytes(content)
        _check_config(waiting / CONFIG)
        load(waiting)
        place = folder / f"received-{fingerprint(waiting)}"
        with lock or nullcontext():
            if place.is_dir():
                os.utime(place)  # uploaded again: now the newest
            else:
                os.replace(waiting, place)
    except (CheckpointError, ValueError) as error:
        message = text_of(error).replace(f"{waiting}{os.sep}", "").replace(str(waiting), "this")
        raise CheckpointError(message) from error
    finally:
        shutil.rmtree(waiting, ignore_errors=True)
    return place


def received_checkpoints(folder: Path) -> tuple[Path, ...]:
    """Return the received checkpoints in ``folder``, newest first."""
    found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)] if folder.is_dir() else []
    return tuple(sorted(found, key=lambda path: (-path.stat().st_mtime_ns, path.name)))


def is_received(name: str) -> bool:
    """Return whether the checkpoint of this name was uploaded, rather than present when the app started."""
    return bool(_NAME.fullmatch(name))


def _check_files(files: Mapping[str, bytes]) -> None:
    """Check names and sizes only: cheap, and enough to refuse most wrong files."""
    most = {**MAX_BYTES, **FOREIGN_BYTES}
    for name, content in files.items():
        if name.lower().endswith(PICKLES):
            raise pickle_refusal(f"{name[-80:]!r} is", name[-80:])
        if name not in most:
            raise CheckpointError(f"{name[-80:]!r} is not a file of a checkpoint, which has {', '.join(MAX_BYTES)}")
        if len(content) > most[name]:
            raise CheckpointError(f"{name} has {len(content):,} bytes; at most {most[name]:,} are accepted")
    tokenizer = () if FOREIGN_BYTES.keys() & files.keys() else (TOKENIZER,)
    if missing := [name for name in (CONFIG, WEIGHTS, *tokenizer) if name not in files]:
        raise CheckpointError(f"{', '.join(missing)} is missing; choose all files of the checkpoint at once")


def _check_config(path: Path) -> None:
    config = config_of(path.parent)
    # For third-party models nothing is allocated in advance.
    if not is_guest(path.parent) and config.max_length > LONGEST_MODEL:
        raise CheckpointError(f"{CONFIG}: max_length is {config.max_length}; at most {LONGEST_MODEL} is accepted")
