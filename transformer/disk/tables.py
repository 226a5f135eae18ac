"""Tables as text, for files that other programs read."""

import csv
import io
import re
from collections.abc import Mapping, Sequence


def csv_text(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """Return CSV with a header: ``columns``, or all columns of any row.

    Missing values and numbers that are not finite are empty. No cell is executed by a spreadsheet (``harmless_cell``).
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
    """Put an apostrophe before a text that a spreadsheet would read as a formula.

    See OWASP, "CSV Injection". Numbers stay numbers, and a lone carriage return, which would begin a row, becomes a
    line break.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


_FORMULA = re.compile(r"[=+\-@\t\n].", re.DOTALL)  # what spreadsheets execute: "=cmd|…", "+1+1", "@SUM(…)"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
