"""Images as text: one symbol per pixel, row by row, 0 for nothing, then 1 to 9, a, b … for more ink."""

from transformer.config import LEVELS, PictureConfig
from transformer.errors import InputError


def levels_in(text: str, config: PictureConfig) -> list[int]:
    """Return the shade of every pixel, row by row; white space and letter case are ignored.

    Raises:
        InputError: If the number of symbols or one symbol is wrong; the message says which.
    """
    signs = "".join(text.split()).lower()
    known, size = LEVELS[: config.n_levels], config.picture_size
    if wrong := next((sign for sign in signs if sign not in known), None):
        raise InputError(
            f"{wrong!r} is not a pixel. This model reads pictures of {size} × {size} pixels: one character "
            f"for each, from {known[0]} (nothing) to {known[-1]} (full ink), row by row."
        )
    if len(signs) != size**2:
        raise InputError(
            f"The picture has {len(signs)} pixels; this model reads {size} × {size}, which makes {size**2}: "
            f"one character for each, from {known[0]} (nothing) to {known[-1]} (full ink), row by row."
        )
    return [known.index(sign) for sign in signs]
