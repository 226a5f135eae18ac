"""The page Feed-forward: every view of every kind of model, with numbers that agree with the trace."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from html import unescape

import numpy as np
import pytest

import transformer
from charts.figures.units import line_of
from charts.toolkit.style import three_digits_alike
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, codes, is_fine, said
from tests.transformer.interventions.rows_of_zeros import without_row
from transformer.attribution.direct_logit_attribution import predicting_units
from transformer.layers.feed_forward_units import strongest_units, unit_words
from transformer.runs.traces import Trace
from ui.words.texts import page_text

TEXT = page_text("feed_forward")
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SENTENCE = "The old man told us a story."
SUNDAY = "My grandmother bakes apple pie every Sunday."


def show(app, view):
    choose_text(app, "feed-forward view", TEXT["tab"][view])
    return app.run()


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_every_view_of_every_kind_of_model(open_app: Callable, tiny_checkpoint: Callable, checkpoint: str) -> None:
    app = open_app("feed_forward", checkpoint=checkpoint, sentence=SENTENCE, layer="1", token="2")
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    stack = trace.stacks[0]
    active = int((trace.values(f"{stack}.layers.1.feed_forward.pre_activation")[2] > 0).sum())
    found = re.search(r"(\d+) of the (\d+) units are above 0; (\d+)", said(app))
    assert list(map(int, found.groups())) == [active, int(found[2]), int(found[2]) - active]
    show(app, "words")
    is_fine(app)
    # Only a stack that projects onto the vocabulary promotes words; the others say so.
    writes = checkpoint in ("tiny-gpt", "tiny-bert")
    assert (TEXT["words_logits"] in said(app)) == writes
    assert ("This stack predicts no words" in said(app)) != writes
    assert ("likely" in said(app)) == writes  # a vector that reaches no logit makes no word more likely
    assert {"more probable", "less probable"} <= set(app.dataframe[0].value) or not writes
    assert {"towards", "away from"} <= set(app.dataframe[0].value) or writes
    show(app, "sentence")
    is_fine(app)
    app.segmented_control(key="unit values").set_value("pre").run()
    is_fine(app)
    assert "largest hidden values anywhere" in said(app)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_first_view_is_one_unit_of_a_chosen_token_and_its_words(
    open_app: Callable, run_snippet: Callable, tiny_checkpoint: Callable, checkpoint: str
) -> None:
    app = open_app("feed_forward", checkpoint=checkpoint, sentence=SENTENCE, layer="1", token="2")
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    stack, name = trace.stacks[0], trace.tokens(trace.stacks[0])[2].display
    pre = trace.values(f"{stack}.layers.1.feed_forward.pre_activation")[2]
    units = strongest_units(trace, stack, 1, 2, count=8)
    assert TEXT["claim"].format(active=(pre > 0).sum(), units=len(pre), layer=1, token=name, unit=units[0]) in said(app)
    writes = checkpoint in ("tiny-gpt", "tiny-bert")
    (words,) = unit_words(trace, stack, 1, 2, units=units[:1], words=40)
    assert words.logits == writes
    up = [word for word in words.up if "⟨" not in word.piece][:6]
    values = trace.values(f"{stack}.layers.1.feed_forward.hidden")
    fires, promotes = (json.loads(chart.proto.spec)["data"][0] for chart in app.get("plotly_chart")[:2])
    np.testing.assert_allclose(numbers(fires["y"]), values[:, units[0]], rtol=1e-6)
    if checkpoint in ("tiny-sentiment", "tiny-gpt"):  # a class or a token is predicted there
        change = np.subtract(*chances_at(trace, stack, 1, units[0], None if checkpoint == "tiny-sentiment" else 2))
        most = sorted(np.argsort(-abs(change), kind="stable")[:6], key=lambda index: -change[index])
        np.testing.assert_allclose(numbers(promotes["x"]), change[most], atol=1e-6)
    else:
        named = ", ".join(f"**{word.piece.removeprefix('·')}**" for word in up[:3])
        assert TEXT["claim_logits" if writes else "claim_towards"].format(words=named) in said(app)
        np.testing.assert_allclose(numbers(promotes["x"]), [word.effect for word in up], rtol=1e-6)
    snippet = next(code for code in codes(app) if "words = unit_words(" in code)
    assert f"Effect(id={words.up[0].id}, piece={words.up[0].piece!r}" in run_snippet(snippet)
    app.pills(key="unit_shown").set_value(f"{stack}.1.{units[2]}").run()
    is_fine(app)
    assert f"unit **{units[2]}**" in said(app)


def test_the_table_of_the_strongest_units_agrees_with_the_trace(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("feed_forward", checkpoint="tiny-gpt", sentence=SENTENCE, layer="1", token="2")
    show(app, "strongest")
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint("tiny-gpt"), SENTENCE)
    units = strongest_units(trace, "decoder", 1, 2, count=8)
    values = trace.values("decoder.layers.1.feed_forward.hidden")
    drawn = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    figure, cells = next((one, data) for one in drawn for data in one["data"] if data["type"] == "heatmap")
    np.testing.assert_allclose(numbers(cells["z"]), values[:, list(units)].T)
    written = [one["text"] for one in figure["layout"]["annotations"]]
    for line, one in zip(written, unit_words(trace, "decoder", 1, 2, units=units, words=40), strict=True):
        pieces = [word.piece for word in one.up if "⟨" not in word.piece][:4]
        assert unescape(line).startswith(f"<b>{line_of(pieces)}</b>")


@pytest.mark.parametrize("checkpoint", ["en-fr", "gpt-en", "bert-en", "sentiment"])
def test_the_page_opens_on_the_unit_with_the_largest_direct_effect(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = SUNDAY.replace("Sunday", "___") if checkpoint == "bert-en" else SUNDAY
    app = open_app("feed_forward", checkpoint=checkpoint, sentence=sentence)
    is_fine(app)
    strategy = transformer.Greedy(1) if checkpoint == "gpt-en" else None
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / checkpoint), sentence, strategy=strategy)
    stack, found = trace.stacks[-1], predicting_units(trace, most=4)
    place = {
        "unit": found[0].unit,
        "layer": found[0].layer,
        "stack": " of the decoder" if checkpoint == "en-fr" else "",
    }
    token = trace.tokens(stack)[found[0].position].display
    claim = TEXT["claim_predicts"].format(token=token, units="1,024", **place)
    assert claim in said(app)
    labels = [option.content for option in app.pills(key="unit_shown").proto.options]
    assert labels == [TEXT["unit_of_layer"].format(layer=one.layer, unit=one.unit) for one in found]
    assert app.session_state["focus"].token == 0, "what all pages share stays as it is"
    assert not [one for one in app.selectbox if one.key == "choose layer"], "units are of any layer"
    app.query_params["token"] = "2"
    app.run()
    is_fine(app)
    assert "are above 0. Here is unit" in said(app) and claim not in said(app)
    app.button(key="predicting units").click().run()
    is_fine(app)
    assert claim in said(app)


@pytest.mark.parametrize("token", [4, 8])
def test_a_unit_of_an_encoder_says_what_it_changes_in_the_output(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch, token: int
) -> None:
    """A change of less than 0.01 explains nothing, and is left out."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("feed_forward", checkpoint="en-fr", sentence=SUNDAY, stack="encoder", layer="0", token=str(token))
    is_fine(app)
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), SUNDAY)
    (unit,) = strongest_units(trace, "encoder", 0, token, count=1)
    ids = [token.id for token in trace.prediction]
    rows = range(len(ids))
    runs = (trace, without_row(trace, "encoder", 0, unit))
    before, after = (np.array([chances(run, row)[id] for row, id in zip(rows, ids, strict=True)]) for run in runs)
    words = [row for row in rows if trace.prediction[row].display.removeprefix("·").isalnum()]
    most = max(words, key=lambda row: abs(before[row] - after[row]))
    shares = three_digits_alike([float(before[most]), float(after[most])])
    claim = TEXT["claim_raises" if before[most] > after[most] else "claim_lowers"]
    name = trace.prediction[most].display.removeprefix("·")
    place = {"what": TEXT["predicted"]["output"], "name": name, "before": shares[0], "after": shares[1]}
    is_telling = abs(before[most] - after[most]) >= 0.01
    assert is_telling == (token == 8)
    assert (claim.format(**place) in said(app)) == is_telling
    assert (TEXT["predicted"]["output"] in said(app)) == is_telling


def test_a_classifier_says_what_the_unit_does_to_its_class(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("feed_forward", checkpoint="tiny-sentiment", sentence=SENTENCE, layer="1", token="2")
    is_fine(app)
    checkpoint = tiny_checkpoint("tiny-sentiment")
    trace = transformer.trace(checkpoint, SENTENCE)
    (unit,) = strongest_units(trace, "encoder", 1, 2, count=1)
    before, after = shares_of(trace), shares_of(without_row(trace, "encoder", 1, unit))
    best = int(before.argmax())
    shares = three_digits_alike([float(each[best]) for each in (before, after)])
    name = checkpoint.config.class_names[best]
    said_ = (
        "claim_keeps" if shares[0] == shares[1] else "claim_raises" if before[best] > after[best] else "claim_lowers"
    )
    what = TEXT["predicted"]["class"]
    assert TEXT[said_].format(what=what, name=name, before=shares[0], after=shares[1]) in said(app)
    (bars,) = json.loads(app.get("plotly_chart")[1].proto.spec)["data"]
    np.testing.assert_allclose(sorted(numbers(bars["x"])), sorted(before - after), atol=1e-6)


def shares_of(trace: Trace) -> np.ndarray:
    """Return the probability of every class."""
    powers = np.exp(trace.values("classifier.logits"))
    return powers / powers.sum()


def chances(run: Trace, row: int) -> np.ndarray:
    """Return the probability of every token in a row of the logits."""
    stack = run.stacks[-1]
    powers = np.exp(run.values(f"{stack}.logits")[row].astype(float))
    if stack == "decoder":
        powers[list(run.checkpoint.framing.never)] = 0  # never generated
    return powers / powers.sum()


def chances_at(trace: Trace, stack: str, layer: int, unit: int, row: int | None) -> list[np.ndarray]:
    """Return the probabilities with and without a unit: of tokens or, without a row, of classes."""
    runs = (trace, without_row(trace, stack, layer, unit))
    return [shares_of(run) if row is None else chances(run, row) for run in runs]


def numbers(z: list | dict) -> np.ndarray:
    """Return a heatmap's numbers as a figure stores them: lists, or bytes with a shape."""
    if isinstance(z, list):
        return np.array(z)
    flat = np.frombuffer(b64decode(z["bdata"]), dtype=z["dtype"])
    return flat.reshape([int(n) for n in z["shape"].split(",")]) if "shape" in z else flat


def test_the_decoder_of_a_translator_writes_words(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("feed_forward", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder", token="1")
    show(app, "words")
    is_fine(app)
    assert TEXT["words_logits"] in said(app)
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    units = strongest_units(trace, "decoder", 0, 1, count=12)
    assert tuple(app.dataframe[0].value["unit"]) == units
    chosen = units[3]
    app.segmented_control(key="unit").set_value(chosen).run()
    is_fine(app)
    assert f"Unit {chosen} for" in said(app)


def test_a_unit_that_is_not_strong_for_the_next_token_is_left_behind(
    open_app: Callable, tiny_checkpoint: Callable
) -> None:
    app = open_app("feed_forward", checkpoint="tiny-gpt", sentence=SENTENCE, token="1")
    show(app, "words")
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    here = strongest_units(trace, "decoder", 0, 1, count=12)
    there = strongest_units(trace, "decoder", 0, 4, count=12)
    only_here = next(unit for unit in here if unit not in there)
    app.segmented_control(key="unit").set_value(only_here).run()
    app.query_params["token"] = "4"
    app.run()
    is_fine(app)
    assert f"Unit {there[0]} for" in said(app)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_python_computes_the_hidden_value_that_was_recorded(
    open_app: Callable, run_snippet: Callable, checkpoint: str, stack: str
) -> None:
    address = {"layer": "1", "token": "3", "target": "Le chat dort."} if stack == "decoder" else {"token": "3"}
    app = open_app("feed_forward", checkpoint=checkpoint, sentence=SENTENCE, stack=stack, **address)
    snippet = next(code for code in codes(app) if "computed =" in code)
    computed, recorded = map(float, run_snippet(snippet).split()[-2:])
    assert computed == pytest.approx(recorded, abs=1e-5)
    assert not np.isclose(computed, 0)
