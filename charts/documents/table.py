"""A table as HTML: every cell escaped, numbers to the right."""

from collections.abc import Sequence
from html import escape

from charts.documents.guide import Markup
from charts.toolkit.style import three_digits

STYLE = """
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid var(--st-border-color); text-align: start; }
td.number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
details { margin: 0.3rem 0; } summary { cursor: pointer; } details ol { margin: 0.3rem 0 0.6rem; }
"""


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """One row of cells for each of ``rows``; a float is written with three significant digits."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return Markup(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def folded(title: str, lines: Sequence[str]) -> Markup:
    """A list that opens on a click or a key."""
    items = "".join(f"<li><bdi>{escape(line)}</bdi></li>" for line in lines)
    return Markup(f"<details><summary>{escape(title)}</summary><ol>{items}</ol></details>")


def _cell(cell: object) -> str:
    if isinstance(cell, float):
        return f'<td class="number">{escape(three_digits(cell))}</td>'
    if isinstance(cell, int):
        return f'<td class="number">{cell}</td>'
    return f"<td><bdi>{escape(str(cell))}</bdi></td>"
