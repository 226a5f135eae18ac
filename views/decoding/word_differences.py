"""One text beside another: the words that differ are marked."""

from transformer.analysis.answers.word_diff import word_diff
from ui.words.texts import as_plain

_MARKS = {"same": "{}", "removed": ":orange[~~{}~~]", "added": ":blue[**{}**]"}


def marked(before: str, after: str) -> str:
    """``after`` as Markdown: blue where it has other words than ``before``, struck out in orange what it lacks."""
    if " ".join(before.split()) == " ".join(after.split()):
        return as_plain(after)
    marks, last = "", "same"
    for fate, text in word_diff(before, after):
        if text.strip():
            space = text[: len(text) - len(text.lstrip())]  # marks must not begin with one
            if last == "removed" and not space:  # what takes the place of a text's first word has none before it
                space = " "
            marks += space + _MARKS[fate].format(as_plain(text.strip()))
            last = fate
    # Two texts without any letters may differ in something else, e.g. control characters.
    return marks or as_plain(after)
