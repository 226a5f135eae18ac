"""Every number of a trace of every shipped checkpoint, recomputed in NumPy and float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transformer
from tests.shipped import SHIPPED
from tests.transformer.numpy_forward import NumpyTransformer
from tests.transformer.test_pictures import PICTURE
from transformer.config import PictureConfig

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
SENTENCES = {"The cat sat on the mat.": 0, "Don't 🙂 stop!": 3}  # sentence → number of padding tokens


@pytest.mark.parametrize("name", [path.name for path in SHIPPED])
def test_every_number_is_that_of_the_formulas(name: str) -> None:
    checkpoint = transformer.load(CHECKPOINTS / name)
    by_hand = NumpyTransformer(CHECKPOINTS / name)
    of_pictures = isinstance(checkpoint.config, PictureConfig)
    sentences = {PICTURE: 0} if of_pictures else SENTENCES
    if checkpoint.config.n_segments:
        sentences = {**sentences, "The cat ___ || on the mat.": 3}
    for sentence, pads in sentences.items():
        pads = pads if checkpoint.config.has_encoder else 0
        trace = transformer.trace(checkpoint, sentence, source_pads=pads)
        ids = [list(part.ids) if part is not None else None for part in (trace.source, trace.target)]
        expected = by_hand.forward(*ids)
        assert set(trace.names()) == set(expected)
        for activation in trace.names():
            found, wanted = trace.values(activation), expected[activation]
            scale = max(1.0, float(np.abs(wanted).max()))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * scale, err_msg=activation)


def test_another_formula_is_noticed() -> None:
    """The comparison is sensitive: without ÷√d_k, or with the unbiased deviation, it fails."""
    checkpoint = transformer.load(CHECKPOINTS / "gpt-en")
    trace = transformer.trace(checkpoint, "The cat sat.")
    expected = NumpyTransformer(CHECKPOINTS / "gpt-en").forward(None, list(trace.target.ids))
    width = checkpoint.config.d_model
    std = expected["decoder.final_norm.std"] * np.sqrt(width / (width - 1))
    assert np.abs(trace.values("decoder.final_norm.std") - std).max() > 2e-5 * std.max()
    scores = "decoder.layers.0.self_attention.scores"
    assert np.abs(trace.values(scores) - expected[scores] * np.sqrt(checkpoint.config.d_head)).max() > 1
