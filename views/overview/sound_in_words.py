"""The Overview of a model that reads sounds: what it reads, and where each word attends in it."""

from dataclasses import replace

from ui.shell.fitting import fit_trace
from ui.shell.page import Page
from ui.shell.strip import token_strip
from ui.show.sound_over_time import first_word_row, show_sound_map


def sound_in_words(p: Page) -> None:
    """Draw the tokens of the text, and a head of cross-attention over the spectrogram."""
    config = p.checkpoint.config
    focus = (
        p.focus if p.focus.kind == "cross" else replace(p.focus, stack="decoder", kind="cross", token=first_word_row(p))
    )
    layer, head = min(focus.layer, config.n_decoder_layers - 1), min(focus.head, config.heads_in("decoder") - 1)
    focus, _ = fit_trace(replace(focus, layer=layer, head=head), p.trace)
    token_strip(p.trace, focus, choose=True, all_stacks=False, only="decoder")
    show_sound_map(p, focus)
