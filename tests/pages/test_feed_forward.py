"""The page Feed-forward: units, words and effects are those of the trace."""

from __future__ import annotations

import json
from base64 import b64decode

import numpy as np
import pytest

import transformer
from tests.pages.conftest import is_fine, said
from tests.transformer.interventions.rows_of_zeros import without_row
from transformer.attribution.direct_logit_attribution import predicting_units
from transformer.files.opening_file import read_opening
from transformer.interventions.silenced_unit import unit_effect
from transformer.layers.feed_forward_units import strongest_units, unit_words
from transformer.runs.traces import Trace

WRITES = {
    "tiny-translator": False,
    "tiny-gpt": True,
    "tiny-bert": True,
    "tiny-sentiment": False,
}  # from its first stack
SENTENCE = "The old man told us a story."
PAGE, USUAL = "feed_forward", {"sentence": SENTENCE, "layer": "1", "token": "2"}
SUNDAY = "My grandmother bakes apple pie every Sunday."


def numbers(z: list | dict) -> np.ndarray:
    """Return the numbers of a trace as Plotly stores them: lists, or bytes with a shape."""
    if isinstance(z, list):
        return np.array(z)
    flat = np.frombuffer(b64decode(z["bdata"]), dtype=z["dtype"])
    return flat.reshape([int(n) for n in z["shape"].split(",")]) if "shape" in z else flat


def chances(run: Trace, row: int | None) -> np.ndarray:
    """Return the probability of every token in a row of the logits; without a row, of every class."""
    stack = run.stacks[-1]
    logits = run.values("classifier.logits") if row is None else run.values(f"{stack}.logits")[row]
    powers = np.exp(logits.astype(float))
    if row is not None and stack == "decoder":
        powers[list(run.checkpoint.framing.never)] = 0  # never generated
    return powers / powers.sum()


@pytest.mark.parametrize("checkpoint", WRITES)
def test_one_unit_of_the_chosen_token_where_it_fires_and_what_it_changes(
    open_page, run_snippet, tiny_checkpoint, checkpoint
):
    app = open_page(checkpoint=checkpoint)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    stack = trace.stacks[0]
    units = strongest_units(trace, stack, 1, 2, count=8)
    pre = trace.values(f"{stack}.layers.1.feed_forward.pre_activation")[2]
    assert f"{(pre > 0).sum()} of " in said(app).replace("*", "") and f"**{units[0]}**" in said(app)
    (words,) = unit_words(trace, stack, 1, 2, units=units[:1], words=40)
    assert words.logits == WRITES[checkpoint]
    fires, effects = (json.loads(chart.proto.spec)["data"][0] for chart in app.get("plotly_chart")[:2])
    values = trace.values(f"{stack}.layers.1.feed_forward.hidden")
    np.testing.assert_allclose(numbers(fires["y"]), values[:, units[0]], rtol=1e-6)
    if checkpoint in ("tiny-sentiment", "tiny-gpt"):  # a class or a token is predicted there
        row = None if checkpoint == "tiny-sentiment" else 2
        change = chances(trace, row) - chances(without_row(trace, stack, 1, units[0]), row)
        most = sorted(np.argsort(-abs(change), kind="stable")[:6], key=lambda index: -change[index])
        np.testing.assert_allclose(numbers(effects["x"]), change[most], atol=1e-6)
    else:
        up = [word.effect for word in words.up if "⟨" not in word.piece][:6]
        np.testing.assert_allclose(numbers(effects["x"]), up, rtol=1e-6)
    assert f"Effect(id={words.up[0].id}, piece={words.up[0].piece!r}" in run_snippet(app)
    app.pills(key="unit_shown").set_value(f"{stack}.1.{units[2]}").run()
    is_fine(app)
    assert f"**{units[2]}**" in said(app)


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


@pytest.mark.parametrize("checkpoint", WRITES)
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_python_computes_the_hidden_value_that_was_recorded(open_page, run_snippet, checkpoint, stack) -> None:
    app = open_page(checkpoint=checkpoint, stack=stack, token="3", target="Le chat dort.")
    computed, recorded = map(float, run_snippet(app).split()[-2:])
    assert computed == pytest.approx(recorded, abs=1e-5) and not np.isclose(computed, 0)
