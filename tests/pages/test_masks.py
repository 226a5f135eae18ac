"""The Masks page: presets, painted cells, undo, the model's output then, and the padding sandbox."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from charts.canvas.attention_maps import QUERY_TITLE, SHIFTED_TITLE
from charts.canvas.mask_editor import EARLIER_TITLE
from charts.toolkit.payload_bytes import unpack
from charts.toolkit.style import signed, three_digits
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, chosen_texts, codes, is_fine, said
from transformer.interventions.experiment import experiment, padding_drift
from transformer.predictions.comparison import word_diff
from transformer.runs.edit_specs import edits_from
from transformer.runs.mask_choices import MaskChoices
from transformer.text.word_spans import words_of
from ui.words.filled import filled
from ui.words.texts import common, page_text

TEXT = page_text("masks")
SENTENCE = "The old man ___ the sea."
LIST = "horse milk Paris Friday Mary. horse milk Paris Friday"
PLACES = [
    ("tiny-translator", "encoder", "self"),
    ("tiny-translator", "decoder", "self"),
    ("tiny-translator", "decoder", "cross"),
    ("tiny-gpt", "decoder", "self"),
    ("tiny-bert", "encoder", "self"),
    ("tiny-sentiment", "encoder", "self"),
]
SPECS = {
    "no_causal": "no_causal",
    "no_padding": "no_padding",
    "window": "window 2",
    "itself": "itself",
}


def preset(app, name):
    choose_text(app, "mask", *MaskChoices(preset=name).to_texts())
    return app.run()


def chosen(app):
    return MaskChoices.from_texts(app.session_state["mask history"][-1])


def shown(app):
    return {metric.label: metric.value for metric in app.metric}


def map_of(app):
    editor = next(component for component in app.get("bidi_component") if component.key == "mask editor")
    return unpack(editor.proto.bytes)[0]


@pytest.mark.parametrize(("kind", "title"), [("cross", SHIFTED_TITLE), ("self", QUERY_TITLE)])
def test_rows_of_cross_attention_are_the_tokens_predicted(open_app, kind, title):
    place = {"stack": "decoder", "kind": kind, "mask": "own"}
    shown_map = map_of(open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, **place))
    assert shown_map["row_title"] == title
    assert (shown_map["rows"][0] == "<s>") == (kind == "self")


def test_rows_say_that_they_are_the_output_before_the_mask(open_app, monkeypatch):
    """Under the mask with which the page opens, the model writes another sentence than the rows."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = "My grandmother bakes apple pie every Sunday."
    place = {"checkpoint": "en-fr", "sentence": sentence, "stack": "decoder", "kind": "cross"}
    assert map_of(open_app("masks", **place))["row_title"] == EARLIER_TITLE
    assert map_of(open_app("masks", **place, mask="own"))["row_title"] == SHIFTED_TITLE


@pytest.mark.parametrize(("checkpoint", "stack", "kind"), PLACES)
def test_every_preset_does_what_the_library_does(open_app, tiny_checkpoint, checkpoint, stack, kind):
    app = open_app("masks", checkpoint=checkpoint, sentence=SENTENCE, stack=stack, kind=kind, layer="1", mask="own")
    is_fine(app)
    assert common("effect.no_edits") in said(app)
    loaded = tiny_checkpoint(checkpoint)
    trace = transformer.trace(loaded, SENTENCE)
    names = ["no_causal" if (stack, kind) == ("decoder", "self") else "no_padding"]
    names += ["window", "itself"] if kind == "self" else []
    for name in names:
        is_fine(preset(app, name))
        edits = edits_from(loaded, [f"mask:{stack}.*.{kind}={SPECS[name]}"])
        effect = experiment(trace, edits)
        assert shown(app)[common("effect.log_p")] == signed(float(effect.after.sum()))
        blocked = int((~effect.changed.attention(stack, 1, kind).allowed).sum())
        assert f"{blocked:,} of its" in said(app)
    is_fine(preset(app, "word"))
    assert any(element.label == TEXT["word"] for element in app.selectbox)


def test_the_difference_is_new_minus_old(open_app, tiny_checkpoint):
    place = {"stack": "decoder", "kind": "cross", "layer": "1", "head": "1"}
    app = open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, mask="word 1", **place)
    is_fine(app)
    drawn = next(one for one in app.get("bidi_component") if one.key == "mask difference")
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    own = trace.attention("decoder", 1, "cross")
    edits = edits_from(trace.checkpoint, MaskChoices("word", word=1).specs(own))
    now = experiment(trace, edits).changed.attention("decoder", 1, "cross")
    change = now.weights[1] - own.weights[1]
    np.testing.assert_allclose(unpack(drawn.proto.bytes)[1]["values"].reshape(change.shape), change, atol=1e-6)


def test_a_class_that_stays_is_named(open_app, tiny_checkpoint):
    app = open_app("masks", checkpoint="tiny-sentiment", sentence=SENTENCE, mask="word 0", layer="1", head="0")
    trace = transformer.trace(tiny_checkpoint("sentiment"), SENTENCE)
    choices = MaskChoices("word", word=0)
    effect = experiment(trace, edits_from(trace.checkpoint, choices.specs(trace.attention("encoder", 1))))
    assert effect.answer_after.text == effect.answer_before.text
    assert f"the model still predicts **{effect.answer_after.text}**" in said(app)


@pytest.mark.parametrize(
    ("name", "stack", "kind"),
    [("en-fr", "decoder", "cross"), ("bert-en", "encoder", "self"), ("gpt-en", "decoder", "self")],
)
def test_the_page_opens_with_a_word_blocked_and_the_output_changed(open_app, monkeypatch, name, stack, kind):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = {"bert-en": "He washed ___ hands.", "gpt-en": LIST}.get(name, "The cat sleeps.")
    app = open_app("masks", checkpoint=name, sentence=sentence, stack=stack, kind=kind, layer="1", head="0")
    is_fine(app)
    assert "mask" not in app.query_params, "what a page opens with is not in its address"
    choices, loaded = chosen(app), transformer.load(ROOT / "checkpoints" / name)
    trace = transformer.trace(loaded, sentence)
    view = trace.attention(stack, 1, kind)
    effect = experiment(trace, edits_from(loaded, choices.specs(view)))
    assert choices.preset == "word" and effect.answer_after.text != effect.answer_before.text
    word = words_of(view.key)[choices.word].text
    of_stack = TEXT[f"of_{stack}"] if loaded.config.kind == "encoder-decoder" else ""  # its other stack still sees it
    cause = filled(TEXT["blocked_all"], {"word": word, "of_stack": of_stack}, markdown=False)
    assert f"{cause}, " in said(app), "the first sentence says what this changes"
    if name == "gpt-en":  # a continuation alone, e.g. ".", cannot be understood
        assert f":gray[{sentence}] {effect.answer_before.text}" in said(app)
    pieces = word_diff(effect.answer_before.text, effect.answer_after.text)
    for fate in ("removed", "added"):
        assert (common(f"effect.diff_{fate}") in said(app)) == any(piece.fate == fate for piece in pieces)
    app.button(key="mask reset").click()
    is_fine(app.run())
    assert chosen(app).preset == "own" and chosen_texts(app, "mask") == ("own",)
    assert common("effect.no_edits") in said(app)
    app.button(key="mask undo").click()
    is_fine(app.run())
    assert chosen(app) == choices


@pytest.mark.parametrize(("name", "label"), [("gpt-en", "factor_typed"), ("bert-en", "factor_predicted")])
def test_without_an_output_the_card_holds_predictions_alone(open_app, monkeypatch, name, label):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("masks", checkpoint=name, sentence="My grandmother bakes apple pie every Sunday.")
    is_fine(app)
    assert common("effect.expects") in said(app)
    assert common("effect.before") not in said(app) and common("effect.empty") not in said(app)
    assert common(f"effect.{label}") in shown(app) and common("effect.factor") not in shown(app)


def test_a_lesson_begins_with_the_models_own_mask(open_app):
    app = open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, lesson="06-break-and-mend")
    assert chosen(app).preset == "own"


def test_the_widgets_report_to_the_recipe_and_undo_takes_back(open_app):
    app = open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder")

    choose_text(app, "mask", *MaskChoices(preset="window").to_texts())
    app.run()
    app.slider(key="mask size").set_value(3)
    is_fine(app.run())
    assert chosen(app) == MaskChoices(preset="window", size=3)
    app.button(key="mask undo").click()
    is_fine(app.run())
    assert chosen(app) == MaskChoices(preset="window", size=2)
    app.button(key="mask reset").click()
    is_fine(app.run())
    assert chosen(app).preset == "own" and app.button(key="mask reset").disabled


def test_an_option_that_the_layer_does_not_have_changes_nothing(open_app):
    """A tab may still show it after the page has moved to another layer; Streamlit then reports no choice."""
    app = open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, stack="encoder", kind="self", layer="1")
    app.segmented_control(key="mask preset").set_value("itself").run()
    is_fine(app.segmented_control(key="mask preset").set_value(None).run())
    assert chosen(app).preset == "itself"


def test_drawn_cells_and_a_row_with_nothing_left(open_app, tiny_checkpoint):
    app = open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder", layer="1")
    cells = {(0, 0): False, (1, 3): True, (1, 0): False}
    choose_text(app, "mask", *MaskChoices(cells=cells, everywhere=False).to_texts())
    is_fine(app.run())
    assert TEXT["drawn"].replace("{count}", "3") in said(app)
    assert "<s>" in app.info[0].value.replace("\\", "") and "the residual" in app.info[0].value
    loaded = tiny_checkpoint("translator")
    trace = transformer.trace(loaded, SENTENCE)
    specs = ["mask:decoder.1.self=allow 1-3", "mask:decoder.1.self=block 0-0,1-0"]
    effect = experiment(trace, edits_from(loaded, specs))
    assert shown(app)[common("effect.log_p")] == signed(float(effect.after.sum()))
    # For another sentence, the painted cells do not apply.
    app.query_params["sentence"] = "I know."
    is_fine(app.run())
    assert not chosen(app).cells


@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_padding_sandbox_shows_both_runs_in_numbers(open_app, tiny_checkpoint, checkpoint):
    app = open_app("masks", checkpoint=checkpoint, sentence=SENTENCE)
    choose_text(app, "masks view", "padding")
    is_fine(app.run())
    loaded = tiny_checkpoint(checkpoint)
    rows = padding_drift(transformer.trace(loaded, SENTENCE), pads=(4,))
    values = [metric.value for metric in app.metric if metric.label == TEXT["padding_logit"]]
    assert values == [three_digits(row.logits) for row in rows]
    assert (TEXT["padding_decoder"] in said(app)) == (checkpoint == "tiny-gpt")


def test_other_views_and_padding_in_the_sentence(open_app):
    app = open_app("masks", checkpoint="tiny-translator", sentence=SENTENCE, pads="3")
    for name in ("no_padding", "itself"):
        preset(app, name)
        for view in ("difference", "steps", "padding"):
            choose_text(app, "masks view", view)
            is_fine(app.run())
    choose_text(app, "mask", *MaskChoices(preset="no_padding").to_texts())
    assert TEXT["no_pads"] not in said(app.run())


@pytest.mark.parametrize("checkpoint", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_snippet_gives_the_numbers_of_the_page(open_app, run_snippet, checkpoints_folder, checkpoint):
    app = preset(open_app("masks", checkpoint=checkpoint, sentence=SENTENCE), "itself")
    snippet = next(code for code in codes(app) if code.startswith("import transformer"))
    checkpoint = transformer.load(checkpoints_folder / checkpoint)
    stack = app.session_state["focus"].stack if checkpoint.config.has_encoder else "decoder"
    found = experiment(transformer.trace(checkpoint, SENTENCE), edits_from(checkpoint, [f"mask:{stack}.*.self=itself"]))
    printed = [float(number) for number in run_snippet(snippet).splitlines()[0].split()]
    np.testing.assert_allclose(printed, [found.change, found.mean_kl], rtol=1e-4, atol=1e-6)
