"""The Paths page: patching into the corrupted sentence, and messages if there is nothing to patch."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.toolkit.numbers import percent
from charts.toolkit.style import signed, three_digits
from tests.conftest import ROOT
from tests.pages.conftest import codes, is_fine, said
from tests.triggers import trigger
from transformer.attribution.attention_trust import spearman
from transformer.attribution.information_flow import information_flow, start_of
from transformer.heads.prompt_batch import WHOLE, cases_of, lines_of, prompt_batch, token_of
from transformer.interventions.activation_patching import (
    Place,
    contrast,
    head_places,
    recovered_shares,
    replace_turn_tokens,
    token_places,
)
from transformer.interventions.attribution_patching import estimated_shares
from transformer.interventions.edge_attribution import estimated_edges
from transformer.interventions.patch_cone import patch_cone
from transformer.interventions.path_patching import path_patching, senders_of
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.head_places import Head
from ui.words.texts import page_text
from views.paths.paths_view_model import LEAST_SHOWN, NARROW, PathsChoices, patched_places

TEXT = page_text("paths")
SENTENCE = "The cat sat on the mat."
Open = Callable[..., AppTest]


def corrupted(app: AppTest) -> str:
    return app.text_input(key="paths corrupted").value


@pytest.mark.parametrize("checkpoint", ["en-fr", "gpt-en"])
def test_it_opens_on_a_swap_of_the_sentence_that_changes_a_prediction(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = "My grandmother bakes apple pie every Sunday."
    app = open_app("paths", checkpoint=checkpoint, sentence=sentence)
    is_fine(app)
    assert corrupted(app) != sentence and "; originally, " in said(app)
    swaps = [element.label for element in app.button if "→" in element.label]
    assert len(swaps) > 1 and not any(label.startswith("other sentence") for label in swaps)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translator", "gpt"])
@pytest.mark.parametrize("section", ["tokens", "heads"])
def test_the_map_is_what_the_library_measures(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, run_snippet: Callable,
    kind: str, section: str,
) -> None:  # fmt: skip
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    app = open_app("paths", checkpoint=f"tiny-{kind}", sentence=SENTENCE, paths_section=section, paths_tokens="true")
    is_fine(app)
    both = contrast(transformer.trace(tiny_checkpoint(kind), SENTENCE), corrupted(app))
    turn, (figure,) = both.first_turn, drawn[-1:]
    if section == "heads":
        expected = np.concatenate([recovered_shares(both, turn, head_places(both, stack)) for stack in both.clean])
    else:  # the residual stream of both stacks, side by side
        grids = [[row for row in token_places(both, turn, stack) if row[0].part == "residual"] for stack in both.clean]
        expected = np.concatenate([recovered_shares(both, turn, grid) for grid in grids], axis=1)
    assert figure.arrays["values"] == pytest.approx(expected, abs=1e-5)
    assert (len(figure.metadata["rows"]), len(figure.metadata["columns"])) == expected.shape
    assert figure.metadata.get("column_breaks", []) == (
        [len(both.clean["encoder"])] if section == "tokens" and "encoder" in both.clean else []
    )
    printed = run_snippet(next(code for code in codes(app) if "recovered" in code))
    assert len(printed.strip().splitlines()) == expected.size
    if section == "tokens":
        app.toggle(key="paths_parts").set_value(True)
        is_fine(app.run())
        more = drawn[-1].arrays["values"]
        assert len(more) > len(expected) and more[: len(expected)] == pytest.approx(expected, abs=1e-5)
    asked = app.selectbox(key="paths_turn")
    is_fine(asked.set_value(asked.options[-1]).run())
    assert not np.array_equal(drawn[-1].arrays["values"], figure.arrays["values"]) or len(set(asked.options)) == 1


@pytest.mark.parametrize("checkpoint", ["en-fr", "gpt-en", "bert-en", "sentiment", "vit-digits"])
def test_the_page_opens_on_a_swap_whose_effect_is_seen(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    app = open_app("paths", checkpoint=checkpoint)
    is_fine(app)
    assert len(drawn) == 1, "one map"
    (headline,) = [one.value for one in app.markdown if one.value.startswith("Put back")]
    pair = r"the model predicts :blue\[\*\*“.+”\*\*\] \(\S+\); originally, \*\*“.+”\*\* \(\S+\)\."
    assert re.search(pair, said(app))
    labels = drawn[0].metadata["columns"]
    assert drawn[0].arrays["values"].shape[1] == len(labels)
    largest = np.abs(drawn[0].arrays["values"]).max(axis=0)
    assert len(labels) <= NARROW or (largest >= LEAST_SHOWN).all(), "only tokens that matter"
    row, column = drawn[0].metadata["selected"]
    share = float(drawn[0].arrays["values"][row, column])
    assert row > 0 and share > 0.6, "what is named is no input, and it does most of the work"
    assert "**all** of the change" in headline or f"**{percent(share)}** of the change" in headline
    assert "1." not in headline and int((re.findall(r"\*\*(\d+)%", headline) or ["0"])[0]) <= 100, "no more than all"


def test_a_click_leads_to_the_head_or_chooses_the_place(open_app: Open) -> None:
    app = open_app("paths", checkpoint="tiny-gpt", sentence=SENTENCE, paths_section="tokens", paths_tokens="true")
    is_fine(trigger(app, "patching", "click", {"query": 1, "key": 1}))
    assert (app.session_state["focus"].layer, app.session_state["focus"].token) == (1, 1)
    app = open_app("paths", checkpoint="tiny-gpt", sentence=SENTENCE, paths_section="heads")
    is_fine(trigger(app, "patching", "click", {"query": 0, "key": 1}))
    assert (app.session_state["focus"].layer, app.session_state["focus"].head) == (0, 1)
    assert app.title[0].value == page_text("attention").title


def test_a_ready_pair_brings_its_sentence_along(open_app: Open) -> None:
    app = open_app("paths", checkpoint="tiny-translator", sentence=SENTENCE)
    pairs = [button for button in app.button if button.key.startswith("paths corrupted pair")]
    is_fine(next(button for button in pairs if "other sentence" in button.label).click().run())
    assert app.session_state["focus"].sentence != SENTENCE != corrupted(app)
    assert corrupted(app) != app.session_state["focus"].sentence


def test_a_text_that_does_not_fit_is_a_sentence_and_an_empty_one_a_hint(open_app: Open) -> None:
    app = open_app("paths", checkpoint="tiny-translator", sentence=SENTENCE)
    app.text_input(key="paths corrupted").set_value("The cat.").run()
    assert not app.exception and not app.error and "as many tokens" in app.warning[0].value
    app.text_input(key="paths corrupted").set_value(" ").run()
    assert not app.exception and app.info[0].value == TEXT["corrupted_empty"]


def test_a_sentence_without_words_offers_nothing(open_app: Open) -> None:
    app = open_app("paths", checkpoint="tiny-sentiment", sentence="… 12 ?")
    assert not app.exception and not app.error and not app.warning
    assert TEXT["corrupted_empty"] in [info.value for info in app.info] or said(app)


def test_a_long_sweep_is_estimated_until_it_is_asked_for(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    monkeypatch.setattr("ui.lab.sweeps.LARGE", 0)
    app = open_app("paths", checkpoint="tiny-translator", sentence="A dog sat on the mat.", paths_section="heads")
    is_fine(app)
    guess = drawn[-1]
    assert "Estimated" in guess.metadata["title"]
    button = app.button(key="sweep start")
    places = 3 * 2 * 2  # three kinds of attention, two layers of two heads
    assert re.sub(r"\(\d+", "(n", TEXT["start"].format(passes=2, places=places)) == re.sub(r"\(\d+", "(n", button.label)
    both = contrast(transformer.trace(tiny_checkpoint("translator"), "A dog sat on the mat."), corrupted(app))
    every = [place for stack in both.clean for row in head_places(both, stack) for place in row]
    estimates = estimated_shares(both, both.first_turn, [every])[0]
    assert guess.arrays["values"].ravel() == pytest.approx(estimates, abs=1e-5)
    strongest = recovered_shares(both, both.first_turn, [every])[0][np.argmax(np.abs(estimates))]
    assert f"measured {signed(float(strongest))}" in said(app), "its error stands beside it"
    is_fine(button.click().run())
    assert "ranks the locations" in said(app) and "Share" in drawn[-1].metadata["title"]
    assert not any(button.key == "sweep start" for button in app.button)
    is_fine(app.run())
    assert not any(button.key == "sweep start" for button in app.button)


def test_what_a_head_hears_is_what_the_library_measures(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, run_snippet: Callable
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    place = {"stack": "decoder", "kind": "cross", "layer": "1", "head": "1"}
    app = open_app("paths", checkpoint="tiny-translator", sentence=SENTENCE, paths_section="edges", **place)
    is_fine(app)
    both = contrast(transformer.trace(tiny_checkpoint("translator"), SENTENCE), corrupted(app))
    receiver = Head("decoder", "cross", 1, 1)
    shares = path_patching(both, both.first_turn, receiver)
    values = drawn[-1].arrays["values"]
    for sender, share in zip(senders_of(both, receiver), shares, strict=True):
        row = drawn[-1].metadata["rows"].index(f"{TEXT[f'from_{sender.stack}_{sender.kind}']} {sender.layer}")
        assert values[row, sender.head] == pytest.approx(share, abs=1e-6)
    guess = estimated_edges(both, both.first_turn, receiver)
    assert f"ρ = {three_digits(spearman(guess, shares))}" in said(app)
    printed = run_snippet(next(code for code in codes(app) if "path_patching" in code)).splitlines()
    numbers = [[float(number) for number in line.split()[-2:]] for line in printed]
    np.testing.assert_allclose(numbers, np.stack([shares, guess], axis=1), rtol=1e-4, atol=1e-6)
    place |= {"paths_edges": "true"}
    is_fine(open_app("paths", checkpoint="tiny-translator", sentence=SENTENCE, paths_section="edges", **place))
    app = open_app("paths", checkpoint="tiny-gpt", sentence=SENTENCE, paths_section="edges", layer="0")
    assert "No head comes before" in app.info[0].value and not app.exception
    next(button for button in app.button if button.label.startswith("Choose")).click()
    is_fine(app.run())
    assert not app.info and app.session_state["focus"].layer > 0


@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_the_routes_are_those_of_the_library(
    open_app: Open, tiny_checkpoint: Callable, run_snippet: Callable, kind: str
) -> None:
    app = open_app("paths", checkpoint=f"tiny-{kind}", sentence=SENTENCE, paths_section="flow")
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint(kind), SENTENCE)
    found = information_flow(trace, start_of(trace, prediction_rows(trace).rows[0]), threshold=0.05)
    assert TEXT["flow_shapes"].format(edges=len(found.edges)) in said(app)
    assert "Edge(" in run_snippet(next(code for code in codes(app) if "flow_graph" in code))
    assert not any(control.key == "choose stack" for control in app.segmented_control), "routes go through all stacks"
    app.slider(key="paths_threshold").set_value(0.3)
    is_fine(app.run())
    fewer = information_flow(trace, start_of(trace, prediction_rows(trace).rows[0]), threshold=0.3)
    assert TEXT["flow_shapes"].format(edges=len(fewer.edges)) in said(app)


def test_the_reader_chooses_what_the_answer_is_measured_against(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, run_snippet: Callable
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    app = open_app("paths", checkpoint="tiny-gpt", sentence=SENTENCE, paths_section="heads")
    checkpoint = tiny_checkpoint("gpt")
    both = contrast(transformer.trace(checkpoint, SENTENCE), corrupted(app))
    own = both.first_turn
    word = next(word for word in ("the", "a", "is") if token_of(checkpoint, SENTENCE, word) not in own[1:3])
    is_fine(app.text_input(key="paths_other").set_value(word).run())
    turn = replace_turn_tokens(both, own, other=token_of(checkpoint, SENTENCE, word))
    assert drawn[-1].arrays["values"] == pytest.approx(
        recovered_shares(both, turn, head_places(both, "decoder")), abs=1e-5
    )
    assert signed(turn.corrupt) in said(app)
    run_snippet(next(code for code in codes(app) if f"other={turn.other}" in code))
    app.text_input(key="paths_other").set_value("incomprehensibilities").run()
    assert not app.exception and not app.error and "tokens of this model" in app.warning[0].value
    app.text_input(key="paths_other").set_value("").run()
    is_fine(app)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translator", "gpt", "bert", "sentiment"])
def test_many_prompts_are_measured_as_the_library_does(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, run_snippet: Callable, kind: str
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    app = open_app("paths", checkpoint=f"tiny-{kind}", sentence=SENTENCE, paths_section="many")
    is_fine(app)
    assert TEXT["many_unread"] in [info.value for info in app.info] and not drawn
    pairs = [
        ("The cat ___ on the mat.", "The dog ___ on the mat."),
        ("The dog ___ on the mat.", "The cat ___ on the mat."),
    ]
    pairs = [tuple(each.replace("___", "___" if kind == "bert" else "sat") for each in pair) for pair in pairs]
    typed = "clean,corrupted\n" + "".join(f"{a},{b}\n" for a, b in pairs) + "The cat.,no\n"
    app.text_area(key="paths many text").set_value(typed).run()
    assert ["Line 4" in warning.value for warning in app.warning] == [True]
    app.button(key="paths many start").click().run()
    assert not app.exception and not app.error
    checkpoint = tiny_checkpoint(kind)
    cases, _ = cases_of(checkpoint, lines_of(typed))
    found = prompt_batch(checkpoint, cases)
    best = max(abs(part.estimated.mean) for part in found.parts if part.head != WHOLE)
    assert np.abs(drawn[-1].arrays["values"]).max() == pytest.approx(best, abs=1e-5)
    table = next(each.value for each in app.dataframe if TEXT["many_column"]["patched_share"] in each.value)
    assert len(table) == len(found.parts)
    assert not any(button.key == "paths many start" for button in app.button)
    assert "attribution_mean" in run_snippet(next(code for code in codes(app) if "prompt_batch" in code))
    app.text_area(key="paths many text").set_value(typed + f"{pairs[0][1]},{pairs[0][0]}\n").run()
    assert not app.exception and len(app.dataframe) == 2, "the last result stays until the next is there"
    assert any(button.key == "paths many start" for button in app.button)


def test_a_file_stands_in_for_what_is_typed_and_bad_ones_are_named(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app("paths", checkpoint="tiny-gpt", sentence=SENTENCE, paths_section="many")
    for content, problem in ((b"clean,wrong\na,b\n", "wrong"), (b"clean\n\xff\n", "Line 2"), (b"", "no line")):
        app.file_uploader(key="paths many file").set_value([("pairs.csv", content, "text/csv")])
        app.run()
        assert not app.exception and not app.error and problem in app.warning[0].value
    app.file_uploader(key="paths many file").set_value([("pairs.txt", b"The cat sat.\nThe dog sat.\n", "text/plain")])
    is_fine(app.run())
    is_fine(app.button(key="paths many start").click().run())
    assert TEXT["many_says_attribution"].split("**")[-1].split("{")[0] in said(app)
    app.file_uploader(key="paths many file").set_value([("pairs.csv", b"other\n", "text/csv")])
    app.run()
    assert len(app.warning) == 1 and len(app.dataframe) == 2


def test_edges_are_estimated_until_their_measurement_is_asked_for(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    monkeypatch.setattr("ui.lab.sweeps.LARGE", 0)
    sentence = "A cat sat near the mat."
    app = open_app("paths", checkpoint="tiny-bert", sentence=sentence, paths_section="edges", layer="1", head="1")
    is_fine(app)
    both = contrast(transformer.trace(tiny_checkpoint("bert"), sentence), corrupted(app))
    receiver = Head("encoder", "self", 1, 1)
    guess, shares = (work(both, both.first_turn, receiver) for work in (estimated_edges, path_patching))
    assert drawn[-1].arrays["values"][0] == pytest.approx(guess, abs=1e-6)
    assert f"measured {three_digits(float(shares[0]))}" in said(app), "its error stands beside it"
    is_fine(app.button(key="sweep start").click().run())
    assert drawn[-1].arrays["values"][0] == pytest.approx(shares, abs=1e-6)


@pytest.mark.parametrize("kind", ["translator", "gpt"])
def test_the_cone_of_the_chosen_vector_is_outlined(
    open_app: Open, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    drawn: list = []
    monkeypatch.setattr("views.paths.patching.show_map", lambda figure, **_: drawn.append(figure))
    place = {"stack": "decoder" if kind == "gpt" else "encoder", "layer": "1", "token": "2", "paths_parts": "true"}
    open_app("paths", checkpoint=f"tiny-{kind}", sentence=SENTENCE, **place)
    assert "outlined" not in drawn[-1].arrays, "not before it is asked for"
    app = open_app("paths", checkpoint=f"tiny-{kind}", sentence=SENTENCE, paths_cone="true", **place)
    is_fine(app)
    both = contrast(transformer.trace(tiny_checkpoint(kind), SENTENCE), corrupted(app))
    turn = both.first_turn
    start = Place(place["stack"], "residual", 1, 2)
    cone = patch_cone(transformer.trace(tiny_checkpoint(kind), SENTENCE), start)
    cells = [other for row in patched_places(both, turn, PathsChoices(every_part=True)) for other in row]
    bits = np.unpackbits(np.frombuffer(drawn[-1].arrays["outlined"], np.uint8), bitorder="little")[: len(cells)]
    assert bits.tolist() == [int(other in cone.places) for other in cells]
    assert 0 < bits.sum() < len(cells)
    reached, total = int(bits.sum()), sum(other is not None for other in cells)
    assert f"{reached} of the {total} on the map" in said(app)


def test_the_sentence_about_a_vector_names_a_full_stop(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("paths", checkpoint="gpt-en", sentence="I love you.")
    is_fine(app)
    assert "that of **the full stop** where it enters layer 3" in said(app)
