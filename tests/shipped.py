"""The checkpoints of the repository, for tests that open each of them."""

from __future__ import annotations

from tests.conftest import ROOT

SHIPPED = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/config.json"))
# What is made from another one by fine-tuning has its shape: slow tests of every kind of model leave it out.
FINE_TUNED = ("en-fr-pruned", "en-fr-taught")
ONE_OF_A_KIND = [path for path in SHIPPED if path.name not in FINE_TUNED]
