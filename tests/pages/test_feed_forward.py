"""The page Feed-forward: every view of every kind of model, with numbers that agree with the trace."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from html import unescape

import numpy as np
import pytest
import torch

import transformer
from charts.toolkit.style import three_digits_alike
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, codes, is_fine, said
from transformer.interventions.experiment import same_tokens
from transformer.interventions.silent_units import class_units
from transformer.layers.feed_forward_units import Effect, strongest_units, unit_words
from transformer.layers.patch_units import PATCHES, image_values, patch_units
from transformer.layers.readable_units import readable_units
from transformer.runs.traces import Trace
from ui.words.texts import page_text, pictures
from views.feed_forward.unit_figures import line_of

TEXT = page_text("feed_forward")
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SENTENCE = "The old man told us a story."
NONE = "xyz"  # no unit of gpt-en can be read
SUNDAY = "My grandmother bakes apple pie every Sunday."


def show(app, view):
    choose_text(app, "feed-forward view", TEXT[f"tab_{view}"])
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
    if checkpoint == "tiny-sentiment":
        assert "What it adds there points" not in said(app), "a classifier predicts no words"
    else:
        logits = trace.values(f"{stack}.logits")[2] if writes else None
        up = up if logits is None else sorted(up, key=lambda word: -logits[word.id])
        named = ", ".join(in_order(up, logits)[:3])
        assert TEXT["claim_logits" if writes else "claim_towards"].format(words=named) in said(app)
        np.testing.assert_allclose(numbers(promotes["x"]), [word.effect for word in up], rtol=1e-6)
    snippet = next(code for code in codes(app) if "unit_words(" in code)
    assert repr((words.up[0].piece, words.up[0].effect)) in run_snippet(snippet)
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


@pytest.mark.parametrize("checkpoint, kind", [("bert-en", "logits"), ("en-fr", "towards")])
def test_the_page_opens_on_a_unit_that_can_be_read(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch, checkpoint: str, kind: str
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("feed_forward", checkpoint=checkpoint, sentence=SUNDAY)
    is_fine(app)
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / checkpoint), SUNDAY)
    best = readable_units(trace, "encoder")[0]
    token = trace.tokens("encoder")[best.position].display
    # The words of the longest bars, or the most probable of them; the token itself among them.
    logits = trace.values("encoder.logits")[best.position] if kind == "logits" else None
    words = ", ".join(in_order(best.words.up, logits)[:3])
    place = {"unit": best.words.unit, "layer": best.layer, "stack": ", encoder" if len(trace.stacks) > 1 else ""}
    place["units"] = f"{trace.values(f'encoder.layers.{best.layer}.feed_forward.hidden').shape[1]:,}"
    claim = f"{TEXT['claim_readable'].format(token=token, **place)} {TEXT[f'claim_{kind}'].format(words=words)}"
    assert claim in said(app)
    assert app.session_state["focus"].token == 0, "what all pages share stays as it is"
    assert not [one for one in app.sidebar.get("button_group") if one.key == "choose layer"], "units are of any layer"
    app.query_params["token"] = "2"
    app.run()
    is_fine(app)
    assert "are above 0. Here is unit" in said(app) and claim not in said(app)
    app.button(key="readable units").click().run()
    is_fine(app)
    assert claim in said(app)


def test_the_page_opens_on_a_unit_that_fires_at_the_blank(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    sentence = "They washed ___ hands."
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "bert-en"), sentence)
    blank = trace.tokens("encoder").ids.index(trace.checkpoint.special.mask)
    found = readable_units(trace, "encoder", count=12)
    assert len(found) > 1, "other tokens have readable units, too"
    first = next(one for one in found if one.position == blank)
    app = open_app("feed_forward", checkpoint="bert-en", sentence=sentence)
    is_fine(app)
    assert f"Unit {first.words.unit}, layer {first.layer}:" in said(app)
    labels = [option.content for option in app.pills(key="unit_shown").proto.options]
    assert len(set(labels)) == len(labels), "two units that raise the same word have different labels"


def test_a_classifier_says_what_the_unit_does_to_its_class(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("feed_forward", checkpoint="tiny-sentiment", sentence=SENTENCE, layer="1", token="2")
    is_fine(app)
    checkpoint = tiny_checkpoint("tiny-sentiment")
    trace = transformer.trace(checkpoint, SENTENCE)
    (unit,) = strongest_units(trace, "encoder", 1, 2, count=1)
    before, after = shares_of(trace), shares_of(without(trace, "encoder", 1, unit))
    raised = int((before - after).argmax())
    shares = three_digits_alike([float(each[raised]) for each in (before, after)])
    name = checkpoint.config.class_names[raised]
    claim = TEXT["claim_class_same" if shares[0] == shares[1] else "claim_class"]
    assert claim.format(name=name, before=shares[0], after=shares[1]) in said(app)
    drawn = [numbers(bars["x"]) for bars in json.loads(app.get("plotly_chart")[1].proto.spec)["data"]]
    np.testing.assert_allclose(drawn, [before, after], rtol=1e-5)


def test_a_classifier_opens_on_the_unit_that_matters_most_for_its_class(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("feed_forward", checkpoint="sentiment", sentence="a funny but dull film")
    is_fine(app)
    checkpoint = transformer.load(ROOT / "checkpoints" / "sentiment")
    trace = transformer.trace(checkpoint, "a funny but dull film")
    first = class_units(trace)[0]
    before, after = shares_of(trace), shares_of(without(trace, "encoder", first.layer, first.unit))
    raised = int((before - after).argmax())
    shares = three_digits_alike([float(each[raised]) for each in (before, after)])
    assert f"**Unit {first.unit}, layer {first.layer}:**" in said(app)
    claim = TEXT["claim_class"].format(name=checkpoint.config.class_names[raised], before=shares[0], after=shares[1])
    assert claim in said(app)
    label = app.pills(key="unit_shown").proto.options[0].content
    assert label.endswith(checkpoint.config.class_names[int((before - after).argmax())])


@pytest.mark.parametrize("checkpoint", ["gpt-en", "bert-en"])
def test_a_unit_that_raises_words_says_how_probable_they_are_with_and_without_it(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("feed_forward", checkpoint=checkpoint, sentence=SUNDAY, masked="none")
    is_fine(app)
    loaded = transformer.load(ROOT / "checkpoints" / checkpoint)
    trace = transformer.trace(loaded, SUNDAY, strategy=transformer.Greedy(1) if checkpoint == "gpt-en" else None)
    (stack,) = trace.stacks
    first = readable_units(trace, stack)[0]
    ids = [word.id for word in first.words.up]
    chances = []
    for run in (trace, without(trace, stack, first.layer, first.words.unit)):
        logits = run.values(f"{stack}.logits")[first.position].astype(float)
        if stack == "decoder":
            logits[list(loaded.framing.never)] = -np.inf  # never generated
        chances.append(float((np.exp(logits) / np.exp(logits).sum())[ids].sum()))
    before, after = three_digits_alike(chances)
    assert TEXT["claim_together"].format(count=len(ids), before=before, after=after) in said(app)
    axis = json.loads(app.get("plotly_chart")[1].proto.spec)["layout"]["xaxis"]
    assert axis["range"][1] >= 1, "a tenth of a logit does not fill the figure"


def test_words_that_stay_improbable_have_no_numbers(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("feed_forward", checkpoint="gpt-en", sentence=SUNDAY, token="7", layer="3")
    is_fine(app)
    assert TEXT["claim_improbable"].format(count=6) in said(app)


def test_a_model_of_pictures_has_no_words(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("feed_forward", checkpoint="vit-digits", token="3")
    is_fine(app)
    assert TEXT["claim_none"].partition("{")[0] in said(app) and "the words" not in said(app)


def test_a_model_of_pictures_opens_on_a_unit_and_the_patches_that_it_responds_to(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("feed_forward", checkpoint="vit-digits")
    is_fine(app)
    checkpoint = transformer.load(ROOT / "checkpoints" / "vit-digits")
    trace = transformer.trace(checkpoint, app.session_state["focus"].sentence)
    values = image_values(checkpoint, [text for _, text in pictures()])
    first = patch_units(trace, values)[0]
    texts = TEXT.instead("of_pictures", "of_classes")
    place = {"unit": first.unit, "layer": first.layer, "token": trace.source[first.position].display}
    alike = {"alike": first.n_alike, "count": PATCHES, "images": values.n_images, "word": texts["side"][first.side]}
    claim = texts["claim_patch"].format(**place, **alike)
    assert claim in said(app) and f"Unit {first.unit} of " in said(app)


def test_a_sentence_without_a_unit_that_can_be_read_says_so(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "gpt-en"), NONE, strategy=transformer.Greedy(1))
    assert not readable_units(trace, "decoder")
    assert TEXT["none_readable"] in said(open_app("feed_forward", checkpoint="gpt-en", sentence=NONE))
    assert TEXT["none_readable"] not in said(open_app("feed_forward", checkpoint="gpt-en", sentence=SUNDAY))


def without(trace: Trace, stack: str, layer: int, unit: int) -> Trace:
    """Run the same tokens with a row of W₂ at 0: what a silent unit adds."""
    weight = trace.checkpoint.model.get_submodule(f"{stack}.layers.{layer}.feed_forward.output_projection").weight
    column = weight[:, unit].detach().clone()
    with torch.no_grad():
        weight[:, unit] = 0
        try:
            return same_tokens(trace)
        finally:
            weight[:, unit] = column


def shares_of(trace: Trace) -> np.ndarray:
    """Return the probability of every class."""
    powers = np.exp(trace.values("classifier.logits"))
    return powers / powers.sum()


def in_order(words: Sequence[Effect], logits: np.ndarray | None) -> list[str]:
    """Return words in bold, the most probable first if there are logits."""
    ordered = words if logits is None else sorted(words, key=lambda word: -logits[word.id])
    return [f"**{word.piece.removeprefix('·')}**" for word in ordered]


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
def test_the_snippet_gives_the_hidden_value(open_app: Callable, run_snippet: Callable, checkpoint: str) -> None:
    app = open_app("feed_forward", checkpoint=checkpoint, sentence=SENTENCE, layer="1", token="3")
    snippet = next(code for code in codes(app) if "pre_activation =" in code)
    computed, recorded = map(float, run_snippet(snippet).split())
    assert computed == pytest.approx(recorded, abs=1e-5)
    assert not np.isclose(computed, 0)


def test_the_snippet_of_a_translators_decoder_reads_the_right_stream(open_app: Callable, run_snippet: Callable) -> None:
    app = open_app(
        "feed_forward",
        checkpoint="tiny-translator",
        sentence=SENTENCE,
        stack="decoder",
        target="Le chat dort.",
        token="2",
    )
    snippet = next(code for code in codes(app) if "pre_activation =" in code)
    assert "target='Le chat dort.'" in snippet
    computed, recorded = map(float, run_snippet(snippet).split())
    assert computed == pytest.approx(recorded, abs=1e-5)
