"""The sound that a third-party model reads: the reader's own file or recording, or one of the app's."""

import streamlit as st

from transformer.config import ModelConfig
from transformer.sounds.made_sounds import MADE
from transformer.sounds.sound_files import PREFIX, file_of, is_kept, sound_text
from transformer.sounds.wav_file import MAX_BYTES, MAX_SECONDS
from ui.shell.file_choice import draw_choice, number_of, use_file
from ui.shell.focus import Focus
from ui.shell.own_files import own_files, problem
from ui.words.texts import as_plain, common

_FILE, _CHOICE = "sidebar sound file", "sidebar sound"
_MICROPHONE, _NUMBER = "sidebar microphone", "sidebar sound: number of the uploader"


def draw_sound_choice(focus: Focus, config: ModelConfig) -> None:
    """Draw a player, a choice of sounds, and two ways to give another one: a microphone and a file."""
    if is_kept(focus.sentence):
        st.audio(file_of(focus.sentence), format="audio/wav")
    names = choosable_sounds()
    if not draw_choice(common("sound.choose"), names, focus, key=_CHOICE):
        return
    number = number_of(_NUMBER)
    microphone, uploader = f"{_MICROPHONE} {number}", f"{_FILE} {number}"
    seconds = config.sound.log_mel.seconds
    with st.expander(common("sound.own_ways"), icon=":material/mic:", key="sidebar own sound"):
        st.audio_input(
            common("sound.record"),
            key=microphone,
            help=common("sound.record_help", seconds=min(seconds, int(MAX_SECONDS))),
            on_change=use_file,
            args=(microphone, _NUMBER, sound_text),
        )
        st.file_uploader(
            common("sound.upload"),
            type=["wav"],
            max_upload_size=MAX_BYTES // 1_000_000,
            key=uploader,
            help=common("sound.upload_help", megabytes=MAX_BYTES // 1_000_000, seconds=seconds),
            on_change=use_file,
            args=(uploader, _NUMBER, sound_text),
        )
    if line := problem():
        st.warning(as_plain(line), icon=":material/volume_off:")


def choosable_sounds() -> dict[str, str]:
    """Return the sounds that can be chosen, by their texts, with their names."""
    made = {f"{PREFIX}{name}": common(f"sound.{name}") for name in MADE}
    own = {text: common("sound.own", number=number) for number, text in enumerate(own_files(PREFIX), start=1)}
    return made | own
