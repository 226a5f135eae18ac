"""The view model of Embeddings: rows looked up and multiplied out, their neighbours, analogies."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.layers.embedding_space import analogy, nearest_rows
from ui.words.texts import page_texts
from views.embeddings import embeddings_view_model as module
from views.embeddings.embeddings_view_model import embeddings_view_model, rank_of

SENTENCE = "The dog sleeps under the table."


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_row_is_looked_up_multiplied_out_and_recorded(tiny_checkpoint, name):
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    stack = trace.stacks[0]
    view_model = embeddings_view_model(trace, stack=stack, token=2)
    table = getattr(trace.checkpoint.model, stack).embedding.table.weight.detach().numpy()
    id = trace.tokens(stack)[2].id
    np.testing.assert_array_equal(view_model.row, table[id])
    np.testing.assert_array_equal(view_model.one_hot_product, table[id])
    assert view_model.lookup_difference == 0
    np.testing.assert_allclose(view_model.recorded, table[id] * view_model.scale, rtol=1e-6)
    assert view_model.neighbours == nearest_rows(table, table[id], count=12, excluded={id})
    assert id not in {neighbour.id for neighbour in view_model.neighbours}
    added = {"tiny-translator": "sinusoidal", "tiny-gpt": "learned"}.get(name, "none")
    parts = ("segment",) if name == "tiny-bert" else ()
    assert view_model.positions == added and view_model.later_parts == parts
    for text in page_texts("embeddings"):
        assert text[f"scale_text_{view_model.positions}"]


def test_the_window_holds_two_rows_on_each_side(tiny_checkpoint):
    view_model = embeddings_view_model(transformer.trace(tiny_checkpoint("tiny-gpt"), SENTENCE), stack="decoder")
    assert view_model.fetched == sorted({*view_model.tokens.ids})
    last = len(view_model.table) - 1
    wanted = {row for id in view_model.fetched for row in range(id - 2, id + 3) if 0 <= row <= last}
    assert view_model.window == sorted(wanted)
    assert view_model.token == 0
    assert embeddings_view_model(view_model.trace, stack="decoder", token=999).focused is view_model.tokens.tokens[-1]


def test_only_words_of_one_token_are_offered_as_analogies(tiny_checkpoint, monkeypatch):
    checkpoint = tiny_checkpoint("tiny-translator")
    words = ("the", "a", "is", "on", "in", "we", "I", "The", "le", "la")
    single = [word for word in words if len(checkpoint.tokenizer.encode(word)) == 1]
    monkeypatch.setattr(module, "ANALOGIES", (tuple(single[:4]), ("unbelievably", *single[:3])))
    view_model = embeddings_view_model(transformer.trace(checkpoint, SENTENCE), stack="encoder")
    assert list(view_model.analogies.values()) == [tuple(single[:4])]
    found = view_model.analogy(single[:3])
    ids = [checkpoint.tokenizer.encode(word)[0] for word in single[:4]]
    assert found == analogy(view_model.table, *ids[:3], count=len(view_model.table))
    assert found[rank_of(ids[3], found) - 1].id == ids[3]
