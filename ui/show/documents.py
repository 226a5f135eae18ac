"""Documents in the reader's language."""

from collections.abc import Sequence

from charts.documents.document import document
from charts.documents.document_parts import Part
from ui.words.texts import browser_words, language


def document_of(
    title: str,
    parts: Sequence[Part],
    *,
    heading: str = "",
    kicker: str = "",
    lead: Sequence[Part] = (),
) -> str:
    """Build a document; the arguments are those of ``document``."""
    return document(
        title,
        parts,
        heading=heading,
        kicker=kicker,
        lead=lead,
        language=language(),
        words=browser_words(),
    )
