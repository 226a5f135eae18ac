"""The checkpoints of the repository, for tests that open each of them."""

from __future__ import annotations

from tests.conftest import ROOT

SHIPPED = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/config.json"))
