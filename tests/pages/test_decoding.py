"""The page Decoding: generation, blanks and classes; its numbers are those of the model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import three_digits
from tests.pages.conftest import choose_text, chosen_texts, drawn, is_fine, said
from transformer.predictions.answer_probabilities import blanks, fillings
from transformer.predictions.decoding_steps import step_attention
from transformer.predictions.written_text import is_choice_of_words

WRITERS = ("tiny-translator", "tiny-gpt")
SENTENCE = "The old man told us a story."
PAGE, USUAL = "decoding", {"checkpoint": "tiny-translator", "sentence": SENTENCE}


def go(app: AppTest, step: int) -> AppTest:
    """Call the page as the figure's callback does."""
    is_fine(choose_text(app, "step", step).run())
    return app


def marked(app: AppTest) -> list[str]:
    """Return what the sentence about the current step emphasises, as the browser shows it."""
    metadata, _ = drawn(app, "stepper")
    step = int("".join(chosen_texts(app, "step")) or metadata["begin"][1])
    return metadata["said"][min(step, len(metadata["said"]) - 1)][1::2]


# --- Step by step ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", WRITERS)
def test_every_step_says_what_came_and_how_probable_it_was(open_page, tiny_checkpoint, checkpoint) -> None:
    app = open_page(checkpoint=checkpoint, layer="1", head="1")
    steps = transformer.decode(tiny_checkpoint(checkpoint), SENTENCE).steps
    for step, shown in ((0, 0), (1, 1), (len(steps) - 1, -1), (999, -1)):
        chosen = steps[shown].chosen
        assert {chosen.display, three_digits(chosen.probability)} <= set(marked(go(app, step)))


def test_stepping_runs_no_model_and_sends_the_same_drawing(open_page, monkeypatch) -> None:
    app = open_page(step="2")
    before = drawn(app, "stepper")[0]
    monkeypatch.setattr(torch.nn.Module, "__call__", lambda *_, **__: pytest.fail("a step must not run the model"))
    for step in (1, 4):
        assert drawn(go(app, step), "stepper")[0] == before, "or the reader would be moved back"
    monkeypatch.undo()
    app.text_input(key="sentence").set_value("It is raining.").run()
    assert drawn(app, "stepper")[0]["begin"][0] != before["begin"][0]


@pytest.mark.parametrize("sentence", (SENTENCE, "It is raining."))
def test_a_text_opens_where_the_model_hesitates(open_page: Callable, tiny_checkpoint: Callable, sentence: str) -> None:
    decoding = transformer.decode(tiny_checkpoint("translator"), sentence)
    words = [step for step in decoding.steps if is_choice_of_words(decoding, step.index)]
    hardest = min(words or decoding.steps, key=lambda step: step.chosen.probability)
    for step in ("", "two"):  # no number
        assert drawn(open_page(sentence=sentence, step=step), "stepper")[0]["begin"][1] == hardest.index


@pytest.mark.parametrize(
    ("checkpoint", "kind", "pads"),
    [("tiny-translator", "cross", 2), ("tiny-translator", "self", 2), ("tiny-gpt", "self", 0)],
)
def test_attention_of_each_kind(open_page, tiny_checkpoint, checkpoint, kind, pads) -> None:
    app = open_page(checkpoint=checkpoint, stack="decoder", layer="1", head="1", pads="2")
    if checkpoint == "tiny-translator":
        app.segmented_control(key="attention_kind").set_value(kind).run()
    loaded = tiny_checkpoint(checkpoint)
    decoding = transformer.decode(loaded, SENTENCE, source_pads=pads, record_steps=True)
    for heads, head in (("mean", None), ("one", 1)):
        app.segmented_control(key="attention_heads").set_value(heads).run()
        is_fine(app)
        metadata, arrays = drawn(app, "stepper")
        allowed = np.unpackbits(arrays["allowed"], bitorder="little")[: arrays["weights"].size]
        allowed = allowed.reshape(arrays["weights"].shape).astype(bool)
        for step, count in enumerate(metadata["counts"]):
            found = step_attention(loaded, decoding, SENTENCE, step=step, layer=1, kind=kind)
            assert count == len(found.key) and metadata["columns"][:count] == list(found.key.labels)
            assert np.allclose(arrays["weights"][step, :count] / 65535, found.of(head), atol=1e-5)
            assert (allowed[step, :count] == found.allowed).all() and not allowed[step, count:].any()


def test_a_given_beginning_is_marked_and_continued(open_page: Callable) -> None:
    app = open_page(target="<b>Le</b> chat", language="fr")
    metadata, _ = drawn(app, "stepper")
    given = [token["given"] for token in metadata["tokens"]]
    assert given[0] and not given[-1] and given == sorted(given, reverse=True)
    assert metadata["before"] == [{"text": "<s>", "special": True}]
    assert "".join(token["text"] for token in metadata["tokens"]).replace("·", " ").strip().startswith("<b>Le</b> chat")


@pytest.mark.parametrize("checkpoint", WRITERS)
def test_another_word_is_forced_and_the_branch_kept_beside_the_original(open_page, tiny_checkpoint, checkpoint) -> None:
    app = open_page(checkpoint=checkpoint, step="2")
    loaded = tiny_checkpoint(checkpoint)
    original = transformer.decode(loaded, SENTENCE)
    assert app.button(key="force go").disabled
    next(box for box in app.selectbox if (box.key or "").startswith("force instead")).select_index(2).run()
    app.button(key="force go").click().run()
    is_fine(app)
    other = [c for c in original.steps[2].candidates if c.id != original.tokens.ids[2]][2]
    ids = (*original.tokens.ids[:2], other.id)
    branch = transformer.decode(loaded, SENTENCE, forced=ids)
    assert branch.tokens.ids[:3] == ids and branch.text != original.text
    assert other.display in marked(app) and branch.text in said(app)
    assert three_digits(branch.log_probability) in said(app)
    assert app.query_params["branches"] in (f"{ids[0]}.{ids[1]}-{ids[2]}", [f"{ids[0]}.{ids[1]}-{ids[2]}"])
    for button, text in (("look at branch 0", original), ("look at branch 1", branch), ("remove branch 1", original)):
        app.button(key=button).click().run()
        is_fine(app)
        assert [token["text"] for token in drawn(app, "stepper")[0]["tokens"]] == list(text.tokens.displays)


def test_any_word_can_be_typed_and_branches_are_in_the_address(open_page: Callable, tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    word = checkpoint.tokenizer.encode("parapluie")
    forced = ".".join(map(str, word))
    app = open_page(branches=f"-{forced},1-5,7-,9.x-3,5.2-7")  # only the first branch is possible
    assert len(word) > 1 and app.query_params["branches"] in (f"-{forced}", [f"-{forced}"])
    app.button(key="look at branch 1").click().run()
    branch = transformer.decode(checkpoint, SENTENCE, forced=word)
    assert branch.text in said(app) and branch.text.startswith("parapluie")
    app.text_input(key="sentence").set_value("It is raining.").run()
    is_fine(app)
    assert not [button for button in app.button if (button.key or "").startswith("look at branch")]


# --- Blanks and classes ---------------------------------------------------------------------------------------------

TWO_BLANKS = "The ___ sat on the [MASK]."


def test_blanks_are_filled(open_page: Callable, tiny_checkpoint: Callable) -> None:
    app = open_page(checkpoint="tiny-bert", sentence=TWO_BLANKS)
    trace = transformer.trace(tiny_checkpoint("bert"), TWO_BLANKS)
    for position in blanks(trace):
        app.segmented_control(key="blank").set_value(position).run()
        is_fine(app)
        best = fillings(trace, position).rows[0]
        assert best.piece in said(app) and three_digits(best.probability) in said(app)


# --- Strategies -----------------------------------------------------------------------------------------------------


def test_another_sample_is_drawn_with_the_next_seed(open_page, tiny_checkpoint) -> None:
    app = open_page(decoding_section="strategies", seed="3")
    before = app.dataframe[0].value["text"][1]
    app.button(key="draw again").click().run()
    assert app.number_input(key="seed").value == 4
    again = transformer.decode(tiny_checkpoint("translator"), SENTENCE, transformer.Sample(seed=4)).text
    assert app.dataframe[0].value["text"][1] == again != before
