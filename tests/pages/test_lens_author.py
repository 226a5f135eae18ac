"""The sum of parts on the Lens page equals the library's result, for every kind of model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import transformer
from charts.toolkit.style import three_digits
from tests.pages.conftest import codes, is_fine, said
from transformer.attribution.direct_logit_attribution import attribute, strongest_sources
from transformer.interventions.direct_effects import is_removable, remove_parts
from transformer.interventions.experiment import experiment
from transformer.layers.residual_stream import label_in_sentence
from ui.words.texts import page_text

TEXT = page_text("lens")
KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SENTENCE = "The old man told us a story."
STACK = {"tiny-translator": "decoder", "tiny-gpt": "decoder", "tiny-bert": "encoder", "tiny-sentiment": "encoder"}
VIEW = {"lens_view": TEXT["view_author"]}


def sources_of(app):
    return next(table.value for table in app.dataframe if TEXT["author_column_weight"] in table.value)


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_sum_the_parts_and_the_words(open_app: Callable, tiny_checkpoint: Callable, checkpoint: str) -> None:
    app = open_app("lens", checkpoint=checkpoint, sentence=SENTENCE, stack=STACK[checkpoint], token="2", **VIEW)
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    found = attribute(trace, None if checkpoint == "tiny-sentiment" else 2)
    assert f"**{three_digits(found.logit)}**" in said(
        app
    ) and f"**{label_in_sentence(found.strongest(1)[0].label)}**" in said(app)
    table, sources = sources_of(app), strongest_sources(trace, found)
    assert list(table[TEXT["author_column_word"]]) == [source.display for source in sources]
    np.testing.assert_allclose(table[TEXT["author_column_value"]], [source.value for source in sources])
    assert (TEXT["author_mean"].split(" {")[0] in said(app)) == (checkpoint == "tiny-sentiment")


def test_a_second_word_and_one_that_is_typed(open_app: Callable, tiny_checkpoint: Callable) -> None:
    place = {"checkpoint": "tiny-translator", "sentence": SENTENCE, "stack": "decoder", "token": "1", **VIEW}
    app = open_app("lens", **place)
    options = app.selectbox(key="lens_word").options
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, SENTENCE)
    order = np.argsort(-trace.values("decoder.logits")[1], kind="stable")
    assert options[:3] == [checkpoint.tokenizer.display(int(id)) for id in order[:3]]
    app.selectbox(key="lens_against").set_value(options[2])
    is_fine(app.run())
    found = attribute(trace, 1, token=int(order[0]), against=int(order[2]))
    assert f"**{options[0]} − {options[2]}** is **{three_digits(found.logit)}**" in said(app)
    assert TEXT["author_alone"] not in said(app)
    # From a copied address: a typed word is not an option.
    token = checkpoint.tokenizer.encode("chat")[0]
    found = attribute(trace, 1, token=token, against=int(order[1]))
    for typed in ("chat", "·chat"):  # the word itself, and the form in which the page displays it
        app = open_app("lens", **place, lens_word=typed, lens_against=options[1])
        is_fine(app)
        assert f"{checkpoint.tokenizer.display(token)} − {options[1]}" in said(app)
        assert f"**{three_digits(found.logit)}**" in said(app)
    # At another position the most likely word comes first again.
    app = open_app("lens", **place, lens_word=options[3], lens_against=options[1])
    assert app.selectbox(key="lens_word").value == options[3]
    app.session_state["focus"] = replace(app.session_state["focus"], token=3)
    is_fine(app.run())
    assert app.selectbox(key="lens_word").value == app.selectbox(key="lens_word").options[0]
    assert app.selectbox(key="lens_against").value is None


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["hf-gemma2", "hf-neox", "hf-bert-classes", "hf-t5"])
def test_other_families(
    open_app: Callable, families_folder: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(families_folder))
    app = open_app("lens", checkpoint=checkpoint, sentence=SENTENCE, **VIEW)
    is_fine(app)
    assert (TEXT["author_gated"] in said(app)) == ("bert" in checkpoint)
    assert ("before they are soft-capped between" in said(app)) == (checkpoint == "hf-gemma2")


def test_the_snippet_prints_what_is_shown(open_app: Callable, tiny_checkpoint: Callable, run_snippet: Callable) -> None:
    app = open_app("lens", checkpoint="tiny-gpt", sentence=SENTENCE, stack="decoder", token="3", **VIEW)
    lines = run_snippet(next(code for code in codes(app) if "import transformer" in code)).splitlines()
    total, logit, deviation = map(float, lines[0].split())
    assert f"**{three_digits(logit)}**" in said(app) and abs(total - logit) == pytest.approx(deviation)
    best = attribute(transformer.trace(tiny_checkpoint("gpt"), SENTENCE), 3).strongest(1)[0].label
    assert lines[1].rsplit(" ", 1)[0] == best and label_in_sentence(best) in said(app)


def test_what_removing_a_part_does(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("lens", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder", token="2", **VIEW)
    app.segmented_control(key="lens_section").set_value("measured")
    is_fine(app.run())
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    found = attribute(trace, 2)
    table = next(table.value for table in app.dataframe if TEXT["measured_column_zero"] in table.value)
    strongest = [part for part in found.strongest(len(found.parts)) if is_removable(part)][:12]
    second = app.text_input(key="lens_second").value
    parts = [part for part in found.parts if part in strongest]
    effects = remove_parts(trace, found, parts, second=experiment(trace, sentence=second, keep_answer=True))
    assert list(table[TEXT["measured_column_part"]]) == [part.label for part in effects.parts]
    for column, values in (
        ("added", effects.added),
        ("zero", effects.zero),
        ("mean", effects.mean),
        ("patched", effects.patched),
    ):
        np.testing.assert_allclose(table[TEXT[f"measured_column_{column}"]], values)
    assert f"ρ = {effects.agreement:.2f}".replace("-", "−") in said(app)
    gap = np.abs(effects.added - effects.zero)
    assert f"**{label_in_sentence(effects.parts[int(gap.argmax())].label)}**" in said(app)
    app.text_input(key="lens_second").set_value(f"{second} {second}").run()
    assert "tokens" in app.warning[0].value  # the other measures are still there
    table = next(table.value for table in app.dataframe if TEXT["measured_column_zero"] in table.value)
    assert TEXT["measured_column_patched"] not in table


def test_padding_is_asked_nothing(open_app: Callable, tiny_checkpoint: Callable) -> None:
    last = len(transformer.trace(tiny_checkpoint("bert"), SENTENCE, source_pads=2).source) - 1
    app = open_app("lens", checkpoint="tiny-bert", sentence=SENTENCE, pads="2", token=str(last), **VIEW)
    is_fine(app)
    assert [info.value for info in app.info] == [TEXT["author_padding"]]
