"""Documents in the reader's language, which name their model."""

from collections.abc import Mapping, Sequence

from charts.documents.document import document
from charts.documents.document_parts import Part
from transformer import Checkpoint
from ui.words.catalogues import browser_words
from ui.words.texts import language


def document_of(
    checkpoint: Checkpoint | None,
    title: str,
    parts: Sequence[Part],
    *,
    heading: str = "",
    kicker: str = "",
    lead: Sequence[Part] = (),
    about: Mapping[str, str] | None = None,
) -> str:
    """Build a document about ``checkpoint``, or several if ``None``; other arguments as in ``document``."""
    model = {"checkpoint": checkpoint.name, "fingerprint": checkpoint.fingerprint} if checkpoint else {}
    return document(
        title,
        parts,
        heading=heading,
        kicker=kicker,
        lead=lead,
        about={**model, **(about or {})},
        language=language(),
        words=browser_words(),
    )
