"""The spectrogram of a sound, and where each token of the text attends in it."""

import streamlit as st

from charts.canvas.attention_maps import title_of
from charts.figures.sound_map import sound_map
from charts.toolkit.style import three_digits
from transformer.runs.head_places import Head
from transformer.runs.inputs import prompt_of
from ui.shell.focus import Focus
from ui.shell.page import Page
from ui.shell.telling_head import telling_row
from ui.show.figures import show_figure
from ui.show.sound_view_model import SoundViewModel
from ui.words.texts import common, token_name


def attends_to_time(p: Page) -> bool:
    """Return whether the columns of the chosen kind of attention are positions in the time of a sound."""
    return p.reads_sounds and (p.focus.stack == "encoder" or p.focus.kind == "cross")


def first_word_row(p: Page) -> int:
    """Return the row that predicts the first token of the text, after language and task."""
    return len(prompt_of(p.checkpoint, p.sentence)) - 1


def opening_row(p: Page) -> tuple[str, int]:
    """Return the stack and row that Overview follows; for a sound, the row of its first word."""
    if p.reads_sounds and p.focus.stack == "decoder" and not p.focus.token:
        return p.focus.stack, first_word_row(p)
    return p.focus.stack, telling_row(p.focus, p.run)


def show_sound_map(p: Page, focus: Focus) -> None:
    """Draw a sentence about the row of ``focus``, the spectrogram with the map, and what is not drawn."""
    shown = SoundViewModel(p.trace, Head(focus.stack, focus.kind, focus.layer, focus.head), focus.token)
    begin, end, share = shown.strongest
    row = token_name(shown.row_labels[shown.drawn_row])
    template = "sound.time" if shown.of_time else "sound.predicts"
    st.markdown(common(template, row=row, begin=begin, end=end, share=three_digits(share)))
    figure = sound_map(
        shown.spectrogram,
        weights=shown.shares,
        frame_seconds=shown.frame_seconds,
        column_seconds=shown.column_seconds,
        centres=shown.centres,
        rows=shown.row_labels,
        row_title=common("sound.rows_time" if shown.of_time else "sound.rows"),
        chosen_row=shown.drawn_row,
        title=title_of(shown.view, head=shown.location.head),
    )
    caption = common(
        "sound.caption" if shown.silence_seconds else "sound.caption_whole",
        count=shown.step,
        width=three_digits(shown.column_seconds),
        seconds=three_digits(shown.seconds),
        whole=three_digits(shown.whole_seconds),
        silence=three_digits(shown.silence),
        row=row,
    )
    show_figure(figure, name="sound-attention", caption=caption)
