"""The page Add & Norm: every view of every kind of model shows numbers that agree with the trace."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.pages.conftest import KINDS, choose_text, is_fine, said
from transformer.layers.norms import add_and_norm
from ui.shell.focus import FIRST_CHOSEN
from ui.words.texts import filled, page_text

TEXT = page_text("add_norm")
SENTENCE = "The old man told us a story."


@pytest.mark.parametrize("checkpoint", KINDS)
@pytest.mark.parametrize("norm", ["self_attention_norm", "feed_forward_norm"])
def test_the_first_view_is_one_vector_in_the_true_order(open_app, run_snippet, tiny_checkpoint, checkpoint, norm):
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
    told = run_snippet(app)
    for half in halves:
        for name in half.vectors:
            assert f"kind='{half.kind}'" in told and f"'{name}': array(" in told


def test_the_page_begins_at_a_word_until_the_first_token_is_clicked(open_app, tiny_checkpoint) -> None:
    app = open_app("add_norm", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder")
    start, word = transformer.trace(tiny_checkpoint("tiny-translator"), SENTENCE).tokens("decoder")[:2]
    assert start.special and f"copy of **{word.display}**" in said(app)
    assert app.session_state["focus"].token == 0, "what all pages share stays as it is"
    assert f"copy of **{start.display}**" in said(choose_text(app, FIRST_CHOSEN, "1").run()), "what a click says"


def test_a_norm_that_another_layer_has_is_left_behind(open_app: Callable) -> None:
    app = open_app("add_norm", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder")
    app.segmented_control(key="norm").set_value("cross_attention_norm").run()
    app.selectbox(key="choose stack").set_value("encoder").run()
    is_fine(app)
    assert "cross-attention" not in "".join(latex.value for latex in app.latex)


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_table_and_the_snippet_are_the_recorded_numbers(open_app, run_snippet, tiny_checkpoint, checkpoint) -> None:
    app = open_app("add_norm", checkpoint=checkpoint, sentence=SENTENCE, layer="1", token="3")
    choose_text(app, "add norm view", "arithmetic").run()
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
    value, deviation = map(float, run_snippet(app).splitlines()[-2:])
    assert value == pytest.approx(float(output[5]), abs=1e-5)
    assert deviation < 1e-5
