"""Names of roles, in the words of the Heads page, which other pages use as well."""

import math

from charts.toolkit.style import signed, three_digits
from transformer.heads.head_roles import HeadRole
from transformer.heads.weight_patterns import WINDOW
from ui.words.texts import PageText


def test_name(test: str, where: int, text: PageText, *, short: bool = False) -> str:
    """Return "offset −1" or "det→noun"; if ``short``, the two nearest neighbours have their own names.

    ``where`` is the offset, the first one of a window.
    """
    if short and test == "offset" and abs(where) == 1:
        return text["role_short"]["previous" if where < 0 else "next"]
    return text["test_short" if short else "test"][test].format(where=signed(where), end=signed(where + WINDOW - 1))


def role_text(head: HeadRole, text: PageText) -> str:
    """Return "previous token (0.87)", or "no clear role" with the kind of position that comes closest."""
    name = text["role"][head.role]
    if not math.isnan(head.score):
        return text["chosen_score"].format(role=name, score=three_digits(head.score))
    if not (nearest := head.nearest):
        return name
    share = three_digits(head.scores[nearest])
    return text["chosen_nearest"].format(role=name, nearest=text["role"][nearest], score=share)
