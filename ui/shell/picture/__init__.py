"""The image that an image model reads: drawn by hand, or chosen from test images."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from transformer.config import LEVELS, PictureConfig
from transformer.errors import InputError
from transformer.pictures.picture_text import levels_in
from ui.shell import focus as shared_focus
from ui.shell.events import component, heard
from ui.shell.focus import Focus
from ui.words.texts import common, pictures

_component = component("picture", Path(__file__).with_name("picture.js"))
_WORDS = ("title", "hint", "erase", "clear", "examples")


def draw_picture(focus: Focus, config: PictureConfig) -> None:
    """Draw a canvas for the image, and the test images; what is drawn or chosen becomes the sentence."""
    _component(key="sidebar picture", data=picture_data(focus.sentence, config), on_chosen_change=_use_picture)


def picture_data(sentence: str, config: PictureConfig) -> dict:
    """Return the data of the component; text that is not a complete image gives an empty canvas."""
    size = config.picture_size
    return {
        "size": size,
        "most": config.n_levels - 1,
        "pixels": _levels(sentence, config) or [0] * size**2,
        "examples": [
            {"label": label, "pixels": levels}
            for label, text in pictures()
            if (levels := _levels(text, config)) is not None
        ],
        "signs": LEVELS,
        "words": {name: common(f"picture.{name}") for name in _WORDS},
    }


def show_picture(sentence: str, config: PictureConfig, *, width: int = 56) -> None:
    """Show the image that the model reads, small; its pixels are dark on white in every theme."""
    size, most = config.picture_size, config.n_levels - 1
    pixels = "".join(
        f'<rect x="{at % size}" y="{at // size}" width="1" height="1" fill-opacity="{level / most:.3g}"/>'
        for at, level in enumerate(_levels(sentence, config) or ())
    )
    frame = f'<rect width="{size}" height="{size}" fill="white"/>'
    st.image(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}">{frame}{pixels}</svg>', width=width)


def _levels(text: str, config: PictureConfig) -> Sequence[int] | None:
    """Return the shade of every pixel, or ``None`` if the text is not an image of this size."""
    try:
        return levels_in(text, config)
    except InputError:
        return None


def _use_picture() -> None:
    chosen = heard("sidebar picture", "chosen")
    if isinstance(chosen, str) and chosen:
        shared_focus.change(sentence=chosen)
