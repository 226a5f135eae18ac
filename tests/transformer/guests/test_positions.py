"""Positions of guests, compared with the code of each family, and stretched rotations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.foreign_checkpoints import STRETCHED, any_checkpoint
from tests.nights import by_day
from tests.transformer.guests.tiny_guests import GUESTS
from tests.transformer.guests.tiny_image_guests import IMAGE_CLASSIFIERS, IMAGE_GUESTS, image_checkpoint
from transformer import CheckpointError, Greedy, load, trace
from transformer.attention_maps.attention_arithmetic import query_arithmetic
from transformer.errors import NotExposedError
from transformer.guests import position_kinds
from transformer.guests.rotary_positions import frequencies_of, plain_frequencies
from transformer.layers.layer_anatomy import anatomy
from transformer.layers.positional_encodings import reordered_positions, rotary_of, stretched_pairs, without_positions
from transformer.positions import alibi_slopes
from transformer.probes import record

TEXT = "The cat sat on the mat because it was tired."
# From the sources of transformers 5.24: the table of positions, ``apply_rotary_pos_emb``, or the bias of the scores.
TEXTS = {
    **dict.fromkeys(("opt", "gpt_bigcode", "gpt_neo"), ("learned",)),
    **dict.fromkeys(("roberta", "distilbert", "xlm-roberta", "camembert", "electra"), ("learned",)),
    **dict.fromkeys(("bart", "mbart", "blenderbot-small"), ("learned",)),
    **dict.fromkeys(("phi", "phi3", "olmo", "olmo2", "olmo3", "smollm3", "stablelm", "starcoder2"), ("rotary",)),
    **dict.fromkeys(("cohere", "cohere2", "granite", "glm", "glm4", "mixtral", "qwen2_moe", "qwen3_moe"), ("rotary",)),
    **dict.fromkeys(("gpt_oss", "gptj", "codegen", "falcon", "persimmon", "nemotron", "modernbert"), ("rotary",)),
    **dict.fromkeys(("doge", "roformer"), ("rotary",)),
    **dict.fromkeys(("m2m_100", "pegasus"), ("sinusoidal",)),
    "bloom": ("alibi",),
    "mpt": ("alibi",),
    "openai-gpt": ("learned",),
    "ctrl": ("unknown",),
    "mt5": ("relative",),
    "mpnet": ("learned", "relative"),
}
IMAGES = dict.fromkeys(("vit", "dinov2", "dinov2_with_registers", "siglip", "clip", "deit"), ("learned",))
BY_DAY = ("roformer", "pegasus", "bloom", "mpnet", "gpt_oss", "vit", "openai-gpt")


@pytest.fixture
def opened(tmp_path: Path) -> Callable:
    """Return ``opened("phi")``, which gives the guest as a checkpoint."""
    return lambda kind, **given: load(any_checkpoint(kind, tmp_path, **given))


@pytest.mark.parametrize("kind", by_day([*TEXTS, *IMAGES], BY_DAY))
def test_the_kind_of_positions_is_that_of_the_code(opened: Callable, kind: str) -> None:
    config = opened(kind).config
    expected = {**TEXTS, **IMAGES}[kind]
    for stack in ("encoder", "decoder"):
        if config.has_encoder if stack == "encoder" else config.has_decoder:
            assert config.kinds_in(stack) == expected


def test_a_class_that_attends_to_later_tokens_is_no_decoder(opened: Callable) -> None:
    made = ("XLMWithLMHeadModel", {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64})
    with pytest.raises(CheckpointError, match="attends to later tokens"):
        opened("xlm", made=made)


def test_the_table_of_truth_has_every_guest() -> None:
    assert TEXTS.keys() >= GUESTS.keys() and IMAGES.keys() == IMAGE_GUESTS.keys()


def test_the_longest_text_is_read_under_each_name_for_it(opened: Callable) -> None:
    assert opened("mpt").config.max_length == 64


def test_a_bias_in_rows_and_columns_is_relative(tmp_path: Path) -> None:
    path = image_checkpoint("beit", tmp_path, IMAGE_CLASSIFIERS["beit"])
    assert load(path).config.kinds_in("encoder") == ("relative",)


def test_layers_that_do_not_rotate_are_known(opened: Callable) -> None:
    checkpoint = opened("smollm3", num_hidden_layers=4)  # its fourth layer has no positions
    layers = checkpoint.model.decoder.layers
    assert [layer.self_attention.rotary is None for layer in layers] == [False, False, False, True]


def test_the_sines_of_a_guest_are_its_own_table(opened: Callable) -> None:
    run = trace(opened("m2m_100"), TEXT, target="It slept.")
    encoding = run.checkpoint.model.decoder.embedding.position_encoding
    added = run.values("decoder.embedding.position")
    np.testing.assert_array_equal(encoding(len(added))[0].numpy(), added)
    place, half = torch.arange(len(added))[:, None] + encoding.offset, torch.arange(16)
    angle = place * 10_000 ** (-half / encoding.steps)
    np.testing.assert_allclose(torch.cat((angle.sin(), angle.cos()), dim=1), added, atol=1e-5)
    token, total = (run.values(f"decoder.embedding.{part}") for part in ("token", "sum"))
    np.testing.assert_allclose(token + added, total, atol=1e-5)


def test_without_alibi_the_scores_lack_its_bias_and_nothing_else(opened: Callable) -> None:
    checkpoint, name = opened("bloom"), "decoder.layers.0.self_attention.{}"
    ids = [[7] * 9]
    with torch.inference_mode():
        found = []
        for edits in ((), without_positions(checkpoint.model, "decoder")):
            with record(edits) as recording:
                checkpoint.model(torch.tensor(ids))
            found.append({part: recording.tensors[name.format(part)][0] for part in ("scores", "weights")})
    row = (found[0]["scores"] - found[1]["scores"])[:, 8]
    np.testing.assert_allclose(row.numpy(), -alibi_slopes(4).numpy()[:, None] * np.arange(9)[::-1], atol=1e-5)
    np.testing.assert_allclose(found[1]["weights"][:, 8].numpy(), 1 / 9, atol=1e-5)  # the same token nine times


def test_positions_of_several_kinds_are_not_half_removed(opened: Callable) -> None:
    model = opened("mpnet").model
    for change in (lambda: without_positions(model, "encoder"), lambda: reordered_positions(model, "encoder", (1, 0))):
        with pytest.raises(NotExposedError, match="several kinds"):
            change()


def test_what_no_measurement_explains_is_unknown(opened: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Bloom's slopes were not ALiBi's: a fixed straight line is no trained bias either."""
    own = position_kinds.alibi_slopes
    monkeypatch.setattr(position_kinds, "alibi_slopes", lambda n_heads: 2 * own(n_heads))
    checkpoint = opened("bloom")
    assert checkpoint.config.positions == "unknown"
    with pytest.raises(NotExposedError, match="how it encodes positions"):
        without_positions(checkpoint.model, "decoder")
    assert trace(checkpoint, TEXT, strategy=Greedy(1)).stacks == ("decoder",)


# ---- stretched rotations --------------------------------------------------------------------------------------------


SENTENCE = "The cat sat on the mat, and the dog slept."


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


@pytest.mark.parametrize("name", [*STRETCHED, "hf-llama", "hf-gemma2", "hf-neox"])
def test_positions_can_be_taken_away(guest: Callable, name: str) -> None:
    """What remains is the output of the projection (and the norm of queries) times the attention factor."""
    checkpoint = guest(name)
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
    slowed = name in STRETCHED and name != "hf-gemma3"  # which is slowed down evenly, and only in some layers
    assert (factor != 1) == slowed
    assert found.factor in (factor, 1.0)
    expected = float(head[found.channel].detach()) * found.factor
    assert found.recorded == pytest.approx(expected, rel=1e-4, abs=1e-4)
    if not slowed and not found.normalized:
        assert found.value == pytest.approx(found.recorded, rel=1e-3, abs=1e-3)


def test_a_layer_says_how_its_waves_are_stretched(guest: Callable) -> None:
    for name, way in (("hf-yarn", "YaRN"), ("hf-longrope", "LongRoPE")):
        positions = anatomy(guest(name).model, "decoder", 0)[2]
        assert dict(positions.facts)["wavelengths stretched by"] == way
