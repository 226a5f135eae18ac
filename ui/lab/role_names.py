"""Names of roles, in the words of the Heads page, which other pages use as well."""

from charts.toolkit.style import signed
from transformer.heads.weight_patterns import WINDOW
from ui.words.texts import PageText


def test_name(test: str, where: int, text: PageText, *, short: bool = False) -> str:
    """Return "offset −1" or "det→noun"; if ``short``, the two nearest neighbours have their own names.

    ``where`` is the offset, the first one of a window.
    """
    if short and test == "offset" and abs(where) == 1:
        return text["role_short"]["previous" if where < 0 else "next"]
    return text["test_short" if short else "test"][test].format(where=signed(where), end=signed(where + WINDOW - 1))
