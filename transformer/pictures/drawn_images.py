"""Images that this library draws itself, for models that read images when no file has been given."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO

DRAWN = ("house", "boat", "cups")
_SIZE, _FINER = 256, 3  # pixels of an image; it is drawn larger and reduced, so that its edges are smooth


@lru_cache(maxsize=len(DRAWN))
def draw_image(name: str) -> bytes:
    """Return one of the images ``DRAWN`` as a PNG file."""
    from PIL import Image, ImageDraw

    side = _SIZE * _FINER
    image = Image.new("RGB", (side, side), "white")
    _Scene(ImageDraw.Draw(image)).draw(name)
    file = BytesIO()
    image.resize((_SIZE, _SIZE), Image.Resampling.LANCZOS).save(file, "PNG")
    return file.getvalue()


class _Scene:
    """Shapes on a sheet of 100 × 100 units."""

    def __init__(self, sheet: object) -> None:
        self.sheet = sheet

    def shape(self, kind: str, colour: str, *points: float) -> None:
        """Draw an "ellipse", "rectangle" or "polygon"."""
        getattr(self.sheet, kind)([point * _SIZE * _FINER / 100 for point in points], fill=colour)

    def sky(self, above: tuple[int, int, int], below: tuple[int, int, int], end: int) -> None:
        """Fill the upper ``end`` units with a gradient."""
        for row in range(end):
            share = row / end
            mixed = [round(a + (b - a) * share) for a, b in zip(above, below, strict=True)]
            self.shape("rectangle", "#{:02x}{:02x}{:02x}".format(*mixed), 0, row, 100, row + 1)

    def draw(self, name: str) -> None:
        """Draw the image ``name``."""
        {"house": self._house, "boat": self._boat, "cups": self._cups}[name]()

    def _house(self) -> None:
        self.sky((92, 148, 214), (206, 228, 244), 66)
        self.shape("ellipse", "#f6c445", 74, 8, 90, 24)
        self.shape("rectangle", "#6f9a4b", 0, 64, 100, 100)
        self.shape("polygon", "#d8c49a", 52, 100, 60, 78, 66, 78, 84, 100)
        self.shape("rectangle", "#c9563c", 40, 44, 78, 80)
        self.shape("polygon", "#5b3a2e", 34, 46, 59, 22, 84, 46)
        self.shape("rectangle", "#4a3226", 58, 60, 68, 80)
        self.shape("rectangle", "#f3e9c6", 45, 52, 53, 62)
        self.shape("rectangle", "#7a5230", 16, 52, 21, 80)
        self.shape("ellipse", "#2f6b3a", 6, 26, 32, 58)

    def _boat(self) -> None:
        self.sky((244, 180, 130), (252, 226, 190), 52)
        self.shape("ellipse", "#e8653a", 62, 34, 84, 56)
        self.shape("rectangle", "#2c6f96", 0, 52, 100, 100)
        for row, left in ((60, 8), (68, 54), (78, 20), (88, 60)):
            self.shape("rectangle", "#6fa9c6", left, row, left + 24, row + 1.2)
        self.shape("polygon", "#fbfaf4", 42, 16, 42, 60, 16, 60)
        self.shape("polygon", "#d9d4c4", 46, 24, 46, 60, 62, 60)
        self.shape("rectangle", "#3b2a20", 42.6, 12, 45, 66)
        self.shape("polygon", "#8c2f2a", 12, 64, 70, 64, 60, 78, 22, 78)

    def _cups(self) -> None:
        self.sky((226, 220, 210), (238, 234, 226), 60)
        self.shape("rectangle", "#a9825a", 0, 58, 100, 100)
        self.shape("ellipse", "#2f5f9e", 40, 38, 58, 60)
        self.shape("ellipse", "#a9825a", 44, 42, 54, 56)
        self.shape("rectangle", "#2f5f9e", 12, 36, 48, 76)
        self.shape("ellipse", "#25507f", 12, 31, 48, 41)
        self.shape("ellipse", "#5b3a26", 15, 33, 45, 40)
        self.shape("rectangle", "#d6a93c", 62, 50, 90, 80)
        self.shape("ellipse", "#b98d28", 62, 46, 90, 54)
        self.shape("ellipse", "#7a1f2b", 65, 47.5, 87, 53)
