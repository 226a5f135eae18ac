"""The page Add & Norm: every view of every kind of model shows numbers that agree with the trace."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.pages.conftest import choose_text, codes, is_fine, said
from transformer.layers.norms import add_and_norm
from ui.shell.focus import FIRST_CHOSEN
from ui.words.filled import filled
from ui.words.texts import page_text

TEXT = page_text("add_norm")
CHECKPOINTS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment")
VIEWS = ("statistics", "arithmetic", "parameters", "stream", "updates")
SENTENCE = "The old man told us a story."


def show(app, view):
    choose_text(app, "add norm view", TEXT["tab"][view])
    return app.run()


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_every_view_of_every_kind_of_model(open_app: Callable, checkpoint: str) -> None:
    app = open_app("add_norm", checkpoint=checkpoint, sentence=SENTENCE, token="2")
    place = "post" if checkpoint == "tiny-bert" else "pre"
    for view in VIEWS:
        show(app, view)
        is_fine(app)
        drawn = {"stream": "largest deviation", "arithmetic": "The other formula"}.get(view)
        assert drawn is None or drawn in said(app)
        if view != "updates":
            assert TEXT[place] in said(app).replace("\\", "")


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("norm", ["self_attention_norm", "feed_forward_norm"])
def test_the_first_view_is_one_vector_in_the_true_order(
    open_app: Callable, run_snippet: Callable, tiny_checkpoint: Callable, checkpoint: str, norm: str
) -> None:
    app = open_app("add_norm", checkpoint=checkpoint, sentence=SENTENCE, layer="1", token="2", norm=norm)
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    stack = trace.stacks[0]
    halves = add_and_norm(trace, stack, 1, f"{stack}.layers.1.{norm}", 2)
    first, second = [half.kind for half in halves]
    assert (first, second) == (("add", "norm") if checkpoint == "tiny-bert" else ("norm", "add"))
    x = trace.values(f"{stack}.layers.1.{norm}.input")[2].astype(np.float64)
    order, token = "post" if checkpoint == "tiny-bert" else "pre", trace.tokens(stack)[2].display
    values = {"token": token, "sublayer": TEXT["norm"][norm], "std": x.std(), "one": "1.00"}
    claim = filled(TEXT[f"claim_{order}"], values, markdown=False)
    assert re.sub(r"1\.00|0\.999|1\b", "1", claim) in re.sub(r"1\.00|0\.999|1\b", "1", said(app)), said(app)
    snippet = next(code for code in codes(app) if code.startswith("import transformer"))
    told = run_snippet(snippet)
    for half in halves:
        for name in half.vectors:
            assert f"kind='{half.kind}'" in told and f"'{name}': array(" in told


def test_a_norm_that_adds_nothing_says_so(open_app: Callable) -> None:
    app = open_app("add_norm", checkpoint="tiny-translator", sentence=SENTENCE, norm="final_norm")
    is_fine(app)
    assert "Nothing is added here" in said(app)


def test_the_page_begins_at_a_word_until_the_first_token_is_clicked(
    open_app: Callable, tiny_checkpoint: Callable
) -> None:
    app = open_app("add_norm", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder")
    start, word = transformer.trace(tiny_checkpoint("tiny-translator"), SENTENCE).tokens("decoder")[:2]
    assert start.special and f"copy of **{word.display}**" in said(app)
    assert app.session_state["focus"].token == 0, "what all pages share stays as it is"
    choose_text(app, FIRST_CHOSEN, "1")  # what a click on the strip says
    assert f"copy of **{start.display}**" in said(app.run())


def test_another_token_has_another_vector(open_app: Callable) -> None:
    first, second = (
        open_app("add_norm", checkpoint="tiny-gpt", sentence=SENTENCE, token=token).get("plotly_chart")[0].proto.spec
        for token in "13"
    )
    assert first != second


@pytest.mark.parametrize("stack, cross", [("encoder", False), ("decoder", True)])
def test_the_norms_of_the_focused_layer_can_be_chosen(open_app: Callable, stack: str, cross: bool) -> None:
    app = open_app("add_norm", checkpoint="tiny-translator", sentence=SENTENCE, stack=stack, layer="1")
    choice = app.segmented_control(key="norm")
    assert (TEXT["norm"]["cross_attention_norm"] in choice.options) == cross
    for kind in ("feed_forward_norm", "final_norm"):
        app.segmented_control(key="norm").set_value(kind).run()
        is_fine(app)
    assert any(r"x_{\text{out}} = \text{LayerNorm}(x)" in latex.value for latex in app.latex)


def test_a_norm_that_another_layer_has_is_left_behind(open_app: Callable) -> None:
    app = open_app("add_norm", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder")
    app.segmented_control(key="norm").set_value("cross_attention_norm").run()
    app.selectbox(key="choose stack").set_value("encoder").run()
    is_fine(app)
    assert "cross-attention" not in "".join(latex.value for latex in app.latex)


def test_the_identity_is_checked_and_holds(open_app: Callable) -> None:
    for checkpoint, note in (("tiny-translator", False), ("tiny-bert", True)):
        app = show(open_app("add_norm", checkpoint=checkpoint, sentence=SENTENCE), "stream")
        assert re.search(
            r"all 4 sub-layers of the encoder \([\d,]+ numbers\): the largest deviation is \*\*0\*\*", said(app)
        )
        assert (TEXT["identity_post"] in said(app)) == note


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_table_and_the_snippet_are_the_recorded_numbers(
    open_app: Callable, run_snippet: Callable, tiny_checkpoint: Callable, checkpoint: str
) -> None:
    app = open_app("add_norm", checkpoint=checkpoint, sentence=SENTENCE, layer="1", token="3")
    show(app, "arithmetic")
    app.number_input(key="first dimension").set_value(5).run()
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    stack = trace.stacks[0]
    output = trace.values(f"{stack}.layers.1.self_attention_norm.output")[3]
    table = app.dataframe[0].value
    assert list(table["dimension"]) == list(range(5, 13))
    assert np.allclose(table["output"], output[5:13], atol=0)
    worked = table["γ"] * table["÷ √(σ² + ε)"] + table["β"]
    assert np.allclose(worked, table["output"], atol=1e-5)
    snippet = next(code for code in codes(app) if code.startswith("import transformer"))
    value, deviation = map(float, run_snippet(snippet).splitlines()[-2:])
    assert value == pytest.approx(float(output[5]), abs=1e-5)
    assert deviation < 1e-5
