"""``opening.toml`` files that are malformed, huge or of wrong types: the page opens or explains."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

OPENINGS = {
    "empty": "",
    "no TOML": "[[[",
    "not UTF-8": b"\xff\xfe\x00title = 3",
    "NUL": 'sentence = "a\x00b"',
    "a number": "sentence = 3\nshort = 4\n",
    "a list": "sentence = ['a', 3]\n",
    "a table": "[sentence]\nsentence = 'x'\n",
    "unknown keys": "__class__ = 'x'\nnothing = 1\n",
    "deep": "a = " + "[" * 5000 + "]" * 5000,
    "large": "sentence = '" + "x" * 30_000_000 + "'",
    "long": "sentence = '" + "word " * 20_000 + "'",
    "markup": "sentence = '<script>alert(1)</script> https://evil.test'\nshort = '![x](http://evil.test)'\n",
    "examples of a wrong kind": "example = 3\nexamples = [1, 2]\n[en]\nshows = 3\n",
    "large numbers": "layer = 99999999999999999999\nhead = -1\ntoken = 1e400\n",
}


@pytest.mark.parametrize(
    ("name", "page"),
    [
        pytest.param(name, page, marks=() if number % 2 == place else pytest.mark.nightly)
        for number, name in enumerate(OPENINGS)
        for place, page in enumerate(("overview", "checkpoint"))
    ],
)
def test_a_hostile_opening_ends_no_page(
    checkpoints_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_app: Callable[..., AppTest],
    page: str,
    name: str,
) -> None:
    folder = shutil.copytree(checkpoints_folder / "tiny-gpt", tmp_path / "gpt")
    text = OPENINGS[name]
    (folder / "opening.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = open_app(page, checkpoint="gpt")
    assert not app.exception
    assert all("cannot be opened" in error.value.replace("\\", "") for error in app.error), app.error[0].value
