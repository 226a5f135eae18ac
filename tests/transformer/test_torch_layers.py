"""Our layers give torch's results with the same weights: pre- and post-norm, with masks, within 1e-5."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.transformer.tiny import config
from transformer.attention import MultiHeadAttention
from transformer.config import ModelConfig
from transformer.decoder import DecoderLayer
from transformer.encoder import EncoderLayer
from transformer.fast.shortcut import fast_path
from transformer.feed_forward import FeedForward
from transformer.layer_norm import LayerNorm, norm_layer
from transformer.masks import causal_mask, combined_mask

CASES = [(norm, activation) for norm in ("pre", "post") for activation in ("relu", "gelu")]
BATCH, SOURCE, TARGET, MODEL = 3, 7, 5, 16


def attention_weights_of(layer: MultiHeadAttention) -> dict[str, Tensor]:
    parts = (layer.query_projection, layer.key_projection, layer.value_projection)
    return {
        "in_proj_weight": torch.cat([part.weight for part in parts]),
        "in_proj_bias": torch.cat([part.bias for part in parts]),
        "out_proj.weight": layer.output_projection.weight,
        "out_proj.bias": layer.output_projection.bias,
    }


def translated(layer: EncoderLayer | DecoderLayer) -> dict[str, Tensor]:
    """Return our weights with torch's names. torch numbers its norms in the order of the sub-layers."""
    norms = [layer.self_attention_norm, layer.feed_forward_norm]
    attentions = {"self_attn": layer.self_attention}
    if isinstance(layer, DecoderLayer):
        norms.insert(1, layer.cross_attention_norm)
        attentions["multihead_attn"] = layer.cross_attention
    state = {f"{name}.{part}": w for name, a in attentions.items() for part, w in attention_weights_of(a).items()}
    for number, norm in enumerate(norms, start=1):
        state |= {f"norm{number}.weight": norm.weight, f"norm{number}.bias": norm.bias}
    for number, linear in enumerate((layer.feed_forward.input_projection, layer.feed_forward.output_projection), 1):
        state |= {f"linear{number}.weight": linear.weight, f"linear{number}.bias": linear.bias}
    return {name: tensor.detach() for name, tensor in state.items()}


def randomised(layer: Any) -> Any:
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    return layer.eval()


def torch_layer(kind: type[nn.Module], settings: ModelConfig, state: dict[str, Tensor]) -> nn.Module:
    layer = kind(
        settings.d_model, settings.n_heads, settings.d_ff, dropout=0.0, activation=settings.activation,
        layer_norm_eps=settings.layer_norm_epsilon, batch_first=True, norm_first=settings.norm == "pre",
    )  # fmt: skip
    layer.load_state_dict(state)  # strict: every weight of theirs is one of ours
    return layer.eval()


def source_padding() -> Tensor:
    """True = real, as everywhere in this project; torch's own masks mean the opposite."""
    real = torch.ones(BATCH, SOURCE, dtype=torch.bool)
    real[1, 5:] = False
    real[2, 3:] = False
    return real


@pytest.mark.parametrize("path", ["readable", "fast"])
@pytest.mark.parametrize(("norm", "activation"), CASES)
def test_encoder_layer(norm: str, activation: str, path: str) -> None:
    torch.manual_seed(3)
    settings = config(norm=norm, activation=activation)
    ours = randomised(EncoderLayer(settings))
    theirs = torch_layer(nn.TransformerEncoderLayer, settings, translated(ours))
    x, real = torch.randn(BATCH, SOURCE, MODEL), source_padding()
    expected = theirs(x, src_key_padding_mask=~real)
    allowed = combined_mask(real, SOURCE, causal=False)
    if path == "fast":
        with fast_path():
            result = ours(x, allowed)
    else:
        result = ours(x, allowed)
    # Rows of padding do not matter: torch's inference path may leave zeros there.
    torch.testing.assert_close(result[real], expected[real], rtol=0, atol=1e-5)


@pytest.mark.parametrize("path", ["readable", "fast"])
@pytest.mark.parametrize(("norm", "activation"), CASES)
def test_decoder_layer(norm: str, activation: str, path: str) -> None:
    torch.manual_seed(4)
    settings = config(norm=norm, activation=activation)
    ours = randomised(DecoderLayer(settings))
    theirs = torch_layer(nn.TransformerDecoderLayer, settings, translated(ours))
    x, memory, source_real = torch.randn(BATCH, TARGET, MODEL), torch.randn(BATCH, SOURCE, MODEL), source_padding()
    target_real = torch.ones(BATCH, TARGET, dtype=torch.bool)
    target_real[1, 4:] = False
    expected = theirs(
        x, memory, tgt_mask=~causal_mask(TARGET, TARGET), tgt_key_padding_mask=~target_real,
        memory_key_padding_mask=~source_real,
    )  # fmt: skip
    allowed = combined_mask(target_real, TARGET, causal=True)
    memory_allowed = combined_mask(source_real, TARGET, causal=False)
    if path == "fast":
        with fast_path():
            result = ours(x, allowed, memory, memory_allowed)
    else:
        result = ours(x, allowed, memory, memory_allowed)
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_layer_without_cross_attention_is_a_causal_encoder_layer(norm: str) -> None:
    torch.manual_seed(5)
    settings = config("decoder-only", norm=norm)
    ours = randomised(DecoderLayer(settings, cross=False))
    state = translated_without_cross(ours)
    theirs = torch_layer(nn.TransformerEncoderLayer, settings, state)
    x = torch.randn(BATCH, TARGET, MODEL)
    allowed = causal_mask(TARGET, TARGET).expand(BATCH, TARGET, TARGET)
    expected = theirs(x, src_mask=~causal_mask(TARGET, TARGET))
    torch.testing.assert_close(ours(x, allowed), expected, rtol=0, atol=1e-5)


def translated_without_cross(layer: DecoderLayer) -> dict[str, Tensor]:
    twin = EncoderLayer(config())
    twin.load_state_dict(layer.state_dict())
    return translated(twin)


def test_layer_norm_equals_torch() -> None:
    torch.manual_seed(6)
    ours = randomised(LayerNorm(config(layer_norm_epsilon=1e-3)))
    theirs = nn.LayerNorm(MODEL, eps=1e-3)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(BATCH, SOURCE, MODEL) * 3 + 1
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=1e-6)
    with fast_path():
        torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=0)


def test_rms_norm_equals_torch() -> None:
    torch.manual_seed(6)
    ours = randomised(norm_layer(config(layer_norm_epsilon=1e-3, rms_norm=True)))
    theirs = nn.RMSNorm(MODEL, eps=1e-3)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(BATCH, SOURCE, MODEL) * 3 + 1
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_feed_forward_treats_every_position_alone(activation: str) -> None:
    torch.manual_seed(7)
    layer = randomised(FeedForward(config(activation=activation)))
    x = torch.randn(1, 4, MODEL)
    together = layer(x)
    for position in range(4):
        torch.testing.assert_close(layer(x[:, position : position + 1])[:, 0], together[:, position])
    hidden = getattr(torch.nn.functional, activation)(layer.input_projection(x))
    torch.testing.assert_close(together, layer.output_projection(hidden))
