"""The Tokens page: how words are split, also by tokenizers of other families.

What it counts is in ``test_drawn.py``.
"""

from __future__ import annotations

import pytest

from tests.pages.conftest import is_fine, said
from transformer.text.byte_pair_merges import merge_steps
from ui.words.texts import filled, page_text
from views.tokens.tokens_sections import kind_of

TEXT = page_text("tokens")
SENTENCE = "The umbrella sleeps 😀."


def widget(elements, label):
    return next(element for element in elements if element.label == label)


def test_the_word_of_the_followed_token_is_built_and_another_tokenizer_counts_more(open_app, tiny_tokenizer):
    app = open_app("tokens", checkpoint="tiny-translator", sentence=SENTENCE, token="1")
    is_fine(app)
    assert widget(app.text_input, TEXT["word"]).value == "umbrella"
    steps = merge_steps(tiny_tokenizer, "Ġumbrella")
    assert widget(app.slider, TEXT["step"]).value == len(steps) - 1
    assert f"**umbrella** is split into **{len(steps[-1].pieces)} token" in said(app)
    widget(app.selectbox, TEXT["second"]).set_value(TEXT["bytes"])
    table = app.run().dataframe[0].value
    assert table["tokens"][1] == len(SENTENCE.encode()) + 1 > table["tokens"][0]


def test_a_whole_word_is_not_split_and_a_typed_special_token_is_like_any_other_text(open_app, tiny_tokenizer):
    (id,) = tiny_tokenizer.encode("The")
    app = open_app("tokens", checkpoint="tiny-translator", sentence="The")
    values = {"word": "The", "pieces": [tiny_tokenizer.display(id)]}
    assert filled(TEXT["end_whole"], values, markdown=True) in said(app)
    app.text_input(key="sentence").set_value("</s>").run()
    is_fine(app)
    ids = tiny_tokenizer.encode("</s>")
    assert 2 not in ids and f"is split into {len(ids)} tokens like any other text" in said(app)


def test_kinds_of_tokens(tiny_tokenizer):
    sequence = tiny_tokenizer.sequence([1, *tiny_tokenizer.encode("The umbrellas 😀")])
    kinds = {token.display: kind_of(token) for token in sequence}
    assert kinds["<s>"] == "special" and kinds["·The"] == "word"
    assert kinds["⟨F0⟩"] == kinds["⟨80⟩"] == "byte"
    within = tiny_tokenizer.sequence(tiny_tokenizer.encode("umbrellas"))[-1]
    assert not within.display.startswith("·") and kind_of(within) == "part"
    lines = tiny_tokenizer.sequence(tiny_tokenizer.encode("one\ntwo"))
    begun = lines[next(token.index for token in lines if token.display.endswith("⏎")) + 1]
    assert not begun.display.startswith("·") and kind_of(begun) == "word", "a line begins with a word"


@pytest.mark.slow
@pytest.mark.sample(of=2)
@pytest.mark.parametrize("name", ["hf-gpt2", "hf-llama", "hf-bert", "hf-t5", "hf-marian"])
def test_words_of_other_families_are_cut_by_their_tokenizers(open_app, families_folder, monkeypatch, run_snippet, name):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(families_folder))
    app = open_app("tokens", checkpoint=name, sentence="The cat sat on the mat 😀.")
    is_fine(app)
    is_fine(app.text_input(key="character").set_value("🦊").run())
    printed = run_snippet(app)
    assert printed.startswith("[") and ("MergeStep(" in printed) == (name in ("hf-gpt2", "hf-llama"))
