"""The Embeddings page: every section for every kind of model, with the numbers of the model."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.pages.conftest import choose_text, codes, is_fine, said
from transformer.layers.embedding_space import analogy
from ui.words.texts import page_text

TEXT = page_text("embeddings")
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SECTIONS = ("lookup", "neighbours", "map", "analogies", "training")
SENTENCE = "The dog sleeps under the table."


def show(app, section):
    choose_text(app, "embeddings section", TEXT["section"][section])
    return app.run()


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_every_section(open_app, checkpoint):
    app = open_app("embeddings", checkpoint=checkpoint, sentence=SENTENCE, token="2")
    for section in SECTIONS:
        show(app, section)
        is_fine(app)


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


def test_the_token_that_is_followed_is_seen_in_the_main_figure(open_app, tiny_checkpoint):
    seen = {}
    for token in ("1", "2"):
        app = open_app("embeddings", checkpoint="tiny-translator", sentence=SENTENCE, token=token)
        is_fine(app)
        id = tiny_checkpoint("translator").tokenizer.encode(SENTENCE)[int(token)]
        assert f"looks up row **{id}** of its table E" in said(app)
        seen[token] = app.get("plotly_chart")[0].proto.spec
    assert seen["1"] != seen["2"]


def test_the_rows_between_their_neighbours(open_app):
    app = open_app("embeddings", checkpoint="tiny-translator", sentence=SENTENCE)
    app.toggle(key="embeddings window").set_value(True)
    app.run()
    is_fine(app)
    assert TEXT["window_caption"] in said(app)


def test_an_untied_step_leaves_all_other_rows_alone(open_app, tiny_checkpoint):
    app = show(open_app("embeddings", checkpoint="tiny-translator", sentence=SENTENCE), "training")
    vocabulary = tiny_checkpoint("translator").config.vocabulary_size
    still = vocabulary - len({*tiny_checkpoint("translator").tokenizer.encode(SENTENCE), 2})
    assert f"{still} of {vocabulary} did not move" in said(app)
    assert not [control for control in app.get("button_group") if control.label == TEXT["way"]]


def test_a_tied_step_can_be_taken_apart(open_app):
    app = show(open_app("embeddings", checkpoint="tiny-bert", sentence=SENTENCE, token="2"), "training")
    assert TEXT["tied"] in said(app) and TEXT["hidden_word"].format(mask="<mask>") in said(app)
    for way in ("way_lookup", "way_projection"):
        choose_text(app, "training way", TEXT[way])
        app.run()
        is_fine(app)
        assert TEXT["how_part"] in said(app)


def test_a_classifier_is_taught_a_class(open_app):
    app = show(open_app("embeddings", checkpoint="tiny-sentiment", sentence=SENTENCE), "training")
    losses = []
    for name in ("negative", "positive"):
        choose_text(app, "training class", name)
        app.run()
        is_fine(app)
        losses.append(float(said(app).split("It changes from **")[1].split("**")[0]))
    assert np.exp(-np.array(losses)).sum() == pytest.approx(1, abs=0.02)
    assert TEXT["tied"] not in said(app)


def test_analogies_need_words_that_are_one_token(open_app, tiny_tokenizer):
    app = show(open_app("embeddings", checkpoint="tiny-translator", sentence=SENTENCE), "analogies")
    words = [tiny_tokenizer.display(id) for id in tiny_tokenizer.encode("The the of sat")]
    assert words[0] == "·The"
    for name, word in zip("abc", ("The", "the", "zebras"), strict=True):
        app.text_input(key=f"analogy {name}").set_value(word)
    app.run()
    is_fine(app)
    assert "“zebras” is" in said(app)
    app.text_input(key="analogy c").set_value("on")
    app.run()
    is_fine(app)
    assert (TEXT["analogy_caption"].split("{")[0] in said(app)) == (len(tiny_tokenizer.encode("on")) == 1)


def test_padding_is_no_trouble(open_app):
    app = open_app("embeddings", checkpoint="tiny-bert", sentence="The dog.", pads="3", token="6")
    for section in SECTIONS:
        is_fine(show(app, section))


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_snippet_finds_no_difference(open_app, run_snippet, checkpoint):
    app = open_app("embeddings", checkpoint=checkpoint, sentence=SENTENCE)
    assert run_snippet(codes(app)[-1]).splitlines()[-1] == "0.0"


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
    app = show(open_app("embeddings", checkpoint="tiny-translator", sentence=SENTENCE), "analogies")
    is_fine(app)
    listed = app.dataframe[-1].value
    table = checkpoint.model.encoder.embedding.table.weight.detach().numpy()
    for row, words in zip(listed.to_dict("records"), examples, strict=True):
        a, b, c, expected = (checkpoint.tokenizer.encode(word)[0] for word in words)
        found = [neighbour.id for neighbour in analogy(table, a, b, c, count=len(table))]
        assert row[TEXT["column"]["rank"]] == 1 + found.index(expected)
        assert row[TEXT["column"]["nearest"]] == checkpoint.tokenizer.display(found[0])


def test_a_row_without_close_rows_is_not_said_to_resemble_one(open_app, monkeypatch):
    """The most similar row of “every”, that of “worked”, has a cosine of only 0.245."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = "My grandmother bakes apple pie every Sunday."
    far = open_app("embeddings", checkpoint="sentiment", sentence=sentence, token="7")
    is_fine(far)
    assert TEXT["first_far"].format(token="worked", cosine="0.245") in said(far)
    near = open_app("embeddings", checkpoint="en-fr", sentence=sentence, token="0")
    is_fine(near)
    assert TEXT["first_nearest"].partition("{")[0] in said(near) and TEXT["first_far"].partition("{")[0] not in said(
        near
    )
