"""Names and statistics of norms, and what they do to the stream.

Their arithmetic is in ``test_every_kind_of_model.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.shipped import shipped
from transformer.layers.norms import (
    add_and_norm,
    norm_names,
    norm_statistics,
    norms_by_place,
)
from transformer.layers.residual_stream import stream_lengths

SENTENCE = "The train arrives at half past nine."


def test_names_are_those_of_the_layer_and_the_final_one(tiny_checkpoint):
    pre = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    assert norm_names(pre, "decoder", 1) == (
        "decoder.layers.1.self_attention_norm",
        "decoder.layers.1.cross_attention_norm",
        "decoder.layers.1.feed_forward_norm",
        "decoder.final_norm",
    )
    post = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    assert norm_names(post, "encoder", 0) == (
        "encoder.layers.0.self_attention_norm",
        "encoder.layers.0.feed_forward_norm",
    )


def test_statistics_before_and_after(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    name = "encoder.layers.0.self_attention_norm"
    statistics = norm_statistics(trace, name)
    assert np.allclose(statistics.mean_after, 0, atol=1e-5)
    assert np.allclose(statistics.std_after, 1, atol=1e-3)
    assert np.allclose(statistics.std_before, trace.values(f"{name}.input").std(axis=1))
    assert not np.allclose(norm_statistics(trace, name, after="output").std_after, 1, atol=1e-3)
    with pytest.raises(ValueError, match="'sum'.*normalized or output"):
        norm_statistics(trace, name, after="sum")


def test_what_gemma_writes_is_normalised_before_it_is_added(guest: Callable) -> None:
    trace = transformer.trace(guest("hf-gemma2"), SENTENCE)
    before, behind, add = add_and_norm(trace, "decoder", 0, "decoder.layers.0.self_attention_norm", 2)
    assert before.norm != behind.norm and "written" in behind.vectors
    np.testing.assert_array_equal(behind.vectors["scaled"], add.vectors["update"])
    assert add_and_norm(trace, "decoder", 0, behind.norm, 2)[1].norm == behind.norm


def test_gain_and_bias_make_the_tokens_differ_again() -> None:
    """After γ and β, tokens need not have the same mean and spread."""
    trace = transformer.trace(shipped("en-fr"), "The cat sat on the mat.")
    norm = norms_by_place(trace, "encoder", 1)["feed_forward_norm"]
    normalized, output = (norm_statistics(trace, norm, after=after) for after in ("normalized", "output"))
    assert np.ptp(normalized.std_after) < 0.01 < 0.02 < np.ptp(output.std_after)
    assert np.abs(normalized.mean_after).max() < 1e-5 < 1e-3 < np.ptp(output.mean_after)


def test_in_a_post_norm_model_the_norm_sets_the_length(tiny_checkpoint) -> None:
    """Its residual stream has the length that γ and β give it, whatever was added."""
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    _, lengths = stream_lengths(trace, "encoder")
    norms = [name for name in trace.names() if name.endswith("_norm.output")]
    after = np.stack([np.linalg.norm(trace.values(name), axis=-1) for name in norms])
    np.testing.assert_allclose(lengths[1:], after, rtol=1e-6)
