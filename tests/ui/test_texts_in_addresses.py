"""Any text that a browser can send is restored unchanged from the address."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.kinds_of_text import SENDABLE
from ui.shell.focus import LONGEST, Focus
from ui.shell.share import link

DEFAULT = Focus(checkpoint="en-fr")


@pytest.mark.parametrize("name", SENDABLE)
def test_a_shared_link_gives_back_the_sentence(name: str) -> None:
    typed = Focus(checkpoint="en-fr", sentence=SENDABLE[name], target=SENDABLE[name])
    said = {key: [value] for key, value in typed.to_address(default=DEFAULT).items()}
    shared = link("http://127.0.0.1:8501/attention", said, checkpoint="en-fr", fingerprint="0")
    assert shared.isascii() and shared.isprintable()
    opened = {key: value[-1] for key, value in parse_qs(urlsplit(shared).query, keep_blank_values=True).items()}
    found, notes = Focus.from_address(opened, default=DEFAULT)
    assert notes == ()
    kept = len(SENDABLE[name]) <= LONGEST
    assert found.sentence == (SENDABLE[name] if kept else DEFAULT.sentence)
    assert found.target == (SENDABLE[name] if kept else DEFAULT.target)
