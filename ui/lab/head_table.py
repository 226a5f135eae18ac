"""Heads by their roles: order, captions, table and words for the Heads page."""

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from charts.toolkit.numbers import number
from charts.toolkit.style import signed, three_digits
from transformer.attention import MultiHeadAttention
from transformer.heads import weight_patterns
from transformer.heads.annotated_words import LEAST_ABOVE_OFFSET
from transformer.heads.head_roles import LEAST_AWAKE, LEAST_CONSISTENT, CorpusRole, HeadRole
from transformer.heads.induction import LEAST_INDUCTION, LONGEST, N_SEQUENCES, repeated_lengths
from transformer.heads.role_measures import ROLES
from transformer.heads.weight_patterns import (
    LEAST_BROAD,
    LEAST_LIFT,
    LEAST_MONOTONE,
    LEAST_ON_OFFSET,
    LEAST_ROWS,
    LEAST_SHARE,
    LEAST_WINDOW_LIFT,
    WINDOW,
)
from ui.words.texts import PageText

ORDERS = ("layer", "role", "entropy", "sinks")
CORPUS_ORDERS = (*ORDERS, "consistency")
MEASURES = ("entropy", "confidence", "sinks", "distance", "induction", "previous_random")  # beside the roles


_ROLES_HERE = ("induction", *ROLES)  # of one sentence (``head_roles``)


def sorted_heads(roles: Sequence[HeadRole | CorpusRole], *, order: str) -> list[tuple[int, int]] | None:
    """(layer, head) in the order of the tiles; ``None`` for the table of layers × heads.

    "consistency" and "induction" are orders of ``CorpusRole`` only.
    """
    if order == "layer":
        return None
    keys = {
        "role": lambda head: (_ROLES_HERE.index(head.role), -_or_zero(head.score)),
        "entropy": lambda head: _or_zero(head.scores["broad"]),
        "sinks": lambda head: -_or_zero(head.scores["sinks"]),
        "consistency": lambda head: (head.role == "none", -_or_zero(head.consistency)),
        "induction": lambda head: -_or_zero(head.scores["induction"]),
    }
    return [(head.layer, head.head) for head in sorted(roles, key=keys[order])]


def captions(roles: Sequence[HeadRole | CorpusRole], text: PageText) -> dict[tuple[int, int], str]:
    """A short word for the role under every tile, with its score; a head without one gets the place that is nearest."""
    return {(head.layer, head.head): _caption(head, text) for head in roles}


def clear_heads(roles: Sequence[HeadRole | CorpusRole]) -> list[tuple[int, int]]:
    """(layer, head) of those whose caption is a role that they have."""
    return [(head.layer, head.head) for head in roles if head.role != "none"]


def _caption(head: HeadRole | CorpusRole, text: PageText) -> str:
    name = head.nearest if head.role == "none" else head.role
    score = head.scores.get(name, math.nan)
    return f"{text['role_short'][name or head.role]}{'' if math.isnan(score) else ' ' + number(f'{score:.2f}')}"


def test_name(test: str, where: int, text: PageText, *, short: bool = False) -> str:
    """ "offset −1" or "det→noun", in the words of the Heads page; the two nearest neighbours have short names of their
    own. ``where``: the offset, the first one of a window."""
    if short and test == "offset" and abs(where) == 1:
        return text["role_short"]["previous" if where < 0 else "next"]
    return text["test_short" if short else "test"][test].format(where=signed(where), end=signed(where + WINDOW - 1))


def role_text(head: HeadRole, text: PageText) -> str:
    """ "previous token (0.87)", or "no clear role" with the place that gets the largest share."""
    name = text["role"][head.role]
    if not math.isnan(head.score):
        return text["chosen_score"].format(role=name, score=three_digits(head.score))
    if not (nearest := head.nearest):
        return name
    share = three_digits(head.scores[nearest])
    return text["chosen_nearest"].format(role=name, nearest=text["role"][nearest], score=share)


def role_counts(roles: Sequence[HeadRole], text: PageText) -> str:
    """ "In this sentence: 2 × previous token, 5 × no clear role.", or that it is too short to tell."""
    if all(math.isnan(score) for head in roles for score in head.scores.values()):
        return text["too_short"].format(least=LEAST_ROWS)
    found = Counter(head.role for head in roles)
    counts = [text["counts"].format(count=found[role], role=text["role"][role]) for role in _ROLES_HERE if found[role]]
    return text["counted"].format(roles=", ".join(counts))


def concatenation(text: PageText, attention: MultiHeadAttention, *, n_rows: int) -> tuple[str, str]:
    """MultiHead = Concat(head_0 …) W_O with this sentence's shapes, as LaTeX, and a caption."""
    d_model, together = attention.output_projection.weight.shape
    bias = "" if attention.output_projection.bias is None else " + b_O"
    heads, d_head, last = attention.n_heads, attention.d_head, attention.n_heads - 1
    latex = (
        rf"\underset{{{n_rows} \times {d_model}}}{{\text{{MultiHead}}}} = "
        rf"\underset{{{n_rows} \times {together}}}{{[\text{{head}}_0 \mid \dots \mid \text{{head}}_{{{last}}}]}}\;\;"
        rf"\underset{{{together} \times {d_model}}}{{W_O}}{bias}"
    )
    return latex, text["formula"].format(heads=heads, d_head=d_head, d_model=together, rows=n_rows)


def measures(roles: Sequence[HeadRole | CorpusRole], text: PageText) -> dict[str, str]:
    """The measures that exist for at least one of the heads: name → what it is called."""
    names = {**{role: text["role"][role] for role in ROLES}, **text["measure_name"]}
    return {
        name: names[name]
        for name in (*MEASURES, *ROLES)
        if any(not math.isnan(head.scores.get(name, math.nan)) for head in roles)
    }


def role_table(roles: Sequence[HeadRole | CorpusRole], text: PageText) -> pd.DataFrame:
    """One row a head: its place, its role, all measures."""
    return pd.DataFrame(
        [
            {
                text["column_layer"]: head.layer,
                text["column_head"]: head.head,
                text["column_role"]: text["role"][head.role],
                text["column_score"]: head.score,
                **{called: head.scores.get(name, math.nan) for name, called in measures(roles, text).items()},
            }
            for head in roles
        ]
    )


def definitions(text: PageText) -> str:
    """All definitions as a Markdown list, with the thresholds that the library uses."""
    numbers = {
        "share": LEAST_SHARE,
        "lift": LEAST_LIFT,
        "monotone": LEAST_MONOTONE,
        "broad": LEAST_BROAD,
        "consistent": LEAST_CONSISTENT,
        "induction": LEAST_INDUCTION,
        "shortest": min(repeated_lengths(1 + 2 * LONGEST)),
        "longest": LONGEST,
        "sequences": N_SEQUENCES,
        "rows": LEAST_ROWS,
        "awake": LEAST_AWAKE,
        "offset": LEAST_ON_OFFSET,
        "window_lift": LEAST_WINDOW_LIFT,
        "above": LEAST_ABOVE_OFFSET,
        "place": weight_patterns.LEAST_SHARE,
    }
    lines = [text["definition_intro"], ""]
    for name, meaning in text["definition"].items():
        lines.append(f"- **{text['role'].get(name) or text['measure_name'][name]}:** {meaning}")
    lines += ["", text["definition_tests"], ""]
    lines += [f"- **{text['definition_test'][name]}:** {meaning}" for name, meaning in text["test_definition"].items()]
    written = "\n".join([*lines, "", text["definition_sources"]])
    for name, value in numbers.items():  # str.format would take the braces of the formulas for its own
        written = written.replace(f"{{{name}}}", number(str(value)))
    return written


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
