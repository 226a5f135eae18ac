"""Tables as text, for files that other programs read."""

import csv
import io
import re
from collections.abc import Mapping, Sequence


def csv_text(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """CSV with a header: ``columns``, or all that any row has. What a row lacks and what is not a number is empty.

    No cell is run by a spreadsheet (``harmless_cell``).
    """
    text = io.StringIO()
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(harmless_cell, names))
    for row in rows:
        cells = (row.get(name, "") for name in names)
        writer.writerow(["" if cell != cell else harmless_cell(cell) for cell in cells])
    return text.getvalue()


def harmless_cell(cell: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would take for a formula, which makes it a text.

    After OWASP, "CSV Injection". Numbers stay numbers, and a lone carriage return, which would begin a row, is a line
    break.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


_FORMULA = re.compile(r"[=+\-@\t\n].", re.DOTALL)  # what spreadsheets run: "=cmd|…", "+1+1", "@SUM(…)"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
