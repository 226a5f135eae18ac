"""Single colours of a scale, and readable text colours on them."""

from functools import lru_cache

import numpy as np


def colour_at(share: float, *, colours: tuple[str, ...]) -> str:
    """Return the colour at ``share`` (0…1) of a scale, as #rrggbb."""
    red, green, blue = _rgb_at(share, colours).round().astype(int).tolist()
    return f"#{red:02x}{green:02x}{blue:02x}"


def _rgb_at(share: float, colours: tuple[str, ...]) -> np.ndarray:
    place = min(max(share, 0.0), 1.0) * (len(colours) - 1)
    low = min(int(place), len(colours) - 2)
    first, second = _channels(colours)[low : low + 2]
    return first + (second - first) * (place - low)


@lru_cache(maxsize=16)
def _channels(colours: tuple[str, ...]) -> np.ndarray:
    """Return red, green and blue of each colour of a scale: [colour, channel]."""
    return np.array([list(bytes.fromhex(colour[1:])) for colour in colours], dtype=float)


def ink(share: float, *, colours: tuple[str, ...]) -> str:
    """Return black or white, whichever is easier to read on the colour at ``share`` (0…1) of a scale."""
    rgb = _rgb_at(share, colours) / 255
    # Relative luminance of WCAG 2: above 0.179 black has the higher contrast.
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return "#000000" if float(linear @ [0.2126, 0.7152, 0.0722]) > 0.179 else "#FFFFFF"
