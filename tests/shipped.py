"""The checkpoints of the repository, for tests that open each of them."""

from __future__ import annotations

from functools import cache

import transformer
from tests.conftest import ROOT

SHIPPED = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/config.json"))


@cache
def shipped(name: str) -> transformer.Checkpoint:
    """Return a checkpoint of the repository, opened once."""
    return transformer.load(ROOT / "checkpoints" / name)
