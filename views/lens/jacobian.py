"""The Jacobian lens on the page: the file beside the weights, or fitted now; and the logit lens beside it."""

from functools import lru_cache

from charts.toolkit.numbers import percent, whole
from charts.toolkit.words import _, in_words
from transformer.errors import CheckpointError, InputError
from transformer.layers.residual_stream import in_a_sentence
from transformer.predictions.jacobian_lens import JacobianLens, jacobian_lens, load_jacobian_lens
from transformer.predictions.lens import Lens
from transformer.text.sentence_files import read_sentences, sentence_digest
from ui.compute.jobs import jobs
from ui.shell.page import Page
from ui.show.figures import show_figure
from ui.words.catalogues import said
from ui.words.texts import as_plain, common
from views.lens.lens_figures import lens_agreement


def fitted(p: Page) -> JacobianLens:
    """Of the page's checkpoint. Ends the page where there is none."""
    checkpoint = p.checkpoint
    try:
        found = jobs.result(
            checkpoint,
            "jacobian lens",
            lambda report: (
                load_jacobian_lens(checkpoint) or jacobian_lens(checkpoint, read_sentences(), progress=report)
            ),
            saying=lambda done, total: common("sentences.reading", done=done, total=total),
        )
    except (CheckpointError, InputError) as error:
        p.nothing_to_show(as_plain(said(error)))
    if found is None:
        p.nothing_to_show(p.text["jacobian_command"].format(place=p.checkpoint_place))
    return found


def compared(p: Page, found: JacobianLens, lens: Lens) -> None:
    """Which lens names the final word more often, after which layer."""
    steps = [in_words(step) for step in lens.steps]
    measured = found.agreement
    show_figure(
        lens_agreement(measured.logit, jacobian=measured.jacobian, steps=steps),
        name="lens-agreement",
        caption=in_short(p, found, lens),
        alt=p.text["agreement_alt"],
    )


def in_short(p: Page, found: JacobianLens, lens: Lens) -> str:
    """Where each lens is ahead, with both shares; on what that was measured, and on what it was fitted."""
    text, measured = p.text, found.agreement
    ahead: dict[str, list[str]] = {"more": [], "less": []}
    for step, (logit, jacobian) in enumerate(zip(measured.logit, measured.jacobian, strict=True)):
        if logit != jacobian:
            name = as_plain(in_words(in_a_sentence(lens.steps[step])) if step else _("the embedding"))
            shares = text["agreement_step"].format(step=name, jacobian=percent(jacobian), logit=percent(logit))
            ahead["more" if jacobian > logit else "less"].append(shares)
    own = _shipped() == found.digest
    return " ".join(
        (
            *(text[f"agreement_{key}"].format(steps=", ".join(names)) for key, names in ahead.items() if names),
            *(() if any(ahead.values()) else (text["agreement_same"],)),
            text["agreement_of"].format(places=whole(measured.places), sentences=whole(measured.sentences)),
            text["agreement_own" if own else "agreement_fitted"].format(
                places=whole(found.places), sentences=whole(found.sentences)
            ),
        )
    )


@lru_cache(maxsize=1)
def _shipped() -> str:
    """The digest of the sentences that ship, which no run of the page needs to read again."""
    return sentence_digest(read_sentences())
