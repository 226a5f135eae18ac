"""The sound that a third-party model reads: the reader's own file or recording, or one of the app's."""

import streamlit as st

from transformer.config import ModelConfig
from transformer.sounds.made_sounds import MADE
from transformer.sounds.sound_files import PREFIX, file_of, is_kept, sound_text
from transformer.sounds.wav_file import MAX_BYTES, MAX_SECONDS
from ui.server.limits import public
from ui.shell import focus as shared_focus
from ui.shell.focus import Focus
from ui.shell.own_files import own_files, problem, take_file
from ui.words.texts import as_plain, common

_FILE, _CHOICE = "sidebar sound file", "sidebar sound"
_MICROPHONE, _NUMBER = "sidebar microphone", "sidebar sound: number of the uploader"


def draw_sound_choice(focus: Focus, config: ModelConfig) -> None:
    """Draw a player, a choice of sounds, and two ways to give another one: a microphone and a file."""
    if is_kept(focus.sentence):
        st.audio(file_of(focus.sentence), format="audio/wav")
    names = choosable_sounds()
    if st.session_state.get(_CHOICE) != focus.sentence:
        st.session_state[_CHOICE] = focus.sentence if focus.sentence in names else None
    st.pills(common("sound.choose"), list(names), format_func=names.get, key=_CHOICE, on_change=_choose)
    if focus.presenter:
        return
    if public():
        st.caption(common("image.public"))
        return
    number = st.session_state.get(_NUMBER, 0)
    seconds = config.sound.log_mel.seconds
    with st.expander(common("sound.own_ways"), icon=":material/mic:", key="sidebar own sound"):
        st.audio_input(
            common("sound.record"),
            key=f"{_MICROPHONE} {number}",
            help=common("sound.record_help", seconds=min(seconds, int(MAX_SECONDS))),
            on_change=_use_file,
            args=(_MICROPHONE, number),
        )
        st.file_uploader(
            common("sound.upload"),
            type=["wav"],
            max_upload_size=MAX_BYTES // 1_000_000,
            key=f"{_FILE} {number}",
            help=common("sound.upload_help", megabytes=MAX_BYTES // 1_000_000, seconds=seconds),
            on_change=_use_file,
            args=(_FILE, number),
        )
    if line := problem():
        st.warning(as_plain(line), icon=":material/volume_off:")


def choosable_sounds() -> dict[str, str]:
    """Return the sounds that can be chosen, by their texts, with their names."""
    made = {f"{PREFIX}{name}": common(f"sound.{name}") for name in MADE}
    own = {text: common("sound.own", number=number) for number, text in enumerate(own_files(PREFIX), start=1)}
    return made | own


def other_sounds(sentence: str) -> tuple[tuple[str, str], ...]:
    """Return other sounds than ``sentence``: (name, text)."""
    return tuple((name, text) for text, name in choosable_sounds().items() if text != sentence)


def _choose() -> None:
    if chosen := st.session_state[_CHOICE]:
        shared_focus.change(sentence=chosen, target="")


def _use_file(key: str, number: int) -> None:
    sent = st.session_state.get(f"{key} {number}")
    if sent is not None and (text := take_file(sent.getvalue(), sound_text)):
        st.session_state[_NUMBER] = number + 1  # new widgets, so that the server keeps the file once
        shared_focus.change(sentence=text, target="")
