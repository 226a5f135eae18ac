"""“This head in general” lists what the library computes, for every kind of model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from charts.toolkit.style import three_digits
from tests.pages.conftest import is_fine, said
from transformer.heads.head_circuits import output_value_circuit, query_key_circuit
from ui.words.texts import page_text

TEXT = page_text("attention")
SECTION = {"attention_section": TEXT["section_general"]}
PLACES = [
    ("translator", "decoder", "cross"),
    ("translator", "encoder", "self"),
    ("gpt", "decoder", "self"),
    ("sentiment", "encoder", "self"),
]


@pytest.mark.parametrize(("name", "stack", "kind"), PLACES)
def test_score_and_pairs(open_app: Callable, tiny_checkpoint: Callable, name: str, stack: str, kind: str):
    app = open_app("attention", checkpoint=f"tiny-{name}", stack=stack, kind=kind, layer="1", head="1", **SECTION)
    is_fine(app)
    checkpoint = tiny_checkpoint(name)
    place = (checkpoint.model, stack, kind)
    writes = output_value_circuit(*place, layer=1, head=1)
    assert f"**{three_digits(writes.copying_score)}**" in said(app)
    assert (TEXT["general_logits"] in said(app)) == writes.read_out
    tables = {"looks": query_key_circuit(*place, layer=1, head=1), "writes": writes}
    for part, circuit in tables.items():
        table = next(t.value for t in app.dataframe if TEXT[f"general_{part}_value"] in t.value)
        found = circuit.strongest(20)
        assert list(table.iloc[:, 0]) == [checkpoint.tokenizer.display(row) for row, *_ in found]
        np.testing.assert_allclose(table.iloc[:, 2], [value for *_, value in found], rtol=1e-5)


def test_pieces_of_a_word_are_put_together(open_app: Callable) -> None:
    more = {"attention_section": "words", "stack": "encoder", "kind": "self", "token": "1"}
    app = open_app("attention", checkpoint="tiny-translator", sentence="The unbelievable cat.", **more)
    is_fine(app)
    assert page_text("attention")["words_help"] in said(app)
