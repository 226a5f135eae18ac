"""The view model of Overview: outputs and probabilities for every kind of model."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from ui.words.texts import page_texts
from views.overview.overview_view_model import overview_view_model

SENTENCE = "The old man told us a story."


@pytest.mark.parametrize(
    ("name", "kind"),
    [("tiny-translator", "text"), ("tiny-gpt", "text"), ("tiny-bert", "blanks"), ("tiny-sentiment", "class")],
)
def test_the_output_with_its_probabilities(tiny_checkpoint, name, kind):
    trace = transformer.trace(tiny_checkpoint(name), "The ___ man." if kind == "blanks" else SENTENCE)
    view_model = overview_view_model(trace)
    assert view_model.output_kind == kind and view_model.answer is view_model.answer
    found = [part.probability for part in view_model.parts]
    if kind == "class":
        assert len(found) == trace.checkpoint.config.n_classes and sum(found) == pytest.approx(1)
        assert view_model.answer.probability == pytest.approx(max(found))
    else:
        assert view_model.answer.probability == pytest.approx(np.prod(found))
    assert view_model.n_numbers == sum(trace.values(one).size for one in trace.names())


def test_of_decoders_the_page_says_which_token_a_column_reads_and_which_it_predicts():
    """The column of ·Le reads ·Le and predicts ·chat."""
    for text, words in zip(page_texts("overview"), (("reads", "predicts"), ("lit", "prédit")), strict=True):
        for kind in ("encoder-decoder", "decoder-only"):
            assert all(word in text.look_for_of({kind})[1] for word in words)
        for kind in ("encoder-only", "classifier"):
            assert words[1] not in text.look_for_of({kind})[1]
