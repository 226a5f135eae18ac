"""The handout: one sentence's way through the model as one HTML file that works offline, on a phone, without the app.

Made of the app's own drawings (``charts.canvas``) and texts; what a model does not have is left out, or said.
"""

from pathlib import Path

import transformer
from charts.documents.guide import Paragraph, guide
from charts.toolkit.numbers import whole
from transformer.runs.traces import Trace
from ui.shell.focus import Focus, fit_model, fit_trace
from ui.words.catalogues import browser_words, said
from ui.words.texts import as_plain, language, page_text
from views.overview.handout.vectors import tokens

SECTIONS = (tokens,)


def handout_of(folder: str | Path, sentence: str, target: str | None = None) -> str:
    """The handout of a checkpoint in a ``folder``, at the place in the model where the app opens.

    Raises ``CheckpointError`` and ``InputError`` as ``transformer.load`` and ``transformer.trace`` do.
    """
    checkpoint = transformer.load(folder)
    focus, _notes = fit_model(Focus(checkpoint=checkpoint.name, sentence=sentence), checkpoint.config)
    return handout(transformer.trace(checkpoint, sentence, target), focus)


def handout(trace: Trace, focus: Focus) -> str:
    """The whole file for ``trace``, in the language that is spoken; ``focus`` chooses stack, layer, head and token."""
    text, checkpoint = page_text("overview")["handout"], trace.checkpoint
    focus, _notes = fit_trace(focus, trace)
    about = {"checkpoint": checkpoint.name, "fingerprint": checkpoint.fingerprint, "sentence": trace.sentence}
    title = text["title"].format(sentence=" ".join(trace.sentence.split()))
    numbers = sum(activation.values.size for activation in trace.activations.values())
    lead = [
        Paragraph(
            text["lead"].format(
                checkpoint=as_plain(checkpoint.name),
                parameters=whole(checkpoint.model.n_parameters),
                numbers=whole(numbers),
            )
        ),
        Paragraph(text["keys"], kind="hint"),
        *(Paragraph(as_plain(said(note)), kind="hint") for note in trace.notes),
    ]
    return guide(
        title,
        [section for make in SECTIONS if (section := make(trace, focus))],
        lead=lead,
        language=language(),
        words=browser_words(),
        said={"title": title, **about, "software": "Glassformer"},
    )
