"""The Surgery page: the map of all heads, every way to edit the model, and the output after each edit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import transformer
from charts.toolkit.style import signed, three_digits
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, chosen_texts, codes, is_fine, said
from transformer.heads.head_roles import CorpusRole, CorpusRoles
from transformer.heads.role_measures import HeadMeasures
from transformer.heads.weight_patterns import Measure
from transformer.interventions.attribution_patching import estimated_importance, strongest
from transformer.interventions.experiment import answer_under, experiment
from transformer.interventions.head_importance import head_importance, importance_by_chunks
from transformer.interventions.steering import steering_effect
from transformer.predictions.answer_probabilities import read_answer
from transformer.predictions.comparison import word_diff
from transformer.runs import tracing
from transformer.runs.edit_specs import edits_from
from transformer.runs.head_places import Head
from transformer.runs.run import Run
from ui.compute.store import store
from ui.lab.effects import marked_text
from ui.page.living_picture import cut_heads
from ui.words.texts import common, page_text
from views.surgery.edit_list import toggled
from views.surgery.example import removal
from views.surgery.roles_and_importance import compared
from views.surgery.surgery_view_model import NUMBERED

TEXT = page_text("surgery")
SENTENCE = "The old man ___ the sea."
KINDS = ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"]


def cut(app, *specs):
    choose_text(app, "edit", *list(specs))
    return app.run()


def button(app, label):
    return next(element for element in app.button if element.label == label)


@pytest.mark.parametrize("checkpoint", KINDS)
def test_all_heads_are_measured_and_nothing_is_changed_at_first(open_app, tiny_checkpoint, checkpoint):
    app = open_app("surgery", checkpoint=checkpoint, sentence=SENTENCE)
    is_fine(app)
    config = tiny_checkpoint(checkpoint).config
    n_layers = config.n_encoder_layers + config.n_decoder_layers * (2 if config.has_encoder else 1)
    assert TEXT["map_caption"].format(count=n_layers * config.n_heads) in said(app)
    assert TEXT["click_hint"] in said(app)
    assert any(each.label.startswith("Keep th") for each in app.button)
    assert not app.metric, "nothing has changed"
    assert TEXT["roles_unknown"] in said(app)  # no roles are stored with this checkpoint
    assert not any(element.label == common("long.cancel") for element in app.button)


@pytest.mark.parametrize(
    ("name", "sentence", "several"),
    [
        ("en-fr", "My grandmother bakes apple pie every Sunday.", False),
        ("en-fr", "The children played in the park.", True),
        ("sentiment", "My grandmother bakes apple pie every Sunday.", True),
    ],
)
def test_the_heads_of_the_first_sentence_are_the_ones_that_the_map_marks(
    open_app, monkeypatch, name, sentence, several
):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    drawn: list = []
    monkeypatch.setattr("views.surgery.operations.show_map", lambda figure, **_: drawn.append(figure))
    app = open_app("surgery", checkpoint=name, sentence=sentence)
    is_fine(app)
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / name), sentence)
    assert (TEXT["example_no_single"].format(count=len(head_importance(trace).heads)) in said(app)) == several
    app.button(key=next(each.key for each in app.button if each.label.startswith("Keep th"))).click().run()
    specs = chosen_texts(app, "edit")
    effect = experiment(trace, edits_from(trace.checkpoint, specs))
    if name == "en-fr":
        assert effect.answer_after.text != effect.answer_before.text
    first, after = next(figure for figure in drawn if not figure.metadata.get("crossed")), drawn[-1]
    if several:
        assert TEXT["example_framed"].format(count=len(specs)) in said(
            open_app("surgery", checkpoint=name, sentence=sentence)
        )
        assert len(specs) > 1 and first.metadata["selected"] is None and "outlined" in first.arrays
    else:
        assert [first.metadata["selected"]] == after.metadata["crossed"] and len(specs) == 1
    assert sorted(map(tuple, after.metadata["crossed"])) == sorted(
        (after.metadata["rows"].index(_row_of(spec)), int(spec.split(".")[-1])) for spec in specs
    )
    values = first.arrays["values"]
    expected = {tuple(cell) for cell in np.argwhere(np.abs(values) > NUMBERED * np.abs(values).max()).tolist()}
    assert expected <= set(map(tuple, first.metadata["numbered"])) and first.metadata["whole"]
    assert "nats" not in first.metadata["title"] and values.min() >= -100, "the first view is in per cent"


def _row_of(spec):
    _action, place = spec.split(":")
    stack, layer, kind, _head = place.split(".")
    return TEXT["row"].format(part=TEXT["short"][f"{stack}_{kind}"], layer=layer)


def test_the_head_that_the_reader_selects_is_the_one_that_is_described(open_app, monkeypatch):
    drawn: list = []
    monkeypatch.setattr("views.surgery.operations.show_map", lambda figure, **_: drawn.append(figure))
    app = open_app("surgery", checkpoint="tiny-gpt", sentence=SENTENCE, layer="1", head="1")
    choose_text(app, "surgery click", "focus")
    is_fine(app.run())
    assert drawn[-1].metadata["selected"] == [1, 1]
    label = TEXT["edit"]["zero"].format(place=TEXT["part_short"]["decoder_self"], layer=1, head=1)
    assert f"Without one head (**{label}**)" in said(app)


def test_the_button_removes_the_head_that_the_typed_sentence_needs(open_app, monkeypatch):
    """The button is clicked before the card of the sentence that was just typed is on the screen."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    old, new = "The old man told us a story.", "My grandmother bakes apple pie every Sunday."
    heads = {}
    for sentence in (new, old):
        app = open_app("surgery", checkpoint="en-fr", sentence=sentence)
        heads[sentence] = next(line.value for line in app.markdown if "Without one head" in line.value)
    assert heads[old] != heads[new]
    app.text_input(key="sentence").set_value(new)
    button(app, TEXT["example_button"]).click()
    is_fine(app.run())
    wanted = heads[new].split("**")[1]
    assert [element.label for element in app.button if wanted in element.label], wanted


def test_an_answer_without_edits_is_written_once(open_app, monkeypatch):
    decode, written = tracing.decode, []
    monkeypatch.setattr(tracing, "decode", lambda *args, **more: written.append(args[1]) or decode(*args, **more))
    app = open_app("surgery", checkpoint="tiny-gpt", sentence="Nobody has typed this before.")
    is_fine(app)
    assert any(each.label.startswith("Keep th") for each in app.button)
    assert written == ["Nobody has typed this before."]


def _named(head):
    place = TEXT["part_short"][f"{head.stack}_{head.kind}"]
    return TEXT["edit"]["zero"].format(place=place, layer=head.layer, head=head.head)


def in_percent(change):
    return f"{100 * math.expm1(change):+.0f}%".replace("-", "−")


def answer_without(trace, head):
    edits = edits_from(trace.checkpoint, [removal(head)])
    return answer_under(trace.checkpoint, trace.sentence, edits).text


def test_before_anything_is_changed_the_output_without_a_needed_head_is_shown(open_app, monkeypatch):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = "My grandmother bakes apple pie every Sunday."
    app = open_app("surgery", checkpoint="en-fr", sentence=sentence)
    is_fine(app)
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), sentence)
    ranked = sorted(head_importance(trace).measured, key=lambda one: one.change)
    before = read_answer(trace).text
    head = next(one for one in ranked if answer_without(trace, one.place) != before)
    assert f"Without one head (**{_named(head.place)}**)" in said(app) and head != ranked[0]
    what = {"what": TEXT["measured_output"], "change": in_percent(ranked[0].change)}
    assert TEXT["example_changes_output"].format(head=_named(ranked[0].place), **what) in said(app)
    effect = experiment(trace, edits_from(trace.checkpoint, [removal(head.place)]))
    pieces = word_diff(effect.answer_before.text, effect.answer_after.text)
    headline = next(line.value for line in app.markdown if f"Without one head (**{_named(head.place)}**)" in line.value)
    assert marked_text(pieces) in headline, "the output and its change are part of the first sentence"
    old, now = map(three_digits, [effect.answer_before.probability, math.exp(effect.after.sum())])
    assert TEXT["example_old"].format(before=old, after=now, change=in_percent(effect.change)) in said(app)
    assert common("uncertain.mistakes") in said(app), "the original output is not right either"
    button(app, TEXT["example_button"]).click()
    app.run()
    is_fine(app)
    (spec,) = chosen_texts(app, "edit")
    found = experiment(trace, edits_from(trace.checkpoint, [spec]))
    assert found.answer_after.text != found.answer_before.text
    assert all(word_of(piece) in said(app) for piece in word_diff(found.answer_before.text, found.answer_after.text))
    assert not any(element.label == TEXT["example_button"] for element in app.button)


def test_heads_with_a_job_are_compared_with_the_others(tiny_checkpoint):
    found = head_importance(transformer.trace(tiny_checkpoint("gpt"), SENTENCE.replace("___", "in")))
    place = [one.place for one in found.measured]
    changes = [one.kl for one in found.measured]
    order = np.argsort(changes)  # the strongest role goes to the head that changes most
    heads = [
        CorpusRole(*where, "none", {}, {}, {}, 40, HeadMeasures({"sink": Measure(0.1 + 0.2 * rank, 0.1, 0.5, 99)}))
        for where, rank in zip(((at.stack, at.kind, at.layer, at.head) for at in place), order.argsort(), strict=True)
    ]
    agreement, with_job, without = compared(CorpusRoles(tuple(heads), 40, 0, "d"), found)
    assert agreement == pytest.approx(1.0)
    assert with_job == pytest.approx(np.mean(sorted(changes)[2:])) and without == pytest.approx(
        np.mean(sorted(changes)[:2])
    )


def word_of(piece):
    return " ".join(piece.text.split())


@pytest.mark.parametrize("checkpoint", KINDS)
def test_an_edit_says_what_the_library_says(open_app, tiny_checkpoint, checkpoint):
    stack = "decoder" if checkpoint in ("tiny-translator", "tiny-gpt") else "encoder"
    specs = [f"zero:{stack}.0.self.1", f"scale:{stack}.1.self.0=2", f"residual:{stack}.1.feed_forward"]
    app = cut(open_app("surgery", checkpoint=checkpoint, sentence=SENTENCE), *specs)
    is_fine(app)
    loaded = tiny_checkpoint(checkpoint)
    edits = edits_from(loaded, specs)
    trace = transformer.trace(loaded, SENTENCE)
    effect = experiment(trace, edits)
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown[common("effect.log_p")] == signed(float(effect.after.sum()))
    before, after = read_answer(trace), answer_under(loaded, SENTENCE, edits)
    assert " ".join(before.text.split()) in said(app)
    if after.text != before.text:
        pieces = word_diff(before.text, after.text)
        assert all(word_of(piece) in said(app) for piece in pieces)
        if loaded.config.n_classes:
            assert common("effect.diff_class") in said(app)
        else:
            for fate in ("removed", "added"):
                assert (common(f"effect.diff_{fate}") in said(app)) == any(piece.fate == fate for piece in pieces)
    assert TEXT["depth"] in [element.value for element in app.subheader]
    assert f"{TEXT['causes']}, " in said(app), "the first sentence says what the edits change"


def test_edits_are_taken_back_by_their_buttons(open_app):
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE)
    cut(app, "zero:encoder.0.self.1", "drop:decoder.1.cross")
    label = TEXT["edit"]["zero"].format(place=TEXT["part_short"]["encoder_self"], layer=0, head=1)
    button(app, label).click()
    is_fine(app.run())
    assert list(chosen_texts(app, "edit")) == ["drop:decoder.1.cross"]
    cut(app, "zero:encoder.0.self.1", "drop:decoder.1.cross")
    button(app, TEXT["clear"]).click()
    assert list(chosen_texts(app.run(), "edit")) == []


@pytest.mark.slow
def test_every_way_to_change_something_else(open_app):
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder", kind="cross", layer="1")

    def way(name):
        choose_text(app, "surgery more", name)
        is_fine(app.run())

    way("head")
    slider = next(element for element in app.slider if element.label == TEXT["scale"])
    slider.set_value(0.5)
    is_fine(app.run())
    assert list(chosen_texts(app, "edit")) == ["scale:decoder.1.cross.0=0.5"]
    way("edge")
    button(app, TEXT["cut_edge"]).click()
    is_fine(app.run())
    way("sublayer")
    for action in ("drop", "residual"):
        button(app, TEXT[action]).click()
        is_fine(app.run())
    way("patch")
    next(element for element in app.text_input if element.label == TEXT["patch"]).set_value("I do <b>not</b> know.")
    button(app, TEXT["patch_button"]).click()
    is_fine(app.run())
    assert list(chosen_texts(app, "edit")) == [
        "edge:decoder.1.cross.0=0-0",
        "drop:decoder.1.self",
        "residual:decoder.1.self",
        "patch:decoder.1.cross.0=I do <b>not</b> know.",  # replaces the scaled head
    ]
    next(element for element in app.text_input if element.label == TEXT["patch"]).set_value(" ")
    button(app, TEXT["patch_button"]).click()
    app.run()
    assert not app.exception and not app.error and "empty" in app.warning[0].value


def test_something_else_is_changed_at_the_head_that_the_page_describes(open_app, monkeypatch):
    """The pages share another head, but the reader has not chosen it."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("surgery", checkpoint="en-fr", sentence="My grandmother bakes apple pie every Sunday.")
    described = next(line.value for line in app.markdown if "Without one head" in line.value)
    head = Head("decoder", "self", 0, 1)
    assert f"**{_named(head)}**" in described and app.session_state["focus"].kind == "cross"

    def scale(value):
        next(element for element in app.slider if element.label == TEXT["scale"]).set_value(value)
        is_fine(app.run())
        return list(chosen_texts(app, "edit"))

    assert scale(0.5) == ["scale:decoder.0.self.1=0.5"]
    assert scale(0.25) == ["scale:decoder.0.self.1=0.25"], "the controls stay at this head"
    app.selectbox(key="choose layer").set_value(2)
    is_fine(app.run())
    assert scale(2.0) == ["scale:decoder.0.self.1=0.25", "scale:decoder.2.self.1=2"]
    app.selectbox(key="choose layer").set_value(1)
    is_fine(app.run())
    app.selectbox(key="choose kind").set_value("decoder cross")
    is_fine(app.run())
    app.selectbox(key="choose head").set_value(7)
    is_fine(app.run())
    assert scale(2.0)[-1] == "scale:decoder.1.cross.7=2", "the head of the opening, which the reader has chosen now"


def test_scaling_by_one_takes_the_edit_back(open_app):
    app = open_app("surgery", checkpoint="tiny-sentiment", sentence=SENTENCE, layer="1", head="1")
    at = app.session_state["focus"]
    for value, specs in ((2.0, [f"scale:encoder.{at.layer}.self.{at.head}=2"]), (1.0, [])):
        next(element for element in app.slider if element.label == TEXT["scale"]).set_value(value)
        is_fine(app.run())
        assert list(chosen_texts(app, "edit")) == specs


def test_another_checkpoint_drops_what_it_has_no_place_for(open_app):
    app = cut(open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE), "zero:decoder.0.cross.1")
    app.query_params["checkpoint"] = "tiny-sentiment"
    is_fine(app.run())
    assert list(chosen_texts(app, "edit")) == []
    assert "zero:decoder.0.cross.1" in said(app)


def test_a_stopped_measurement_can_go_on(open_app, monkeypatch, tiny_checkpoint):
    app = open_app("surgery", checkpoint="tiny-gpt", sentence=SENTENCE)
    loaded = tiny_checkpoint("gpt")
    sentence = "A sentence that nobody has measured."
    app.session_state["long jobs: stopped"] = hash((Run(loaded, sentence), "importance"))
    app.query_params["sentence"] = sentence
    is_fine(app.run())
    assert TEXT["stopped"].format(done=0, total=4) in said(app)
    button(app, common("long.go_on")).click()
    is_fine(app.run())
    assert TEXT["map_caption"].format(count=4) in said(app)


def test_what_was_measured_before_a_stop_is_not_measured_again(open_app, monkeypatch, tiny_checkpoint):
    sentence = "A sentence that was half measured."
    loaded = tiny_checkpoint("gpt")
    whole = head_importance(transformer.trace(loaded, sentence))
    run = Run(loaded, sentence)
    store.keep(run, "importance so far", replace(whole, measured=whole.measured[:3]))
    seen = []

    def watched(trace, *, heads):
        seen.extend(heads)
        return importance_by_chunks(trace, heads=heads)

    monkeypatch.setattr("views.surgery.operations.importance_by_chunks", watched)
    app = open_app("overview", checkpoint="tiny-gpt", sentence=sentence)
    app.session_state["long jobs: stopped"] = hash((run, "importance"))
    app.switch_page("pages/surgery.py")
    is_fine(app.run())
    assert TEXT["stopped"].format(done=3, total=4) in said(app)
    button(app, common("long.go_on")).click()
    is_fine(app.run())
    assert tuple(seen) == whole.heads[3:]
    assert [row.place for row in store.known(run, "importance").measured] == list(whole.heads)


def test_a_given_target_and_padding(open_app):
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE, target="Le chat dort.", pads="2")
    cut(app, "mean:encoder.0.self.1")
    is_fine(app)
    assert common("effect.forced") in said(app)


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_snippet_gives_the_numbers_of_the_page(open_app, run_snippet, checkpoint):
    stack = "decoder" if checkpoint in ("tiny-translator", "tiny-gpt") else "encoder"
    app = cut(open_app("surgery", checkpoint=checkpoint, sentence=SENTENCE), f"zero:{stack}.0.self.1")
    snippet = next(code for code in codes(app) if "head_importance(trace" in code)
    expected = [float(number) for number in snippet.split("  # ")[1].split("\n")[0].split()]
    printed = [float(number) for number in run_snippet(snippet).splitlines()[0].split()]
    np.testing.assert_allclose(printed, expected, rtol=1e-4, atol=1e-6)


def test_the_sentence_on_its_way_through_the_edited_model(open_app, tiny_checkpoint) -> None:
    """Only when it is opened, and with the removed heads."""
    edit = "zero:decoder.0.self.0"
    closed = open_app("surgery", checkpoint="tiny-gpt", edit=edit)
    opened = open_app("surgery", checkpoint="tiny-gpt", edit=edit, edited_picture="true")
    is_fine(opened)
    hint = page_text("surgery")["picture_hint"]
    assert hint in said(opened) and hint not in said(closed)
    others = ("scale:decoder.0.self.1=0.5", "drop:decoder.1.self", "drop:decoder.1.feed_forward")
    assert list(cut_heads((edit, *others))) == [
        {"stack": "decoder", "kind": "self", "layer": 0, "head": 0},
        {"stack": "decoder", "kind": "self", "layer": 1, "head": None},
    ]


def test_a_long_sweep_is_estimated_until_it_is_asked_for(open_app, tiny_checkpoint, monkeypatch) -> None:
    drawn: list = []
    monkeypatch.setattr("views.surgery.operations.show_map", lambda figure, **_: drawn.append(figure))
    monkeypatch.setattr("ui.lab.sweeps.LARGE", 0)
    app = open_app("surgery", checkpoint="tiny-translator", sentence="A bird sat in a tree.")
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint("translator"), "A bird sat in a tree.")
    guess, measured = estimated_importance(trace), head_importance(trace)
    assert drawn[-1].arrays["values"][:2] == pytest.approx(guess.table("encoder", "self"), abs=1e-5)
    for place in strongest(guess, 5):
        change = next(one.change for one in measured.measured if one.place == place)
        assert f"measured {signed(change)}" in said(app), "its error stands beside it"
    shown = next(control for control in app.segmented_control if control.key == "surgery what")
    assert TEXT["estimate_kl"] in said(shown.set_value("kl").run()), "no slope tells a divergence"
    is_fine(app.button(key="sweep start").click().run())
    assert drawn[-1].arrays["values"][:2] == pytest.approx(measured.table("encoder", "self", "kl"), abs=1e-5)
    assert not any(button.key == "sweep start" for button in app.button)


@pytest.mark.parametrize(("checkpoint", "source"), [*zip(KINDS, ("prompts", "head", "word", "class"), strict=True)])
def test_a_direction_is_added_and_compared_with_random_ones(open_app, tiny_checkpoint, checkpoint, source):
    app = open_app("surgery", checkpoint=checkpoint, sentence=SENTENCE)
    choose_text(app, "surgery more", "steer")
    choose_text(app, "steer_source", source)
    loaded = tiny_checkpoint(checkpoint)
    if source == "word":
        word = next(word for word in ("the", "is", "a") if len(loaded.tokenizer.encode(word)) == 1)
        choose_text(app, "steer_word", word)
    is_fine(app.run())
    button(app, TEXT["steer_button"]).click()
    is_fine(app.run())
    (spec,) = chosen_texts(app, "edit")
    trace = transformer.trace(loaded, SENTENCE)
    found = steering_effect(trace, spec)
    assert f"**{three_digits(found.steered.kl)}**" in said(app)
    assert TEXT["steer_shows"] in said(app)
    table = next(element.value for element in app.dataframe if len(element.value) == 9)
    assert table[TEXT["steer_column"]["text"]].tolist()[0] == " ".join(found.steered.text.split())
    opened = open_app("surgery", checkpoint=checkpoint, sentence=SENTENCE, edit=spec)  # the address alone
    is_fine(opened)
    assert said(opened).count(f"**{three_digits(found.steered.kl)}**") == 1


def test_another_strength_takes_the_place_of_the_first(open_app):
    app = open_app("surgery", checkpoint="tiny-gpt", sentence=SENTENCE, edit="steer:decoder.1.residual=2 word the")
    is_fine(app)
    label = TEXT["edit"]["steer"].format(
        place=TEXT["part_short"]["decoder_residual"],
        layer=1,
        value=TEXT["steer_direction"]["word"].format(strength="2", first="the"),
    )
    assert any(element.label == label for element in app.button)
    first = ("steer:decoder.1.residual=2 word the", "steer:decoder.0.residual=2 word the")
    assert toggled(first, "steer:decoder.1.residual=5 word the") == (first[1], "steer:decoder.1.residual=5 word the")
