"""The image holds every folder that the app imports or reads. A build needs Docker; this test does not."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {"app.py", "pages", "views", "ui", "charts", "transformer", "lessons", "checkpoints", ".streamlit"}


def test_every_folder_of_the_app_is_in_the_image() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "deploy", "glassformer"}
    assert packages <= NEEDED, "a new package; say here whether the app needs it"
    copied = re.findall(r"^COPY (\S+) ", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert NEEDED <= set(copied)
    assert NEEDED <= sent
