"""The Embeddings page: every section for every kind of model, with the numbers of the model."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pages.conftest import KINDS, choose_text, is_fine, said
from transformer.layers.embedding_space import analogy
from ui.words.texts import common, page_text

TEXT = page_text("embeddings")
SENTENCE = "The dog sleeps under the table."


@pytest.mark.parametrize(("checkpoint", "stack"), [("tiny-translator", "decoder"), ("tiny-bert", "encoder")])
def test_the_row_is_what_the_one_hot_vector_picks_and_what_the_probe_recorded(
    open_app, tiny_checkpoint, checkpoint, stack
):
    app = open_app("embeddings", checkpoint=checkpoint, sentence=SENTENCE, stack=stack, token="1", lens_start="1")
    is_fine(app)
    table = app.dataframe[0].value
    model = tiny_checkpoint(checkpoint).model
    scale = model.config.d_model**0.5
    np.testing.assert_array_equal(table["one-hot @ E"], table[TEXT["column"]["row"]])
    np.testing.assert_allclose(table[TEXT["column"]["recorded"]], table[TEXT["column"]["row"]] * scale, rtol=1e-6)
    matrix = getattr(model, stack).embedding.table.weight.detach().numpy()
    assert any(np.array_equal(row[: len(table)], table[TEXT["column"]["row"]]) for row in matrix)
    assert "between the two is **0**" in said(app)


def test_an_untied_step_leaves_all_other_rows_alone(open_app, tiny_checkpoint):
    app = open_app("embeddings", checkpoint="tiny-translator", sentence=SENTENCE, **{"embeddings section": "training"})
    vocabulary = tiny_checkpoint("translator").config.vocabulary_size
    still = vocabulary - len({*tiny_checkpoint("translator").tokenizer.encode(SENTENCE), 2})
    assert f"{still} of {vocabulary} did not move" in said(app)
    assert not [control for control in app.get("button_group") if control.label == TEXT["way"]["label"]]


def test_a_classifier_is_taught_a_class(open_app):
    app = open_app("embeddings", checkpoint="tiny-sentiment", sentence=SENTENCE, **{"embeddings section": "training"})
    losses = []
    for name in ("negative", "positive"):
        is_fine(choose_text(app, "training class", name).run())
        losses.append(float(said(app).split("It changes from **")[1].split("**")[0]))
    assert np.exp(-np.array(losses)).sum() == pytest.approx(1, abs=0.02)
    assert common("training_step.tied") not in said(app)


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_snippet_finds_no_difference(open_app, run_snippet, checkpoint):
    app = open_app("embeddings", checkpoint=checkpoint, sentence=SENTENCE)
    assert run_snippet(app).splitlines()[-1] == "0.0"


def test_all_ready_analogies_are_listed_with_their_misses(open_app, tiny_checkpoint, monkeypatch):
    """Compare the table with the library's results, for examples whose words are single tokens here."""
    checkpoint = tiny_checkpoint("translator")
    single = [
        word
        for word in ("the", "a", "is", "on", "in", "we", "I", "The", "le", "la")
        if len(checkpoint.tokenizer.encode(word)) == 1
    ]
    examples = (tuple(single[:4]), tuple(single[1:5]))
    monkeypatch.setattr("transformer.layers.embedding_space.ANALOGIES", examples)
    app = open_app("embeddings", checkpoint="tiny-translator", sentence=SENTENCE, **{"embeddings section": "analogies"})
    is_fine(app)
    listed = app.dataframe[-1].value
    table = checkpoint.model.encoder.embedding.table.weight.detach().numpy()
    for row, words in zip(listed.to_dict("records"), examples, strict=True):
        a, b, c, expected = (checkpoint.tokenizer.encode(word)[0] for word in words)
        found = [neighbour.id for neighbour in analogy(table, a, b, c, count=len(table))]
        assert row[TEXT["column"]["rank"]] == 1 + found.index(expected)
        assert row[TEXT["column"]["nearest"]] == checkpoint.tokenizer.display(found[0])
