"""Tables as CSV that a spreadsheet opens as plain numbers and texts."""

import pandas as pd

from transformer.disk.tables import harmless_cell


def as_csv(table: pd.DataFrame) -> bytes:
    """Return UTF-8 with a header in which no cell is a formula (``harmless_cell``); numbers stay numbers."""
    return table.map(harmless_cell).rename(columns=harmless_cell).to_csv(index=False).encode("utf-8")
