"""Norms by their place, before and after γ and β, and the residual stream that they set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transformer
from transformer.layers.norms import add_and_norm, norm_kind, norm_statistics, norm_steps, norms_by_place
from transformer.layers.residual_stream import additions, stream_lengths
from ui.words.texts import page_texts

ROOT = Path(__file__).resolve().parents[3]
SENTENCE = "The old man told us a story."


@pytest.mark.parametrize("name", ["tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def test_the_numbers_of_a_norm_are_the_traces(tiny_checkpoint, name: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    stack, order = trace.stacks[0], trace.checkpoint.config.norm
    norm = norms_by_place(trace, stack, 1)["feed_forward_norm"]
    assert norm_kind(trace.checkpoint, norm) == "LayerNorm"
    halves = add_and_norm(trace, stack, 1, norm, 2)
    vectors = {what: vector for half in halves for what, vector in half.vectors.items() if what != "scaled"}
    assert list(vectors) == (
        ["x", "update", "sum", "normalized"] if order == "post" else ["x", "normalized", "update", "sum"]
    )
    np.testing.assert_array_equal(vectors["x"] + vectors["update"], vectors["sum"])
    read = vectors["sum" if order == "post" else "x"].astype(np.float64)
    np.testing.assert_array_equal(read, trace.values(f"{norm}.input")[2])
    np.testing.assert_allclose(vectors["normalized"], (read - read.mean()) / read.std(), atol=5e-3)
    assert norm_steps(trace, norm, 2).output == pytest.approx(trace.values(f"{norm}.output")[2])
    assert max(addition.largest_deviation for addition in additions(trace, stack, 2, norm=order)) == 0


def test_a_norm_beside_no_sub_layer_adds_nothing(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    norms = norms_by_place(trace, "encoder", 1)
    assert list(norms) == ["self_attention_norm", "feed_forward_norm", "final_norm"]
    assert [half.kind for half in add_and_norm(trace, "encoder", 1, norms["final_norm"], 0)] == ["norm"]


def test_gain_and_bias_make_the_tokens_differ_again() -> None:
    """After γ and β, tokens need not have the same mean and spread."""
    trace = transformer.trace(transformer.load(ROOT / "checkpoints" / "en-fr"), "The cat sat on the mat.")
    norm = norms_by_place(trace, "encoder", 1)["feed_forward_norm"]
    normalized, output = (norm_statistics(trace, norm, after=after) for after in ("normalized", "output"))
    assert np.ptp(normalized.std_after) < 0.01 < 0.02 < np.ptp(output.std_after)
    assert np.abs(normalized.mean_after).max() < 1e-5 < 1e-3 < np.ptp(output.mean_after)
    for text, same in zip(page_texts("add_norm"), ("have the same", "tous ont les mêmes"), strict=True):
        first = text.look_for_of({"pre"})[0]
        assert "γ" in first and same not in first and "γ" in text["statistics_caption"]


def test_in_a_post_norm_model_the_norm_sets_the_length(tiny_checkpoint) -> None:
    """Its residual stream has the length that γ and β give it, whatever was added: another caption."""
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    _, lengths = stream_lengths(trace, "encoder")
    norms = [name for name in trace.names() if name.endswith("_norm.output")]
    after = np.stack([np.linalg.norm(trace.values(name), axis=-1) for name in norms])
    np.testing.assert_allclose(lengths[1:], after, rtol=1e-6)
    for text in page_texts("add_norm"):
        assert "γ" in text["growth_caption_post"] and "γ" not in text["growth_caption"]
