"""The Attention page in AppTest: every kind of checkpoint, every step, and correct arithmetic."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from charts.canvas.attention_maps import QUERY_TITLE, SHIFTED_TITLE
from charts.toolkit.payload_bytes import unpack
from tests.conftest import ROOT
from tests.pages.conftest import chosen_texts, codes, with_e
from transformer.attention_maps.attention_arithmetic import query_arithmetic
from transformer.attention_maps.attention_path import norm_weighted
from transformer.attention_maps.rollout import attention_rollout
from ui.words.texts import page_text
from views.attention import attention_picture
from views.attention.attention_steps import mask_counts
from views.attention.cell_arithmetic import equations
from views.attention.facts import read_aloud

TEXT = page_text("attention")
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
SENTENCE = "The old man told us a story."


@pytest.fixture
def open_page(open_app: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Return ``open_page(checkpoint=…, sentence=…)``, the page as an address opens it."""
    return lambda **address: open_app("attention", **{"sentence": SENTENCE, **address})


def said(app: AppTest) -> str:
    return "\n".join(element.value for element in app.markdown)


def sentence(app: AppTest) -> str:
    """Return the sentence about the row."""
    words = ("looks mostly", "spreads its", "takes most", "rollout, ", "regarde surtout", "disperse", "reçoit le plus")
    return next(one.value for one in app.markdown if "**" in one.value and any(word in one.value for word in words))


def is_fine(app: AppTest) -> None:
    assert not app.exception
    assert not app.error, [error.value for error in app.error]


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_every_kind_of_model_shows_a_head_in_words_and_numbers(open_page: Callable, checkpoint: str) -> None:
    app = open_page(checkpoint=checkpoint)
    is_fine(app)
    assert app.title[0].value == "Attention"
    assert "looks mostly at" in said(app) or "spreads its attention" in said(app)
    labels = [metric.label for metric in app.metric]
    wanted = [TEXT["entropy"], TEXT["sinks"], TEXT["strongest"]]
    # Nobody chose the row, so the page opens at one that can attend to other words.
    assert [label for label in labels if not label.endswith(TEXT["effect"])][:3] == wanted
    # A masked-token model without a blank predicts nothing, so no number is shown for it.
    assert any(label.endswith(TEXT["effect"]) for label in labels) == (checkpoint != "tiny-bert")


@pytest.mark.parametrize("head", [0, 1])
def test_the_picture_has_the_numbers_of_the_head_that_is_looked_at(
    open_page: Callable, tiny_checkpoint: Callable, head: int
) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    view, norms = (
        trace.attention("encoder", layer=1, kind="self"),
        norm_weighted(trace, "encoder", layer=1, kind="self"),
    )
    for drawing, key, numbers in (
        ("map", "attention map", view.weights[head]),
        ("values", "attention values", norms[head]),
    ):
        app = open_page(
            checkpoint="tiny-translator",
            stack="encoder",
            layer="1",
            head=str(head),
            attention_show=TEXT[f"show_{drawing}"],
        )
        (sent,) = [one.proto.bytes for one in app.get("bidi_component") if one.key == key]
        np.testing.assert_allclose(unpack(sent)[1]["values"], numbers, atol=1e-6)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_every_step_of_every_kind_of_model(open_page: Callable, checkpoint: str) -> None:
    app = open_page(checkpoint=checkpoint)
    formulas = []
    for number in range(1, 8):
        if number > 1:
            next(button for button in app.button if button.label == TEXT["next"]).click().run()
        is_fine(app)
        assert app.segmented_control(key="attention_step").value == number
        formulas.append(tuple(latex.value for latex in app.latex))
    assert len(set(formulas)) == 7
    assert next(button for button in app.button if button.label == TEXT["next"]).disabled


@pytest.mark.parametrize(("stack", "kind"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
def test_all_attentions_of_the_translator_in_all_drawings(open_page: Callable, stack: str, kind: str) -> None:
    app = open_page(stack=stack, kind=kind, layer="1", head="1", token="2", pads="3")
    shown = app.segmented_control(key="attention_show")
    assert shown.options == [TEXT["show_map"], TEXT["show_lines"]]
    shown.set_value("lines").run()
    is_fine(app)
    for drawing in ("rollout", "values"):  # chosen under "More", and then named in the row
        app.button(key=f"show {drawing}").click().run()
        is_fine(app)
        shown = app.segmented_control(key="attention_show")
        assert shown.value == drawing and shown.options[-1] == TEXT[f"show_{drawing}"] and len(shown.options) == 3
    shown.set_value("map").run()
    assert len(app.segmented_control(key="attention_show").options) == 2


def test_the_entropy_and_the_sinks_are_those_of_the_focused_row(open_page: Callable, tiny_checkpoint: Callable) -> None:
    app = open_page(stack="decoder", kind="cross", layer="1", head="1", token="1")
    view = transformer.trace(tiny_checkpoint("translator"), SENTENCE).attention("decoder", 1, "cross")
    values = {metric.label: metric.value for metric in app.metric}
    assert float(values[TEXT["entropy"]].split()[0]) == pytest.approx(float(view.entropy[1, 1]), rel=0.01)
    assert float(values[TEXT["sinks"]]) == pytest.approx(float(view.sink_share[1, 1]), rel=0.01)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_one_number_of_a_query_is_derived_from_what_the_attention_reads(
    open_page: Callable, tiny_checkpoint: Callable, checkpoint: str
) -> None:
    app = open_page(checkpoint=checkpoint, token="2", layer="1", head="1")
    is_fine(app)
    model = tiny_checkpoint(checkpoint)
    pre_norm = model.config.norm == "pre"
    assert ("**X is not the residual stream**" in said(app)) == pre_norm
    source = "_norm.output`" if pre_norm else ".residual.in`"
    assert source in said(app)
    stack = "decoder" if model.config.kind == "decoder-only" else "encoder"
    trace = transformer.trace(model, SENTENCE)
    for row in range(3):
        for head in range(model.config.n_heads):
            found = query_arithmetic(trace, stack, 1, "self", head=head, row=row)
            # A rotation keeps the length of a pair of channels, and leaves position 0 unchanged.
            if not found.rotated or row == 0:
                assert found.value == pytest.approx(found.recorded, abs=1e-5)
    assert any(r"x_i\, W_{Q\,i," in latex.value for latex in app.latex)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_snippet_of_a_cell_prints_its_weight(
    open_page: Callable, checkpoint: str, checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page(checkpoint=checkpoint, token="3", layer="1", head="1")
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[2]).run()
    is_fine(app)
    worked_out, recorded = re.search(r"here: \*\*(\S+)\*\*\. Recorded in the model: \*\*(\S+)\*\*", said(app)).groups()
    assert float(worked_out) == pytest.approx(float(recorded), abs=1e-6)

    snippet = next(code for code in codes(app) if "import numpy" in code)
    assert "x @ W_Q + b_Q" in snippet and "np.allclose(derived, query" in snippet
    (tmp_path / "checkpoints").symlink_to(checkpoints_folder)
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(snippet, "snippet", "exec"), {})  # the code that the page shows
    ours, models = map(float, printed.getvalue().split())
    assert ours == pytest.approx(float(worked_out), rel=1e-8)
    assert models == pytest.approx(float(recorded), rel=1e-6)


def test_the_channels_and_the_row_of_a_cell_are_drawn_when_they_are_opened(open_page: Callable) -> None:
    place = {"checkpoint": "tiny-gpt", "token": "3", "attention_key": "2"}
    closed, opened = open_page(**place), open_page(**place, cell_channels="true", cell_whole_row="true")
    is_fine(opened)
    assert (len(closed.dataframe), len(opened.dataframe)) == (0, 1)
    table = opened.dataframe[0].value
    assert table[TEXT["column_weight"]].sum() == pytest.approx(1.0)
    assert len(opened.get("plotly_chart")) == len(closed.get("plotly_chart")) + 1


def test_the_relative_bias_stands_in_the_arithmetic(open_page: Callable) -> None:
    app = open_page(checkpoint="tiny-sentiment", token="3")
    assert not any(r"\sqrt{d_k}} + b" in latex.value for latex in app.latex)
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[1]).run()
    assert any(r"\sqrt{d_k}} + b" in latex.value for latex in app.latex)
    assert 'trace["encoder.position_bias.values"]' in "".join(codes(app))


def test_a_masked_cell_says_why(open_page: Callable) -> None:
    app = open_page(stack="decoder", kind="self", token="1", target="Le vieil homme.")
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[3]).run()
    assert TEXT["reason_causal"] in said(app)
    app = open_page(stack="decoder", kind="cross", token="1", pads="2", target="Le vieil homme.")
    key = app.selectbox(key="attention_key")
    key.set_value("<pad>").run()
    assert TEXT["reason_padding"] in said(app)


@pytest.mark.parametrize("drawing", ["show_map", "show_values", "show_rollout"])
def test_a_row_with_a_single_key_has_nothing_to_choose_and_says_so(open_page: Callable, drawing: str) -> None:
    for checkpoint, place in (("tiny-gpt", {}), ("tiny-translator", {"stack": "decoder", "kind": "self"})):
        app = open_page(checkpoint=checkpoint, lens_start="1", attention_show=TEXT[drawing], **place)
        is_fine(app)
        assert any("has weight 1" in caption.value for caption in app.caption)
        assert not any("bits" in (metric.delta or "") for metric in app.metric)
        app = open_page(checkpoint=checkpoint, token="1", attention_show=TEXT[drawing], **place)
        assert not any("has weight 1" in caption.value for caption in app.caption)
        assert any("bits, of 1 possible" in (metric.delta or "") for metric in app.metric)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_a_cell_leads_to_all_heads_between_its_two_tokens(open_page: Callable, checkpoint: str) -> None:
    app = open_page(checkpoint=checkpoint, token="3", layer="1", head="1")
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[2]).run()
    next(button for button in app.button if button.key == "cell heads").click().run()
    assert not app.exception
    app.switch_page("pages/heads.py").run()  # AppTest does not follow a change of page by itself
    is_fine(app)
    assert app.session_state["heads_section"] == "table"
    assert chosen_texts(app, "heads_from") in ((), ("3",)), "the focused token is the one that it begins with"
    assert chosen_texts(app, "heads_to") == ("2",)


def test_closing_the_arithmetic(open_page: Callable) -> None:
    app = open_page()
    assert TEXT["arithmetic_close"] not in [button.label for button in app.button]
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[1]).run()
    next(button for button in app.button if button.label == TEXT["arithmetic_close"]).click().run()
    assert app.selectbox(key="attention_key").value is None


def test_rows_can_be_named_after_the_token_that_is_predicted(open_page: Callable) -> None:
    place = {"token": "0", "target": "Le vieil homme."}
    app = open_page(stack="decoder", kind="self", **place)
    assert "To predict" not in said(app)
    app.toggle(key="attention_predicted").set_value(True).run()
    is_fine(app)
    assert "To predict **Le**, head 0 " in said(app)
    assert "To predict" in said(open_page(stack="decoder", kind="self", attention_predicted="true", **place))
    # An encoder predicts nothing.
    app = open_page(stack="encoder", kind="self")
    assert not any((toggle.key or "").startswith("attention_predicted") for toggle in app.toggle)


def test_cross_attention_begins_with_the_token_that_is_predicted_and_its_title_says_which(
    open_page: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(attention_picture, "show_map", lambda figure, **_: drawn.append(figure.metadata))
    monkeypatch.setattr(attention_picture, "show_lines", lambda figure, **_: drawn.append(figure.metadata))
    place = {"stack": "decoder", "kind": "cross", "token": "0", "target": "Le vieil homme."}
    for drawing in ("map", "lines", "values", "rollout"):
        for address, title, first in (
            ({}, SHIFTED_TITLE, "·Le"),
            ({"attention_predicted": "true"}, SHIFTED_TITLE, "·Le"),  # option names in earlier addresses
            ({"attention_predicted_cross": "false"}, QUERY_TITLE, "<s>"),
        ):
            app = open_page(**place, **address, attention_show=TEXT[f"show_{drawing}"])
            is_fine(app)
            assert (drawn[-1]["row_title"], drawn[-1]["rows"][0]) == (title, first), (drawing, address)
            predicting = "redict" in sentence(app) and "**Le**" in sentence(app)
            assert predicting == (title == SHIFTED_TITLE)
    app = open_page(**place)
    app.toggle(key="attention_predicted_cross").set_value(False).run()
    is_fine(app)
    assert drawn[-1]["row_title"] == QUERY_TITLE and "redict" not in sentence(app)


@pytest.mark.parametrize("drawing", ["map", "values", "rollout"])
@pytest.mark.parametrize("language", ["en", "fr"])
def test_every_sentence_about_a_row_names_what_it_predicts_and_the_arithmetic_what_it_reads(
    open_page: Callable, tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch, drawing: str, language: str
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(
        "views.attention.shaded.token_rows", lambda *, data, **_: drawn.append(data["rows"][0]["title"])
    )
    place = {"stack": "decoder", "kind": "cross", "token": "1", "target": "Le vieil homme.", "attention_key": "1"}
    app = open_page(**place, language=language, attention_show=drawing)
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, target=place["target"])
    read, predicted = trace.target.labels[1], trace.prediction.labels[1]
    quote = "‘{}’" if language == "en" else "«\xa0{}\xa0»"
    wanted = {"en": " for {}**", "fr": " pour {}**"}[language]
    comes_from = {"en": "Query: from {}", "fr": "celle de {}"}[language]
    assert wanted.format(quote.format(predicted.removeprefix("·"))) in plain(app), "above the arithmetic"
    assert any(comes_from.format(quote.format(read.removeprefix("·"))) in one.value for one in app.caption)
    above = sentence(app)
    assert f"**{predicted.removeprefix('·')}**" in above and f"**{read.removeprefix('·')}**" not in above
    assert quote.format(predicted.removeprefix("·")) in drawn[-1]
    if drawing == "map":
        for step in ("1", "3", "5", "6", "7"):
            shown = said(open_page(**place, language=language, attention_step=step)).replace("\\", "")
            assert not re.search(f"(row|query|ligne|requête) (of|de) {quote.format(predicted)}", shown), step


def test_the_answer_without_the_head_is_written_only_when_asked_for(open_page: Callable) -> None:
    app = open_page(stack="decoder", kind="cross")
    assert "Without this head" not in said(app)
    app.toggle(key="attention rewrite").set_value(True).run()
    is_fine(app)
    assert "Without this head" in said(app)


@pytest.mark.parametrize(
    ("checkpoint", "sentence", "what"),
    [
        ("en-fr", "The cat sat.", "whole output"),
        ("gpt-en", "My grandmother bakes apple pie every Sunday.", "whole text"),
        ("gpt-en", "The cat sat on", "whole output"),
        ("sentiment", "a funny but dull film", "positive"),
        ("bert-en", "My grandmother bakes apple pie every ___.", "day"),
    ],
)
def test_the_effect_of_a_head_names_what_is_predicted(open_app, monkeypatch, checkpoint, sentence, what) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("attention", checkpoint=checkpoint, sentence=sentence)
    is_fine(app)
    (effect,) = [metric for metric in app.metric if metric.label.endswith(TEXT["effect"])]
    assert effect.value.startswith(f"p({what}) × ")
    of_one = TEXT["effect_of_one"].format(what=what)
    assert effect.label == (TEXT["effect"] if what.startswith("whole") else of_one)


def test_another_sentence_forgets_a_cell_that_it_does_not_have(open_page: Callable) -> None:
    app = open_page()
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[2]).run()
    app.text_input(key="sentence").set_value("Zwölf!").run()
    is_fine(app)
    assert app.selectbox(key="attention_key").value is None


@pytest.mark.parametrize("drawing", ["show_values", "show_rollout"])
def test_sentence_and_numbers_speak_of_what_is_drawn(
    open_page: Callable, tiny_checkpoint: Callable, drawing: str
) -> None:
    app = open_page(token="3", layer="1", head="1", attention_show=TEXT[drawing])
    is_fine(app)
    assert "looks mostly at" not in said(app) and "spreads its attention" not in said(app)
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    labels = [metric.label for metric in app.metric]
    if drawing == "show_values":
        row = norm_weighted(trace, "encoder", 1, "self")[1][3]
        assert TEXT["strongest"] in labels
    else:
        row = attention_rollout(trace, "encoder", layer=1).view("self").weights[0, 3]
        assert TEXT["strongest"] not in labels and not any(label.endswith(TEXT["effect"]) for label in labels)
    shares = row / row.sum()
    entropy = float(-(shares * np.log2(shares)).sum())
    place = next(place for place, label in enumerate(labels) if label.endswith(TEXT["entropy"]))
    assert labels[place] != TEXT["entropy"]
    assert float(app.metric[place].value) == pytest.approx(entropy, rel=0.006)
    assert f"{shares.max():.3g}" in said(app)


def test_a_patch_without_ink_is_called_empty() -> None:
    """A head may look there all the same, which a newcomer would ask about."""
    three = "018aea000ca66g2003007e1000009b0000002g10000008c000402b9000cgec40"
    view = transformer.trace(transformer.load(ROOT / "checkpoints" / "vit-digits"), three).attention("encoder", 0)
    words = read_aloud(TEXT, view, head=2, row=0)
    best = [view.key[int(key)] for key in np.argsort(-view.weights[2, 0])[:3]]
    for patch in best:
        assert (f"empty patch {patch.display}" in words) != any(patch.pixels)
    assert not all(any(patch.pixels) for patch in best)


def test_read_aloud_says_what_the_row_says(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, source_pads=1)
    view = trace.attention("encoder", 0)
    weights = np.zeros_like(view.weights)
    weights[:, :, 1], weights[:, :, 2] = 0.875, 0.125
    sharp = transformer.AttentionView(**{**vars(view), "weights": weights})
    labels = view.query.labels
    words = read_aloud(TEXT, sharp, head=0, row=0).replace("\\", "")
    row, first, second = (label.removeprefix("·") for label in labels[:3])
    assert words == f"Reading **{row}**, head 0 looks mostly at **{first}** (0.875), then at ‘{second}’ (0.125)."
    words = read_aloud(TEXT, sharp, head=0, row=0, named=6, predicted="·chaque")
    assert words.startswith(f"To predict **chaque**, head 6 looks mostly at **{first}**")
    assert "is padding" in read_aloud(TEXT, sharp, head=0, row=len(labels) - 1)
    nothing = transformer.AttentionView(**{**vars(view), "allowed": np.zeros_like(view.allowed)})
    assert "cannot attend to any token" in read_aloud(TEXT, nothing, head=0, row=0)


def test_masked_cells_are_counted_by_their_reason(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, "Le vieil homme.", source_pads=2)
    n_target, n_source = len(trace.target), len(trace.source)
    nothing = {"causal": 0, "padding": 0, "other": 0}
    assert mask_counts(trace.attention("encoder", 0)) == {**nothing, "padding": 2 * n_source}
    assert mask_counts(trace.attention("decoder", 0)) == {**nothing, "causal": n_target * (n_target - 1) // 2}
    assert mask_counts(trace.attention("decoder", 0, "cross")) == {**nothing, "padding": 2 * n_target}


def test_the_equations_hold_only_numbers(tiny_checkpoint: Callable) -> None:
    from transformer.attention_maps.attention_arithmetic import cell_arithmetic

    trace = transformer.trace(tiny_checkpoint("bert"), r"\alpha } $ \end{aligned}")
    cell = cell_arithmetic(trace, "encoder", 0, "self", head=0, query=1, key=2)
    written = equations(cell)
    assert written.count(r"\end{aligned}") == 1
    assert f"{cell.weight:.6g}" in written


TRUST = {"attention_section": TEXT["section_trust"]}


def plain(app: AppTest) -> str:
    return said(app).replace("\\", "")


@pytest.mark.parametrize(
    ("checkpoint", "address"),
    [
        ("tiny-translator", {"stack": "decoder", "kind": "cross", "layer": "1", "head": "1", "token": "2"}),
        ("tiny-translator", {"stack": "decoder", "kind": "self", "token": "0"}),
        ("tiny-translator", {"stack": "encoder", "token": "1", "pads": "2"}),
        ("tiny-gpt", {"token": "3"}),
        ("tiny-gpt", {"token": "0"}),
        ("tiny-bert", {"sentence": "The ___ sat.", "token": "1"}),
        ("tiny-bert", {"token": "0"}),
        ("tiny-sentiment", {"token": "2", "pads": "1"}),
    ],
)
def test_how_far_to_trust_the_map_of_every_kind_of_model(open_page: Callable, checkpoint: str, address: dict) -> None:
    app = open_page(checkpoint=checkpoint, **address, **TRUST)
    is_fine(app)
    assert "**Completeness.**" in plain(app)
    assert "attention_step" not in [control.key for control in app.segmented_control], "the path is not computed"
    asks = "trust_answer" in " ".join(box.key or "" for box in app.selectbox)
    assert asks == (address.get("stack") == "encoder" or checkpoint == "tiny-bert")
    two_sentences = checkpoint == "tiny-translator"
    assert ("also depends on" in plain(app)) == two_sentences


def test_the_path_comes_first_and_nothing_is_attributed_before_it_is_asked_for(open_page: Callable) -> None:
    app = open_page()
    assert app.segmented_control(key="attention_step") is not None
    assert "**Completeness.**" not in said(app)


def test_the_check_holds_the_numbers_of_the_library(open_page: Callable, tiny_checkpoint: Callable) -> None:
    from transformer.attribution.input_attribution import gradient_times_input, integrated_gradients
    from transformer.predictions.quantity import quantity_of

    app = open_page(checkpoint="tiny-gpt", token="3", **TRUST)
    app.segmented_control(key="trust_of").set_value("logit").run()
    app.segmented_control(key="trust_baseline").set_value("pad").run()
    app.segmented_control(key="trust_steps").set_value(16).run()
    is_fine(app)
    checkpoint = tiny_checkpoint("gpt")
    quantity = quantity_of(transformer.trace(checkpoint, SENTENCE), row=3, of="logit")
    found = integrated_gradients(checkpoint, quantity, baseline="pad", n_steps=16)
    slope = gradient_times_input(checkpoint, quantity)
    line = next(line for line in plain(app).splitlines() if "**Completeness.**" in line).replace("−", "-")
    line = with_e(line)
    numbers = [float(number) for number in re.findall(r"[+-]\d+(?:\.\d+)?(?:e-\d+)?", line.replace(" - ", " minus "))]
    expected = [found.total, found.value, found.baseline_value, found.difference, found.error, slope.total]
    assert numbers == pytest.approx(expected, rel=0.006, abs=2e-5)


def test_baselines_are_compared_only_when_asked_for(open_page: Callable) -> None:
    app = open_page(checkpoint="tiny-gpt", token="3", **TRUST)
    assert not app.dataframe
    app.toggle(key="trust baselines").set_value(True).run()
    is_fine(app)
    table = app.dataframe[0].value
    assert list(table[TEXT["column_baseline"]]) == [TEXT[f"trust_baseline_{name}"] for name in ("mean", "pad", "zero")]
    assert table[TEXT["column_start"]].nunique() == 3
    moved = table[TEXT["column_total"]] - table[TEXT["column_difference"]]
    assert moved.to_numpy() == pytest.approx(table[TEXT["column_error"]].to_numpy())


def test_the_snippet_of_the_measures_runs(
    open_page: Callable, checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page(stack="decoder", kind="cross", token="2", **TRUST)
    snippet = next(code for code in codes(app) if "input_attributions(" in code)
    (tmp_path / "checkpoints").symlink_to(checkpoints_folder)
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(snippet, "snippet", "exec"), {})  # the code that the page shows
    total, difference = map(float, printed.getvalue().split()[:2])
    expected = [float(number) for number in re.search(r"difference\)  # (\S+) (\S+)", snippet).groups()]
    assert [total, difference] == pytest.approx(expected, rel=1e-4)


def test_removing_an_edge_is_measured_next_to_its_arithmetic(open_page: Callable, tiny_checkpoint: Callable) -> None:
    from transformer.interventions.experiment import experiment

    app = open_page(stack="decoder", kind="cross", layer="1", head="1", token="1")
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[2]).run()
    is_fine(app)
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, SENTENCE)
    edit = transformer.ablate_edge("decoder", layer=1, kind="cross", head=1, query=1, key=2)
    effect = experiment(trace, [edit])
    line = next(line for line in plain(app).splitlines() if "**Without this edge**" in line)
    after = re.search(r"with the edge, (\S+) without", line).group(1)
    assert float(after) == pytest.approx(float(np.exp(effect.after[1])), rel=0.006)
    if abs(effect.change) >= 5e-4:
        factor = re.search(r"multiplied by \*\*(\S+)\*\*", line).group(1)
        assert float(factor) == pytest.approx(effect.factor, rel=0.006)


def test_a_masked_edge_and_a_question_that_was_not_asked_say_so(open_page: Callable) -> None:
    app = open_page(stack="decoder", kind="self", token="1", target="Le vieil homme.")
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[3]).run()
    assert TEXT["edge_masked"] in said(app)
    app = open_page(checkpoint="tiny-bert", token="1")
    key = app.selectbox(key="attention_key")
    key.set_value(key.options[3]).run()
    assert TEXT["edge_nothing"] in said(app)


@pytest.mark.parametrize(("stack", "kind"), [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")])
def test_the_map_can_be_a_rollout(open_page: Callable, stack: str, kind: str) -> None:
    app = open_page(stack=stack, kind=kind, layer="1", token="1", attention_show=TEXT["show_rollout"])
    is_fine(app)
    captions = [caption.value for caption in app.caption]
    assert TEXT["show_rollout_help"] in captions
    assert any("came from the source" in caption for caption in captions) == (stack == "decoder")
