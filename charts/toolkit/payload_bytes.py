"""Binary format of the canvas: a JSON header followed by plain arrays.

Streamlit's components take either JSON or one block of raw bytes, and JSON needs about ten characters per number, so
labels and arrays are sent together in one block (little-endian):

    "GLAS" | uint32 length of the header | header: JSON in UTF-8 | arrays, one after the other

The header states for each array its type, its shape and its offset. The arrays are deflated together if they are large
enough; every current browser can inflate them.
"""

import json
import struct
import zlib
from collections.abc import Mapping

import numpy as np

MAGIC = b"GLAS"
TYPES = ("uint8", "uint16", "float32")
# Below this size, deflating saves no noticeable time.
DEFLATE_FROM = 4096
# float32 softmax rows may exceed 1 in the last digit; anything beyond that is not a weight.
TOLERANCE = 1e-4


def pack(metadata: Mapping, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Pack ``metadata`` (any JSON) and ``arrays`` (uint8, uint16 or float32) into one block of bytes.

    >>> metadata, arrays = unpack(pack({"kind": "map"}, {"values": np.eye(2, dtype=np.float32)}))
    >>> metadata["kind"], arrays["values"].shape
    ('map', (2, 2))

    Raises:
        ValueError: If an array has another type, which the browser would misread.
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
        default=lambda number: number.item(),  # NumPy's
    ).encode("utf-8", errors="replace")
    return MAGIC + struct.pack("<I", len(header)) + header + (zlib.compress(body, level=6) if deflated else body)


def unpack(payload: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the metadata and the arrays of a payload made by ``pack``, as the browser reads them.

    Raises:
        ValueError: If the bytes are not such a payload.
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
    """Return a mask, row by row, eight cells per byte, the first cell in the lowest bit."""
    return np.packbits(mask.ravel(), bitorder="little")
