"""The Tokens page of a model that reads image files: from a file to pixels and patches."""

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from transformer.pictures.image_files import decode_image, read_image
from transformer.pictures.image_patches import ImageTokenizer
from transformer.pictures.preprocessing import Preprocessing
from transformer.text.message import N_
from ui.shell.page import Page
from ui.show.figures import show_snippet, show_source, show_table
from ui.words.texts import PageText, as_plain
from views.tokens.patch_ids import cards_of_patches


def patches_of_file(p: Page) -> None:
    """Draw every patch; below, list what is done to the file, and the colours of each patch."""
    text, tokenizer = p.text, p.checkpoint.tokenizer
    tokens, image = p.trace.tokens(p.focus.stack), tokenizer.image
    cards_of_patches(p, below=lambda token: "", hint=lambda token: token.display)
    token = tokens[p.focus.token]
    (height, width), (rows, columns) = image.patch, image.preprocessing.shape
    if token.special:
        kind = "class_token" if token.index == 0 else "other_token"
        st.markdown(text[kind].format(token=as_plain(token.display)))
    else:
        row, column = divmod(token.index - len(image.before), image.columns)
        st.markdown(
            text["patch_pixels"].format(
                token=as_plain(token.display),
                top=row * height + 1,
                bottom=(row + 1) * height,
                left=column * width + 1,
                right=(column + 1) * width,
                count=whole(3 * height * width),
            )
        )
    sizes = {"rows": rows, "columns": columns, "height": height, "width": width}
    st.markdown(text["counts_image"].format(patches=image.n_patches, special=len(image.before), **sizes))
    st.markdown(f"#### {text['from_file']}")
    st.markdown(steps(text, image.preprocessing, *read_image(p.sentence).size))
    pixels = tokenizer.patch_colours(tokens.ids)
    colours = {text[name]: [None if each is None else each[at] for each in pixels]
               for at, name in enumerate(("red", "green", "blue"))}  # fmt: skip
    show_table(pd.DataFrame({N_("token"): tokens.displays, **colours}), name="patches")
    show_source(decode_image, Preprocessing.pixels, ImageTokenizer.pixels)
    show_snippet(
        "patches",
        p.preamble
        + "\nfrom transformer.pictures.image_files import read_image\n\n"
        + "image = checkpoint.config.image\n"
        + "print(image, image.preprocessing.pixels(read_image(trace.sentence)).shape)\n",
    )


def steps(text: PageText, preprocessing: Preprocessing, width: int, height: int) -> str:
    """Return what is done to an image of this size before the model reads it, as a list."""
    said = [text["step_file"].format(width=width, height=height)]
    if preprocessing.size is not None or preprocessing.shortest:
        resized = preprocessing.resized(width, height)
        said.append(
            text["step_resize"].format(
                width=resized[1], height=resized[0], filter=text["filters"][str(preprocessing.resample)]
            )
        )
    if preprocessing.crop is not None:
        said.append(text["step_crop"].format(width=preprocessing.crop[1], height=preprocessing.crop[0]))
    numbers = {name: ", ".join(f"{value:.4g}" for value in getattr(preprocessing, name)) for name in ("mean", "std")}
    said.append(text["step_numbers"].format(factor=f"{preprocessing.factor:.6g}", **numbers))
    return "\n".join(f"1. {line}" for line in said)
