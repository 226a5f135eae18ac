"""Image files from strangers: which are read, how, and which are refused with a message."""

from __future__ import annotations

import math
import subprocess
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.conftest import PATIENCE, ROOT
from transformer import InputError
from transformer.disk.kept_files import KeptFiles
from transformer.pictures import image_files
from transformer.pictures.drawn_images import DRAWN
from transformer.pictures.image_files import decode_image, file_of, image_text, is_kept, read_image
from transformer.pictures.preprocessing import Preprocessing
from transformer.system.python_process import start_python
from transformer.text.numbered_files import MOST_BYTES, NumberedFiles

RED, BLUE = (250, 20, 30), (20, 30, 250)


def two_colours(mode: str = "RGB", size: tuple[int, int] = (40, 20)) -> Image.Image:
    """Return an image whose left half is red and whose right half is blue."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, *size))
    return image.quantize(4) if mode == "P" else image.convert(mode)


def saved(image: Image.Image, kind: str = "PNG", **more: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **more)
    return file.getvalue()


def colour_at(image: Image.Image, x: float, y: float) -> np.ndarray:
    return np.array(image.getpixel((int(x * image.width), int(y * image.height))), dtype=int)


@pytest.mark.parametrize(
    ("kind", "mode"), [("PNG", "RGB"), ("PNG", "P"), ("PNG", "RGBA"), ("JPEG", "RGB"), ("JPEG", "CMYK")]
)
def test_every_kind_of_file_is_read_as_rgb(kind: str, mode: str) -> None:
    image = decode_image(saved(two_colours(mode), kind))
    assert (image.mode, image.size) == ("RGB", (40, 20))
    assert abs(colour_at(image, 0.2, 0.5) - RED).max() < 40 and abs(colour_at(image, 0.8, 0.5) - BLUE).max() < 40


def test_grey_of_16_bits_keeps_its_shades_and_transparency_is_white() -> None:
    shades = np.array([[0, 257 * 100, 65535]], dtype=np.uint16)
    assert np.asarray(decode_image(saved(Image.fromarray(shades))))[0, :, 0].tolist() == [0, 100, 255]
    clear = Image.new("RGBA", (4, 4), (*RED, 0))
    assert colour_at(decode_image(saved(clear)), 0.5, 0.5).tolist() == [255, 255, 255]
    palette = two_colours("P")
    palette.info["transparency"] = palette.getpixel((1, 1))
    found = decode_image(saved(palette, transparency=palette.info["transparency"]))
    assert colour_at(found, 0.1, 0.5).tolist() == [255, 255, 255]


@pytest.mark.parametrize("turn", range(1, 9))
def test_an_image_is_turned_as_its_exif_data_say(turn: int) -> None:
    from PIL import ImageOps

    image = two_colours()
    image.paste((0, 200, 0), (0, 0, 6, 6))  # a green corner: every turn differs
    exif = Image.Exif()
    exif[0x0112] = turn
    file = saved(image, "JPEG", exif=exif, quality=95)
    expected = ImageOps.exif_transpose(Image.open(BytesIO(file)))
    np.testing.assert_array_equal(np.asarray(decode_image(file)), np.asarray(expected))


def test_the_first_frame_of_an_animation_is_read() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, BLUE)]
    file = saved(frames[0], save_all=True, append_images=frames[1:], duration=100)
    assert colour_at(decode_image(file), 0.5, 0.5).tolist() == list(RED)


LARGEST = {  # the images of each kind that take the most memory, for a file of some kilobytes
    "16 bits of grey": lambda: saved(Image.new("I;16", (4000, 4000))),
    "transparent": lambda: saved(Image.new("LA", (4000, 3000))),
    "turned": lambda: saved(Image.new("RGB", (4000, 4000)), "JPEG", exif=TURNED),
}
TURNED = Image.Exif()
TURNED[0x0112] = 6
MANY_AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tests.harness.process_memory import status_megabytes
from transformer.pictures.image_files import image_text, one_at_a_time, read_image
from transformer.pictures.preprocessing import Preprocessing
from ui.server.freed_memory import give_back_what_is_freed
give_back_what_is_freed()
small, large = map(image_text, sys.argv[1:])
prepare = Preprocessing(size=(224, 224)).pixels
def use(text):
    with one_at_a_time:
        prepare(read_image(text))
use(small)
before = status_megabytes("VmRSS")
with ThreadPoolExecutor(8) as visitors:
    list(visitors.map(use, [large] * 8))
print(status_megabytes("VmHWM") - before)
"""


@pytest.mark.sample("name")
@pytest.mark.parametrize("name", LARGEST)
def test_eight_visitors_who_send_a_large_image_take_bounded_memory(name: str, tmp_path: Path) -> None:
    files = {"small": saved(two_colours()), "large": LARGEST[name]()}
    for file, data in files.items():
        (tmp_path / file).write_bytes(data)
    command = ("-c", MANY_AT_ONCE, *(str(tmp_path / file) for file in files))
    with start_python(*command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        grown = float(process.communicate(timeout=PATIENCE)[0])
    assert grown < 300, f"{grown:.0f} MB more"


def test_a_long_image_is_not_resized_to_more_pixels_than_a_large_one_has() -> None:
    for shortest in (1, 224, 2048):
        for size in ((32_000, 500), (500, 32_000), (1, 32_000)):
            assert math.prod(Preprocessing(shortest=shortest).resized(*size)) <= image_files.MAX_PIXELS


def test_a_damaged_byte_anywhere_gives_an_image_or_a_sentence() -> None:
    generator = np.random.default_rng(1)
    for kind in ("PNG", "JPEG"):
        whole = saved(two_colours(), kind)
        for place in generator.integers(0, len(whole), 120):
            file = bytearray(whole)
            file[place] ^= int(generator.integers(1, 256))
            with suppress(InputError):
                assert decode_image(bytes(file)).mode == "RGB"


def test_the_text_of_an_image_is_its_hash_and_old_files_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (saved(Image.new("RGB", (9, 9), colour)) for colour in (RED, BLUE))
    monkeypatch.setattr(image_files, "_files", KeptFiles(len(first) + 1))
    text = image_text(first)
    assert text.startswith("image:") and len(text) == 70 and file_of(text) == first
    assert read_image(text).getpixel((4, 4)) == RED
    other = image_text(second)
    assert is_kept(other) and not is_kept(text)
    with pytest.raises(InputError, match="no longer here"):
        read_image(text)
    with pytest.raises(InputError, match="reads images, not text"):
        read_image("The cat sat.")


def test_the_drawn_images_are_always_there() -> None:
    for name in DRAWN:
        assert read_image(f"image:{name}").size == (256, 256)


def test_the_numbers_of_large_images_are_kept_within_a_bound() -> None:
    files = NumberedFiles(lambda text: torch.zeros(3, 2048, 2048), most=16)
    for number in range(5):
        files.number(f"image:{number}")
        assert files.tensor(number).nbytes == 3 * 2048**2 * 4
    assert files._n_bytes() <= MOST_BYTES
