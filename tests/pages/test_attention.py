"""The Attention page: what reaches the browser is what the trace holds; actions and sentences fit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import transformer
from charts.canvas.attention_maps import QUERY_TITLE, SHIFTED_TITLE
from charts.toolkit.shades import colour_at, ink
from charts.toolkit.style import SEQUENTIAL, three_digits
from tests.pages.conftest import KINDS, chosen_texts, drawn, firing_table, is_fine, said, with_e
from transformer.attention_maps.attention_path import attention_path
from transformer.attention_maps.token_groups import sink_keys, without_keys
from transformer.heads.firing_examples import head_firings
from transformer.interventions.experiment import experiment
from transformer.runs.head_places import Head
from ui.sections import firing_list as listed
from ui.words.texts import common, filled, page_text
from views.attention.attention_sections import one_head, row_claim

TEXT = page_text("attention")
SENTENCE = "The unbelievable old man told us a story, isn't it?"
PAGE, USUAL = "attention", {"checkpoint": "tiny-translator", "sentence": SENTENCE, "layer": "1"}
CROSS = {"stack": "decoder", "kind": "cross", "target": "Le vieil homme."}
DECODER = {"stack": "decoder", "kind": "self", "target": "Le vieil homme."}


def place(f) -> tuple[str, int, str]:
    return f.stack, f.layer, f.kind


def shaded(app: AppTest) -> dict:
    (sent,) = [one.proto.json for one in app.get("bidi_component") if one.key == "attention shaded sentence"]
    return json.loads(sent)["rows"][0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_shows_every_step(open_page, kind: str) -> None:
    app, formulas = open_page(checkpoint=kind), []
    for step in range(1, 8):
        assert app.segmented_control(key="attention_step").value == str(step)
        formulas.append(tuple(latex.value for latex in app.latex))
        following = app.button(key="attention next")
        assert following.disabled == (step == 7)
        if step < 7:
            is_fine(following.click().run())
    assert len(set(formulas)) == 7


@pytest.mark.parametrize("kind", KINDS[:3])
def test_every_word_of_the_row_has_the_colour_and_the_number_of_its_weight(open_page, tiny_checkpoint, kind) -> None:
    app = open_page(checkpoint=kind, token="2", head="1", masked="none")
    focus, trace = app.session_state["focus"], transformer.trace(tiny_checkpoint(kind), SENTENCE)
    view = trace.attention(*place(focus))
    tokens = shaded(app)["tokens"]
    for word, token, weight, seen in zip(tokens, view.key, view.weights[1, 2], view.allowed[2], strict=True):
        assert token.display.endswith(word["text"])
        assert ("masked" in word["kind"]) == (not seen) == (word["ground"] == "")
        if seen:
            assert (word["ground"], word["ink"]) == tuple(
                shade(float(weight), colours=SEQUENTIAL) for shade in (colour_at, ink)
            )
            assert word["name"].endswith(three_digits(float(weight)))
    largest = max(float(view.weights[1].max()), 1e-9)
    stretched = shaded(open_page(checkpoint=kind, token="2", head="1", masked="none", attention_stretch="true"))[
        "tokens"
    ]
    share = min(1.0, float(view.weights[1, 2, 0]) / largest)
    assert stretched[0]["ground"] == colour_at(share, colours=SEQUENTIAL), "colours end at the largest weight"


@pytest.mark.sample("drawing", "language", of=2)
@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("drawing", ["map", "values", "rollout", "lines"])
def test_rows_are_named_after_what_they_predict_or_read(open_page, tiny_checkpoint, drawing, language) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, CROSS["target"])
    read, predicted = trace.target.labels[1].removeprefix("·"), trace.prediction.labels[1].removeprefix("·")
    for address, name, title in (
        (CROSS, predicted, SHIFTED_TITLE),
        ({**CROSS, "attention_predicted_cross": "false"}, read, QUERY_TITLE),
        (DECODER, read, QUERY_TITLE),
        ({**DECODER, "attention_predicted": "true"}, predicted, SHIFTED_TITLE),
    ):
        app = open_page(token="1", attention_show=drawing, language=language, **address)
        metadata = drawn(app, f"attention {drawing}")[0]
        assert metadata["rows"][1].removeprefix("·") == name
        assert language == "fr" or metadata["row_title"] == title
        assert f"**{name}**" in said(app), "the sentence above the map"
        assert name in shaded(app)["title"]
    app = open_page(token="1", attention_key="1", attention_show=drawing, language=language, **CROSS)
    assert read in app.caption[0].value or any(read in one.value for one in app.caption), "the query is of what is read"
    assert not any((toggle.key or "").startswith("attention_predicted") for toggle in open_page(stack="encoder").toggle)


def test_the_sentence_about_a_row_names_its_largest_weight(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, source_pads=1)
    view = one_head(trace.attention("encoder", 0), 1)
    for row in range(len(view.query) - 1):
        key, values = row_claim(view, row, head=1, label=view.query.labels[row])
        best = int(view.weights[0, row].argmax())
        assert (key, values["share"]) == ("aloud", pytest.approx(float(view.weights[0, row, best])))
        assert view.key.labels[best].endswith(str(values["first"]))
    assert row_claim(view, len(view.query) - 1, head=1, label="<pad>")[0] == "aloud_padding"
    nothing = transformer.AttentionView(**{**vars(view), "allowed": np.zeros_like(view.allowed)})
    assert row_claim(nothing, 0, head=1, label="x")[0] == "aloud_nothing"


# ---- one cell -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_says_its_weight(open_page, tiny_checkpoint, kind: str) -> None:
    app = open_page(checkpoint=kind, token="3", head="1", attention_key="2", masked="none")
    focus = app.session_state["focus"]
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE)
    cell = attention_path(trace, *place(focus), head=1).cell(query=3, key=2)
    check = re.search(r"here: \*\*(\S+)\*\*\. Recorded in the model: \*\*(\S+)\*\*", with_e(said(app)))
    ours, recorded = check.groups()
    assert (float(ours), float(recorded)) == pytest.approx((cell.weight, cell.recorded), abs=1e-6)
    assert any(r"\sqrt{d_k}} + b" in latex.value for latex in app.latex) == (kind == "tiny-sentiment"), (
        "the relative bias"
    )


def test_a_masked_cell_says_why_and_an_edge_what_it_changes(open_page, tiny_checkpoint) -> None:
    for address, reason in (
        ({**DECODER, "attention_key": "3"}, "causal"),
        ({**CROSS, "pads": "1", "attention_key": "<pad>"}, "padding"),
    ):
        app = open_page(token="1", **address)
        assert TEXT["reason"][reason] in said(app) and TEXT["edge_masked"] in said(app)
    assert TEXT["edge_nothing"] in said(open_page(checkpoint="tiny-bert", token="1", attention_key="3", masked="none"))
    app = open_page(stack="decoder", kind="cross", head="1", token="1", attention_key="2")
    edit = transformer.ablate_edge("decoder", layer=1, kind="cross", head=1, query=1, key=2)
    effect = experiment(transformer.trace(tiny_checkpoint("translator"), SENTENCE), [edit])
    shares = {"before": float(np.exp(effect.before[1])), "after": float(np.exp(effect.after[1]))}
    assert filled(TEXT["edge_word"], {"word": effect.asked.displays[1], **shares}, markdown=False) in said(app)


def test_a_cell_leads_to_all_heads_and_is_closed_and_forgotten(open_page) -> None:
    app = open_page(token="3", head="1", attention_key="2")
    app.button(key="cell heads").click().run()
    app.switch_page("pages/heads.py").run()  # AppTest does not follow a change of page by itself
    assert app.session_state["heads_section"] == "table" and chosen_texts(app, "heads_to") == ("2",)
    app = open_page(attention_key="2")
    app.text_input(key="sentence").set_value("Zwölf!").run()
    assert app.selectbox(key="attention_key").value is None, "the other sentence does not have it"
    app = open_page(attention_key="2")
    next(button for button in app.button if button.label == TEXT["arithmetic_close"]).click().run()
    assert app.selectbox(key="attention_key").value is None


# ---- below ----------------------------------------------------------------------------------------------------------


def test_the_sinks_are_left_out_with_one_button_and_said(open_page, tiny_checkpoint) -> None:
    view = transformer.trace(tiny_checkpoint("gpt"), SENTENCE).attention("decoder", 1, "self")
    app = open_page(
        checkpoint="tiny-gpt", head="1", token="3", attention_section="reading", attention_whole_words="false"
    )
    app.button(key="attention leave out sinks").click()
    is_fine(app.run())
    sinks = sink_keys(view)
    assert app.multiselect(key="attention_left_out").value == list(sinks)
    np.testing.assert_allclose(
        drawn(app, "attention words")[1]["values"], without_keys(view, sinks).weights[1], atol=1e-6
    )
    gone = view.weights[1][:, list(sinks)].sum(axis=-1)
    for share in (float(gone.mean()), float(gone[3])):
        assert filled("{share:%}", {"share": share}, markdown=False) in said(app)


FIRES = {"attention_section": "fires"}
OWN = ("own.txt", b"The dog sees the cat.\n\nA bird sings.\n", "text/plain")


@pytest.mark.slow
def test_largest_weights_and_own_sentences(open_app, tiny_checkpoint, few_sentences, monkeypatch) -> None:
    place = {"stack": "decoder", "kind": "cross", "layer": "1", "head": "1"}
    app = open_app("attention", checkpoint="tiny-translator", **place, **FIRES)
    is_fine(app)
    checkpoint, head = tiny_checkpoint("translator"), Head("decoder", "cross", 1, 1)
    firings = head_firings(checkpoint, few_sentences)[head]
    np.testing.assert_allclose(firing_table(app)[common("fires.weight")], [one.value for one in firings], atol=1e-5)
    assert [*firing_table(app)[common("fires.key")]] == [one.read[one.key].display for one in firings]
    app.file_uploader(key="sentence list file").set_value([OWN])
    is_fine(app.run())
    assert "2 sentences (own.txt)" in said(app)
    own = head_firings(checkpoint, ["The dog sees the cat.", "A bird sings."])[head]
    np.testing.assert_allclose(firing_table(app)[common("fires.weight")], [one.value for one in own], atol=1e-5)
    monkeypatch.setenv("GLASSFORMER_SENTENCES", "1")  # a limit is read when it is needed
    assert common("sentences.cut", most=1, count=2) in said(app.run())


def test_a_public_server_takes_no_file(open_app: Callable, public_server: None, few_sentences: tuple) -> None:
    app = open_app("attention", checkpoint="tiny-bert", **FIRES)
    is_fine(app)
    assert not app.file_uploader and len(firing_table(app))


def test_a_chosen_row_is_opened(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    firings = head_firings(tiny_checkpoint("gpt"), ["The dog sees the cat."])[Head("decoder", "self", 0, 0)]
    opened = []
    for rows in ([0], [], [7]):  # a row is chosen, none is, then a row of a list that is gone
        state = {f"data {listed.TABLE}": SimpleNamespace(selection=SimpleNamespace(rows=rows))}
        monkeypatch.setattr(st, "session_state", state)
        listed.open_chosen(firings, opened.append)
    assert opened == [firings[0]]
