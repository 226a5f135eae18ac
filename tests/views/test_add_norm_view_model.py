"""The view model of Add & Norm: the numbers of a norm, and statements before and after γ and β."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from ui.words.texts import page_texts
from views.add_norm.add_norm_view_model import add_norm_view_model, norms_by_place
from views.add_norm.vector_strips_figure import Strip, vector_strips

SENTENCE = "The old man told us a story."


@pytest.fixture
def view_model_of(tiny_checkpoint):
    def build(name, place="feed_forward_norm", token=2):
        trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
        stack = trace.stacks[0]
        norms = norms_by_place(trace, stack=stack, layer=99)
        return add_norm_view_model(trace, norms[place], stack=stack, layer=99, token=token)

    return build


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_numbers_of_a_norm_are_the_traces(view_model_of, name):
    view_model = view_model_of(name)
    values = view_model.trace.values
    x = values(f"{view_model.norm}.input")[2].astype(np.float64)
    mean, spread, after = view_model.mean_and_spread
    assert (mean, spread) == pytest.approx((x.mean(), x.std()), abs=1e-6) and after == pytest.approx(1, abs=2e-3)
    assert view_model.steps.output == pytest.approx(values(f"{view_model.norm}.output")[2])
    order = "post" if name == "tiny-bert" else "pre"
    assert (view_model.order, view_model.claim, view_model.formula, view_model.kind) == (
        order,
        order,
        order,
        "LayerNorm",
    )
    assert view_model.shape == values(f"{view_model.norm}.output").shape
    assert max(addition.largest_deviation for addition in view_model.additions) == 0


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-bert"])
def test_the_first_figure_goes_from_the_stream_through_norm_and_addition_in_the_models_order(view_model_of, name):
    view_model = view_model_of(name)
    vectors = {what: vector for what, _, vector in view_model.vectors}
    post = name == "tiny-bert"
    assert list(vectors) == (["x", "update", "sum", "normalized"] if post else ["x", "normalized", "update", "sum"])
    np.testing.assert_array_equal(vectors["x"] + vectors["update"], vectors["sum"])
    assert vectors["normalized"].std() == pytest.approx(1, abs=2e-3)
    read = vectors["sum" if post else "x"].astype(np.float64)
    np.testing.assert_allclose(vectors["normalized"], (read - read.mean()) / read.std(), atol=5e-3)


def test_a_norm_beside_no_sub_layer_adds_nothing(view_model_of):
    view_model = view_model_of("tiny-translator", place="final_norm", token=99)
    assert (view_model.claim, view_model.formula) == ("alone", "final")
    assert view_model.token == len(view_model.tokens) - 1


def test_gain_and_bias_make_the_tokens_differ_again(view_model_of):
    """After γ and β, tokens need not have the same mean and spread."""
    trained = transformer.trace(transformer.load("checkpoints/en-fr"), "The cat sat on the mat.")
    norm = norms_by_place(trained, stack="encoder", layer=1)["feed_forward_norm"]
    view_model = add_norm_view_model(trained, norm, stack="encoder", layer=1)
    normalized, output = view_model.statistics("normalized"), view_model.statistics("output")
    assert np.ptp(normalized.std_after) < 0.01 < 0.02 < np.ptp(output.std_after)
    assert np.abs(normalized.mean_after).max() < 1e-5 < 1e-3 < np.ptp(output.mean_after)
    for text, same in zip(page_texts("add_norm"), ("have the same", "tous ont les mêmes"), strict=True):
        first = text.look_for_of({"pre"})[0]
        assert "γ" in first and same not in first and "γ" in text["statistics_caption"]


def test_in_a_post_norm_model_the_norm_sets_the_length(view_model_of):
    """Its residual stream has the length that γ and β give it, whatever was added: another caption."""
    view_model = view_model_of("tiny-bert")
    _, lengths = view_model.stream_lengths
    norms = [name for name in view_model.trace.names() if name.endswith("_norm.output")]
    after = np.stack([np.linalg.norm(view_model.trace.values(name), axis=-1) for name in norms])
    np.testing.assert_allclose(lengths[1:], after, rtol=1e-6)
    for text in page_texts("add_norm"):
        assert "γ" in text["growth_caption_post"] and "γ" not in text["growth_caption"]


def test_the_cells_of_the_figure_are_the_vectors_that_are_added() -> None:
    """A reader who adds a column skips the normalised copy, although it is computed second."""
    rng = np.random.default_rng(0)
    x, update = rng.normal(size=(2, 8))
    shown = [
        Strip("x", x),
        Strip("copy", (x - x.mean()) / x.std(), normalized=True, is_copy=True),
        Strip("+", update),
        Strip("=", x + update),
    ]
    texts = {"spread": "std", "numbers": "", "all_of_it": ""}
    cells, *others = vector_strips(shown, root_mean_square=False, **texts).data
    values = np.asarray(cells.z)
    assert np.isnan(values[1]).all()
    np.testing.assert_allclose(np.nansum(values[:3], axis=0), values[3], atol=1e-6)
    assert any(trace.mode == "text" and set(trace.y) == {1} and len(trace.x) == 5 for trace in others)
