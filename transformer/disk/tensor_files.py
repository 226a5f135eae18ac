"""Opening a safetensors file from elsewhere: the length of its header is known before the library reads it."""

from pathlib import Path

from safetensors import SafetensorError, safe_open

from transformer.disk.whole_files import not_whole
from transformer.errors import CheckpointError, MessageError

LONGEST_HEADER = 2_000_000  # bytes; a tensor takes about 120, and reading 16,000 of them half a second
LONGEST_NAME = 300  # characters
MAX_AXES = 8
FLOATS = ("F64", "F32", "F16", "BF16")


def open_tensors(file: Path) -> safe_open:
    """The open file; a context manager. The first eight bytes of a safetensors file are the length of its header.

    Raises ``CheckpointError`` for a file that is not whole, or whose header is not part of any model.
    """
    try:
        with open(file, "rb") as content:
            length = int.from_bytes(content.read(8), "little")
        if LONGEST_HEADER < length <= file.stat().st_size:
            what = {"count": f"{length:,}", "most": f"{LONGEST_HEADER:,}"}
            raise not_whole(file, MessageError("its header has {count} bytes; at most {most} are read", **what))
        opened = safe_open(str(file), framework="pt")
    except (SafetensorError, OSError) as error:
        raise not_whole(file, error) from error
    for name in opened.keys():  # noqa: SIM118 (no dict)
        if len(name) > LONGEST_NAME or len(opened.get_slice(name).get_shape()) > MAX_AXES:
            raise not_whole(file, MessageError("it has an unexpected tensor {name}", name=repr(name[:80])))
    return opened


def check_type(file: Path, name: str, type: str) -> None:
    """Raises ``CheckpointError`` for a tensor that holds no floating-point numbers."""
    if type not in FLOATS:
        raise CheckpointError(
            "{file} holds {name} as {type}; weights are {known}",
            file=file,
            name=name,
            type=type,
            known=", ".join(FLOATS),
        )
