"""The image that a third-party model reads: the reader's own file, or one of the app's."""

import base64
from io import BytesIO

import streamlit as st

from transformer.config import ModelConfig
from transformer.pictures.drawn_images import DRAWN
from transformer.pictures.image_files import (
    MAX_BYTES,
    MAX_PIXELS,
    PREFIX,
    is_kept,
    one_at_a_time,
    read_image,
)
from transformer.pictures.preprocessing import Preprocessing
from ui.compute.store import store
from ui.server.settings import public
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus
from ui.shell.own_files import own_files, problem, take_file
from ui.words.texts import as_plain, common

_FILE, _CHOICE, _NUMBER = "sidebar image file", "sidebar image", "sidebar image: number of the uploader"


def draw_image_choice(focus: Focus, config: ModelConfig) -> None:
    """Draw the image as the model reads it, a choice of images, and the way to give another one."""
    if is_kept(focus.sentence):
        st.image(image_png(focus.sentence, config.image.preprocessing), caption=common("image.read"), width=190)
    names = choosable_images()
    if st.session_state.get(_CHOICE) != focus.sentence:
        st.session_state[_CHOICE] = focus.sentence if focus.sentence in names else None
    st.pills(common("image.choose"), list(names), format_func=names.get, key=_CHOICE, on_change=_choose)
    if public() and not focus.presenter:
        st.caption(common("image.public"))
    if focus.presenter or public():
        return
    uploader = f"{_FILE} {st.session_state.get(_NUMBER, 0)}"
    st.file_uploader(
        common("image.upload"),
        type=["png", "jpg", "jpeg"],
        max_upload_size=MAX_BYTES // 1_000_000,
        key=uploader,
        help=common("image.upload_help", megabytes=MAX_BYTES // 1_000_000, pixels=MAX_PIXELS // 1_000_000),
        on_change=_use_file,
        args=(uploader,),
    )
    if line := problem():
        st.warning(as_plain(line), icon=":material/broken_image:")


def _choose() -> None:
    if chosen := st.session_state[_CHOICE]:
        shared_focus.change(sentence=chosen, target="")


def _use_file(uploader: str) -> None:
    """Keep the file that a widget has taken, and show it."""
    sent = st.session_state.get(uploader)
    if sent is not None and (text := take_file(sent.getvalue())):
        # Another widget follows each file, so that the server keeps the file once.
        st.session_state[_NUMBER] = st.session_state.get(_NUMBER, 0) + 1
        shared_focus.change(sentence=text, target="")


def choosable_images() -> dict[str, str]:
    """Return the images that can be chosen, by their texts, with their names."""
    drawn = {f"{PREFIX}{name}": common(f"image.{name}") for name in DRAWN}
    own = {text: common("image.own", number=number) for number, text in enumerate(own_files(), start=1)}
    return drawn | own


def image_png(text: str, preprocessing: Preprocessing) -> bytes:
    """Return the part of an image that a model reads, in its size, as a PNG file."""

    def make() -> bytes:
        file = BytesIO()
        with one_at_a_time:
            cut = preprocessing.cut(read_image(text))
        cut.save(file, "PNG")
        return file.getvalue()

    return store.get(text, ("image file", preprocessing), make)


def png_address(file: bytes) -> str:
    """Return a PNG file as a data URL."""
    return "data:image/png;base64," + base64.b64encode(file).decode()
