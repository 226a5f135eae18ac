"""The walk through a written text: everything that belongs to its steps goes to the browser at once."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.written_steps import StepBars, written_steps
from transformer import Decoding
from transformer.predictions.decoding_steps import likeliest, step_attention
from transformer.text.tokens import Token
from ui.shell.page import Page
from ui.show.drawings import show_steps
from views.decoding import generation, stepper
from views.decoding.attention_choice import of_heads
from views.decoding.generation import Settings


def walk(
    p: Page,
    decoding: Decoding,
    settings: Settings,
    *,
    text: object,
    before: Sequence[Token],
    n_given: int,
    n_kept: int | None,
    place: DeltaGenerator,
) -> int:
    """Draw all steps in ``place``, and here what chooses the attention; returns the step at which the reader rests.

    ``text`` tells one text from another; ``n_given`` and ``n_kept`` as in ``views.decoding.generation.what_came``.
    """
    step = stepper.current(len(decoding.tokens), text=text)
    kind, layer, head = generation.choose_attention(p)
    found = [
        step_attention(p.checkpoint, decoding, p.focus.sentence, step=step, layer=layer, kind=kind)
        for step in range(len(decoding.steps))
    ]
    bars = []
    for here, seen in zip(decoding.steps, found, strict=True):
        template, values = generation.what_came(p, decoding, settings, here.index, n_given=n_given, n_kept=n_kept)
        listed = likeliest(here, shown=generation.SHOWN)
        bars.append(
            StepBars(
                said=tuple(piece.format(**values) for piece in template.split("**")),
                candidates=tuple(candidate.display for candidate in listed),
                probabilities=tuple(candidate.probability for candidate in listed),
                rest=max(0.0, 1.0 - sum(candidate.probability for candidate in listed)),
                chosen=[candidate.id for candidate in listed].index(here.chosen.id),
                weights=seen.of(head),
                allowed=seen.allowed,
            )
        )
    steps = written_steps(
        bars,
        tokens=decoding.tokens,
        key=found[-1].key,
        of=of_heads(p, layer=layer, head=head),
        before=before,
        n_given=n_given,
        begin=stepper.begin(),
    )
    with place, st.container(gap="xsmall"):
        show_steps(steps, key=stepper.KEY, means=stepper.rests_at)
        st.caption(p.text[f"walk_{kind}_caption"].format(layer=layer))
    return step
