"""What is a page's own, and small: Overview, Positions, Add & Norm, Feed-forward.

What these pages draw and say is in ``test_drawn.py``.
"""

from __future__ import annotations

import pytest

import transformer
from tests.pages.conftest import choose_text, is_fine, said
from transformer.attribution.direct_logit_attribution import predicting_units
from transformer.files.opening_file import read_opening
from transformer.interventions.silenced_unit import unit_effect
from transformer.layers.feed_forward_units import strongest_units
from ui.shell.focus import FIRST_CHOSEN
from ui.words.texts import page_text
from views.positions import positions_sections as sections

SENTENCE = "The old man told us a story."

# ---- Overview -------------------------------------------------------------------------------------------------------


def test_the_tour_begins_on_the_first_screen(open_app, shipped_folder) -> None:
    app = open_app("overview", checkpoint="en-fr")
    assert app.button(key="take the tour").label == page_text("overview")["tour"].format(minutes=3)
    app = open_app("overview", checkpoint="en-fr", lesson="tour")
    assert "take the tour" not in [button.key for button in app.button], "who takes it already is not asked again"


@pytest.mark.sample("language")
@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("page", ["overview", "decoding"])
def test_a_classifier_of_reviews_says_on_what_it_was_trained_beside_its_prediction(
    open_app, shipped_folder, page, language
) -> None:
    told = read_opening(shipped_folder / "sentiment").trained_on[language]
    for checkpoint, count in {"sentiment": 1, "bert-en": 0}.items():
        app = open_app(page, checkpoint=checkpoint, sentence="She baked a cake.", language=language)
        is_fine(app)
        assert said(app).count(told) == count


# ---- Positions ------------------------------------------------------------------------------------------------------


def test_a_click_on_a_card_makes_it_one_of_the_two(monkeypatch):
    pair = {"swap first": 1, "swap second": 4}
    rows = [[None, 1, 2, 3, 4, 5], [None, 1, 2, 3, 5, 4]]  # a special token stays where it is
    monkeypatch.setattr(sections.choice, "put", pair.__setitem__)
    for row, card, wanted in ((0, 3, (4, 3)), (0, 3, (4, 3)), (0, 0, (4, 3)), (1, 4, (3, 5))):
        sections._take(rows[row], tuple(pair.values()), 0, card)
        assert tuple(pair.values()) == wanted


def test_one_token_has_nothing_to_change_places_with(open_app, tiny_tokenizer):
    assert len(tiny_tokenizer.encode("a")) == 1
    app = open_app("positions", checkpoint="tiny-translator", sentence="a")
    assert page_text("positions")["too_short"] in said(app)


# ---- Add & Norm -----------------------------------------------------------------------------------------------------


def test_the_page_begins_at_a_word_until_the_first_token_is_clicked(open_app, tiny_checkpoint) -> None:
    app = open_app("add_norm", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder")
    start, word = transformer.trace(tiny_checkpoint("tiny-translator"), SENTENCE).tokens("decoder")[:2]
    assert start.special and f"copy of **{word.display}**" in said(app)
    assert app.session_state["focus"].token == 0, "what all pages share stays as it is"
    assert f"copy of **{start.display}**" in said(choose_text(app, FIRST_CHOSEN, "1").run()), "what a click says"


def test_a_norm_that_another_layer_has_is_left_behind(open_app) -> None:
    app = open_app("add_norm", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder")
    app.segmented_control(key="norm").set_value("cross_attention_norm").run()
    app.selectbox(key="choose stack").set_value("encoder").run()
    is_fine(app)
    assert "cross-attention" not in "".join(latex.value for latex in app.latex)


# ---- Feed-forward ---------------------------------------------------------------------------------------------------

PAGE, USUAL = "feed_forward", {"sentence": SENTENCE, "layer": "1", "token": "2"}
SUNDAY = "My grandmother bakes apple pie every Sunday."


@pytest.mark.parametrize(("checkpoint", "stack"), [("tiny-translator", "decoder"), ("tiny-gpt", "decoder")])
def test_a_unit_is_chosen_among_the_strongest_of_the_token(open_page, tiny_checkpoint, checkpoint, stack) -> None:
    app = open_page(**{"feed-forward view": "words"}, checkpoint=checkpoint, stack=stack, layer="0", token="1")
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    here, there = (strongest_units(trace, stack, 0, token, count=12) for token in (1, 4))
    assert tuple(app.dataframe[0].value["unit"]) == here
    app.segmented_control(key="unit").set_value(next(unit for unit in here if unit not in there)).run()
    is_fine(app)
    app.query_params["token"] = "4"
    is_fine(app.run())
    assert app.segmented_control(key="unit").value == there[0], "a unit that is not strong there is left behind"


@pytest.mark.sample
@pytest.mark.parametrize("checkpoint", ["en-fr", "gpt-en", "bert-en", "sentiment"])
def test_the_page_opens_on_the_unit_with_the_largest_direct_effect(open_page, shipped_folder, checkpoint) -> None:
    sentence = SUNDAY.replace("Sunday", "___") if checkpoint == "bert-en" else SUNDAY
    app = open_page(checkpoint=checkpoint, sentence=sentence, layer="", token="")
    strategy = transformer.Greedy(1) if checkpoint == "gpt-en" else None
    trace = transformer.trace(transformer.load(shipped_folder / checkpoint), sentence, strategy=strategy)
    found = predicting_units(trace, most=6)
    offered = [option.content for option in app.pills(key="unit_shown").proto.options]
    assert len(offered) == len(found) and app.pills(key="unit_shown").value.endswith(f".{found[0].unit}")
    assert all(str(one.layer) in text and str(one.unit) in text for one, text in zip(found, offered, strict=True))
    assert app.session_state["focus"].token == 0, "what all pages share stays as it is"
    assert not [one for one in app.selectbox if one.key == "choose layer"], "units are of any layer"
    app.query_params["token"] = "2"
    is_fine(app.run())
    assert app.button(key="predicting units").click().run().pills(key="unit_shown").value.endswith(f".{found[0].unit}")


def test_the_opening_of_a_checkpoint_names_a_unit_whose_removal_changes_the_output(open_page, shipped_folder) -> None:
    opening = read_opening(shipped_folder / "gpt-en").first
    app = open_page(checkpoint="gpt-en", sentence=opening.sentence, layer="", token="")
    assert app.pills(key="unit_shown").value == f"decoder.{opening.place['layer']}.{opening.unit}"
    trace = transformer.trace(transformer.load(shipped_folder / "gpt-en"), opening.sentence)
    before, after = unit_effect(trace, "decoder", opening.place["layer"], opening.unit, position=opening.place["token"])
    assert abs(before - after).max() > 0.02
