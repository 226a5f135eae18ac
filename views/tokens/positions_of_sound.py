"""The Tokens page of a model that reads sounds: from a file to the spectrogram and its positions."""

from collections.abc import Sequence

import streamlit as st

from charts.figures.sound_map import spectrogram_figure
from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.sounds.log_mel import LogMel, mel_filters
from transformer.sounds.sound_files import read_sound
from transformer.sounds.time_positions import FRAMES, SoundPositions
from transformer.sounds.wav_file import decode_wav
from ui.shell.actions import Actions, SelectChip, SelectToken
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.shell.strip import choose_token
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_figure, show_snippet, show_source
from ui.show.sound_view_model import spectrogram_of
from ui.words.texts import common
from views.tokens.tokenization import kind_of


def positions_of_sound(p: Page) -> None:
    """Draw the spectrogram; below, the steps from the file to it, and the tokens of the text."""
    text, sound = p.text, p.checkpoint.config.sound
    log_mel, read = sound.log_mel, read_sound(p.sentence)
    covered = sound.covered(read.seconds)
    sizes = {
        "positions": whole(sound.n_positions),
        "covered": whole(covered),
        "silent": whole(sound.n_positions - covered),
        "frames": FRAMES,
        "width": three_digits(sound.seconds),
        "bands": log_mel.n_mels,
        "seconds": three_digits(read.seconds),
        "whole": log_mel.seconds,
    }
    st.markdown(text["sound_counts"].format(**sizes))
    figure = spectrogram_figure(
        spectrogram_of(p.trace), frame_seconds=log_mel.frame_seconds, centres=log_mel.centres().tolist()
    )
    show_figure(figure, name="spectrogram", caption=text["spectrogram"].format(**sizes))
    tokens = p.trace.tokens("decoder")
    cards = tuple(Chip(token.display, str(token.id), kind_of(token)) for token in tokens)
    row = ChipRow(common("page.target"), cards, chosen=p.focus.token)
    chips([row], key="token cards", means=_follow)
    st.markdown(f"#### {text['from_sound']}")
    st.markdown("\n".join(f"1. {step}" for step in _steps(text, log_mel, read.rate, read.seconds, sizes)))
    show_source(decode_wav, LogMel.spectrogram, mel_filters, SoundPositions.spectrogram)
    show_snippet(
        "positions",
        p.preamble
        + "\nfrom transformer.sounds.sound_files import read_sound\n\n"
        + "sound = checkpoint.config.sound\n"
        + "print(sound, sound.log_mel.spectrogram(read_sound(trace.sentence)).shape)\n",
    )


def _steps(text: dict, log_mel: LogMel, rate: int, seconds: float, sizes: dict) -> Sequence[str]:
    milliseconds = {
        "window": three_digits(1000 * log_mel.window / log_mel.rate),
        "hop": three_digits(1000 * log_mel.frame_seconds),
    }
    found = [text["step_sound_file"].format(rate=whole(rate), seconds=three_digits(seconds))]
    if rate != log_mel.rate:
        found.append(text["step_resample"].format(rate=whole(log_mel.rate)))
    found += [text[f"step_{name}"].format(**milliseconds, **sizes) for name in ("silence", "windows", "bands", "log")]
    return [*found, text["step_positions"].format(**sizes)]


def _follow(state: State, chosen: SelectChip) -> Actions:
    return choose_token(state, SelectToken(chosen.card, "decoder"))
