"""Fixtures of tests of what all pages share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ui.words import texts


@pytest.fixture
def in_language(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return ``in_language("fr")``: everything runs in this language from then on."""
    return lambda code: monkeypatch.setattr(texts, "_language_of_run", lambda: code)
