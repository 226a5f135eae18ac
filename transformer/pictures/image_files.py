"""Image files that a reader gives: decoded with limits, and kept in memory under their hash.

The text of an image, ``image:`` and the SHA-256 of its file, can be used wherever a sentence can. The pixels are found
by that text as long as this process has the file.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from transformer.disk.kept_files import KeptFiles
from transformer.disk.plain_files import read_plain
from transformer.errors import InputError
from transformer.pictures.drawn_images import DRAWN, draw_image

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES = 8_000_000  # of a file
MAX_PIXELS = 16_000_000  # of at most 12 bytes while any kind of PNG or JPEG is decoded
MAX_TRANSPARENT_PIXELS = 12_000_000  # of at most 20 bytes
MAX_SIDE = 32_000  # pixels; the weights with which a longer side is resized take hundreds of megabytes
PREFIX = "image:"
_FORMATS = ("PNG", "JPEG")
_MAX_SCANS = 64  # of a progressive JPEG: each makes a decoder visit the whole image
_BROKEN = (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, struct.error, zlib.error)
_files = KeptFiles(256_000_000)
# Hold it while an image is decoded and resized: the visitors of a server take turns.
one_at_a_time = RLock()


def image_text(file: bytes | str | Path) -> str:
    """Keep an image file in memory and return its text, which ``transformer.trace`` takes as a sentence.

    Args:
        file: A PNG or JPEG file: its content or its path.

    Raises:
        InputError: If it is too large, or no image of these kinds that can be decoded.
    """
    data = file if isinstance(file, bytes) else read_plain(Path(file), most=MAX_BYTES + 1)
    text = PREFIX + sha256(data).hexdigest()
    if not is_kept(text):
        decode_image(data)
    keep(text, data)
    return text


def keep(text: str, data: bytes) -> None:
    """Keep a file that ``image_text`` has checked; the least recently used ones are dropped."""
    _files.keep(text, data)


def is_image_text(text: str) -> bool:
    """Return whether a text names an image."""
    return text.startswith(PREFIX)


def is_kept(text: str) -> bool:
    """Return whether this process has the image that a text names."""
    return text in _files or text.removeprefix(PREFIX) in DRAWN


def file_of(text: str) -> bytes:
    """Return the file of a kept image.

    Raises:
        InputError: If this process does not have it.
    """
    if (name := text.removeprefix(PREFIX)) in DRAWN:
        return draw_image(name)
    if (data := _files.get(text)) is not None:
        return data
    if not is_image_text(text):
        raise InputError("This model reads images, not text. Choose a PNG or JPEG file.")
    raise InputError("The image is no longer here: only its hash is in the address. Choose the file again.")


def read_image(text: str) -> Image:
    """Return the pixels of a kept image, RGB; raises what ``file_of`` raises."""
    return decode_image(file_of(text))


def decode_image(data: bytes) -> Image:
    """Decode a PNG or JPEG file as RGB: turned as EXIF says, on a white background, first frame only.

    Size and kind are checked before anything is decoded, and only one image is decoded at a time.

    Raises:
        InputError: If it is too large, is of another kind, is cut off or is damaged.
    """
    from PIL import Image

    if len(data) > MAX_BYTES:
        raise InputError(f"The image file has {len(data) / 1e6:.1f} MB; at most {MAX_BYTES / 1e6:.0f} MB are read.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a large image: its size is checked here
            opened = Image.open(BytesIO(data), formats=_FORMATS)
    except Image.DecompressionBombError as error:
        raise _too_large() from error
    except _BROKEN as error:
        raise InputError("The file is not a PNG or JPEG image that can be read.") from error
    if opened.width * opened.height > MAX_PIXELS:
        raise _too_large()
    if _is_transparent(opened) and opened.width * opened.height > MAX_TRANSPARENT_PIXELS:
        raise InputError(
            f"The image has more than {MAX_TRANSPARENT_PIXELS / 1e6:.0f} million pixels, the limit for "
            "one with transparency. Make it smaller, or save it without transparency."
        )
    if max(opened.size) > MAX_SIDE:
        raise InputError(
            f"The image is {opened.width} × {opened.height} pixels; neither side may have more than {MAX_SIDE}. "
            "Make it smaller."
        )
    if data.startswith(b"\xff\xd8") and data.count(b"\xff\xda") > _MAX_SCANS:
        raise InputError(f"The image is a JPEG with more than {_MAX_SCANS} scans. Save it again.")
    try:
        with one_at_a_time:
            opened.load()
            return _upright(_as_rgb(opened), opened)
    except (*_BROKEN, MemoryError, Image.DecompressionBombError) as error:
        raise InputError("The image is cut off or damaged: it cannot be decoded.") from error


def _too_large() -> InputError:
    return InputError(
        f"The image has more than {MAX_PIXELS / 1e6:.0f} million pixels, which is the limit. Make it smaller."
    )


def _as_rgb(image: Image) -> Image:
    """Return 8 bits per channel, with a white background where the image is transparent."""
    from PIL import Image as images

    if image.mode.startswith("I"):  # 16 bits of grey, which Pillow would cut off at 255
        image = image.convert("I").point([(shade + 128) // 257 for shade in range(2**16)], "L")
    if _is_transparent(image):
        image = image.convert("RGBA")
        white = images.new("RGBA", image.size, "white")
        return images.alpha_composite(white, image).convert("RGB")
    return image.convert("RGB")


def _is_transparent(image: Image) -> bool:
    return image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info


def _upright(image: Image, opened: Any) -> Image:
    """Turn an image as the EXIF data of the file say; unreadable data are ignored."""
    from PIL import Image as images

    try:
        turn = opened.getexif().get(0x0112)
    except _BROKEN:
        return image
    turns = images.Transpose
    wanted = {
        2: turns.FLIP_LEFT_RIGHT,
        3: turns.ROTATE_180,
        4: turns.FLIP_TOP_BOTTOM,
        5: turns.TRANSPOSE,
        6: turns.ROTATE_270,
        7: turns.TRANSVERSE,
        8: turns.ROTATE_90,
    }.get(turn)
    return image if wanted is None else image.transpose(wanted)
