"""The image that an image model reads: drawn by hand, or chosen from test images."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import streamlit as st

from transformer.config import LEVELS, ModelConfig, PictureConfig
from transformer.errors import InputError
from transformer.pictures.patch_tokenizer import levels_in
from transformer.runs.traces import Trace
from ui.shell import focus as shared_focus
from ui.shell.events import component, heard
from ui.shell.focus import Focus
from ui.shell.picture.image import image_png, png_address
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


def show_picture(sentence: str, config: ModelConfig) -> None:
    """Show the image that the model reads, small; drawn pixels are dark on white in every theme."""
    drawn = image_png(sentence, config.image.preprocessing) if config.is_guest else _svg(sentence, config)
    st.image(drawn, width=56)


def picture_address(sentence: str, config: ModelConfig) -> str:
    """Return the image that the model reads as a data URL."""
    if config.is_guest:
        return png_address(image_png(sentence, config.image.preprocessing))
    return "data:image/svg+xml," + quote(_svg(sentence, config))


def picture_of_patches(trace: Trace) -> dict[str, object]:
    """Return the image of a run, and its numbers of columns and rows of patches, for components."""
    across = trace.checkpoint.tokenizer.per_row
    down = sum(not token.special for token in trace.tokens("encoder")) // across
    return {"picture": picture_address(trace.sentence, trace.checkpoint.config), "across": across, "down": down}


def _svg(sentence: str, config: PictureConfig) -> str:
    size, most = config.picture_size, config.n_levels - 1
    pixels = "".join(
        f'<rect x="{at % size}" y="{at // size}" width="1" height="1" fill-opacity="{level / most:.3g}"/>'
        for at, level in enumerate(_levels(sentence, config) or ())
    )
    ground = f'<rect width="{size}" height="{size}" fill="white"/>'
    width = f'width="{size * 16}" height="{size * 16}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {width} viewBox="0 0 {size} {size}">{ground}{pixels}</svg>'


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
