"""The Tokens page: ids, merges, other tokenizers, odd characters."""

from __future__ import annotations

import pytest

import transformer
from tests.pages.conftest import codes, is_fine, said
from transformer.text.byte_pair_merges import merge_steps
from ui.words.filled import filled
from ui.words.texts import page_text
from views.tokens.tokens_sections import kind_of

TEXT = page_text("tokens")
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SENTENCE = "The umbrella sleeps 😀."


def widget(elements, label):
    return next(element for element in elements if element.label == label)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_counts_are_those_of_the_tokenizer(open_app, tiny_tokenizer, checkpoint):
    app = open_app("tokens", checkpoint=checkpoint, sentence=SENTENCE)
    is_fine(app)
    if checkpoint != "tiny-gpt":  # a generative model, whose text is longer
        assert f"**{len(tiny_tokenizer.encode(SENTENCE))}** tokens for **{len(SENTENCE)}** characters" in said(app)
    assert f"**{tiny_tokenizer.vocabulary_size}** entries" in said(app)


def test_the_start_of_the_target_is_given_and_its_end_is_predicted(open_app, tiny_checkpoint) -> None:
    own = said(open_app("tokens", checkpoint="tiny-translator", sentence=SENTENCE))
    given = said(open_app("tokens", checkpoint="tiny-translator", sentence=SENTENCE, target="Le parapluie."))
    start = filled(TEXT["target_start"], {"start": "<s>"}, markdown=True)
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    ends = trace.prediction[-1].display == "</s>"
    assert start in own and start in given
    assert (filled(TEXT["target_end"], {"end": "</s>"}, markdown=True) in own) == ends
    assert TEXT["target_end"].partition("{")[0] not in given
    assert TEXT["target_start"].partition("{")[0] not in said(
        open_app("tokens", checkpoint="tiny-gpt", sentence=SENTENCE)
    )


def test_the_followed_token_s_word_is_built(open_app, tiny_tokenizer):
    app = open_app("tokens", checkpoint="tiny-translator", sentence=SENTENCE, token="1")
    is_fine(app)
    assert widget(app.text_input, TEXT["word"]).value == "umbrella"
    steps = merge_steps(tiny_tokenizer, "Ġumbrella")
    assert widget(app.slider, TEXT["step"]).value == len(steps) - 1
    assert f"**umbrella** is split into **{len(steps[-1].pieces)} token" in said(app)


def test_stepping_back_says_what_comes_next(open_app, tiny_tokenizer):
    app = open_app("tokens", checkpoint="tiny-translator", sentence="The cat sat.", lens_start="1")
    widget(app.slider, TEXT["step"]).set_value(0)
    app.run()
    is_fine(app)
    first = merge_steps(tiny_tokenizer, "ĠThe")[1]
    assert f"rule {first.rank} joins" in said(app)


def test_a_smaller_vocabulary_leaves_more_pieces(open_app):
    app = open_app("tokens", checkpoint="tiny-translator", sentence="The cat sat.", lens_start="1")
    widget(app.select_slider, TEXT["learned"]).set_value(0)
    app.run()
    is_fine(app)
    assert "**The** is split into **4 tokens**" in said(app)


def test_any_word_can_be_typed(open_app):
    app = open_app("tokens", checkpoint="tiny-translator", sentence="The cat sat.")
    for word in ("zyx", "two words", "", "é😀", "x" * 70, "`$<b>"):
        widget(app.text_input, TEXT["word"]).set_value(word)
        app.run()
        is_fine(app)
        assert (TEXT["nothing_typed"] in said(app)) == (not word), word


def test_every_pair_of_tokenizers_can_be_compared(open_app):
    app = open_app("tokens", checkpoint="tiny-translator", sentence=SENTENCE)
    options = widget(app.selectbox, TEXT["second"]).options
    assert TEXT["bytes"] in options and TEXT["words"] in options and "tiny-gpt" in options
    for option in options:
        widget(app.selectbox, TEXT["second"]).set_value(option)
        app.run()
        is_fine(app)


def test_fewer_merges_never_make_fewer_tokens(open_app):
    app = open_app("tokens", checkpoint="tiny-translator", sentence=SENTENCE)
    widget(app.selectbox, TEXT["second"]).set_value(TEXT["bytes"])
    app.run()
    table = app.dataframe[0].value
    assert table["tokens"][1] == len(SENTENCE.encode()) + 1 > table["tokens"][0]


def test_special_tokens_typed_as_text_stay_text(open_app, tiny_tokenizer):
    app = open_app("tokens", checkpoint="tiny-translator", sentence="</s>")
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


def test_the_snippet_runs(open_app, run_snippet, tiny_tokenizer):
    app = open_app("tokens", checkpoint="tiny-translator", sentence=SENTENCE)
    assert str(tiny_tokenizer.encode(SENTENCE)) in run_snippet(codes(app)[-1])


@pytest.mark.parametrize(
    ("checkpoint", "name", "boxes"),
    [
        ("tiny-translator", "Target, padding", {"sidebar target", "sidebar pads"}),
        ("tiny-gpt", "Target text", {"sidebar target"}),
        ("tiny-bert", "Padding tokens", {"sidebar pads"}),
        ("tiny-sentiment", "Padding tokens", {"sidebar pads"}),
    ],
)
def test_the_sidebar_has_a_target_and_padding_where_the_model_reads_them(open_app, checkpoint, name, boxes) -> None:
    app = open_app("tokens", checkpoint=checkpoint)
    assert name in [expander.label for expander in app.expander]
    assert {box.key for box in (*app.text_input, *app.number_input)} & {"sidebar target", "sidebar pads"} == boxes
