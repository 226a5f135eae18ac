"""Tables as text, for files that other programs read."""

import csv
import io
from collections.abc import Mapping, Sequence


def csv_text(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """CSV with a header: ``columns``, or all that any row has. What a row lacks and what is not a number is empty."""
    text = io.StringIO()
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value != value else value for name, value in row.items()} for row in rows)
    return text.getvalue()
