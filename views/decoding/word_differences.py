"""One text beside another: the words that differ are marked."""

from transformer.predictions.comparison import word_diff
from ui.lab.effects import marked_text
from ui.words.texts import as_plain


def marked(before: str, after: str) -> str:
    """``after`` as Markdown: blue where it has other words than ``before``, struck out in orange what it lacks."""
    if " ".join(before.split()) == " ".join(after.split()):
        return as_plain(after)
    # Two texts without any letters may differ in something else, e.g. control characters.
    return marked_text(word_diff(before, after)) or as_plain(after)
