"""Word alignment opens with the layer whose heads align best over many sentences."""

from __future__ import annotations

from collections.abc import Callable

import transformer
from tests.conftest import ROOT
from transformer.heads.role_files import best_alignment
from transformer.predictions.word_alignment import align


def test_the_layer_that_aligns_best_is_known_from_the_saved_roles(tiny_checkpoint: Callable) -> None:
    assert best_alignment(tiny_checkpoint("translator")) is None  # nothing was measured
    checkpoint = transformer.load(ROOT / "checkpoints" / "en-fr")
    trace = transformer.trace(checkpoint, "I love you.")

    def pairs(layer: int) -> dict[str, str]:
        found = align(trace, layer=layer, head=None, when="written")
        best = found.best(specials=False)
        return {word.text: found.source[place].text for word, place in zip(found.target, best, strict=True)}

    assert best_alignment(checkpoint) != 0
    assert pairs(0)["Je"] != "I" and pairs(best_alignment(checkpoint))["Je"] == "I"
