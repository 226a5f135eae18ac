"""The Masks page: presets, painted cells, undo, the model's output then, and the padding sandbox."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import transformer
from charts.toolkit.style import signed
from tests.pages.conftest import choose_text, chosen_texts, is_fine, metrics, said
from transformer.interventions.experiment import experiment
from transformer.predictions.comparison import word_diff
from transformer.runs.edit_specs import edits_from
from transformer.runs.mask_choices import MaskChoices
from transformer.text.word_spans import words_of
from ui.words.texts import common, page_text

TEXT = page_text("masks")
SENTENCE = "The old man ___ the sea."
PAGE, USUAL = "masks", {"checkpoint": "tiny-translator", "sentence": SENTENCE}
LIST = "horse milk Paris Friday Mary. horse milk Paris Friday"
SPECS = {
    "no_causal": "no_causal",
    "no_padding": "no_padding",
    "window": "window 2",
    "itself": "itself",
}


def preset(app, name):
    return choose_text(app, "mask", *MaskChoices(preset=name).to_texts()).run()


def chosen(app):
    return MaskChoices.from_texts(app.session_state["mask history"][-1])


@pytest.mark.parametrize(
    ("name", "sentence", "stack", "kind"),
    [
        ("en-fr", "The cat sleeps.", "decoder", "cross"),
        ("bert-en", "He washed ___ hands.", "encoder", "self"),
        ("gpt-en", LIST, "decoder", "self"),
    ],
)
def test_the_page_opens_with_a_word_blocked_and_the_output_changed(
    open_page, shipped_folder, name, sentence, stack, kind
):
    app = open_page(checkpoint=name, sentence=sentence, stack=stack, kind=kind, layer="1", head="0")
    assert "mask" not in app.query_params, "what a page opens with is not in its address"
    choices, loaded = chosen(app), transformer.load(shipped_folder / name)
    trace = transformer.trace(loaded, sentence)
    view = trace.attention(stack, 1, kind)
    effect = experiment(trace, edits_from(loaded, choices.specs(view)))
    assert choices.preset == "word" and effect.answer_after.text != effect.answer_before.text
    assert words_of(view.key)[choices.word].text in said(app)
    pieces = word_diff(effect.answer_before.text, effect.answer_after.text)
    for fate in ("removed", "added"):
        assert (common(f"effect.diff_{fate}") in said(app)) == any(piece.fate == fate for piece in pieces)
    for button, expected in (("reset", MaskChoices()), ("undo", choices)):
        app.button(key=f"mask {button}").click()
        is_fine(app.run())
        assert chosen(app) == expected
    assert chosen_texts(app, "mask") == choices.to_texts()


def test_the_widgets_report_to_the_recipe_and_undo_takes_back(open_page: Callable) -> None:
    app = preset(open_page(stack="decoder"), "window")
    app.slider(key="mask size").set_value(3)
    for button, expected in (
        ("", MaskChoices(preset="window", size=3)),
        ("undo", MaskChoices(preset="window", size=2)),
    ):
        if button:
            app.button(key=f"mask {button}").click()
        is_fine(app.run())
        assert chosen(app) == expected
    app.button(key="mask reset").click()
    is_fine(app.run())
    assert chosen(app).preset == "own" and app.button(key="mask reset").disabled


def test_drawn_cells_and_a_row_with_nothing_left(open_page: Callable, tiny_checkpoint: Callable) -> None:
    app = open_page(stack="decoder", layer="1")
    cells = {(0, 0): False, (1, 3): True, (1, 0): False}
    is_fine(choose_text(app, "mask", *MaskChoices(cells=cells, everywhere=False).to_texts()).run())
    assert "<s>" in app.info[0].value.replace("\\", "")
    loaded = tiny_checkpoint("translator")
    specs = ["mask:decoder.1.self=allow 1-3", "mask:decoder.1.self=block 0-0,1-0"]
    effect = experiment(transformer.trace(loaded, SENTENCE), edits_from(loaded, specs))
    assert metrics(app)[common("effect.log_p")] == signed(float(effect.after.sum()))
    app.query_params["sentence"] = "I know."
    is_fine(app.run())
    assert not chosen(app).cells, "they are cells of the other sentence"


@pytest.mark.parametrize(
    ("asked", "now"),
    [
        (["word 99"], ["word 6"]),
        (["no_causal", "layer"], ["layer"]),  # of a decoder
        (["block 0-99,1-0"], ["block 1-0"]),
        *((one, one) for one in (["window 3", "layer"], ["itself", "allow 2-0", "block 1-1"], ["layer", "allow 2-1"])),
    ],
)
def test_a_mask_comes_out_of_the_address_and_one_that_the_sentence_cannot_have_is_corrected(open_page, asked, now):
    app = open_page(mask=asked)
    assert list(chosen(app).to_texts()) == now and app.query_params["mask"] in (now, now[0])
    assert (f"mask='{' '.join(asked)}'" in said(app)) is (asked != now)
