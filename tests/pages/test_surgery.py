"""The Surgery page: the map of all heads, every way to edit the model, and the output after each edit."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.style import signed, three_digits
from tests.pages.conftest import KINDS, choose_text, chosen_texts, drawn, is_fine, said
from transformer.interventions.attribution_patching import estimated_importance, strongest
from transformer.interventions.head_importance import head_importance
from transformer.interventions.steering import steering_effect
from ui.shell.page_state import Choices
from ui.words.texts import common, page_text
from views.surgery import edit_list

TEXT = page_text("surgery")
SENTENCE = "The old man ___ the sea."


def heads(app):
    """Return the metadata of the map of all heads, and its numbers."""
    metadata, arrays = drawn(app, "importance")
    return metadata, arrays["values"]


def cut(app, *specs):
    return choose_text(app, "edit", *specs).run()


def button(app, label):
    return next(element for element in app.button if element.label == label)


def edits_of(app):
    return list(chosen_texts(app, "edit"))


def test_a_head_that_is_removed_is_crossed_and_what_is_not_signed_has_a_scale_of_its_own(open_app) -> None:
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE, edit="zero:encoder.1.self.1")
    is_fine(app)
    assert (heads(app)[0]["scale"], heads(app)[0]["crossed"]) == ("diverging", [[1, 1]])
    assert not any(each.key == "keep removed" for each in app.button), "a head is removed already"
    is_fine(choose_text(app, "surgery what", "kl").run())
    assert heads(app)[0]["scale"] == "sequential"


def test_the_frame_is_on_the_selected_head_and_the_removal_offered_says_which_head_it_is(open_app, tiny_checkpoint):
    importance = head_importance(transformer.trace(tiny_checkpoint("translator"), SENTENCE))
    most = min(importance.measured, key=lambda one: (not one.predicts_otherwise, one.change)).place
    other = next(head for head in importance.heads if head.layer != most.layer and head.head != most.head)
    place = {"stack": other.stack, "kind": other.kind, "layer": other.layer, "head": other.head}
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE, **place)
    is_fine(app)
    rows = list(dict.fromkeys(head[:3] for head in importance.heads))
    assert tuple(heads(app)[0]["selected"]) == (rows.index(other[:3]), other.head)
    keep = app.button(key="keep removed")
    assert f"{most.layer}" in keep.label and f"{most.head}" in keep.label
    is_fine(keep.click().run())
    assert edits_of(app) == [f"zero:{most.stack}.{most.layer}.{most.kind}.{most.head}"]
    assert tuple(heads(app)[0]["selected"]) == (rows.index(other[:3]), other.head)


@pytest.mark.parametrize(
    ("place", "measured"),
    [
        ({"checkpoint": "tiny-translator"}, "factor"),
        ({"checkpoint": "tiny-translator", "target": "Le chat."}, "factor_forced"),
        ({"checkpoint": "tiny-bert", "sentence": "The old man sees."}, "factor_predicted"),
        ({"checkpoint": "tiny-bert"}, "factor"),
        # links to the change in per cent
        *(
            ({"surgery what": old}, "factor")
            for old in ("p", "what_p", "change in p(output)", "change in log p(output)")
        ),
    ],
)
def test_the_map_names_the_probability_that_it_measures(open_app, place, measured):
    app = open_app("surgery", **{"checkpoint": "tiny-gpt", "sentence": SENTENCE, "masked": "none", **place})
    is_fine(app)
    assert heads(app)[0]["title"] == TEXT["map"]["change"].format(p=common(f"effect.{measured}"))


@pytest.mark.slow
def test_every_way_to_change_something_else(open_app):
    """The head chosen above the figure is the one that is changed."""
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder", kind="cross", layer="1")

    def way(name):
        is_fine(choose_text(app, "surgery more", name).run())

    way("head")
    for value, specs in ((0.5, ["scale:decoder.1.cross.0=0.5"]), (1.0, []), (2.0, ["scale:decoder.1.cross.0=2"])):
        next(element for element in app.slider if element.label == TEXT["scale"]).set_value(value)
        is_fine(app.run())
        assert edits_of(app) == specs
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
    assert edits_of(app) == [
        "edge:decoder.1.cross.0=0-0",
        "drop:decoder.1.self",
        "residual:decoder.1.self",
        "patch:decoder.1.cross.0=I do <b>not</b> know.",  # replaces the scaled head
    ]
    next(element for element in app.text_input if element.label == TEXT["patch"]).set_value(" ")
    button(app, TEXT["patch_button"]).click()
    app.run()
    assert not app.exception and not app.error and "empty" in app.warning[0].value


def test_a_long_sweep_is_estimated_until_it_is_asked_for(open_app, tiny_checkpoint, monkeypatch) -> None:
    monkeypatch.setattr("ui.sections.sweeps.LARGE", 0)
    app = open_app("surgery", checkpoint="tiny-translator", sentence="A bird sat in a tree.")
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint("translator"), "A bird sat in a tree.")
    guess, measured = estimated_importance(trace), head_importance(trace)
    assert heads(app)[1][:2] == pytest.approx(guess.table("encoder", "self"), abs=1e-5)
    for place in strongest(guess, 5):
        change = next(one.change for one in measured.measured if one.place == place)
        assert signed(change) in said(app), "its error stands beside it"
    shown = next(control for control in app.segmented_control if control.key == "surgery what")
    assert TEXT["estimate_kl"] in said(shown.set_value("kl").run()), "no slope tells a divergence"
    is_fine(app.button(key="sweep start").click().run())
    assert heads(app)[1][:2] == pytest.approx(measured.table("encoder", "self", "kl"), abs=1e-5)
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
    (spec,) = edits_of(app)
    found = steering_effect(transformer.trace(loaded, SENTENCE), spec)
    assert f"**{three_digits(found.steered.kl)}**" in said(app)
    table = next(element.value for element in app.dataframe if len(element.value) == 9)
    assert table[TEXT["column"]["text"]].tolist()[0] == " ".join(found.steered.text.split())
    opened = open_app("surgery", checkpoint=checkpoint, sentence=SENTENCE, edit=spec)  # the address alone
    is_fine(opened)
    assert said(opened).count(f"**{three_digits(found.steered.kl)}**") == 1


def test_another_checkpoint_drops_what_it_has_no_place_for(open_app) -> None:
    app = cut(open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE), "zero:decoder.0.cross.1")
    app.query_params["checkpoint"] = "tiny-sentiment"
    is_fine(app.run())
    assert edits_of(app) == []
    assert "zero:decoder.0.cross.1" in said(app)


HERE = "zero:encoder.0.self.1"
MANY = [f"scale:encoder.0.self.0={number}" for number in range(900)]
NONSENSE = ["zero:encoder.9.self.1", "<script>", "scale:decoder.0.self.1=much", "mask:decoder.*.self=window x", ""]


@pytest.mark.parametrize(
    ("asked", "kept", "named"),
    [
        ([*NONSENSE, HERE], [HERE], NONSENSE[:4]),
        (["edge:encoder.0.self.1=99-0", "edge:decoder.1.cross.1=1-98", HERE], [HERE], ["99-0", "1-98"]),
        (MANY, MANY[: edit_list.MOST], [MANY[edit_list.MOST], f"({900 - edit_list.MOST} in all)"]),
    ],
    ids=["no edits", "tokens that the sentence lacks", "too many"],
)
def test_edits_of_an_address_that_cannot_be_made_are_left_out_and_named(open_app, asked, kept, named) -> None:
    app = open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE, edit=asked)
    is_fine(app)
    assert edits_of(app) == kept and app.query_params["edit"] in (kept, kept[0])
    assert all(text in said(app) for text in named) and len(said(app)) < 20_000


def test_edits_stay_while_another_page_is_open(open_app) -> None:
    app = cut(open_app("surgery", checkpoint="tiny-translator", sentence=SENTENCE), "zero:encoder.0.self.1")
    for page in ("tokens", "surgery"):
        is_fine(app.switch_page(f"pages/{page}.py").run())
    assert edits_of(app) == ["zero:encoder.0.self.1"]
    assert app.query_params["edit"] in ("zero:encoder.0.self.1", ["zero:encoder.0.self.1"])


def test_another_strength_takes_the_place_of_the_first() -> None:
    def script() -> None:
        from views.surgery import edit_list

        edit_list.add("steer:decoder.1.residual=5 word the")

    first = ("steer:decoder.1.residual=2 word the", "steer:decoder.0.residual=2 word the")
    app = AppTest.from_function(script)
    app.session_state["page state: choices"] = {"surgery": Choices(set={"edit": first})}
    assert not app.run().exception
    found = app.session_state["page state: choices"]["surgery"].set["edit"]
    assert found == (first[1], "steer:decoder.1.residual=5 word the")
