"""CSV files for spreadsheets: numbers stay numbers, and no cell is executed."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest

from tests.kinds_of_text import SENDABLE
from ui.show.exports import as_csv


def cells(table: pd.DataFrame) -> list[list[str]]:
    return list(csv.reader(io.StringIO(as_csv(table).decode("utf-8"), newline="")))


@pytest.mark.parametrize(
    "text",
    ["=cmd|' /C calc'!A0", "=1+1", "+1+1", "-2+3", "@SUM(A1:A9)", '=HYPERLINK("http://example.org")', "\t=1", "\n=1"],
)
def test_a_text_that_a_spreadsheet_would_run_is_a_text(text: str) -> None:
    found = cells(pd.DataFrame({"token": [text], text: ["the"]}))
    assert found == [["token", f"'{text}"], [f"'{text}", "the"]]


@pytest.mark.parametrize(
    "text", ["-", "=", "+", "@", "-0.5", "+3", "-inf", "·the", "a=b", "", "'s", 'say "no", twice\nor not']
)
def test_every_other_text_is_as_it_was(text: str) -> None:
    assert cells(pd.DataFrame({"token": [text], "n": [1]}))[1] == [text, "1"]


def test_numbers_keep_all_their_digits() -> None:
    table = pd.DataFrame({"weight": [-0.1234567890123456, 1e-300], "id": [-3, 7], "left": pd.Categorical(["=1", "b"])})
    assert cells(table)[1:] == [["-0.1234567890123456", "-3", "'=1"], ["1e-300", "7", "b"]]


def test_no_kind_of_text_is_run_or_breaks_a_row() -> None:
    for name, text in SENDABLE.items():
        written = as_csv(pd.DataFrame({"token": [text], "n": [1]})).decode()
        (_, (cell, number)) = csv.reader(io.StringIO(written, newline=""))
        assert number == "1" and cell.removeprefix("'") == text.replace("\r\n", "\n").replace("\r", "\n"), name
        assert cell[:1] not in tuple("=+-@\t\n") or len(cell) == 1, name
