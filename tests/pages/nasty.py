"""Sentences that have broken pages before, or would."""

from __future__ import annotations

NASTY = (
    "😀",
    "<script>alert(1)</script> **b** $x$ `c` </s> :red[r] [l](http://x) # h",
    "one\n\n- two\tthree",
    "في الحديقة",
    "a" * 60,
    "{0} %s \\ \u200b",
)
EMPTY = ("", "  \n ")
TOO_LONG = "word " * 300
