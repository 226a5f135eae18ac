"""Cells of tables that other programs read."""

import re

_FORMULA = re.compile(r"[=+\-@\t\n].", re.DOTALL)  # what spreadsheets execute: "=cmd|…", "+1+1", "@SUM(…)"


def harmless_cell(cell: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would read as a formula.

    See OWASP, "CSV Injection". Numbers stay numbers, and a lone carriage return, which would begin a row, becomes a
    line break.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
