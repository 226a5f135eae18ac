"""Tables as CSV that a spreadsheet opens as what it is: numbers and texts."""

import re

import pandas as pd

_FORMULA = re.compile(r"[=+\-@\t\n].", re.DOTALL)  # what spreadsheets run: "=cmd|…", "+1+1", "@SUM(…)"


def as_csv(table: pd.DataFrame) -> bytes:
    """UTF-8 with a header. A text that a spreadsheet would take for a formula begins with an apostrophe, which makes
    it a text (OWASP, "CSV Injection"); numbers are numbers."""
    return table.map(_harmless).rename(columns=_harmless).to_csv(index=False).encode("utf-8")


def _harmless(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")  # a lone carriage return would begin a row
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
