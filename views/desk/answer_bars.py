"""Answers of a class as bars in HTML, which hold long options and are a list for screen readers."""

from collections.abc import Sequence
from html import escape

from charts.toolkit.numbers import percent
from views.desk.class_tables import AnswerRow


def answer_bars(rows: Sequence[AnswerRow], *, lettered: bool) -> str:
    """Return a list of answers, each with its number and a bar; the correct one is marked."""
    return f'<ol class="answers">{"".join(_bar(row, number, lettered) for number, row in enumerate(rows))}</ol>'


def letter_of(index: int) -> str:
    """Return the letter of an option, from A."""
    return chr(ord("A") + index)


def _bar(row: AnswerRow, number: int, lettered: bool) -> str:
    letter = f"<b>{letter_of(number)}</b> " if lettered else ""
    mark = ' <span aria-hidden="true">✓</span>' if row.is_right else ""
    return (
        f"<li{' class=right' if row.is_right else ''}>"
        f"<span><bdi>{letter}{escape(row.text)}</bdi>{mark}</span>"
        f"<span>{row.count} · {percent(row.share)}</span>"
        f'<i style="width: {100 * row.share:.1f}%"></i></li>'
    )
