"""A new position computed from the weights equals the layers' result, even with hooked parts."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.transformer.tiny import SOURCE, random_model
from transformer.config import NORMS, POSITIONS
from transformer.decoder import DecoderLayer
from transformer.fast.shortcut import fast_path
from transformer.fast.writing_steps import WritingLayer, WritingSteps
from transformer.models import Model
from transformer.runs.decoding_state import DecodingState

IDS = torch.tensor([[1, 7, 19, 11], [1, 12, 12, 3]])
SOURCES = torch.cat((SOURCE, torch.tensor([[8, 4, 2, 0, 0, 0]])))  # the second is padded


def last_logits(model: Model, *, cached: bool) -> torch.Tensor:
    """Return the state after the fourth token, generated token by token or in one pass of the modules."""
    source = SOURCES if model.config.has_encoder else None
    with torch.inference_mode(), fast_path():
        state = DecodingState(model, source, cached=cached)
        if not cached:
            return state.feed(IDS)
        return [state.feed(IDS[:, t : t + 1]) for t in range(4)][-1]


class Doubled(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only"])
def test_our_own_layers_are_all_taken_apart(kind: str, positions: str, norm: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    assert {type(layer) for layer in WritingSteps(model.decoder).layers} == {WritingLayer}
    torch.testing.assert_close(last_logits(model, cached=True), last_logits(model, cached=False), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        *(f"self_attention.{part}_projection" for part in ("query", "key", "value", "output")),
        *(f"cross_attention.{part}_projection" for part in ("query", "key", "value", "output")),
        *("feed_forward.input_projection", "feed_forward.output_projection"),
    ],
)
def test_a_matrix_that_is_replaced_is_the_one_that_writes(name: str) -> None:
    model = random_model.__wrapped__("encoder-decoder")
    plain, layer = last_logits(model, cached=True), model.decoder.layers[1]
    before = layer.get_submodule(name)
    doubled = Doubled(before.in_features, before.out_features)
    doubled.load_state_dict(before.state_dict())
    layer.set_submodule(name, doubled)
    written = last_logits(model, cached=True)
    torch.testing.assert_close(written, last_logits(model, cached=False), rtol=0, atol=1e-5)
    assert not torch.allclose(written, plain, atol=1e-3)


def test_a_norm_and_a_layer_that_are_replaced_are_the_ones_that_write() -> None:
    class Turned(DecoderLayer):
        def forward(self, *args: object) -> torch.Tensor:
            return super().forward(*args).flip(-1)

    model = random_model.__wrapped__("decoder-only")
    plain, layers = last_logits(model, cached=True), model.decoder.layers
    layers[0].feed_forward_norm = nn.Identity()
    without_norm = last_logits(model, cached=True)
    torch.testing.assert_close(without_norm, last_logits(model, cached=False), rtol=0, atol=1e-5)
    assert not torch.allclose(without_norm, plain, atol=1e-3)
    turned = Turned(model.config, cross=False).eval()
    turned.load_state_dict(layers[1].state_dict())
    layers[1] = turned
    written = last_logits(model, cached=True)
    torch.testing.assert_close(written, last_logits(model, cached=False), rtol=0, atol=1e-5)
    assert not torch.allclose(written, without_norm, atol=1e-3)


def test_a_forward_hook_on_any_module_sees_and_changes_every_step() -> None:
    for name in ("decoder", "decoder.layers.1", "decoder.layers.0.feed_forward", "decoder.layers.0.residual.out"):
        model, seen = random_model.__wrapped__("decoder-only"), []
        plain = last_logits(model, cached=True)
        module = model.get_submodule(name)
        module.register_forward_hook(lambda module, inputs, output, seen=seen: seen.append(1) or output.flip(-1))
        written = last_logits(model, cached=True)
        assert len(seen) == IDS.shape[1], name
        torch.testing.assert_close(written, last_logits(model, cached=False), rtol=0, atol=1e-5)
        assert not torch.allclose(written, plain, atol=1e-3)


def test_a_model_in_training_drops_while_it_writes() -> None:
    model = random_model.__wrapped__("decoder-only", dropout=0.5)
    plain = last_logits(model, cached=True)
    model.train()
    dropped = [last_logits(model, cached=True) for _ in range(2)]
    assert not torch.allclose(dropped[0], dropped[1])
    assert torch.equal(last_logits(model.eval(), cached=True), plain)
