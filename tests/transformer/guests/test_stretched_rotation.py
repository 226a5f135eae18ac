"""Models with scaled rotary frequencies: generation, edits and computed results equal plain passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import STRETCHED, foreign_checkpoint
from transformer import Checkpoint
from transformer.attention_maps.attention_arithmetic import query_arithmetic
from transformer.guests.rotary_positions import frequencies_of, plain_frequencies
from transformer.layers.layer_anatomy import anatomy
from transformer.layers.positional_encodings import rotary_of, stretched_pairs, without_positions
from transformer.probes import record
from transformer.runs.decoding_strategies import Beam, Greedy
from transformer.runs.inputs import prompt_of

SENTENCE = "The cat sat on the mat, and the dog slept."


@pytest.fixture(scope="module")
def stretched(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Checkpoint]:
    folder = tmp_path_factory.mktemp("stretched")
    return cache(lambda name: transformer.load(foreign_checkpoint(name, folder)))


def test_yarn_keeps_waves_that_turn_often_and_slows_those_that_turn_rarely() -> None:
    """Numbers of Qwen2.5's model card: 32,768 positions scaled by four, base 10⁶, heads of 128 channels."""
    from transformers import Qwen2Config
    from transformers.models.qwen2.modeling_qwen2 import Qwen2RotaryEmbedding

    settings = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6, "original_max_position_embeddings": 32_768}
    heads = {"hidden_size": 256, "num_attention_heads": 2, "max_position_embeddings": 131_072}
    (rotary,) = frequencies_of(Qwen2RotaryEmbedding(Qwen2Config(**heads, rope_parameters=settings)))
    ratio = rotary.slowing(1).numpy()
    turns = 32_768 * plain_frequencies(128, 1e6).numpy() / (2 * np.pi)
    np.testing.assert_allclose(ratio[turns > 36], 1, rtol=1e-5)
    np.testing.assert_allclose(ratio[turns < 0.7], 4, rtol=1e-5)
    assert (np.diff(ratio) > -1e-5).all() and rotary.attention_factor == pytest.approx(0.1 * np.log(4) + 1)
    n_kept, n_slowed, between = stretched_pairs(rotary, 1)
    assert (n_kept, n_slowed) == ((ratio < 1 + 1e-4).sum(), (ratio > 4 - 1e-4).sum()) and between > 10


@pytest.mark.parametrize("strategy", [Greedy(max_new_tokens=24), Beam(width=1, max_new_tokens=24)])
def test_every_written_step_is_what_a_pass_over_its_text_gives(stretched: Callable, strategy: Greedy | Beam) -> None:
    checkpoint = stretched("hf-longrope")
    recorded = isinstance(strategy, Greedy)
    forced = [5 + number for number in range(20)]  # a text that does not end at once
    written = transformer.decode(checkpoint, "The cat", strategy, forced=forced, record_steps=recorded)
    prompt = prompt_of(checkpoint, "The cat")
    ids = [*prompt, *written.tokens.ids]
    assert len(prompt) < 16 < len(ids)
    name = "decoder.layers.2.self_attention.weights"
    for step in written.steps:
        with torch.no_grad(), record() as recording:
            logits = checkpoint.model(torch.tensor([ids[: len(prompt) + step.index]]))[0, -1].numpy()
        possible = np.isfinite(step.logits)
        np.testing.assert_allclose(step.logits[possible], logits[possible], atol=1e-3)
        if recorded:
            row = recording.tensors[name][0, :, -1].numpy()
            np.testing.assert_allclose(step.activations[name].values[:, -1], row, atol=1e-4)


@pytest.mark.parametrize("name", STRETCHED)
def test_positions_can_be_taken_away(stretched: Callable, name: str) -> None:
    """What remains is the output of the projection (and the norm of queries) times the attention factor."""
    checkpoint = stretched(name)
    edits = without_positions(checkpoint.model, "decoder")
    trace = transformer.trace(checkpoint, SENTENCE, edits=edits)
    attention = checkpoint.model.decoder.layers[0].self_attention
    found = query_arithmetic(trace, "decoder", 0, "self", head=1, row=1)
    head = (
        torch.tensor(trace.values("decoder.layers.0.self_attention_norm.output")[1])
        @ attention.query_projection.weight.T
    )
    if (bias := attention.query_projection.bias) is not None:
        head = head + bias
    head = head.view(attention.n_heads, -1)[1]
    if getattr(attention, "query_norm", None) is not None:
        head = attention.query_norm(head[None, None, None]).flatten()
    factor = rotary_of(attention).attention_factor
    assert (factor != 1) == (name != "hf-gemma3"), "which is slowed down evenly, and only in some layers"
    assert found.factor in (factor, 1.0)
    expected = float(head[found.channel].detach()) * found.factor
    assert found.recorded == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_a_layer_says_how_its_waves_are_stretched(stretched: Callable) -> None:
    for name, way in (("hf-yarn", "YaRN"), ("hf-longrope", "LongRoPE")):
        positions = anatomy(stretched(name).model, "decoder", 0)[2]
        assert dict(positions.facts)["wavelengths stretched by"] == way
