"""The handout: one forward pass of one sentence as an HTML file that works offline.

It consists of the app's figures (``charts.canvas``) and texts; parts that a model lacks are omitted or named.
"""

from math import prod
from pathlib import Path

import transformer
from charts.documents.document_parts import Paragraph
from charts.toolkit.numbers import whole
from transformer.errors import InputError
from transformer.runs.traces import Trace
from ui.shell.fitting import fit_model, fit_trace
from ui.shell.focus import Focus
from ui.show.documents import document_of
from ui.words.catalogues import translate
from ui.words.texts import as_plain
from views.overview.handout.answer import decoding, overview
from views.overview.handout.layers import add_norm, feed_forward, heads
from views.overview.handout.one_head import attention
from views.overview.handout.vectors import embeddings, positions, tokens
from views.overview.handout.writing import handout_text

MAX_TOKENS = 100
MAX_WEIGHTS = 6_000_000  # attention weights of all heads together; each takes a few bytes of the file
STEPS = (overview, tokens, embeddings, positions, attention, heads, add_norm, feed_forward, decoding)


def handout_of(folder: str | Path, sentence: str, target: str | None = None) -> str:
    """Return the handout of a checkpoint in a ``folder``, with the app's initial focus.

    Raises ``CheckpointError`` and ``InputError`` as ``transformer.load`` and ``transformer.trace`` do.
    """
    checkpoint = transformer.load(folder)
    focus = Focus(checkpoint=checkpoint.name, sentence=sentence)
    return handout(transformer.trace(checkpoint, sentence, target), focus)


def check_length(trace: Trace) -> None:
    """Raise ``InputError`` for a text that would make the file too large for a phone."""
    count = max(len(trace.tokens(stack)) for stack in trace.stacks)
    if count > MAX_TOKENS:
        raise InputError(
            "A handout is for a short text: this one, or its output, has {count} tokens, and at most {most} are "
            "possible.",
            count=count,
            most=MAX_TOKENS,
        )
    weights = sum(
        trace.n_layers(stack) * prod(trace.attention(stack, 0, kind).weights.shape)
        for stack, kind in trace.attention_kinds()
    )
    if weights > MAX_WEIGHTS:
        raise InputError(
            "A handout shows every head: with this text they have {count} weights, and at most {most} are "
            "possible. Use a shorter text.",
            count=f"{weights:,}",
            most=f"{MAX_WEIGHTS:,}",
        )


def handout(trace: Trace, focus: Focus) -> str:
    """Return the whole file for ``trace`` in the current language, with the view in ``focus``.

    Raises ``InputError`` for a text that is too long.
    """
    check_length(trace)
    text, checkpoint = handout_text(), trace.checkpoint
    focus, _notes = fit_model(focus, checkpoint.config)
    focus, _notes = fit_trace(focus, trace)
    title = text["title"].format(sentence=" ".join(trace.sentence.split()))
    if checkpoint.config.reads_images:  # the symbols of an image would be unreadable as a title
        title = text["title_picture"]
    numbers = sum(activation.values.size for activation in trace.activations.values())
    sizes = {"parameters": whole(checkpoint.model.n_parameters), "numbers": whole(numbers)}
    lead = [
        Paragraph(text["lead"].format(checkpoint=as_plain(checkpoint.name), **sizes)),
        Paragraph(text["keys"], kind="hint"),
        *(Paragraph(as_plain(translate(note)), kind="hint") for note in trace.notes),
    ]
    about = {"sentence": trace.sentence, "target": trace.run.target or ""}
    return document_of(checkpoint, title, [make(trace, focus) for make in STEPS], lead=lead, about=about)
