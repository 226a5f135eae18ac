"""One envelope of bytes for what the attention canvas draws: a JSON header followed by plain arrays.

Streamlit's components take either JSON or one run of raw bytes, and JSON costs about ten characters a
number, so labels and arrays travel together in one run of bytes (little-endian):

    "GLAS" | uint32 length of the header | header: JSON in UTF-8 | arrays, one after the other

The header says for each array its type, its shape and where it begins. The arrays are deflated together when
they are large enough to be worth it; every current browser inflates them natively.
"""

import json
import struct
import zlib
from collections.abc import Mapping

import numpy as np

MAGIC = b"GLAS"
TYPES = ("uint8", "uint16", "float32")
# Below this many bytes a deflated body saves nothing that a person could notice.
DEFLATE_FROM = 4096
# float32 softmax rows may exceed 1 in the last place; anything further out is not a weight.
TOLERANCE = 1e-4


def pack(metadata: Mapping, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Pack ``metadata`` (anything JSON can say) and ``arrays`` (uint8, uint16 or float32) into one run of bytes.

    >>> metadata, arrays = unpack(pack({"kind": "map"}, {"values": np.eye(2, dtype=np.float32)}))
    >>> metadata["kind"], arrays["values"].shape
    ('map', (2, 2))

    Raises ``ValueError`` for an array of another type, because the browser would misread it.
    """
    described, parts, offset = {}, [], 0
    for name, array in arrays.items():
        if array.dtype.name not in TYPES:
            raise ValueError(f"array {name!r} is {array.dtype.name}; the canvas reads {', '.join(TYPES)}, convert it")
        part = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        described[name] = {"type": array.dtype.name, "shape": list(array.shape), "offset": offset}
        parts.append(part)
        offset += len(part)
    body = b"".join(parts)
    deflated = len(body) >= DEFLATE_FROM
    header = json.dumps(
        {"metadata": dict(metadata), "arrays": described, "deflated": deflated},
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
    ).encode("utf-8", errors="replace")
    return MAGIC + struct.pack("<I", len(header)) + header + (zlib.compress(body, level=6) if deflated else body)


def unpack(payload: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """The metadata and the arrays of a payload that ``pack`` made: what the browser reads.

    Raises ``ValueError`` when the bytes are not such a payload.
    """
    if payload[:4] != MAGIC:
        raise ValueError(f"a canvas payload begins with {MAGIC!r}, but these bytes begin with {payload[:4]!r}")
    (length,) = struct.unpack_from("<I", payload, 4)
    header = json.loads(payload[8 : 8 + length])
    body = payload[8 + length :]
    if header["deflated"]:
        body = zlib.decompress(body)
    arrays = {
        name: np.frombuffer(
            body,
            dtype=np.dtype(entry["type"]).newbyteorder("<"),
            count=int(np.prod(entry["shape"])),
            offset=entry["offset"],
        ).reshape(entry["shape"])
        for name, entry in header["arrays"].items()
    }
    return header["metadata"], arrays


def mask_bits(mask: np.ndarray) -> np.ndarray:
    """A mask, row by row, eight cells a byte, the first cell in the lowest bit."""
    return np.packbits(mask.ravel(), bitorder="little")


def whole_numbers(pair: tuple[int, int] | None) -> list[int] | None:
    """A (row, column) or (layer, head) as JSON can say it, numpy's integers included."""
    return None if pair is None else [int(number) for number in pair]
